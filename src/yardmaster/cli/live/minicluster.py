"""`yardmaster live minicluster`: a real, small Slurm cluster on this machine, to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from yardmaster.cli.console import remark, say


def minicluster(
    action: Annotated[Literal["up", "down"], Parameter(help="Start it, or remove it.")],
    folder: Annotated[Path, Parameter(help="Its private folder, new or empty.")] = Path(
        "/tmp/yardmaster-minicluster"  # noqa: S108 - sockets need a short path; the name may be given
    ),
    *,
    nodes: Annotated[int, Parameter(help="Nodes.")] = 4,
    gpus: Annotated[int, Parameter(help="Pretended GPUs of each node.")] = 8,
) -> None:
    """Start or remove a real Slurm cluster with pretended GPUs: munge, MariaDB, slurmdbd and all.

    Needs no systemd and no root. `down` cancels all its jobs and leaves nothing behind.
    """
    from yardmaster.live.slurm.minicluster.cluster import MiniCluster
    from yardmaster.live.slurm.minicluster.documents import Shape

    cluster = MiniCluster(folder, Shape(nodes=nodes, gpus=gpus))
    if action == "down":
        cluster.down()
        say(f"{folder} is gone.")
        return
    cluster.up()
    remark(f"{nodes} nodes with {gpus} GPUs each are up. To mean this cluster:")
    say(f"export SLURM_CONF={cluster.conf}")
