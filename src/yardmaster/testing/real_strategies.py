"""Hypothesis strategies for simulations of real clusters.

`real_situations` draws what users give: machines of several types, rules of the site, jobs with
needs and owners. `raw_situations` draws the numbers that the engines read, also those that no
catalogue would ever give. Both collide like everything in `strategies`. Every simulation is cut,
because jobs that stop each other, or lose their node again and again, need never get through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from yardmaster.engine.conditions import Conditions, conditions_of
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference.rules import neutral_conditions
from yardmaster.engine.requests import UNLIMITED, Shapes, shapes_of
from yardmaster.engine.state import Discipline, OrderKind, Placement
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Sharing, Site
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Workload
from yardmaster.testing.strategies import GPU_TYPES, SEEDS, TICKS_S, Situation, orders

KEYS_THAT_STOP_NOBODY = frozenset({OrderKind.AGEING, OrderKind.SHUFFLED, None})
"""Orders under which a running job has no key, so that nobody can be preempted by it."""

DISCIPLINES = (*Discipline, Discipline.ELASTIC, Discipline.DEFRAG, Discipline.DEFRAG)
"""Some more often than others, because they seldom find what they look for."""

TENANTS = ("a", "b", "c")
KINDS = ("ResNet-50 (batch size 64)", "LM", "something else")
"""A kind that was measured, a family of several, and one that nobody knows."""

_TYPE_SETS = (*(None,) * 6, *GPU_TYPES, "V100|A100", "T4|A100", "H100|V100")
_NAN = math.nan


def real_situations(
    disciplines: Sequence[Discipline] = DISCIPLINES,
) -> st.SearchStrategy[Situation]:
    """Draw whole simulations of real clusters from what users give."""
    return st.one_of(*(_situations(discipline) for discipline in disciplines))


@st.composite
def _situations(draw: st.DrawFn, discipline: Discipline) -> Situation:
    tick_s = draw(st.sampled_from(TICKS_S))
    # `conservative` promises GPUs of nodes and knows of nothing else that could be missing.
    knows_all = discipline != Discipline.CONSERVATIVE
    machines = draw(_machines(knows_all=knows_all))
    cluster = machines.under(draw(_sites(tick_s, machines.nodes, knows_all=knows_all)))
    workload = draw(_jobs(tick_s))
    keys = draw(_keys(workload, discipline, tick_s))
    by_tenant = keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
    conditions = conditions_of(
        workload,
        cluster,
        shapes_of(workload, cluster, by_tenant=by_tenant),
        is_needed=True,
        by_tenant=by_tenant,
        seed=draw(st.integers(0, 3)),
        levels_s=draw(_levels(tick_s)),
    )
    options = draw(_options(workload, discipline, conditions))
    return Situation(workload, cluster, keys, options, draw(_cuts(tick_s)))


@st.composite
def _machines(draw: st.DrawFn, *, knows_all: bool) -> Cluster:
    """Draw a few nodes of up to three types, with racks, cores, memory and sharing."""
    if draw(st.integers(0, 9)) == 0:
        return Cluster.pool(draw(st.integers(1, 12)))
    sharing = tuple(Sharing) if knows_all else (Sharing.NONE,)
    groups = st.builds(
        NodeGroup,
        count=st.sampled_from((1, 1, 2)),
        gpu_type=st.sampled_from([gpu_type(name) for name in GPU_TYPES]),
        gpus=st.sampled_from((4, 2, 3, 4, 2, 1, 8, 33)),
        nodes_per_rack=st.integers(0, 2),
        cpus=st.sampled_from((_NAN, 6.0, 16.0)) if knows_all else st.just(_NAN),
        memory_gib=st.sampled_from((_NAN, 16.0, 64.0)) if knows_all else st.just(_NAN),
        overhead_w=st.sampled_from((0.0, 100.0)),
        sharing=st.sampled_from(sharing),
    )
    return from_groups(draw(st.lists(groups, min_size=1, max_size=3)), name="generated")


@st.composite
def _sites(draw: st.DrawFn, tick_s: float, nodes: int, *, knows_all: bool) -> Site:
    """Draw the rules of a site; about half of everything is off."""
    return Site(
        quotas=draw(_quotas()) if knows_all and draw(st.booleans()) else (),
        checkpoints=Checkpoints(
            every_s=tick_s * draw(st.sampled_from((math.inf, 2.0, 3.3))),
            save_s=tick_s * draw(st.sampled_from((0.0, 0.5))),
            restore_s=tick_s * draw(st.sampled_from((0.0, 1.0, 0.3))),
            on_preemption=draw(st.booleans()),
        ),
        failures=draw(_failures(tick_s, nodes)) if knows_all else Failures(),
        power=Power(
            cap_w=draw(st.sampled_from((math.inf, math.inf, 800.0, 2500.0)))
            if knows_all
            else math.inf,
            sleep_after_s=draw(st.sampled_from((math.inf, 5.0))),
        ),
        quantum_s=tick_s * draw(st.sampled_from((0.0, 1.0, 2.5, 3.0))),
        splits_gangs=draw(st.sampled_from((False, False, True))),
        equal_speeds=draw(st.booleans()),
        reference_gpu=draw(st.sampled_from(("", *GPU_TYPES))),
    )


@st.composite
def _quotas(draw: st.DrawFn) -> tuple[Quota, ...]:
    """Draw quotas for none, some or all of the tenants."""
    quotas = []
    for tenant in draw(st.lists(st.sampled_from(TENANTS), unique=True)):
        guaranteed = draw(st.integers(0, 8))
        spare = draw(st.one_of(st.none(), st.integers(0, 6)))
        quotas.append(Quota(tenant, guaranteed, None if spare is None else guaranteed + spare))
    return tuple(quotas)


@st.composite
def _failures(draw: st.DrawFn, tick_s: float, nodes: int) -> Failures:
    """Draw no outages, listed ones, or a mean time between them."""
    if draw(st.booleans()):
        return Failures()
    retries = draw(st.sampled_from((None, 0, 1)))
    if draw(st.integers(0, 3)) == 0:
        return Failures(
            mtbf_h=draw(st.sampled_from((10.0, 60.0))) * tick_s / 3600.0,
            mttr_h=draw(st.sampled_from((1.0, 10.0))) * tick_s / 3600.0,
            retries=retries,
        )
    return Failures(outages=draw(_outages(tick_s, nodes)), retries=retries)


@st.composite
def _outages(draw: st.DrawFn, tick_s: float, nodes: int) -> tuple[Outage, ...]:
    """Draw up to four outages; those of one node follow each other, at times without a break."""
    free_from = [0] * nodes
    outages = []
    for node in draw(st.lists(st.integers(0, nodes - 1), max_size=4)):
        down = free_from[node] + draw(st.integers(0, 10))
        up = free_from[node] = down + draw(st.integers(1, 6))
        outages.append(Outage(node, down * tick_s, up * tick_s))
    return tuple(sorted(outages, key=lambda outage: (outage.down_s, outage.node)))


@st.composite
def _jobs(draw: st.DrawFn, tick_s: float, max_jobs: int = 16) -> Workload:
    """Draw jobs with all that a job can ask for."""
    sizes = st.sampled_from((1, 1, 2, 2, 3, 4, 4, 8))
    whole = sizes.map(lambda gpus: (gpus, 1000))
    parts = st.sampled_from((1, 100, 250, 500, 900))
    job = st.fixed_dictionaries(
        {
            "submit_s": st.integers(0, 12).map(lambda ticks: ticks * tick_s),
            "duration_s": st.integers(0, 15).map(lambda ticks: ticks * tick_s),
            "estimate_s": st.integers(1, 16).map(lambda ticks: ticks * tick_s),
            "size": st.one_of(whole, whole, parts.map(lambda milli: (1, milli))),
            "elastic": st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(0, 3))),
            "gpu_types": st.sampled_from(_TYPE_SETS),
            "max_gpus_per_node": st.sampled_from((0, 0, 0, 2)),
            "gpu_memory_gib": st.sampled_from((_NAN, _NAN, 4.0, 9.0)),
            "cpus": st.sampled_from((_NAN, 1.0, 3.0)),
            "memory_gib": st.sampled_from((_NAN, 2.0, 6.0)),
            "tenant": st.sampled_from((None, *TENANTS)),
            "kind": st.sampled_from((None, *KINDS)),
        }
    )
    count = draw(
        st.sampled_from(range(1, max_jobs + 1))
    )  # lists of any length would mostly be short
    rows = draw(st.lists(job, min_size=count, max_size=count))
    return Workload.of(**_columns(rows))


def _columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn drawn jobs into columns; sizes of elastic jobs lie around what they ask for."""
    for row in rows:
        row["gpus"], row["milli_gpu"] = row.pop("size")
        fewer, more = row.pop("elastic") or (None, None)
        is_rigid = fewer is None
        row["min_gpus"] = 0 if is_rigid else max(row["gpus"] - fewer, 1)
        row["max_gpus"] = 0 if is_rigid else row["gpus"] + more
    return {name: [row[name] for row in rows] for name in rows[0]}


