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
    """Say what the scheduler wished, what Slurm did, and what would have been gained."""
    from yardmaster.live.slurm.shadow import shadow_report as report

    found = report(folder, scheduler=scheduler, baseline=baseline)
    if json:
        say_json(found.record())
    else:
        say(found.in_words())
