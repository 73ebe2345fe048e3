"""`yardmaster live replay`: what the simulator would have said of a live run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from yardmaster.cli.console import say, say_json
from yardmaster.cli.options import JsonOption


def replay(
    folder: Annotated[Path, Parameter(help="Folder of a `live local` run.")],
    *,
    run_times: Annotated[
        Literal["measured", "believed"],
        Parameter(
            help="Simulate with run times as they were measured (only waiting is predicted), or as"
            " they were believed before."
        ),
    ] = "measured",
    overhead_s: Annotated[
        float, Parameter(help="Seconds that starting adds to every believed run time.")
    ] = 0.0,
    scheduler: Annotated[
        str | None,
        Parameter(name=["--scheduler", "-s"], help="Who decides; by default who did."),
    ] = None,
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Also write the report as Markdown.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Simulate the run again and set predicted beside measured, job by job."""
    from yardmaster.live.replay import replay_log

    likeness = replay_log(folder, run_times=run_times, overhead_s=overhead_s, scheduler=scheduler)
    summary, rows = likeness.summary(), likeness.rows()
    text = _markdown(summary, rows)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if json:
        say_json({"summary": summary, "jobs": rows})
    else:
        say(text)


def _markdown(summary: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    head = list(rows[0])
    jobs = (
        f"{summary['jobs']} jobs ended, {summary['unfinished']} did not. Run times:"
        f" {summary['run_times']}; overhead {summary['overhead_s']:g} s."
    )
    means = (
        f"Mean JCT {summary['measured_mean_jct_s']:.2f} s measured,"
        f" {summary['predicted_mean_jct_s']:.2f} s predicted"
        f" ({summary['mean_error_percent']:+.1f} %). Per job: mean absolute error"
        f" {summary['mean_absolute_error_s']:.2f} s, median"
        f" {summary['median_absolute_error_percent']:.1f} %, largest"
        f" {summary['largest_absolute_error_s']:.2f} s."
    )
    if not summary["same_scheduler"]:
        jobs += " The rehearsal's scheduler is another than decided then, or was trained anew."
    lines = [
        f"# {summary['scheduler']}: predicted against measured",
        "",
        jobs,
        "",
        means,
        "",
        "| " + " | ".join(head) + " |",
        "| " + " | ".join("---" for _ in head) + " |",
    ]
    lines += ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines) + "\n"