@st.composite
def _keys(draw: st.DrawFn, workload: Workload, discipline: Discipline, tick_s: float) -> OrderKeys:
    """Draw an order that makes sense under a discipline, sometimes with held-back arrivals."""
    kinds = [*OrderKind, None]
    if discipline in {Discipline.PREEMPTIVE, Discipline.TIMESLICE}:
        kinds = [kind for kind in kinds if kind not in KEYS_THAT_STOP_NOBODY]
    keys = draw(orders(workload, kinds))
    if draw(st.integers(0, 3)) > 0:
        return keys
    ticks = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    return replace(keys, release_s=workload.submit_s + tick_s * np.resize(ticks, len(workload)))


def _levels(tick_s: float) -> st.SearchStrategy[FloatArray | None]:
    return st.sampled_from([None, np.array([2.0, 5.0]) * tick_s])


def _cuts(tick_s: float) -> st.SearchStrategy[float]:
    """Draw when the simulation ends: mostly after all that could get through has."""
    return st.one_of(st.just(200), st.just(200), st.integers(0, 60)).map(lambda n: n * tick_s)


@st.composite
def _options(
    draw: st.DrawFn, workload: Workload, discipline: Discipline, conditions: Conditions | None
) -> Options:
    return Options(
        discipline=discipline,
        placement=draw(st.sampled_from(Placement)),
        expected_s=draw(st.sampled_from([None, workload.estimate_s])),
        seed=draw(SEEDS),
        conditions=conditions,
    )


