"""What the engine must know of an order: numbers per job, not code.

Every heuristic is one of four kinds of key (see `OrderKind`), so the compiled core needs no
branch per heuristic and a new heuristic needs no recompilation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from yardmaster.engine.state import OrderKind
from yardmaster.model.workload import FloatArray, IntArray

Rekey = Callable[[IntArray, float], FloatArray]
"""(rows of waiting jobs, now in seconds) → their keys; called before every scheduling pass."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderKeys:
    """The keys of all jobs under one order; the lowest key goes first, ties by submission."""

    kind: OrderKind
    offset: FloatArray
    """(jobs,) the key itself, or the constant part of an ageing key."""
    rate: FloatArray | None = None
    """(jobs,) change of the key per second of age."""
    since: FloatArray | None = None
    """(jobs,) second from which age counts."""
    clip_s: tuple[float, float] = (-math.inf, math.inf)
    """Bounds of the age, seconds."""
    group: IntArray | None = None
    """(jobs,) whose history counts, 0…groups−1."""
    rekey: Rekey | None = None
    """A Python function that gives the keys anew before every pass."""
    weighted: bool = False
    """Whether attained service counts every GPU of the gang (ATTAINED)."""
    release_s: FloatArray | None = None
    """(jobs,) second before which a job is not let into the queue; None: submission."""
    levels_s: tuple[float, ...] = ()
    """Service at which a job sinks to the next queue (ATTAINED); none: every second counts."""

    @classmethod
    def fixed(cls, key: FloatArray) -> OrderKeys:
        """Keys that never change while a job waits."""
        return cls(OrderKind.FIXED, np.asarray(key, dtype=np.float64))

    @classmethod
    def ageing(
        cls,
        *,
        rate: FloatArray,
        since: FloatArray,
        offset: FloatArray | None = None,
        clip_s: tuple[float, float] = (-math.inf, math.inf),
    ) -> OrderKeys:
        """Keys of the form offset + rate · clip(now − since)."""
        constant = np.zeros(len(rate)) if offset is None else offset
        return cls(OrderKind.AGEING, constant, rate=rate, since=since, clip_s=clip_s)

    @classmethod
    def shuffled(cls, jobs: int) -> OrderKeys:
        """Random keys, drawn anew for every scheduling pass."""
        return cls(OrderKind.SHUFFLED, np.zeros(jobs))

    @classmethod
    def history(cls, group: IntArray) -> OrderKeys:
        """GPUs × mean run time of the group's jobs that have finished by the submission."""
        return cls(OrderKind.HISTORY, np.zeros(len(group)), group=group)

    @classmethod
    def called(cls, jobs: int, rekey: Rekey) -> OrderKeys:
        """Keys from a Python function, asked before every scheduling pass."""
        return cls(OrderKind.FIXED, np.zeros(jobs), rekey=rekey)

    @classmethod
    def remaining(cls, run_s: FloatArray) -> OrderKeys:
        """Expected work left: the run time, until the job has run for a while."""
        return cls(OrderKind.REMAINING, np.asarray(run_s, dtype=np.float64))

    @classmethod
    def attained(cls, jobs: int, *, weighted: bool, levels_s: tuple[float, ...] = ()) -> OrderKeys:
        """Service so far, in seconds or GPU-seconds (`weighted`), or the levels it has passed."""
        return cls(OrderKind.ATTAINED, np.zeros(jobs), weighted=weighted, levels_s=levels_s)

    @classmethod
    def by_tenant(cls, jobs: int, *, over_time: bool) -> OrderKeys:
        """What the job's tenant has used so far, or its dominant share now: least first."""
        return cls(OrderKind.USAGE if over_time else OrderKind.SHARE, np.zeros(jobs))

    @classmethod
    def released(cls, release_s: FloatArray) -> OrderKeys:
        """First released first; nobody is let into the queue before its release."""
        return cls(OrderKind.FIXED, release_s, release_s=release_s)
