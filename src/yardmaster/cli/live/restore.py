"""`yardmaster live restore`: take our factors away after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import say
from yardmaster.cli.options import QuietOption
from yardmaster.errors import YardmasterError


def restore(
    folder: Annotated[Path, Parameter(help="Folder of the run (`live slurm --out`).")] = Path(
        "runs/slurm"
    ),
    *,
    if_stale_s: Annotated[
        float | None,
        Parameter(
            help="Only if the run has given no sign of life for so many seconds, even if its"
            " process hangs; for cron."
        ),
    ] = None,
    all_: Annotated[
        bool,
        Parameter(
            name="--all", negative="", help="Take away every SiteFactor, other people's too."
        ),
    ] = False,
    timeout_s: Annotated[float, Parameter(help="How long a Slurm command may take.")] = 20.0,
    quiet: QuietOption = False,
) -> None:
    """Take Yardmaster's factors away; Slurm's own order is back with its next pass.

    As a cron line: `* * * * * yardmaster live restore FOLDER --if-stale-s 120 --quiet`.
    """
    from yardmaster.live.folder import LiveFolder
    from yardmaster.live.slurm.commands import Slurm
    from yardmaster.live.slurm.ledger import Ledger
    from yardmaster.live.slurm.restoring import check_folder, heartbeat_age_s
    from yardmaster.live.slurm.restoring import restore as take_away

    check_folder(folder)
    if if_stale_s is not None:
        age_s = heartbeat_age_s(folder)
        if age_s < if_stale_s:
            if not quiet:
                say(f"The run gave a sign of life {age_s:.0f} s ago; nothing was done.")
            return
    else:
        LiveFolder(folder).close()  # refuses while the run is at work
    done = take_away(Slurm(timeout_s), Ledger(folder), everyone=all_)
    if not quiet or done.left:
        others = f" {done.others} jobs carry a factor of somebody else." if done.others else ""
        say(f"{done.zeroed} factors taken away, {done.left} left.{others}")
    if done.left:
        raise YardmasterError("Some factors could not be taken away; try again, or use --all.")
