"""Hand-worked cases of real clusters on the SimPy reference: work, failures, tenants, sharing.

Times are worked out in the comments from the rules, not taken from a run.
"""

import dataclasses
import math

import numpy as np
import pytest

from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference import simulate_reference
from yardmaster.engine.reference.rules import neutral_conditions
from yardmaster.engine.reference.simulation import next_multiple
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.state import Discipline, OrderKind, Placement
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome
from yardmaster.model.site import Outage, Sharing
from yardmaster.model.workload import Workload


def neutral(workload, cluster, **changes):
    """Return conditions that change nothing but what is named."""
    return dataclasses.replace(neutral_conditions(cluster, shapes_of(workload, cluster)), **changes)


def simulate(
    jobs,
    cluster,
    *,
    discipline=Discipline.SKIP,
    placement=Placement.PACK,
    keys=None,
    expected=None,
    until_s=math.inf,
    decide=None,
    types=None,
    per_job=None,
    **changes,
):
    """Simulate jobs given as (submit, duration, GPUs); `per_job` fills tables over requests."""
    submit_s, duration_s, gpus = zip(*jobs, strict=True)
    workload = Workload.of(
        submit_s=submit_s,
        duration_s=duration_s,
        gpus=gpus,
        gpu_types=types or [None] * len(jobs),
        # Different in every job, which makes requests differ; sizes are taken from `changes`.
        max_gpus=[wanted + row for row, wanted in enumerate(gpus)] if per_job else [0] * len(jobs),
    )
    of_job = shapes_of(workload, cluster).of_job
    for name, values in (per_job or {}).items():
        changes[name] = np.zeros((of_job.max() + 1, *np.shape(values[0])), np.array(values).dtype)
        changes[name][of_job] = values
    options = Options(
        discipline,
        placement,
        None if expected is None else np.array(expected, dtype=np.float64),
        conditions=neutral(workload, cluster, **changes),
        decide=decide,
    )
    order = OrderKeys.fixed(np.zeros(len(jobs))) if keys is None else keys
    return simulate_reference(workload, cluster, order, options, scheduler="test", until_s=until_s)


def segments(schedule):
    """Return (job, start, end, cause, wasted seconds) of every segment."""
    columns = (
        schedule.segment_job,
        schedule.segment_start_s,
        schedule.segment_end_s,
        map(Cause, schedule.segment_cause.tolist()),
        schedule.segment_wasted_s,
    )
    return list(zip(*columns, strict=True))


def gpus_held(schedule):
    """Return the GPU numbers of each segment."""
    return [schedule.gpus_of(segment).tolist() for segment in range(len(schedule.segment_job))]


# Speed.


def test_a_faster_type_ends_jobs_earlier():
    """Ten seconds of work take five on a GPU of speed 2."""
    cluster = Cluster.of("V100:1", "A100:1")
    schedule = simulate([(0, 10, 1), (0, 10, 1)], cluster, speed=np.array([[1.0, 2.0]]))
    assert schedule.end_s.tolist() == [10, 5]


def test_a_mixed_gang_runs_at_its_slowest_member_and_pays_for_distance():
    """Speeds 4 and 2 make 2; times 0.5 between racks: ten seconds of work take ten."""
    cluster = Cluster.of("V100:1", "A100:1")  # groups stand in racks of their own
    schedule = simulate(
        [(0, 10, 2)],
        cluster,
        speed=np.array([[4.0, 2.0]]),
        rack_factor=np.array([0.5]),
        node_factor=np.array([0.1]),
    )
    assert schedule.end_s.tolist() == [10]


def test_nodes_of_one_rack_pay_the_factor_of_nodes():
    """Two nodes of one rack at 0.8: ten seconds of work take 12.5."""
    schedule = simulate(
        [(0, 10, 2)],
        Cluster.of("2x V100:1"),
        node_factor=np.array([0.8]),
        rack_factor=np.array([0.1]),
    )
    assert schedule.end_s.tolist() == [12.5]


def test_saving_takes_its_share_of_the_time():
    """One second of every ten is spent saving: nine seconds of work take ten."""
    schedule = simulate([(0, 9, 1)], Cluster.pool(1), every_s=10.0, save_s=1.0)
    assert schedule.end_s.tolist() == [10]


