"""Hypothesis strategies for small but nasty simulations.

Everything is drawn to collide: few distinct times, jobs of no length, gangs around the size of a
node, GPU types that may be absent, equal keys. Use them to test an order or a metric of your own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference import simulate_reference
from yardmaster.engine.replay import Compile, replay
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.engine.state import Discipline, OrderKind, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, IntArray, Workload

GPU_TYPES = ("V100", "A100", "T4")
SEEDS = st.sampled_from([0, 1, 7, 2**40 + 3, -5])

PLAIN_DISCIPLINES = (
    Discipline.STRICT,
    Discipline.SKIP,
    Discipline.COMMIT,
    Discipline.EASY,
    Discipline.CONSERVATIVE,
)
PLAIN_PLACEMENTS = (Placement.FIRST, Placement.PACK, Placement.SPREAD, Placement.RANDOM)
PLAIN_ORDERS = (OrderKind.FIXED, OrderKind.AGEING, OrderKind.SHUFFLED, OrderKind.HISTORY)
"""What needs no conditions: it neither stops jobs nor asks how they get on."""

TICKS_S = (1.0, 0.25, 0.1)
"""Units of time; tenths cannot be written exactly in binary, so sums of them are rounded."""


@dataclass(frozen=True, slots=True)
class TurningKeys:
    """A Python order whose keys change from pass to pass, the same for equal arguments."""

    step: int
    modulus: int

    def __call__(self, rows: IntArray, now_s: float) -> FloatArray:
        """Return a key for each row that depends on nothing but the row and the time."""
        return ((rows * self.step + math.floor(now_s)) % self.modulus).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything one simulation needs; can be sent to another process."""

    workload: Workload
    cluster: Cluster
    keys: OrderKeys
    options: Options
    until_s: float

    @property
    def shapes(self) -> Shapes:
        """The distinct requests, as both engines find them."""
        by_tenant = self.keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
        return shapes_of(self.workload, self.cluster, by_tenant=by_tenant)

    def replayed(self, compile_core: Compile) -> Schedule:
        """Simulate on the core."""
        return replay(
            self.workload,
            self.cluster,
            self.keys,
            self.options,
            scheduler="generated",
            until_s=self.until_s,
            compile_core=compile_core,
        )

    def simulated(self) -> Schedule:
        """Simulate on the SimPy reference."""
        return simulate_reference(
            self.workload,
            self.cluster,
            self.keys,
            self.options,
            scheduler="generated",
            until_s=self.until_s,
        )


def compiled_fingerprints(situations: list[Situation]) -> list[str]:
    """Simulate on the compiled core; in a process of its own, the compiler stays out of yours."""
    return [situation.replayed("always").fingerprint() for situation in situations]


def clusters() -> st.SearchStrategy[Cluster]:
    """Draw pools and clusters of one to six nodes of mixed sizes and types."""
    # Most nodes are small; some have more GPUs than one word of 32 bits.
    sizes = st.one_of(st.integers(1, 8), st.sampled_from((1, 4, 8, 31, 32, 33, 65)))
    groups = st.builds("{}:{}".format, st.sampled_from(GPU_TYPES), sizes)
    nodes = st.lists(groups, min_size=1, max_size=6).map(lambda names: Cluster.of(*names))
    return st.one_of(nodes, sizes.map(Cluster.pool))


@st.composite
def workloads(draw: st.DrawFn, max_jobs: int = 20) -> Workload:
    """Draw jobs on few distinct moments, with estimates that are too short, exact or too long."""
    tick_s = draw(st.sampled_from(TICKS_S))
    job = st.tuples(
        st.integers(0, 12),  # submit
        st.one_of(st.integers(0, 12), st.just(0)),  # duration
        st.one_of(st.integers(1, 20), st.integers(30, 40)),  # gpus
        st.one_of(st.just(0), st.integers(1, 6)),  # most per node
        st.one_of(st.none(), st.sampled_from([*GPU_TYPES, "V100|A100", "A100|T4"])),
        st.one_of(st.none(), st.integers(1, 16)),  # estimate, or the truth
    )
    rows = draw(st.lists(job, min_size=1, max_size=max_jobs))
    submit, duration, gpus, cap, types, estimate = zip(*rows, strict=True)
    return Workload.of(
        submit_s=[ticks * tick_s for ticks in submit],
        duration_s=[ticks * tick_s for ticks in duration],
        gpus=gpus,
        max_gpus_per_node=cap,
        gpu_types=types,
        estimate_s=[
            max(wrong or true, 1) * tick_s for wrong, true in zip(estimate, duration, strict=True)
        ],
    )


