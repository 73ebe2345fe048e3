"""The core and the SimPy reference do the same thing, whatever they are given.

`YARDMASTER_PROPERTY_EXAMPLES` sets how many situations are tried (a nightly run wants thousands).
"""

import math
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from yardmaster.engine.compilation import is_compiled
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.setup import FIRST_PROFILE_ROOM
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.workload import Workload
from yardmaster.testing.strategies import (
    PLAIN_DISCIPLINES,
    Situation,
    compiled_fingerprints,
    long_workloads,
    situations,
)

EXAMPLES = int(os.environ.get("YARDMASTER_PROPERTY_EXAMPLES", "400"))

often = settings(max_examples=EXAMPLES, deadline=None, print_blob=True)
sometimes = settings(max_examples=max(EXAMPLES // 4, 10), deadline=None, print_blob=True)
seldom = settings(max_examples=max(EXAMPLES // 10, 10), deadline=None, print_blob=True)
# The same examples in every run: the process that compiles must not depend on luck.
same = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def assert_engines_agree(situation):
    """Simulate on both engines and compare all they say."""
    core, reference = situation.replayed("never"), situation.simulated()
    assert core.event_log() == reference.event_log()
    assert core.outcome.tolist() == reference.outcome.tolist()
    assert core.segment_job.tolist() == reference.segment_job.tolist()
    assert core.fingerprint() == reference.fingerprint()
    assert core.horizon_s == reference.horizon_s
    assert core.notes == reference.notes


@often
@given(situations())
def test_engines_agree(situation):
    """Every start, end, outcome, segment and GPU is the same on both engines."""
    assert_engines_agree(situation)


@seldom
@given(situations(long_workloads()))
def test_engines_agree_on_long_queues(situation):
    """They also agree when hundreds of jobs wait at once."""
    assert_engines_agree(situation)


def test_engines_agree_when_the_profile_outgrows_its_table():
    """Hundreds of promises at different moments do not fit the core's first tables."""
    dice = np.random.default_rng(1)
    jobs = 2 * FIRST_PROFILE_ROOM
    workload = Workload.of(
        submit_s=np.repeat([0.0, 10.0], FIRST_PROFILE_ROOM),
        duration_s=dice.uniform(1.0, 100.0, jobs),
        gpus=dice.integers(1, 7, jobs),
    )
    options = Options(Discipline.CONSERVATIVE, Placement.PACK, None)
    keys = OrderKeys.fixed(np.zeros(jobs))
    cluster = Cluster.of("2x V100:4")
    assert_engines_agree(Situation(workload, cluster, keys, options, until_s=500.0))


@sometimes
@given(situations())
def test_schedules_are_possible(situation):
    """Nobody shares a GPU, starts early, gets a wrong gang or runs too long."""
    schedule = situation.simulated()
    workload, cluster = schedule.workload, schedule.cluster
    busy = [[] for _ in range(cluster.gpus)]
    for segment, row in enumerate(schedule.segment_job):
        start_s, end_s = schedule.segment_start_s[segment], schedule.segment_end_s[segment]
        gpus = schedule.gpus_of(segment)
        assert start_s >= workload.submit_s[row]
        assert len(set(gpus)) == workload.gpus[row]
        most = np.bincount(cluster.gpu_node[gpus]).max()
        assert most <= (workload.max_gpus_per_node[row] or math.inf)
        allowed = workload.gpu_types.values()[row]
        types = {cluster.gpu_types[kind].name for kind in cluster.node_type[cluster.gpu_node[gpus]]}
        assert allowed is None or types <= set(allowed.split("|"))
        for gpu in gpus:
            busy[gpu].append((start_s, end_s))
    for spans in busy:
        spans.sort()
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


@sometimes
@given(situations())
def test_gpu_seconds_are_conserved(situation):
    """Finished jobs held their GPUs exactly as long as they run, others up to the cut."""
    schedule = situation.simulated()
    workload = schedule.workload
    held_s = schedule.segment_end_s - schedule.segment_start_s
    gpu_s = np.bincount(
        schedule.segment_job,
        weights=held_s * np.diff(schedule.segment_gpu_offset),
        minlength=len(workload),
    )
    wanted_s = np.where(
        schedule.outcome == Outcome.FINISHED,
        workload.duration_s,
        np.where(schedule.outcome == Outcome.RUNNING, situation.until_s - schedule.start_s, 0.0),
    )
    np.testing.assert_allclose(gpu_s, wanted_s * workload.gpus, rtol=1e-9, atol=1e-9)


@sometimes
@given(situations())
def test_everybody_gets_through(situation):
    """Without a cut every job that can be placed finishes, and none waits on an idle cluster."""
    schedule = situation.simulated()
    if math.isinf(situation.until_s):
        assert set(schedule.outcome.tolist()) <= {Outcome.FINISHED, Outcome.UNPLACEABLE}
    is_queued = schedule.outcome == Outcome.QUEUED
    assert not is_queued.any() or (schedule.outcome == Outcome.RUNNING).any()


@pytest.mark.slow
def test_compiling_changes_nothing():
    """The compiled core gives the same schedules, to the last bit, as the uncompiled one."""
    drawn = []

    @same
    @given(situations(), situations(long_workloads(100)))
    def collect(short, long):
        drawn.extend((short, long))

    collect()
    assert {situation.options.discipline for situation in drawn} == set(PLAIN_DISCIPLINES)
    # In a fresh process, so that the compiler is not loaded into this one.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=fresh) as pool:
        compiled = pool.submit(compiled_fingerprints, drawn).result()
        assert pool.submit(is_compiled).result()
        beside = [schedule.fingerprint() for schedule in pool.map(Situation.simulated, drawn)]
    assert compiled == [situation.replayed("never").fingerprint() for situation in drawn]
    assert beside == compiled  # the reference is not disturbed by a compiled core