@pytest.mark.parametrize(("work_s", "start_s"), [(18, 1), (19, 15)])
def test_easy_reckons_with_the_speed_of_the_plan(work_s, start_s):
    """The head needs both GPUs at 10: by then a GPU of speed 2 does 18 s of work, not 19."""
    # The gang of two runs at speed 1 from 10 to 15.
    schedule = simulate(
        [(0, 10, 1), (1, 5, 2), (1, work_s, 1)],
        Cluster.of("V100:1", "A100:1"),
        discipline=Discipline.EASY,
        types=["V100", "V100|A100", "A100"],
        speed=np.array([[1.0, 2.0]] * 3),
    )
    assert schedule.start_s.tolist() == [0, 10, start_s]


def test_conservative_promises_anew_after_a_job_of_another_speed():
    """At speed 2 the first job ends at 5, which nobody had reckoned with when promising."""
    schedule = simulate(
        [(0, 10, 1), (1, 4, 1)],
        Cluster.pool(1),
        discipline=Discipline.CONSERVATIVE,
        speed=np.array([[2.0]]),
    )
    assert schedule.start_s.tolist() == [0, 5]
    assert schedule.end_s.tolist() == [5, 7]


# Failures.


def test_a_failed_node_costs_the_work_since_the_last_checkpoint():
    """Saved at 8 and lost at 9: two seconds of work are left, after one of restoring."""
    schedule = simulate(
        [(0, 10, 1)],
        Cluster.pool(1),
        every_s=4.0,
        restore_s=1.0,
        outages=(Outage(0, 9.0, 12.0), Outage(0, 99.0, 100.0)),
    )
    assert segments(schedule) == [
        (0, 0, 9, Cause.NODE_FAILED, 1),
        (0, 12, 15, Cause.FINISHED, 1),
    ]
    assert schedule.start_s.tolist() == [0]
    assert schedule.end_s.tolist() == [15]
    assert schedule.outages == (Outage(0, 9.0, 12.0),)
    assert schedule.horizon_s == (0, 15)


def test_without_checkpoints_a_job_begins_again():
    """Nothing was saved, so nothing is restored and all ten seconds are done again."""
    schedule = simulate(
        [(0, 10, 1)], Cluster.pool(1), restore_s=1.0, outages=(Outage(0, 9.0, 12.0),)
    )
    assert segments(schedule) == [
        (0, 0, 9, Cause.NODE_FAILED, 9),
        (0, 12, 22, Cause.FINISHED, 0),
    ]


def test_a_checkpoint_outlives_the_segment_that_took_it():
    """Lost again half a second after restoring, the job falls back to the first segment's save."""
    # Second segment: restoring until 13, 0.5 s of work lost. Third: restoring until 21, 2 s left.
    schedule = simulate(
        [(0, 10, 1)],
        Cluster.pool(1),
        every_s=4.0,
        restore_s=1.0,
        outages=(Outage(0, 9.0, 12.0), Outage(0, 13.5, 20.0)),
    )
    assert segments(schedule) == [
        (0, 0, 9, Cause.NODE_FAILED, 1),
        (0, 12, 13.5, Cause.NODE_FAILED, 1.5),
        (0, 20, 23, Cause.FINISHED, 1),
    ]


def test_a_job_fails_for_good_when_its_retries_are_used_up():
    """With one retry the second failure is the last; the next job has the node from 6 on."""
    schedule = simulate(
        [(0, 10, 1), (0, 3, 1)],
        Cluster.pool(1),
        retries=1,
        outages=(Outage(0, 1.0, 2.0), Outage(0, 5.0, 6.0)),
    )
    assert schedule.outcome.tolist() == [Outcome.FAILED, Outcome.FINISHED]
    assert math.isnan(schedule.end_s[0])
    assert [start_s for _, start_s, *_ in segments(schedule)] == [0, 2, 6]


def test_a_gang_loses_all_its_nodes_with_one():
    """The gang leaves the healthy node too, where a small job starts at once."""
    schedule = simulate(
        [(0, 10, 2), (1, 2, 1)], Cluster.of("2x V100:1"), outages=(Outage(0, 4.0, 7.0),)
    )
    # The small job comes after the gang in order, but the gang does not fit on one node.
    assert schedule.start_s.tolist() == [0, 4]
    assert schedule.end_s.tolist() == [17, 6]
    assert gpus_held(schedule) == [[0, 1], [1], [0, 1]]


def test_completions_come_before_failures_of_their_instant():
    """A job that ends when its node fails has finished."""
    schedule = simulate([(0, 5, 1)], Cluster.pool(1), outages=(Outage(0, 5.0, 9.0),))
    assert schedule.outcome.tolist() == [Outcome.FINISHED]
    assert schedule.outages == (Outage(0, 5.0, 9.0),)


