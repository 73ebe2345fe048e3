"""`yardmaster live why`: why is my job not starting?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import say


def why(
    job: Annotated[str, Parameter(help="Slurm's number of the job.")],
    *,
    folder: Annotated[
        Path | None,
        Parameter(help="Folder of a run beside Slurm: its scheduler and its factors are used."),
    ] = None,
    scheduler: Annotated[
        str | None, Parameter(name=["--scheduler", "-s"], help="Who decides; else the folder's.")
    ] = None,
    timeout_s: Annotated[float, Parameter(help="How long a Slurm command may take.")] = 20.0,
) -> None:
    """Say why a job does not start: Slurm's reason, its priority, and our place for it."""
    from yardmaster.live.slurm.asking_why import explain
    from yardmaster.live.slurm.commands import Slurm

    say(explain(Slurm(timeout_s), job, folder=folder, scheduler=scheduler))