def raw_situations(
    disciplines: Sequence[Discipline] = DISCIPLINES,
) -> st.SearchStrategy[Situation]:
    """Draw whole simulations of real clusters from the numbers that the engines read."""
    return st.one_of(*(_raw_situations(discipline) for discipline in disciplines))


@st.composite
def _raw_situations(draw: st.DrawFn, discipline: Discipline) -> Situation:
    tick_s = draw(st.sampled_from(TICKS_S))
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = draw(st.sampled_from((2, 3, 4, 5, 1)))
    groups = zip(
        dice.choice(("V100", "A100"), nodes), dice.choice((2, 4, 4, 8), nodes), strict=True
    )
    cluster = Cluster.of(*(f"{name}:{gpus}" for name, gpus in groups))
    cluster = replace(cluster, node_rack=dice.integers(0, 3, nodes))
    workload = _thrown_jobs(dice, draw(st.integers(1, 20)), tick_s)
    keys = draw(_keys(workload, discipline, tick_s))
    by_tenant = keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
    shapes = shapes_of(workload, cluster, by_tenant=by_tenant)
    tables = _Tables(dice, cluster, shapes, tick_s)
    changes = tables.speeds() | tables.stops()
    if discipline != Discipline.CONSERVATIVE:
        # Each kind of scarcity is there half of the time, lest one hide what another does.
        changes |= tables.needs() if draw(st.booleans()) else {}
        changes |= tables.limits() if draw(st.booleans()) else {}
        changes |= tables.sizes(is_whole=changes.get("milli", 1000) == 1000)
        changes["outages"] = draw(_outages(tick_s, nodes)) if draw(st.booleans()) else ()
    conditions = replace(neutral_conditions(cluster, shapes), **changes)
    options = draw(_options(workload, discipline, conditions))
    return Situation(workload, cluster, keys, options, draw(_cuts(tick_s)))


