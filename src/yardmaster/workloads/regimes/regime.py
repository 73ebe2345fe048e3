"""A regime: a process that jobs come from, and the machines they run on.

The process is one or several *phases* of the clock, and in each phase one or several *streams* of
jobs at once. A stream is a recipe as a TOML file holds it (see `recipes.document`), so that all of
a regime is plain values and can be written down, compared and rebuilt.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.workloads.arguments import whole_number
from yardmaster.workloads.operations.merging import merged
from yardmaster.workloads.recipes.document import recipe_from
from yardmaster.workloads.sources import with_load
from yardmaster.workloads.synthetic import generate

Label = str | int | float
Stream = Mapping[str, Any]
"""A recipe, as a TOML file holds it."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the clock, and the streams whose jobs are submitted in it.

    Every stream is drawn on the clock of the whole regime from second 0 on, and of its jobs those
    submitted within the phase are kept: a rate that swings with the hour swings on in a later
    phase where the hour says, and does not begin anew.
    """

    streams: tuple[Stream, ...]
    begin_s: float = 0.0
    end_s: float = math.inf
    """Jobs are submitted before this second."""

    def table(self) -> dict[str, Any]:
        """Return the phase as plain values; no end is None."""
        end_s = None if math.isinf(self.end_s) else self.end_s
        streams = [copy.deepcopy(dict(stream)) for stream in self.streams]
        return {"begin_s": self.begin_s, "end_s": end_s, "streams": streams}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Phase:
        """Return the phase that `table` describes."""
        end_s = math.inf if table["end_s"] is None else float(table["end_s"])
        return cls(tuple(table["streams"]), float(table["begin_s"]), end_s)


@dataclass(frozen=True, slots=True)
class Regime:
    """One situation that schedulers are tried in.

    Attributes:
        name: name for tables, unique among the regimes of all families.
        family: the family it belongs to.
        phases: where jobs come from, earliest first.
        cluster: what `load_cluster` takes, or the content of a cluster's TOML file.
        labels: what tells it apart from others of its family (shape, intensity, gpus, …).
        load: offered load that the submissions are stretched to exactly; None keeps their times.
            The number of GPUs counts, whatever their types.
        description: what it is, in one line; determines nothing.
    """

    name: str
    family: str
    phases: tuple[Phase, ...]
    cluster: str | Mapping[str, Any]
    labels: Mapping[str, Label] = field(default_factory=dict)
    load: float | None = None
    description: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.load is not None and len(self.phases) > 1:
            raise InvalidWorkloadError(
                f"{self.name}: submissions in phases have times of their own and cannot be"
                " stretched to a load."
            )

    @property
    def changes_s(self) -> tuple[float, ...]:
        """Seconds at which the process changes; empty where it does not drift."""
        return tuple(phase.begin_s for phase in self.phases[1:])

    def jobs(self, seed: int) -> Workload:
        """Draw the jobs: equal regimes and seeds give equal jobs.

        A regime of a single stream gives the jobs that `generate` gives for the seed. Of several,
        each has a seed of its own that follows from this one.

        Raises:
            InvalidWorkloadError: if the seed makes no sense, or no job is submitted.
            InvalidConfigError: with everything that is wrong in a stream.
        """
        seed = whole_number("seed", seed, smallest=0)
        gpus = self.machines().gpus
        parts = [
            self._part(phase, stream, gpus, self._seed(seed, place))
            for place, (phase, stream) in enumerate(self._streams())
        ]
        drawn = [part for part in parts if part is not None]
        if not drawn:
            raise InvalidWorkloadError(f"{self.name}: no job is submitted with seed {seed}.")
        # Of several streams every job is numbered anew, in the order of submissions.
        jobs = drawn[0] if len(drawn) == 1 else merged(drawn).with_columns(id=None)
        note = f"regime {self.name} of family {self.family}, seed {seed}"
        jobs = jobs.renamed(self.name, note)
        return jobs if self.load is None else with_load(jobs, gpus=gpus, load=self.load)

    def machines(self) -> Cluster:
        """Return the cluster.

        Raises:
            YardmasterError: if the cluster has no such name, or its document has mistakes.
        """
        if isinstance(self.cluster, str):
            return load_cluster(self.cluster)
        from yardmaster.model.cluster_document import ClusterDocument
        from yardmaster.model.documents import validate

        content = copy.deepcopy(dict(self.cluster))
        document = validate(ClusterDocument, content, f"cluster of regime {self.name!r}")
        return document.cluster(self.name)

    def table(self) -> dict[str, Any]:
        """Return plain JSON values that determine the regime: equal tables, equal regimes."""
        return {
            "name": self.name,
            "family": self.family,
            "labels": dict(self.labels),
            "phases": [phase.table() for phase in self.phases],
            "cluster": copy.deepcopy(self.cluster),
            "load": self.load,
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Regime:
        """Return the regime whose `table` this is."""
        phases = tuple(Phase.from_table(phase) for phase in table["phases"])
        return cls(**{**table, "phases": phases})

    def _streams(self) -> Iterator[tuple[Phase, Stream]]:
        return ((phase, stream) for phase in self.phases for stream in phase.streams)

    def _seed(self, seed: int, place: int) -> int:
        if len(self.phases) == len(self.phases[0].streams) == 1:
            return seed
        return int(np.random.SeedSequence([seed, place]).generate_state(1, np.uint64)[0])

    def _part(self, phase: Phase, stream: Stream, gpus: int, seed: int) -> Workload | None:
        """Draw the jobs of a stream that are submitted within its phase; None if none are."""
        recipe = recipe_from(stream, f"regime {self.name!r}")
        jobs = generate(recipe, seed=seed, gpus=gpus)
        is_inside = (jobs.submit_s >= phase.begin_s) & (jobs.submit_s < phase.end_s)
        if is_inside.all():
            return jobs
        return jobs.select(is_inside) if is_inside.any() else None
