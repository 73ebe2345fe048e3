"""What a run is: the document that every command that simulates shares with `rerun`.

A plan is resolved before anything runs and is saved with the results, so that a run directory says
everything needed to make it again.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field

from yardmaster.errors import YardmasterError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.documents import Document
from yardmaster.model.workload import Workload
from yardmaster.workloads.sources import is_generated, load_workload


class WhatIfQuestion(Document):
    """What could be different, as it was typed (see `whatif_changes`)."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    quota: tuple[str, ...] = ()
    scale_load: tuple[float, ...] = ()
    together: bool = False
    """All changes at once instead of each alone."""
    sweep: str | None = None
    target: str | None = None
    target_node: str | None = None


class EtaQuestion(Document):
    """Whose start is to be predicted, and how."""

    now_s: float | None = None
    """Moment of asking on the workload's clock; by default a typical one."""
    snapshot: str | None = None
    """A file that says who runs and who waits; the workload is then the past, if it is a file."""
    job: tuple[str, ...] = ()
    """Ids of the jobs asked for; by default all that wait."""
    gpus: int | None = Field(default=None, ge=1)
    """GPUs of a new job that is asked for instead."""
    hours: float | None = Field(default=None, gt=0)
    """What the owner of the new job expects it to take."""
    simulations: int = Field(default=200, ge=1)
    calibrate: int = Field(default=60, ge=0)
    """Earlier predictions to learn a correction from."""


class Plan(Document):
    """A simulation, a comparison or a question, fully stated."""

    schema_version: Literal[1] = 1
    """Version of this document; raised when its meaning changes."""
    command: Literal["simulate", "compare", "whatif", "eta"]
    workload: str
    """A preset or the path of a file."""
    cluster: str
    """A named cluster, a TOML file, or groups such as `8x A100:8`."""
    schedulers: tuple[str, ...] = Field(min_length=1)
    jobs: int | None = Field(default=None, ge=1)
    load: float | None = Field(default=None, gt=0)
    seed: int = Field(default=0, ge=0)
    """Seed of generated workloads (the first of them) and of random orders and placements."""
    seeds: int = Field(default=1, ge=1, le=10_000)
    """How many generated workloads are paired over."""
    objective: str = "mean_jct_s"
    baseline: str | None = None
    until_s: float | None = Field(default=None, ge=0)
    engine: Literal["core", "simpy"] = "core"
    compatibility: Literal["none", "rlscheduler"] = "none"
    whatif: WhatIfQuestion | None = None
    eta: EtaQuestion | None = None

    @property
    def source(self) -> str:
        """Where the run begins: the workload, or the snapshot that a question starts from."""
        return self.eta.snapshot if self.eta and self.eta.snapshot else self.workload

    @property
    def workload_files(self) -> int:
        """How many workloads a run directory of this plan holds."""
        has_no_past = self.source != self.workload and is_generated(self.workload)
        return 0 if has_no_past else self.seeds

    @property
    def cut_s(self) -> float:
        """Second at which the simulation is cut; infinity if it is not."""
        return math.inf if self.until_s is None else self.until_s

    def make_cluster(self) -> Cluster:
        """Load the cluster."""
        return load_cluster(self.cluster)

    def make_workloads(self, cluster: Cluster) -> list[Workload]:
        """Generate or read the workloads, one per seed.

        Raises:
            YardmasterError: if several seeds are asked of a file, which has only one workload.
        """
        if self.seeds > 1 and not is_generated(self.workload) and _is_file(self.workload):
            raise YardmasterError(
                f"{self.workload} is a file and holds one workload; seeds are for generated ones."
            )
        samples = []
        for seed in range(self.seed, self.seed + self.seeds):
            sample = load_workload(
                self.workload, jobs=self.jobs, seed=seed, gpus=cluster.gpus, load=self.load
            )
            several = self.seeds > 1
            named = sample.renamed(f"{sample.name}, seed {seed}") if several else sample
            # As a rerun will read it: names of jobs that were left out would be in the report.
            samples.append(named.compact())
        return samples


def _is_file(source: str) -> bool:
    return Path(source).exists() or "." in source
