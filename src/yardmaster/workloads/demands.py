"""What generated jobs ask for besides whole GPUs: kinds, sizes to choose from, parts, cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np

from yardmaster.model.workload import IntArray
from yardmaster.workloads.recipes.parameters import Part, choice, number, share

LARGEST_ELASTIC_GPUS = 8
"""Jobs larger than this are never elastic, and no elastic job grows beyond it: one node."""

PARTS_MILLI = tuple(range(100, 1000, 100))
"""Thousandths of a GPU that fractional jobs ask for, each as often as any other."""

WHOLE_GPU_MEMORY_GIB = 16.0
"""Device memory of which a fractional job uses half to all of its share."""


class Kinds(StrEnum):
    """Where the kinds of generated jobs come from."""

    NONE = "none"
    """Nothing is known of a job but its duration."""
    MEASURED = "measured"
    """The kinds whose speeds were measured: every family as often as any other, and within a
    family every batch size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands(Part):
    """What jobs ask for besides whole GPUs; by default nothing.

    Attributes:
        kinds: `measured` draws each job's kind among those whose speeds are known.
        elastic: share of the jobs of at most 8 GPUs that can run on half to twice their GPUs, at
            least 1 and at most 8.
        fractions: share of the 1-GPU jobs that ask for 100, 200, … or 900 thousandths of it, and
            for as much of 16 GiB of device memory, times U(0.5, 1). They are never elastic.
        cores: CPU cores with every GPU, and with every part of one in proportion; 0: none asked.
    """

    kinds: str = choice("where the kinds of jobs come from", Kinds, default="none")
    elastic: float = share("share of elastic jobs among those of at most 8 GPUs", default=0.0)
    fractions: float = share("share of the 1-GPU jobs that ask for a part of it", default=0.0)
    cores: float = number("CPU cores with every GPU", least=0, most=10_000, default=0.0)

    def contradictions(self) -> Iterator[str]:
        """No job can be both elastic and fractional."""
        if self.elastic + self.fractions > 1.0:
            yield (
                f"elastic and fractions must sum to at most 1, got {self.elastic:g} and"
                f" {self.fractions:g}: no job is both."
            )

    def columns(
        self, rng: np.random.Generator, gpus: IntArray, milli_gpu: IntArray
    ) -> dict[str, Any]:
        """Draw the columns that these demands fill, for jobs of so many GPUs or parts of one.

        Every demand has its own stream of random numbers, so that one does not move another.
        """
        kind_rng, chance_rng, part_rng, memory_rng = rng.spawn(4)
        columns: dict[str, Any] = {}
        if self.kinds == Kinds.MEASURED:
            columns["kind"] = _measured_kinds(kind_rng, len(gpus))
        # One throw decides both, since no job is both elastic and fractional.
        chance = chance_rng.random(len(gpus))
        is_whole = milli_gpu == 1000
        if self.elastic > 0:
            chosen = (chance < self.elastic) & (gpus <= LARGEST_ELASTIC_GPUS) & is_whole
            columns["min_gpus"] = np.where(chosen, np.maximum(gpus // 2, 1), 0)
            columns["max_gpus"] = np.where(chosen, np.minimum(2 * gpus, LARGEST_ELASTIC_GPUS), 0)
        milli = milli_gpu
        if self.fractions > 0:
            chosen = (chance >= 1.0 - self.fractions) & (gpus == 1) & is_whole
            milli = np.where(chosen, part_rng.choice(PARTS_MILLI, len(gpus)), milli_gpu)
            used = memory_rng.uniform(0.5, 1.0, len(gpus)) * milli / 1000.0
            memory_gib = np.ceil(10.0 * WHOLE_GPU_MEMORY_GIB * used) / 10.0
            columns["gpu_memory_gib"] = np.where(chosen, memory_gib, np.nan)
        if not (milli == 1000).all():
            columns["milli_gpu"] = milli
        if self.cores > 0:
            columns["cpus"] = self.cores * gpus * (milli / 1000.0)
        return columns

    def notes(self) -> tuple[str, ...]:
        """Say what was asked for beyond the preset; nothing by default."""
        changed = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return (f"with {', '.join(changed)}",) if changed else ()


def _measured_kinds(rng: np.random.Generator, jobs: int) -> list[str]:
    """Draw a family for each job, then a batch size of the family."""
    from yardmaster.model.speeds import kinds

    families: dict[str, list[str]] = {}
    for name in kinds():
        families.setdefault(name.partition(" (")[0], []).append(name)
    chance = np.array(
        [1.0 / (len(families) * len(members)) for members in families.values() for _ in members]
    )
    names = [name for members in families.values() for name in members]
    return [names[index] for index in rng.choice(len(names), size=jobs, p=chance)]
