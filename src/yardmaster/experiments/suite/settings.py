"""Where the jobs and the machines of a run come from: a regime, or what the user names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from yardmaster.errors import YardmasterError
from yardmaster.experiments.contents import digest_of, replayed_by
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import FILE_COPIES
from yardmaster.workloads.sources import is_generated, load_workload

OWN_FAMILY = "own"
"""The family of workloads that a document names itself."""

Label = str | int | float


class Setting(Protocol):
    """What a scheduler is tried in; a `Regime` is one."""

    @property
    def name(self) -> str:
        """Name for tables, unique within its family."""

    @property
    def family(self) -> str:
        """Settings that belong together."""

    @property
    def labels(self) -> Mapping[str, Label]:
        """What tells it apart from others: columns of the results."""

    @property
    def changes_s(self) -> tuple[float, ...]:
        """Seconds at which the nature of the jobs changes."""

    def jobs(self, seed: int) -> Workload:
        """Draw the jobs."""

    def machines(self) -> Cluster:
        """Return the cluster."""

    def table(self) -> dict[str, Any]:
        """Return plain values that determine both."""


@dataclass(frozen=True, slots=True)
class OwnWorkload:
    """A preset, a recipe or a file, on any cluster.

    Attributes:
        name: name for tables.
        workload: what `load_workload` takes.
        cluster: what `load_cluster` takes.
        count: jobs to generate, or to keep of a file.
        load: offered load.
        labels: further columns of the results.
    """

    name: str
    workload: str
    cluster: str
    count: int | None = None
    load: float | None = None
    labels: Mapping[str, Label] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """All of them are of one family."""
        return OWN_FAMILY

    @property
    def changes_s(self) -> tuple[float, ...]:
        """Nothing is known of changes."""
        return ()

    def jobs(self, seed: int) -> Workload:
        """Generate the jobs, or read them.

        Raises:
            YardmasterError: if the workload has no such name or cannot be read.
        """
        gpus = self.machines().gpus
        source = _found(self.workload)
        return load_workload(source, jobs=self.count, seed=seed, gpus=gpus, load=self.load)

    def machines(self) -> Cluster:
        """Return the cluster.

        Raises:
            YardmasterError: if there is no such cluster.
        """
        return load_cluster(_found(self.cluster))

    def table(self) -> dict[str, Any]:
        """Return plain values that determine jobs and machines: files by name and content."""
        workload, cluster = (
            _digest(self.workload, replayed_by(self.workload)),
            _digest(self.cluster),
        )
        return {
            "workload": self.workload if workload is None else Path(self.workload).name,
            "workload_file": workload,
            "cluster": self.cluster if cluster is None else Path(self.cluster).name,
            "cluster_file": cluster,
            "jobs": self.count,
            "load": self.load,
        }

    def files(self) -> dict[str, Path]:
        """Return the files it is made of, by the path written, that other machines may lack.

        A recipe that leans on a file of arrivals is not among them: it looks for that beside it.
        """
        named = [self.cluster] if replayed_by(self.workload) else [self.cluster, self.workload]
        return {name: path for name in named if (path := Path(name)).is_file()}

    @property
    def is_drawn(self) -> bool:
        """Whether every seed gives other jobs."""
        return is_generated(self.workload)


def _found(source: str) -> str:
    """Return where a file that is named lies: the copy in use, or where it was written."""
    return str(FILE_COPIES.get(source, source))


def _digest(source: str, leans_on: str | None = None) -> str | None:
    """Return the digest of a file's content, None for what is no file."""
    if Path(source).expanduser().is_dir():
        raise YardmasterError(f"{source} is a folder; name a file, a preset or a recipe.")
    return digest_of(source, leans_on)
