"""`yardmaster live shadow-report`: what would we have gained?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import say, say_json
from yardmaster.cli.options import JsonOption


def shadow_report(
    folder: Annotated[Path, Parameter(help="Folder of a run beside Slurm.")] = Path("runs/slurm"),
    *,
    scheduler: Annotated[
        str | None, Parameter(name=["--scheduler", "-s"], help="Who decides; else the run's.")
    ] = None,
    baseline: Annotated[str, Parameter(help="What stands for Slurm in simulation.")] = "fifo+easy",
    json: JsonOption = False,
) -> None:
    """Say what the scheduler wished, what Slurm did, and what would have been gained.

    While no job has started and ended, it says how many wait and run instead.
    """
    from yardmaster.live.slurm.shadow import TooEarlyError
    from yardmaster.live.slurm.shadow import shadow_report as report

    try:
        found = report(folder, scheduler=scheduler, baseline=baseline)
    except TooEarlyError as early:  # a young run is no mistake
        counts = {"jobs": 0, "waiting": early.waiting, "running": early.running}
        say_json(counts) if json else say(str(early))
        return
    if json:
        say_json(found.record())
    else:
        say(found.in_words())
