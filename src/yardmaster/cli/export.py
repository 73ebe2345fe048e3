"""`yardmaster export`: a run for other programs to show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say
from yardmaster.cli.options import OverwriteFileOption, QuietOption


def export(
    run: Annotated[Path, Parameter(help="Run directory of `simulate` or `compare`.")],
    /,
    *,
    perfetto: Annotated[
        Path,
        Parameter(
            help="Trace to write, .json or .json.gz: every GPU is a track. Open it in"
            " ui.perfetto.dev or chrome://tracing."
        ),
    ],
    scheduler: Annotated[
        str | None,
        Parameter(
            name=["--scheduler", "-s"], help="Which of the run's schedulers, if it has several."
        ),
    ] = None,
    workload: Annotated[
        int, Parameter(name=["--workload", "-w"], help="Which of the run's workloads, from 0.")
    ] = 0,
    overwrite: OverwriteFileOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a schedule of a run as a trace for Perfetto.

    Slices are jobs on GPUs; queue length and GPUs in use are counters, preemptions and failures
    are marks.
    """
    from yardmaster.experiments.saved_schedules import read_schedule
    from yardmaster.report.perfetto import write_perfetto
    from yardmaster.workloads.files import refuse_to_replace

    refuse_to_replace(perfetto, overwrite=overwrite)
    saved = read_schedule(run, _number(run, scheduler, workload))
    if not saved.is_same and not quiet:
        remark(
            f"This is not the schedule that {run} recorded: it was made by another version, or its"
            " files were changed (`yardmaster rerun` says what differs)."
        )
    write_perfetto(saved.schedule, perfetto, overwrite=overwrite)
    say(str(perfetto))


def _number(run: Path, scheduler: str | None, workload: int) -> int:
    """Return which of the run's simulations is meant."""
    from yardmaster.errors import YardmasterError
    from yardmaster.experiments.saved_schedules import list_simulations
    from yardmaster.names import unknown
    from yardmaster.schedulers.language import parse_scheduler

    if not run.is_dir():
        raise YardmasterError(f"There is no run {run}.")
    known = list_simulations(run)
    names = list(dict.fromkeys(one.scheduler for one in known))
    if scheduler is None and len(names) > 1:
        raise YardmasterError(
            f"{run} holds {len(names)} schedulers; name one with --scheduler: {', '.join(names)}."
        )
    wanted = names[0] if scheduler is None and names else scheduler or ""
    if wanted not in names:
        wanted = str(parse_scheduler(wanted))  # it may be written in another way
    found = [one.number for one in known if one.scheduler == wanted]
    if not found:
        raise unknown(f"scheduler of {run}", wanted, names)
    if not 0 <= workload < len(found):
        raise YardmasterError(
            f"{run} has {len(found)} workload(s), numbered from 0; there is no {workload}."
        )
    return found[workload]