def test_easy_reserves_nothing_for_a_job_that_no_node_could_hold_now():
    """While a node is away the gang of four has no reservation, so a long job may start."""
    schedule = simulate(
        [(0, 5, 1), (2, 5, 4), (3, 100, 1)],
        Cluster.of("2x V100:2"),
        discipline=Discipline.EASY,
        outages=(Outage(1, 1.0, 20.0),),
    )
    assert schedule.start_s.tolist() == [0, 103, 3]


def test_jobs_that_wait_for_a_lost_node_stay_queued():
    """When nothing will ever happen again the simulation ends, at its last event."""
    schedule = simulate([(3, 5, 1)], Cluster.pool(1), outages=(Outage(0, 1.0, math.inf),))
    assert schedule.outcome.tolist() == [Outcome.QUEUED]
    assert schedule.horizon_s == (3, 3)


# Tenants.

TWO_TENANTS = {"guaranteed_gpus": np.array([1, 0]), "limit_gpus": np.array([2, 2])}


def test_jobs_within_the_guarantee_go_first():
    """Tenant 0 is guaranteed a GPU; its second job borrows and stands behind tenant 1's first."""
    schedule = simulate(
        [(0, 9, 2), (1, 5, 1), (1, 5, 1), (1, 5, 1)],
        Cluster.pool(2),
        per_job={"tenant": [1, 1, 0, 0]},
        discipline=Discipline.STRICT,
        **TWO_TENANTS,
    )
    assert schedule.start_s.tolist() == [0, 9, 9, 14]


@pytest.mark.parametrize("discipline", [Discipline.STRICT, Discipline.COMMIT, Discipline.EASY])
def test_a_job_beyond_its_limit_blocks_nobody(discipline):
    """Tenant 0 holds its limit of two: its next job is held back until 10, as if not there."""
    schedule = simulate(
        [(0, 10, 2), (1, 5, 1), (2, 5, 1)],
        Cluster.pool(4),
        per_job={"tenant": [0, 0, 1]},
        discipline=discipline,
        **TWO_TENANTS,
    )
    assert schedule.start_s.tolist() == [0, 10, 2]


def test_usage_counts_what_a_tenant_has_had():
    """At 5 tenant 0 has used five GPU-seconds and tenant 1 none: the later job goes first."""
    jobs = [(0, 5, 1), (1, 5, 1), (2, 5, 1)]
    limits = {"guaranteed_gpus": np.zeros(2, np.int64), "limit_gpus": np.array([9, 9])}
    for kind, starts in ((OrderKind.USAGE, [0, 10, 5]), (OrderKind.SHARE, [0, 5, 10])):
        # Nobody holds anything at 5, so by share the tenants are equal.
        schedule = simulate(
            jobs,
            Cluster.pool(1),
            keys=OrderKeys(kind, np.zeros(3)),
            per_job={"tenant": [0, 0, 1]},
            **limits,
        )
        assert schedule.start_s.tolist() == starts


def test_share_looks_at_what_is_held_at_every_choice():
    """Tenant 0 holds one GPU of three: tenant 1 goes first, then both hold one, then by row."""
    schedule = simulate(
        [(0, 20, 1), (0, 5, 2), (1, 5, 1), (2, 5, 1), (2, 5, 1)],
        Cluster.pool(3),
        keys=OrderKeys(OrderKind.SHARE, np.zeros(5)),
        per_job={"tenant": [0, 2, 0, 1, 1]},
        guaranteed_gpus=np.zeros(3, np.int64),
        limit_gpus=np.full(3, 9),
    )
    assert schedule.start_s.tolist() == [0, 0, 5, 5, 10]
    assert schedule.segment_job.tolist() == [0, 1, 3, 2, 4]


def test_share_counts_the_scarcest_resource():
    """One job with half of the cores weighs more than two GPUs of four without any."""
    # At 1: tenant 0 holds 1/4 of the GPUs and 1/2 of the cores, tenant 1 2/4 of the GPUs: equal.
    # With 5000 of 8000 thousandths tenant 0 holds more, and tenant 1 goes first.
    for cpu_milli, first in ((4000, 2), (5000, 3)):
        schedule = simulate(
            [(0, 9, 1), (0, 9, 2), (1, 5, 1), (1, 5, 1)],
            Cluster.pool(4),
            keys=OrderKeys(OrderKind.SHARE, np.zeros(4)),
            per_job={"tenant": [0, 1, 0, 1], "cpu_milli": [cpu_milli, 0, 0, 0]},
            node_cpu_milli=np.array([8000]),
            guaranteed_gpus=np.zeros(2, np.int64),
            limit_gpus=np.full(2, 9),
        )
        assert schedule.segment_job[2] == first


