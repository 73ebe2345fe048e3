"""`yardmaster live ray`: a workload of real commands on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark
from yardmaster.cli.live.local import going_on, new_folder, tell_ending
from yardmaster.cli.options import JsonOption, QuietOption


def ray(
    workload: Annotated[Path, Parameter(help="Jobs and their commands: .toml or .csv.")],
    *,
    address: Annotated[
        str, Parameter(help="Address of the cluster's head; auto: the one on this machine.")
    ] = "auto",
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
    grace_s: Annotated[
        float, Parameter(help="Seconds between asking a job to end and killing it.")
    ] = 10.0,
    node_folder: Annotated[
        str,
        Parameter(
            help="Folder for jobs on the nodes; by default the run's own where a node sees it, else"
            " one in the user's cache there."
        ),
    ] = "",
    start_wait_s: Annotated[
        float, Parameter(help="Seconds Ray may take to give GPUs that it says are free.")
    ] = 60.0,
    loss_wait_s: Annotated[
        float,
        Parameter(help="Seconds that jobs of a host that is away wait before they go elsewhere."),
    ] = 90.0,
    seed: Annotated[int, Parameter(help="Seed of random schedulers.")] = 0,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> int:
    """Run every job, and end with exit code 1 if some job failed or was left."""
    import contextlib
    import os

    from yardmaster.live.local.commands import read_commands
    from yardmaster.live.ray.running import Settings, run_ray

    commands = read_commands(workload)
    folder = out or new_folder(Path("runs"), commands.name)
    if not quiet:
        remark(f"Looking for the nodes of the Ray cluster at {address} …")
    # Ray prints pages about a lost node where results belong; what matters of it we tell ourselves.
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        result = run_ray(
            commands,
            folder,
            Settings(
                scheduler=scheduler, address=address, grace_s=grace_s, node_folder=node_folder,
                start_wait_s=start_wait_s, loss_wait_s=loss_wait_s, seed=seed,
            ),
            report=None if quiet else remark,
        )  # fmt: skip
    again = going_on(
        "ray", workload, folder,
        {
            "address": (address, "auto"), "scheduler": (scheduler, "sjf+easy"),
            "grace-s": (grace_s, 10.0), "node-folder": (node_folder, ""),
            "start-wait-s": (start_wait_s, 60.0), "loss-wait-s": (loss_wait_s, 90.0),
            "seed": (seed, 0),
        },
    )  # fmt: skip
    return tell_ending(result, folder, again, as_json=json)
