"""`yardmaster live local`: a workload of real commands on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say, say_json
from yardmaster.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.live.local.runner import Result

NAMED = 20
"""So many failed jobs are named at the end."""


def local(
    workload: Annotated[Path, Parameter(help="Jobs and their commands: .toml or .csv.")],
    *,
    scheduler: Annotated[
        str, Parameter(name=["--scheduler", "-s"], help="Who decides: an order, policy or chooser.")
    ] = "sjf+easy",
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="Folder of the run; one that exists is taken up again. By default a new one in"
            " runs/.",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        Parameter(help="Slots that stand for GPUs, where there are none; jobs then see no GPU."),
    ] = None,
    slots_per_gpu: Annotated[int, Parameter(help="Jobs that may share one GPU.")] = 1,
    grace_s: Annotated[
        float, Parameter(help="Seconds between asking a job to end and killing it.")
    ] = 10.0,
    sample_s: Annotated[float, Parameter(help="Seconds between two samples of the machine.")] = 1.0,
    seed: Annotated[int, Parameter(help="Seed of random schedulers.")] = 0,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> int:
    """Run every job, and end with exit code 1 if some job failed or was left."""
    from yardmaster.live.local.commands import read_commands
    from yardmaster.live.local.runner import Settings, run_local

    commands = read_commands(workload)
    folder = out or new_folder(Path("runs"), commands.name)
    result = run_local(
        commands,
        folder,
        Settings(
            scheduler=scheduler, gpus=gpus, slots_per_gpu=slots_per_gpu, grace_s=grace_s,
            sample_s=sample_s, seed=seed,
        ),
        report=None if quiet else remark,
    )  # fmt: skip
    again = going_on(
        "local", workload, folder,
        {
            "scheduler": (scheduler, "sjf+easy"), "gpus": (gpus, None),
            "slots-per-gpu": (slots_per_gpu, 1), "grace-s": (grace_s, 10.0),
            "sample-s": (sample_s, 1.0), "seed": (seed, 0),
        },
    )  # fmt: skip
    return tell_ending(result, folder, again, as_json=json)


def going_on(
    kind: str, workload: Path, folder: Path, options: Mapping[str, tuple[object, object]]
) -> str:
    """Return the command that takes a stopped run up again.

    Args:
        kind: `local` or `ray`.
        workload: the file of jobs.
        folder: the run's folder.
        options: value and default of each option; defaults need not be said again.
    """
    words = ["yardmaster", "live", kind, str(workload), "-o", str(folder)]
    for name, (value, default) in options.items():
        if value != default:
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def tell_ending(result: Result, folder: Path, again: str, *, as_json: bool) -> int:
    """Print how a live run ended; return the exit code: 1 if some job failed or was left.

    Args:
        result: how it ended.
        folder: the run's folder.
        again: the command that takes it up again.
        as_json: print it for programs.
    """
    if as_json:
        say_json(
            {
                "folder": str(folder), "state": result.state, "finished": result.finished,
                "failed": result.failed, "unfinished": result.unfinished,
                "found_again": result.found_again, "failures": list(result.failures),
            }
        )  # fmt: skip
    else:
        found = f", {result.found_again} found again" if result.found_again else ""
        say(
            f"{result.state}: {result.finished} jobs done, {result.failed} failed,"
            f" {result.unfinished} left{found}. Folder: {folder}"
        )
        if result.failures:
            more = len(result.failures) - NAMED
            names = ", ".join(result.failures[:NAMED]) + (f" and {more} more" if more > 0 else "")
            say(f"failed: {names}; logs in {folder / 'jobs'}")
    if result.unfinished:
        remark(f"To go on: {again}")
    return 0 if result.failed == result.unfinished == 0 else 1


def new_folder(parent: Path, name: str) -> Path:
    """Return a folder that does not exist yet."""
    stem = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name) or "live"
    number = 1
    while (parent / f"live-{stem}-{number}").exists():
        number += 1
    return parent / f"live-{stem}-{number}"