# Power, cores and memory.


def test_the_power_cap_holds_jobs_back():
    """Two jobs of 100 W are beyond 150 W although two GPUs are free."""
    schedule = simulate([(0, 5, 1)] * 2, Cluster.pool(2), watts=np.array([100]), cap_watts=150)
    assert schedule.start_s.tolist() == [0, 5]


def test_cores_limit_the_gpus_that_can_be_used():
    """Three cores a GPU: of eight cores two GPUs can be used, the third job goes elsewhere."""
    schedule = simulate(
        [(0, 5, 1)] * 3,
        Cluster.of("V100:4", "V100:4"),
        cpu_milli=np.array([3000]),
        node_cpu_milli=np.array([8000, 1 << 50]),
    )
    # By usable GPUs node 0 (two, then one) is the tightest.
    assert gpus_held(schedule) == [[0], [1], [4]]


def test_easy_leaves_the_head_its_memory():
    """The head needs all host memory at 10: a long job with memory waits, one without passes."""
    schedule = simulate(
        [(0, 10, 1), (1, 5, 1), (2, 50, 1), (2, 50, 1)],
        Cluster.pool(4),
        discipline=Discipline.EASY,
        per_job={"host_mib": [600, 1000, 100, 0]},
        node_mib=np.array([1000]),
    )
    assert schedule.start_s.tolist() == [0, 10, 15, 2]


def test_easy_leaves_the_head_its_power():
    """At 10 the head takes 900 of 1000 W: a long job of 100 W passes, one of 101 W waits."""
    for watts, start_s in ((100, 2), (101, 15)):
        schedule = simulate(
            [(0, 10, 1), (1, 5, 1), (2, 50, 1)],
            Cluster.pool(4),
            discipline=Discipline.EASY,
            per_job={"watts": [200, 900, watts]},
            cap_watts=1000,
        )
        assert schedule.start_s.tolist() == [0, 10, start_s]


# Sharing.

HALVES = {"milli": np.array([500]), "pair": np.array([[0.5]])}


def sharing(*kinds):
    """Return how the GPUs of every node are shared."""
    return np.array([int(kind) for kind in kinds])


def test_sharers_slow_each_other_down_while_they_are_together():
    """Alone until 4, then at half speed: the first ends at 16, the second alone again at 20."""
    # First: 6 s of work left at 4 take 12. Second: 6 s done by 16, 4 s left.
    schedule = simulate(
        [(0, 10, 1), (4, 10, 1)], Cluster.pool(1), node_sharing=sharing(Sharing.MPS), **HALVES
    )
    assert schedule.end_s.tolist() == [16, 20]
    assert gpus_held(schedule) == [[0], [0]]


def test_the_least_pleasant_neighbour_counts():
    """Kind 0 runs at 0.5 beside kind 1 and at 0.8 beside its own."""
    # All three from 0: job 0 at 0.5 (of 0.5 and 0.8); it ends first, at 2.
    schedule = simulate(
        [(0, 1, 1), (0, 9, 1), (0, 9, 1)],
        Cluster.pool(1),
        node_sharing=sharing(Sharing.MPS),
        per_job={"kind": [0, 1, 0], "milli": [300, 300, 300]},
        pair=np.array([[0.8, 0.5], [1.0, 1.0]]),
    )
    # Job 2 goes on at 0.5 beside job 1, which runs at full speed until 9: 4.5 s left then.
    assert schedule.end_s.tolist() == [2, 9, 13.5]


def test_slices_are_whole_and_slow_nobody_down():
    """300 thousandths take three of seven slices: two jobs share a GPU, not three."""
    schedule = simulate(
        [(0, 10, 1)] * 3,
        Cluster.pool(1),
        node_sharing=sharing(Sharing.MIG),
        milli=np.array([300]),
        pair=np.array([[0.5]]),
    )
    assert schedule.start_s.tolist() == [0, 0, 10]
    assert schedule.end_s.tolist() == [10, 10, 20]


