"""The workload a command works on: a file, or a preset of a size that suits a first look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yardmaster.cli.console import remark

if TYPE_CHECKING:
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.workload import Workload

DEFAULT_CLUSTER = "demo"
"""Cluster whose GPUs the load of a preset refers to when no cluster is named."""


def load_source(
    source: str,
    *,
    cluster: Cluster | None = None,
    jobs: int | None = None,
    load: float | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Workload:
    """Return the workload that the user named.

    Raises:
        YardmasterError: if there is no such file or preset, or an option makes no sense.
    """
    from yardmaster.errors import YardmasterError
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.workloads.sources import is_generated, load_workload

    generated = is_generated(source)
    if load is not None and cluster is None and not generated:
        raise YardmasterError("--load refers to a number of GPUs: name a --cluster.")
    gpus = (cluster or load_cluster(DEFAULT_CLUSTER)).gpus
    workload = load_workload(source, jobs=jobs, seed=seed, gpus=gpus, load=load)
    if generated and not quiet:
        remark(
            f"{source} is generated: {len(workload):,} jobs, seed {seed}, for {gpus:,} GPUs;"
            " `workload generate` makes others."
        )
    return workload