@st.composite
def long_workloads(draw: st.DrawFn, max_jobs: int = 120) -> Workload:
    """Draw longer queues of few kinds of jobs; what happens in them is up to a seed."""
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    jobs = draw(st.integers(50, max_jobs))
    tick_s = draw(st.sampled_from(TICKS_S))
    duration = dice.integers(0, draw(st.sampled_from((2, 10, 60))), jobs)
    return Workload.of(
        submit_s=tick_s * dice.integers(0, draw(st.sampled_from((1, 40, 400))), jobs),
        duration_s=tick_s * duration,
        gpus=dice.choice((1, 1, 2, 3, 8), jobs),
        max_gpus_per_node=dice.choice((0, 0, 0, 2), jobs),
        gpu_types=[(None, None, "V100|T4")[index] for index in dice.integers(0, 3, jobs)],
        estimate_s=tick_s * np.maximum(duration + dice.choice((-3, 0, 0, 5), jobs), 1),
    )


@st.composite
def orders(
    draw: st.DrawFn,
    workload: Workload,
    kinds: Sequence[OrderKind | None] = (*PLAIN_ORDERS, None),
) -> OrderKeys:
    """Draw an order of one of these kinds (None: a Python order), with many equal keys."""
    jobs = len(workload)

    def column(*values: float) -> FloatArray:
        pattern = st.lists(st.sampled_from(values), min_size=1, max_size=min(jobs, 20))
        return np.resize(np.array(draw(pattern)), jobs)

    kind = draw(st.sampled_from(kinds))
    if kind == OrderKind.FIXED:
        return OrderKeys.fixed(column(0.0, 1.0, 2.0, -1.0, 0.5))
    if kind == OrderKind.AGEING:
        clip_s = draw(st.sampled_from([(-math.inf, math.inf), (0.0, 4.0), (2.0, math.inf)]))
        return OrderKeys.ageing(
            rate=column(0.0, -1.0, 1.0, 0.1),
            since=workload.submit_s + column(0.0, 2.0),
            offset=column(0.0, 1.0, 3.0),
            clip_s=clip_s,
        )
    if kind == OrderKind.HISTORY:
        return OrderKeys.history(column(0, 1, 2).astype(np.int64))
    if kind == OrderKind.ATTAINED:
        return OrderKeys.attained(jobs, weighted=draw(st.booleans()))
    if kind is not None:  # the engine works the keys out itself
        return OrderKeys(kind, np.zeros(jobs))
    step, modulus = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    return OrderKeys.called(jobs, TurningKeys(step, modulus))


@st.composite
def options(draw: st.DrawFn, workload: Workload) -> Options:
    """Draw a discipline, a placement and what the scheduler believes of run times."""
    return Options(
        discipline=draw(st.sampled_from(PLAIN_DISCIPLINES)),
        placement=draw(st.sampled_from(PLAIN_PLACEMENTS)),
        expected_s=draw(st.sampled_from([None, workload.estimate_s])),
        seed=draw(SEEDS),
        one_arrival=draw(st.booleans()),
    )


@st.composite
def situations(draw: st.DrawFn, jobs: st.SearchStrategy[Workload] | None = None) -> Situation:
    """Draw a whole simulation of these (or any) jobs, sometimes cut before its end."""
    workload = draw(workloads() if jobs is None else jobs)
    until_s = draw(st.one_of(st.just(math.inf), st.integers(0, 30).map(float)))
    return Situation(
        workload, draw(clusters()), draw(orders(workload)), draw(options(workload)), until_s
    )
