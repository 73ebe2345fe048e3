"""Real clusters: both engines do the same thing, and what they do is physically possible.

`YARDMASTER_PROPERTY_EXAMPLES` sets how many situations are tried (a nightly run wants thousands).
"""

import math
import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from yardmaster.engine.compilation import is_compiled
from yardmaster.engine.reference.rules import neutral_conditions
from yardmaster.engine.requests import UNLIMITED
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome
from yardmaster.model.site import MIG_SLICE_MILLI, MIG_SLICES, Sharing
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.real_strategies import DISCIPLINES, raw_situations, real_situations
from yardmaster.testing.strategies import compiled_fingerprints, situations

EXAMPLES = int(os.environ.get("YARDMASTER_PROPERTY_EXAMPLES", "400"))

often = settings(max_examples=EXAMPLES, deadline=None, print_blob=True)
sometimes = settings(max_examples=max(EXAMPLES // 3, 10), deadline=None, print_blob=True)
# The same examples in every run: the process that compiles must not depend on luck.
same = settings(
    max_examples=15,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
BOTH = (real_situations, raw_situations)


def any_of(disciplines=DISCIPLINES):
    """Draw situations of both kinds."""
    return st.one_of(*(draw(disciplines) for draw in BOTH))


def assert_engines_agree(situation):
    """Simulate on both engines and compare all they say."""
    core, reference = situation.replayed("never"), situation.simulated()
    assert core.event_log() == reference.event_log()
    assert core.outcome.tolist() == reference.outcome.tolist()
    assert core.segment_cause.tolist() == reference.segment_cause.tolist()
    assert core.segment_wasted_s.tolist() == reference.segment_wasted_s.tolist()
    assert core.fingerprint() == reference.fingerprint()
    assert core.horizon_s == reference.horizon_s
    assert core.outages == reference.outages
    assert core.notes == reference.notes


@often
@given(real_situations())
def test_engines_agree(situation):
    """Whatever machines, site and jobs are given, every segment is the same on both engines."""
    assert_engines_agree(situation)


@often
@given(raw_situations())
def test_engines_agree_on_any_numbers(situation):
    """They also agree on conditions that no catalogue would ever give."""
    assert_engines_agree(situation)


@sometimes
@given(situations())
def test_neutral_conditions_change_nothing(situation):
    """Equal GPUs that never fail are the same with and without the code for real clusters."""
    options = replace(situation.options, one_arrival=False)
    plain = replace(situation, options=options)
    conditions = neutral_conditions(situation.cluster, situation.shapes)
    real = replace(situation, options=replace(options, conditions=conditions))
    assert real.replayed("never").fingerprint() == plain.replayed("never").fingerprint()


def fill_some_gap(now):
    """Decide in Python: start one job that fits, not always the first, on the emptiest nodes."""
    for row in np.roll(now.rows, int(now.now_s)).tolist():
        shape = int(now.shapes.of_job[row])
        usable = np.minimum(now.usable(shape), now.shapes.cap[shape])
        plan, missing = {}, int(now.shapes.gpus[shape])
        for node in np.argsort(-usable, kind="stable").tolist():
            if missing > 0 and usable[node] > 0:
                plan[node] = min(int(usable[node]), missing)
                missing -= plan[node]
        if missing == 0 and (len(plan) == 1 or not now.shapes.single[shape]):
            return [(row, plan)]
    return []


@sometimes
@given(any_of([Discipline.SKIP]))
def test_engines_agree_on_decisions(situation):
    """They show a deciding function the same passes and carry out what it says."""
    # Orders that look at tenants or draw lots are not for deciders, which look for themselves.
    assume(situation.keys.kind in {OrderKind.FIXED, OrderKind.AGEING, OrderKind.HISTORY})
    # Watts are the decider's own concern, and this one does not look at them.
    conditions = replace(situation.options.conditions, cap_watts=UNLIMITED)
    options = replace(situation.options, decide=fill_some_gap, conditions=conditions)
    assert_engines_agree(replace(situation, options=options))


# What is physically possible.


class Physics:
    """A schedule beside the conditions under which it came about."""

    def __init__(self, situation):
        self.situation = situation
        self.schedule = situation.simulated()
        self.shapes, self.conditions = situation.shapes, situation.options.conditions
        self.cluster = situation.cluster
        job = self.schedule.segment_job
        self.shape = self.shapes.of_job[job]
        self.gpus = [self.schedule.gpus_of(segment) for segment in range(len(job))]
        self.start_s, self.end_s = self.schedule.segment_start_s, self.schedule.segment_end_s

    @property
    def is_sharing(self):
        """Whether parts of GPUs can be had at all."""
        return self.conditions.node_sharing.any()

    def nodes(self, segment):
        """Return the node of each GPU of a segment."""
        return self.cluster.gpu_node[self.gpus[segment]]

    def taken_milli(self, segment):
        """Return the thousandths that a segment takes of each of its GPUs."""
        milli = self.conditions.milli[self.shape[segment]]
        sharing = self.conditions.node_sharing[self.nodes(segment)[0]]
        if milli == 1000 or sharing == Sharing.NONE:
            return 1000
        slices = math.ceil(milli / MIG_SLICE_MILLI)
        if sharing == Sharing.MIG:
            return slices * MIG_SLICE_MILLI if slices <= MIG_SLICES else 1000
        return int(milli)

    def rate(self, segment):
        """Return the work done per second, alone on the GPUs."""
        conditions, shape, nodes = self.conditions, self.shape[segment], self.nodes(segment)
        base = conditions.speed[shape, self.cluster.node_type[nodes]].min()
        if len(set(self.cluster.node_rack[nodes])) > 1:
            base *= conditions.rack_factor[shape]
        elif len(set(nodes)) > 1:
            base *= conditions.node_factor[shape]
        return base * conditions.scale[shape, len(nodes)] * conditions.efficiency

    def moments(self):
        """Yield the segments that hold GPUs after each instant at which something starts."""
        for second in np.unique(self.start_s):
            yield np.flatnonzero((self.start_s <= second) & (second < self.end_s))


def assert_limits_hold(physics, live):
    """Check everything that can be used up, at one moment."""
    conditions, cluster, shape = physics.conditions, physics.cluster, physics.shape
    milli, mib = np.zeros(cluster.gpus), np.zeros(cluster.gpus)
    cpu, host = np.zeros(cluster.nodes), np.zeros(cluster.nodes)
    held = np.zeros(len(conditions.guaranteed_gpus))
    for segment in live:
        gpus, nodes = physics.gpus[segment], physics.nodes(segment)
        milli[gpus] += physics.taken_milli(segment)
        if physics.taken_milli(segment) < 1000:
            mib[gpus] += conditions.gpu_mib[shape[segment]]
        np.add.at(cpu, nodes, conditions.cpu_milli[shape[segment]])
        np.add.at(host, nodes, conditions.host_mib[shape[segment]])
        if len(held):
            held[conditions.tenant[shape[segment]]] += len(gpus)
    assert (milli <= 1000).all()
    assert (mib <= conditions.type_mib[cluster.node_type[cluster.gpu_node]]).all()
    assert (cpu <= conditions.node_cpu_milli).all()
    assert (host <= conditions.node_mib).all()
    assert (held <= conditions.limit_gpus).all()
    assert conditions.watts[shape[live]].sum() <= conditions.cap_watts


@sometimes
@given(any_of())
def test_nothing_is_given_twice(situation):
    """No GPU, core, memory, watt or quota is ever used beyond what there is of it."""
    physics = Physics(situation)
    for live in physics.moments():
        assert_limits_hold(physics, live)


@sometimes
@given(any_of())
def test_jobs_get_what_they_ask_for(situation):
    """Gangs have their size and stay where they may, and no job runs on a node that is away."""
    physics = Physics(situation)
    shapes, conditions, cluster = physics.shapes, physics.conditions, situation.cluster
    is_elastic = situation.options.discipline == Discipline.ELASTIC
    for segment, shape in enumerate(physics.shape):
        size, nodes = len(physics.gpus[segment]), physics.nodes(segment)
        least = conditions.least_gpus[shape] if is_elastic else shapes.gpus[shape]
        most = conditions.most_gpus[shape] if is_elastic else shapes.gpus[shape]
        assert least <= size <= most
        assert len(set(physics.gpus[segment])) == size
        assert ((shapes.types[shape] >> cluster.node_type[nodes]) & 1).all()
        if shapes.single[shape]:
            assert len(set(nodes)) == 1
        else:
            assert np.bincount(nodes).max() <= shapes.cap[shape]
        for outage in physics.schedule.outages:
            if outage.node in nodes:
                start_s, end_s = physics.start_s[segment], physics.end_s[segment]
                assert not outage.down_s <= start_s < outage.up_s
                assert end_s <= outage.down_s or start_s >= outage.up_s


@sometimes
@given(any_of())
def test_work_is_conserved(situation):
    """Finished jobs did their work, no more and no less; time is wasted only while it passes."""
    physics = Physics(situation)
    schedule, conditions = physics.schedule, physics.conditions
    length_s, wasted_s = physics.end_s - physics.start_s, schedule.segment_wasted_s
    assert (wasted_s >= 0).all()
    assert (wasted_s <= length_s + 1e-9).all()
    slowest, fastest = min(conditions.pair.min(), 1.0), max(conditions.pair.max(), 1.0)
    for row in np.flatnonzero(schedule.outcome == Outcome.FINISHED):
        segments = np.flatnonzero(schedule.segment_job == row)
        rates = np.array([physics.rate(segment) for segment in segments])
        alone = float(((length_s - wasted_s)[segments] * rates).sum())
        work = situation.workload.duration_s[row]
        if conditions.milli[physics.shape[segments[0]]] == 1000 or not physics.is_sharing:
            assert alone == pytest.approx(work, rel=1e-9, abs=1e-9)
        else:  # slowed down by neighbours for part of the time
            assert work / fastest - 1e-9 <= alone <= work / slowest + 1e-9


STOPS = {Cause.PREEMPTED, Cause.NODE_FAILED, Cause.MIGRATED, Cause.RESIZED}
LAST = {
    Outcome.FINISHED: {Cause.FINISHED},
    Outcome.RUNNING: {Cause.CUT},
    Outcome.QUEUED: {Cause.PREEMPTED, Cause.NODE_FAILED},
    Outcome.FAILED: {Cause.NODE_FAILED},
}


@sometimes
@given(any_of())
def test_nobody_gets_lost(situation):
    """A job that was stopped goes on, waits, has failed or was cut, and the record says which."""
    physics = Physics(situation)
    schedule, conditions = physics.schedule, physics.conditions
    arrival_s = situation.workload.submit_s
    if situation.keys.release_s is not None:
        arrival_s = np.maximum(arrival_s, situation.keys.release_s)
    for row, outcome in enumerate(schedule.outcome.tolist()):
        segments = np.flatnonzero(schedule.segment_job == row)
        causes = [Cause(cause) for cause in schedule.segment_cause[segments].tolist()]
        assert (physics.start_s[segments] >= arrival_s[row]).all()
        assert set(causes[:-1]) <= STOPS
        assert not causes or causes[-1] in LAST[outcome]
        for one, other in pairwise(segments):
            if schedule.segment_cause[one] in {Cause.MIGRATED, Cause.RESIZED}:
                assert physics.start_s[other] == physics.end_s[one]
            assert physics.start_s[other] >= physics.end_s[one]
        failures = causes.count(Cause.NODE_FAILED)
        assert failures <= conditions.retries + 1
        assert (outcome == Outcome.FAILED) == (failures == conditions.retries + 1)


@sometimes
@given(any_of())
def test_a_quantum_is_a_quantum(situation):
    """Nobody is preempted, moved or resized before having run for the site's quantum."""
    schedule = situation.simulated()
    for segment, cause in enumerate(schedule.segment_cause.tolist()):
        if cause in {Cause.PREEMPTED, Cause.MIGRATED, Cause.RESIZED}:
            held_s = schedule.segment_end_s[segment] - schedule.segment_start_s[segment]
            assert held_s >= situation.options.conditions.quantum_s
            assert held_s > 0


@pytest.mark.slow
def test_compiling_changes_nothing():
    """The compiled core gives the same schedules, to the last bit, as the uncompiled one."""
    drawn = []

    @same
    @given(st.tuples(*(draw([discipline]) for discipline in Discipline for draw in BOTH)))
    def collect(one_of_each):
        drawn.extend(one_of_each)

    collect()
    plain = [situation.replayed("never") for situation in drawn]
    causes = Counter(cause for schedule in plain for cause in schedule.segment_cause.tolist())
    assert set(causes) == set(Cause)  # the sample shows all that can happen
    # In a fresh process, so that the compiler is not loaded into this one.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=fresh) as pool:
        compiled = pool.submit(compiled_fingerprints, drawn).result()
        assert pool.submit(is_compiled, is_real=True).result()
        assert not pool.submit(is_compiled, is_real=False).result()
    assert compiled == [schedule.fingerprint() for schedule in plain]


def test_a_start_can_make_way_for_a_faster_gpu():
    """A job passed over because its GPU was too slow is looked at again when that GPU is taken."""
    jobs = Workload.of(
        id=["slow", "wide", "head", "passed", "filler"],
        submit_s=[0, 0, 1, 2, 2],
        duration_s=[1000, 1000, 100, 700, 100],
        gpus=[1, 5, 10, 1, 1],
        gpu_types=["T4", "A100", None, None, None],
    )
    cluster = Cluster.of("1x T4:2", "1x A100:8")
    core = simulate(jobs, cluster, "fifo+easy", compile_core="never")
    reference = simulate(jobs, cluster, "fifo+easy", engine="simpy")
    assert core.event_log() == reference.event_log()
    assert core.start_s[3] == core.start_s[4] == 2.0
