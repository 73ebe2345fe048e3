"""`yardmaster evaluate`: trained policies against schedulers, on episodes none of them has seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from yardmaster.cli.console import announce, progress, remark, say, say_json
from yardmaster.cli.options import FormatOption, JsonOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.experiments.contest import Contest


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """What is played; by default what the first policy was trained on."""

    task: Annotated[str | None, Parameter(help="A ready task, in place of the policy's own.")] = (
        None
    )
    workload: Annotated[
        str | None,
        Parameter(name=["--workload", "-w"], help="Where jobs come from, in place of the task's."),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(name=["--cluster", "-c"], help="The machines, in place of the task's."),
    ] = None
    jobs: Annotated[int | None, Parameter(help="Jobs of an episode.")] = None
    load: Annotated[float | None, Parameter(help="Offered load: 0.9 keeps 90 % busy.")] = None
    reward: Annotated[
        str | None, Parameter(help="What returns count: wait, jct, bounded_slowdown, ….")
    ] = None

    def changes(self) -> dict[str, Any]:
        """Return what was given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def evaluate(
    *policies: Annotated[
        Path,
        Parameter(
            help="A run folder of `train` (its best), a checkpoint .pt, a policy .npz, policy:NAME."
        ),
    ],
    against: Annotated[
        str | None,
        Parameter(help="Schedulers separated by commas: fifo,sjf+easy,…; a few by default."),
    ] = None,
    options: TaskOptions = TaskOptions(),  # noqa: B008  (frozen)
    splits: Annotated[
        str | None,
        Parameter(
            help="Sets of episodes: val, report, train, all, or several by commas. By default"
            " val,report; of a file that no policy was trained on, all."
        ),
    ] = None,
    episodes: Annotated[int, Parameter(help="Episodes of each set.")] = 60,
    metric: Annotated[
        str | None,
        Parameter(
            help="What counts: returns, wait_s, jct_s, bounded_slowdown, slowdown, …. By default"
            " returns, or what the reward is about where an opponent has no returns."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Folder for results; by default a new one in runs/."),
    ] = None,
    overwrite: Annotated[bool, Parameter(negative="", help="Replace results at --out.")] = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Let policies and schedulers play the same episodes; say who is better, with intervals."""
    from yardmaster.experiments import evaluation
    from yardmaster.experiments.players import read_policy
    from yardmaster.experiments.training.folder import default_path

    found = [read_policy(path) for path in policies]
    if not found:
        from yardmaster.errors import YardmasterError

        raise YardmasterError(
            "Name a policy: a run folder of `train`, a .pt or a .npz file, policy:NAME."
        )
    task = evaluation.task_of(found, options.changes())
    folder = out or default_path("evaluate", found[0].name, options.task or "own-task")
    evaluation.refuse_folder(folder, overwrite=overwrite)
    with progress(quiet=quiet, things="players") as report:
        contest = evaluation.evaluate(
            found,
            task,
            against=None if against is None else _names(against),
            splits=None if splits is None else _sets(splits),
            episodes=episodes,
            metric=metric,
            progress=report,
            announce=None if quiet else announce,
        )
    _write(contest, folder)
    _tell(contest, "json" if json else format)
    if not quiet:
        remark(f"Results: {folder}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _sets(text: str) -> list[str]:
    """Split `val,report`; `both` means those two."""
    return ["val", "report"] if text.strip() == "both" else _names(text)


def _write(contest: Contest, folder: Path) -> None:
    from yardmaster.experiments.evaluation import write_contest
    from yardmaster.report.evaluation import contest_figure

    write_contest(contest, folder)
    (folder / "evaluation.svg").write_text(contest_figure(contest).svg, encoding="utf-8")


def _tell(contest: Contest, style: str) -> None:
    from yardmaster.cli.printing import print_table
    from yardmaster.report.evaluation import contest_tables, findings

    if style == "json":
        rows = [row for split in contest.splits for row in contest.records(split)]
        facts = {"task": contest.task, "metric": contest.metric, "episodes": contest.episodes}
        say_json(facts | {"notes": contest.notes, "findings": findings(contest), "rows": rows})
        return
    tables = contest_tables(contest)
    if style == "csv":  # one table for programs
        records = tuple(record for table in tables for record in table.records)
        tables = [replace(tables[-1], records=records)]
    for table in tables:
        print_table(table, style)
        say("")
    if style == "table":
        say("\n".join(findings(contest)))