def _thrown_jobs(dice: np.random.Generator, jobs: int, tick_s: float) -> Workload:
    """Throw jobs that differ in their requests; what the requests mean is left to the tables."""
    duration = dice.integers(0, 15, jobs)
    gpus = dice.choice((1, 1, 1, 2, 2, 3, 4, 8), jobs)
    types = (None, None, None, "V100", "A100")
    return Workload.of(
        submit_s=tick_s * dice.integers(0, 12, jobs),
        duration_s=tick_s * duration,
        estimate_s=tick_s * np.maximum(duration + dice.integers(-3, 4, jobs), 1),
        gpus=gpus,
        gpu_types=[types[index] for index in dice.integers(0, len(types), jobs)],
        max_gpus_per_node=dice.choice((0, 0, 2), jobs),
        max_gpus=gpus + dice.integers(0, 4, jobs),
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables of conditions, each number thrown on its own."""

    dice: np.random.Generator
    cluster: Cluster
    shapes: Shapes
    tick_s: float

    @property
    def count(self) -> int:
        return len(self.shapes.gpus)

    def often(self, share: float) -> BoolArray:
        """Return for every shape whether something applies to it."""
        return np.asarray(self.dice.random(self.count) < share)

    def speeds(self) -> dict[str, Any]:
        """Throw speeds on every type, what distance costs, and watts."""
        dice, types = self.dice, len(self.cluster.gpu_types)
        return {
            "speed": dice.choice((1.0, 0.5, 0.7, 2.0), (self.count, types)),
            "node_factor": dice.choice((1.0, 0.9), self.count),
            "rack_factor": dice.choice((1.0, 0.6), self.count),
            "type_watts": dice.choice((100.0, 250.0), types),
            "node_wake_w": dice.choice((0.0, 80.0), self.cluster.nodes),
        }

    def stops(self) -> dict[str, Any]:
        """Throw what stopping a job costs, and when one may be stopped."""
        dice, tick_s = self.dice, self.tick_s
        return {
            "every_s": float(dice.choice((math.inf, 2.0, 3.3))) * tick_s,
            "save_s": float(dice.choice((0.0, 0.5))) * tick_s,
            "restore_s": float(dice.choice((0.0, 1.0, 0.3))) * tick_s,
            "saves_on_preemption": bool(dice.random() < 0.7),
            "quantum_s": float(dice.choice((0.0, 1.0, 2.5, 3.0))) * tick_s,
            "retries": int(dice.choice((0, 1, UNLIMITED))),
            "levels_s": np.array((2.0, 5.0) if dice.random() < 0.3 else ()),
        }

    def needs(self) -> dict[str, Any]:
        """Throw fractions, cores, memory, and what nodes have of them."""
        dice, count, nodes = self.dice, self.count, self.cluster.nodes
        is_part = (self.shapes.gpus == 1) & self.often(0.7)
        milli = np.where(is_part, dice.choice((100, 250, 500, 900), count), 1000)
        gpus = self.cluster.node_gpus
        return {
            "milli": milli,
            "gpu_mib": dice.choice((0, 4000, 9000), count) * is_part,
            "cpu_milli": dice.choice((0, 1000, 2500), count),
            "host_mib": dice.choice((0, 1024), count),
            "kind": dice.integers(0, 2, count),
            "pair": dice.choice((1.0, 0.8, 0.5), (2, 2)),
            "type_mib": np.full(len(self.cluster.gpu_types), 16_000),
            "node_sharing": dice.integers(0, len(Sharing), nodes),
            "node_cpu_milli": self._known_or_not(gpus * 3000),
            "node_mib": self._known_or_not(gpus * 2048),
        }

    def _known_or_not(self, amount: IntArray) -> IntArray:
        return np.where(self.dice.random(len(amount)) < 0.5, UNLIMITED, amount)

    def limits(self) -> dict[str, Any]:
        """Throw a power cap, and tenants with guarantees and limits."""
        dice, count = self.dice, self.count
        changes: dict[str, Any] = {
            "watts": dice.integers(0, 300, count),
            "cap_watts": int(dice.choice((UNLIMITED, 1000, 400))),
        }
        if dice.random() < 0.5:
            changes["tenant"] = dice.integers(0, 2, count)
            changes["guaranteed_gpus"] = dice.choice((0, 2, 4), 2)
            changes["limit_gpus"] = dice.choice((4, 10, UNLIMITED), 2)
        return changes

    def sizes(self, *, is_whole: BoolArray | bool) -> dict[str, Any]:
        """Throw which jobs of whole GPUs can run on fewer or more, and how fast."""
        dice, count, gpus = self.dice, self.count, self.shapes.gpus
        is_elastic = (self.shapes.single == 1) & is_whole & self.often(0.5)
        least = np.where(is_elastic, np.maximum(gpus - dice.integers(0, 3, count), 1), gpus)
        most = np.where(is_elastic, gpus + dice.integers(0, 3, count), gpus)
        ratio = np.arange(int(most.max(initial=1)) + 1) / np.maximum(gpus, 1)[:, None]
        scale = np.where((least < most)[:, None], np.round(ratio**0.8, 9), 1.0)
        return {"least_gpus": least, "most_gpus": most, "scale": scale}