def test_device_memory_limits_sharing():
    """Two jobs of 9000 MiB are beyond 16000 MiB although thousandths are left."""
    schedule = simulate(
        [(0, 10, 1)] * 2,
        Cluster.pool(1),
        node_sharing=sharing(Sharing.MPS),
        gpu_mib=np.array([9000]),
        type_mib=np.array([16000]),
        **HALVES,
    )
    assert schedule.start_s.tolist() == [0, 10]


def test_without_sharing_a_part_holds_the_whole():
    """A node that does not share gives a fractional job a GPU of its own."""
    schedule = simulate([(0, 10, 1)] * 2, Cluster.pool(1), **HALVES)
    assert schedule.start_s.tolist() == [0, 10]


@pytest.mark.parametrize(
    ("placement", "gpus"),
    [
        (Placement.PACK, [0, 1, 1, 0]),
        (Placement.FIRST, [0, 1, 0, 0]),
        (Placement.SPREAD, [0, 1, 2, 3]),
    ],
)
def test_placements_differ_in_whom_they_put_together(placement, gpus):
    """Pack joins the fullest GPU with room, first the lowest-numbered, spread none while it can."""
    # Of 0.4, 0.7, 0.3 and 0.2 GPUs: 0.7 does not fit beside 0.4. GPU 0 has 600 left, GPU 1 300.
    schedule = simulate(
        [(0, 9, 1)] * 4,
        Cluster.pool(4),
        placement=placement,
        node_sharing=sharing(Sharing.MPS),
        per_job={"milli": [400, 700, 300, 200]},
    )
    assert gpus_held(schedule) == [[gpu] for gpu in gpus]


def test_a_shared_gpu_is_not_free_for_whole_jobs():
    """A whole-GPU job waits until the last sharer has left."""
    schedule = simulate(
        [(0, 4, 1), (0, 7, 1), (1, 5, 1)],
        Cluster.pool(1),
        node_sharing=sharing(Sharing.MPS),
        per_job={"milli": [300, 300, 1000]},
    )
    assert schedule.start_s.tolist() == [0, 0, 7]


# Decisions and arrivals.


def test_jobs_are_let_in_at_their_release():
    """A job released at 3 enters then; a release before submission changes nothing."""
    keys = dataclasses.replace(OrderKeys.fixed(np.zeros(2)), release_s=np.array([3.0, 0.0]))
    schedule = simulate([(0, 5, 1), (1, 5, 1)], Cluster.pool(2), keys=keys)
    assert schedule.start_s.tolist() == [3, 1]


def test_a_decision_chooses_jobs_and_nodes():
    """The function sees waiting jobs and usable GPUs, and its plans are carried out in order."""
    seen = []

    def last_first(situation):
        usable = situation.usable(int(situation.shapes.of_job[0])).tolist()
        seen.append((situation.now_s, situation.rows.tolist(), usable))
        return [(int(row), {1: 1}) for row in situation.rows[::-1][: usable[1]]]

    schedule = simulate([(0, 5, 1)] * 3, Cluster.of("2x V100:2"), decide=last_first)
    assert seen == [(0, [0, 1, 2], [2, 2]), (5, [0], [2, 2])]
    assert schedule.segment_job.tolist() == [2, 1, 0]
    assert gpus_held(schedule) == [[2], [3], [2]]


def test_a_decision_that_does_not_fit_is_refused():
    """A plan beyond what is free names the job."""
    with pytest.raises(YardmasterError, match=r"job 0 on GPUs \{0: 3\}"):
        simulate([(0, 5, 3)], Cluster.of("2x V100:2"), decide=lambda _: [(0, {0: 3})])


# The end.


def test_a_cut_ends_running_segments():
    """Cut while restoring: all of the second segment is wasted, and the other job waits."""
    schedule = simulate(
        [(0, 10, 1), (0, 10, 1)],
        Cluster.pool(1),
        every_s=4.0,
        restore_s=5.0,
        outages=(Outage(0, 9.0, 12.0),),
        until_s=14.0,
    )
    assert segments(schedule)[-1] == (0, 12, 14, Cause.CUT, 2)
    assert schedule.outcome.tolist() == [Outcome.RUNNING, Outcome.QUEUED]


def test_reviews_always_lie_ahead():
    """A multiple of the quantum whose quotient is rounded down does not stop the clock."""
    quantum_s = 142.2152029388146
    now_s = 254 * quantum_s
    assert math.floor(now_s / quantum_s) == 253  # the trap
    assert next_multiple(now_s, quantum_s) == 255 * quantum_s
