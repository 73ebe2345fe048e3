"""Hand-worked cases of the SimPy reference: jobs that are stopped, moved or resized; placements.

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
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Sharing
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


# Stopping jobs for others.


def shortest_left(jobs):
    """Return the keys of shortest remaining time first."""
    return OrderKeys.remaining(np.array([duration_s for _, duration_s, _ in jobs], dtype=float))


INTERRUPTED = [(0, 10, 1), (3, 2, 1)]
"""A job of ten seconds, and one of two that comes at 3 when seven are left."""


def test_a_stopped_job_goes_on_where_it_was():
    """It saves itself at 3, goes on at 5 after one second of overhead, and ends at 13."""
    schedule = simulate(
        INTERRUPTED,
        Cluster.pool(1),
        discipline=Discipline.PREEMPTIVE,
        keys=shortest_left(INTERRUPTED),
        save_s=0.5,
        restore_s=0.5,
    )
    assert segments(schedule) == [
        (0, 0, 3, Cause.PREEMPTED, 0),
        (1, 3, 5, Cause.FINISHED, 0),
        (0, 5, 13, Cause.FINISHED, 1),
    ]


def test_a_stopped_job_that_does_not_save_itself_begins_again():
    """Three seconds of work are lost, and nothing is there to be restored."""
    schedule = simulate(
        INTERRUPTED,
        Cluster.pool(1),
        discipline=Discipline.PREEMPTIVE,
        keys=shortest_left(INTERRUPTED),
        restore_s=0.5,
        saves_on_preemption=False,
    )
    assert segments(schedule) == [
        (0, 0, 3, Cause.PREEMPTED, 3),
        (1, 3, 5, Cause.FINISHED, 0),
        (0, 5, 15, Cause.FINISHED, 0),
    ]


def test_a_job_keeps_its_gpus_for_a_quantum():
    """With a quantum of four the newcomer waits for the review at 4."""
    schedule = simulate(
        INTERRUPTED,
        Cluster.pool(1),
        discipline=Discipline.PREEMPTIVE,
        keys=shortest_left(INTERRUPTED),
        quantum_s=4.0,
    )
    assert schedule.start_s.tolist() == [0, 4]
    assert schedule.end_s.tolist() == [12, 6]


def test_equal_keys_stop_nobody():
    """Seven seconds are left of the running job: a newcomer of seven waits."""
    jobs = [(0, 10, 1), (3, 7, 1)]
    schedule = simulate(
        jobs, Cluster.pool(1), discipline=Discipline.PREEMPTIVE, keys=shortest_left(jobs)
    )
    assert schedule.start_s.tolist() == [0, 10]


def test_the_victim_is_the_job_that_loses_least():
    """At 5 one job would lose five seconds of work and the other three."""
    schedule = simulate(
        [(0, 20, 1), (2, 20, 1), (5, 1, 1)],
        Cluster.of("2x V100:1"),
        discipline=Discipline.PREEMPTIVE,
        keys=OrderKeys.fixed(np.array([1.0, 1.0, 0.0])),
        saves_on_preemption=False,
    )
    assert segments(schedule)[2] == (2, 5, 6, Cause.FINISHED, 0)
    assert segments(schedule)[1] == (1, 2, 5, Cause.PREEMPTED, 3)


def test_a_periodic_checkpoint_makes_a_victim_cheaper():
    """The older job saved itself at 4 and would lose one second, the younger all its three."""
    schedule = simulate(
        [(0, 20, 1), (2, 20, 1), (5, 1, 1)],
        Cluster.of("2x V100:1"),
        discipline=Discipline.PREEMPTIVE,
        keys=OrderKeys.fixed(np.array([1.0, 1.0, 0.0])),
        saves_on_preemption=False,
        every_s=4.0,
    )
    assert segments(schedule)[0] == (0, 0, 5, Cause.PREEMPTED, 1)


def test_a_gang_spares_victims_it_does_not_need():
    """Three GPUs over two nodes: of 1 + 1 and 2 GPUs the second small job may stay."""
    # By cost: jobs 0 and 1 (one GPU each), then job 2 (two). All three free four GPUs. Without
    # job 2 there would be two, without job 1 three.
    schedule = simulate(
        [(0, 20, 1), (0, 20, 1), (0, 20, 2), (5, 1, 3)],
        Cluster.of("2x V100:2"),
        discipline=Discipline.PREEMPTIVE,
        keys=OrderKeys.fixed(np.array([1.0, 1.0, 1.0, 0.0])),
        restore_s=1.0,
    )
    stopped = [job for job, _, _, cause, _ in segments(schedule) if cause == Cause.PREEMPTED]
    assert stopped == [0, 2]
    assert schedule.start_s[3] == 5


def test_a_tenant_gets_back_what_it_has_lent():
    """Tenant 0 is guaranteed a GPU that tenant 1 has borrowed; keys do not matter."""
    schedule = simulate(
        [(0, 20, 1), (0, 20, 1), (5, 1, 1)],
        Cluster.pool(2),
        discipline=Discipline.PREEMPTIVE,
        per_job={"tenant": [1, 1, 0]},
        guaranteed_gpus=np.array([1, 1]),
        limit_gpus=np.array([2, 2]),
    )
    assert schedule.start_s.tolist() == [0, 0, 5]
    assert segments(schedule)[0] == (0, 0, 5, Cause.PREEMPTED, 0)
    # At 6 the borrower comes back: fifteen seconds of its work are left.
    assert schedule.end_s.tolist() == [21, 20, 6]


def test_a_job_makes_room_in_the_power_cap():
    """GPUs are free but watts are not: the running job is stopped for its watts."""
    schedule = simulate(
        INTERRUPTED,
        Cluster.pool(4),
        discipline=Discipline.PREEMPTIVE,
        keys=shortest_left(INTERRUPTED),
        watts=np.array([100]),
        cap_watts=150,
    )
    assert schedule.start_s.tolist() == [0, 3]
    assert schedule.end_s.tolist() == [12, 5]


def test_all_sharers_stop_for_a_whole_gpu():
    """A shared GPU is free when both its sharers have stopped."""
    schedule = simulate(
        [(0, 10, 1), (0, 10, 1), (4, 2, 1)],
        Cluster.pool(1),
        discipline=Discipline.PREEMPTIVE,
        keys=OrderKeys.fixed(np.array([1.0, 1.0, 0.0])),
        per_job={"milli": [500, 500, 1000]},
        node_sharing=np.array([int(Sharing.MPS)]),
    )
    assert schedule.start_s.tolist() == [0, 0, 4]
    assert schedule.end_s.tolist() == [12, 12, 6]


def test_service_sinks_jobs_to_the_next_level():
    """With a threshold at 5 s the first job gives way at 5; on one level nobody does."""
    schedule = simulate(
        [(0, 10, 1), (0, 10, 1)],
        Cluster.pool(1),
        discipline=Discipline.PREEMPTIVE,
        keys=OrderKeys.attained(2, weighted=False),
        levels_s=np.array([5.0]),
        quantum_s=1.0,
    )
    assert [(job, start_s, end_s) for job, start_s, end_s, *_ in segments(schedule)] == [
        (0, 0, 5),
        (1, 5, 15),
        (0, 15, 20),
    ]


def test_weighted_service_counts_every_gpu():
    """Two GPUs pass the threshold of 5 GPU-seconds at 2.5: noticed at the review at 3."""
    schedule = simulate(
        [(0, 10, 2), (0, 10, 2)],
        Cluster.pool(2),
        discipline=Discipline.PREEMPTIVE,
        keys=OrderKeys.attained(2, weighted=True),
        levels_s=np.array([5.0]),
        quantum_s=1.0,
    )
    assert schedule.start_s.tolist() == [0, 3]


def test_everybody_gets_a_turn():
    """Every two seconds the job that has had fewest turns goes on; equals take turns."""
    # At 6 all have had one turn: job 0 goes on, to its end at 8.
    schedule = simulate(
        [(0, 4, 1)] * 3, Cluster.pool(1), discipline=Discipline.TIMESLICE, quantum_s=2.0
    )
    assert [(job, start_s, end_s) for job, start_s, end_s, *_ in segments(schedule)] == [
        (0, 0, 2),
        (1, 2, 4),
        (2, 4, 6),
        (0, 6, 8),
        (1, 8, 10),
        (2, 10, 12),
    ]


# Elastic jobs.


def elastic(jobs, *, least, most, **changes):
    """Simulate jobs on four GPUs whose speed is proportional to what they hold."""
    scale = [[size / gpus for size in range(max(most) + 1)] for _, _, gpus in jobs]
    return simulate(
        jobs,
        Cluster.of("V100:4"),
        discipline=Discipline.ELASTIC,
        per_job={"least_gpus": least, "most_gpus": most, "scale": scale},
        **changes,
    )


def test_elastic_jobs_shrink_and_grow_again():
    """Four GPUs until 2, two until 5, four again: eight, then 6.5 s of work are left."""
    schedule = elastic([(0, 10, 4), (2, 3, 2)], least=[1, 2], most=[4, 2])
    assert segments(schedule) == [
        (0, 0, 2, Cause.RESIZED, 0),
        (0, 2, 5, Cause.RESIZED, 0),
        (1, 2, 5, Cause.FINISHED, 0),
        (0, 5, 11.5, Cause.FINISHED, 0),
    ]
    assert gpus_held(schedule) == [[0, 1, 2, 3], [0, 1], [2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize(("restore_s", "end_s"), [(7.0, 20), (9.0, 27)])
def test_elastic_jobs_grow_only_if_it_pays(restore_s, end_s):
    """At 5 eight seconds of work are left: 16 s at half speed, or 8 s after restoring again."""
    # 16 > 7 + 8: from 5 on restoring until 12, done at 20. 16 < 9 + 8: restoring since 2 until 11,
    # done at 27.
    schedule = elastic([(0, 10, 4), (2, 3, 2)], least=[1, 2], most=[4, 2], restore_s=restore_s)
    assert schedule.end_s.tolist() == [end_s, 5]


def test_elastic_jobs_start_on_what_there_is():
    """One GPU is free: ten seconds of work on four GPUs begin at a quarter of the speed."""
    # At 4, with 9 s of work left, it grows: 36 s > 9 s.
    schedule = elastic([(0, 4, 3), (0, 10, 4)], least=[3, 1], most=[3, 4])
    assert gpus_held(schedule) == [[0, 1, 2], [3], [0, 1, 2, 3]]
    assert schedule.end_s.tolist() == [4, 13]


def test_those_with_most_to_give_shrink_first():
    """Jobs hold 3 of at least 1 and 1 of 1 GPUs: the first gives one to the third."""
    schedule = elastic(
        [(0, 9, 3), (0, 9, 1), (1, 2, 1)], least=[1, 1, 1], most=[3, 2, 1], quantum_s=1.0
    )
    assert segments(schedule)[0] == (0, 0, 1, Cause.RESIZED, 0)
    assert gpus_held(schedule)[:4] == [[0, 1, 2], [3], [0, 1], [2]]


# Moving jobs.


@pytest.mark.parametrize(("pause_s", "start_s"), [(17.9, 1), (18.0, 10)])
def test_a_job_is_moved_only_if_waiting_costs_more(pause_s, start_s):
    """Nine seconds of waiting on two GPUs are worth less than 18 GPU-seconds of moving."""
    schedule = simulate(
        [(0, 10, 1), (0, 10, 1), (1, 3, 2)],
        Cluster.of("2x V100:2"),
        discipline=Discipline.DEFRAG,
        placement=Placement.SPREAD,
        restore_s=pause_s,
    )
    assert schedule.start_s.tolist() == [0, 0, start_s]


def test_a_moved_job_goes_on_elsewhere():
    """The first job goes to the other node at 1, pauses for one second, and ends at 11."""
    schedule = simulate(
        [(0, 10, 1), (0, 10, 1), (1, 3, 2)],
        Cluster.of("2x V100:2"),
        discipline=Discipline.DEFRAG,
        placement=Placement.SPREAD,
        save_s=0.5,
        restore_s=0.5,
    )
    assert segments(schedule) == [
        (0, 0, 1, Cause.MIGRATED, 0),
        (1, 0, 10, Cause.FINISHED, 0),
        (0, 1, 11, Cause.FINISHED, 1),
        (2, 1, 4, Cause.FINISHED, 0),
    ]
    assert gpus_held(schedule) == [[0], [2], [3], [0, 1]]


# Placements with scores.


def test_tier_takes_the_lowest_numbers_of_as_few_nodes_as_possible():
    """Six GPUs need two nodes of four: tier takes three and three, pack a whole node first."""
    jobs = [(0, 9, 1), (0, 9, 6)]
    cluster = Cluster.of("3x V100:4")
    pack = simulate(jobs, cluster, placement=Placement.PACK)
    assert gpus_held(pack) == [[0], [1, 2, 4, 5, 6, 7]]
    tier = simulate(jobs, cluster, placement=Placement.TIER)
    assert gpus_held(tier) == [[0], [1, 2, 3, 4, 5, 6]]


def test_tier_takes_one_more_node_only_if_that_breaks_none():
    """Four GPUs on nodes of two: with 1, 1 and 2 free, three nodes are filled up."""
    jobs = [(0, 9, 1), (0, 9, 1), (0, 9, 4)]
    schedule = simulate(
        jobs,
        Cluster.of("V100:2", "A100:2", "V100:2"),
        placement=Placement.TIER,
        types=["V100", "A100", "V100|A100"],
    )
    assert gpus_held(schedule) == [[0], [2], [1, 3, 4, 5]]


@pytest.mark.parametrize(
    ("placement", "gpu"),
    [
        (Placement.PACK, 0),
        (Placement.TIER, 0),
        (Placement.DEFRAG, 3),
        (Placement.LOADBALANCE, 0),
    ],
)
def test_defrag_fills_broken_nodes_and_loadbalance_evens_out(placement, gpu):
    """An empty node of one GPU, and one of four with two free."""
    # Defrag: filling the small node changes nothing; the other strands one GPU fewer.
    # Balance: 1 × ((0 + 1) − 0.5) − 1/2 = 0 against 0.25 × ((1 + 0.25) − 0.5) − 0.0625/2 = 0.156.
    schedule = simulate([(0, 9, 2), (1, 9, 1)], Cluster.of("V100:1", "V100:4"), placement=placement)
    assert gpus_held(schedule) == [[1, 2], [gpu]]


def test_fgd_keeps_whole_what_others_will_need():
    """A node of four keeps its hole for the job of four; pack would break it."""
    # Taking one of node 0 makes three GPUs useless to the job of four (+3000) and one fewer free
    # on a node that the first job cannot use (−1000); taking one of node 1's six changes nothing.
    jobs = [(0, 9, 2), (1, 9, 1), (50, 9, 4)]
    cluster = Cluster.of("V100:4", "A100:8")
    types = ["A100", "V100|A100", "V100|A100"]
    for placement, gpu in ((Placement.PACK, 0), (Placement.FGD, 6)):
        schedule = simulate(jobs, cluster, placement=placement, types=types)
        assert gpus_held(schedule)[1] == [gpu]


def test_fgd_joins_the_gpu_whose_rest_is_of_least_use():
    """A job of 0.3 joins 0.7 and fills the GPU, rather than leave 0.3 beside 0.4."""
    # Useless to 0.4, 0.7, 0.3 and the whole job: of 600 and 300 thousandths 300 + 900 + 0 + 900;
    # of 300 and 300: 600 + 600 + 0 + 600; of 600 and 0: 0 + 600 + 0 + 600.
    schedule = simulate(
        [(0, 9, 1), (0, 9, 1), (1, 9, 1), (50, 9, 1)],
        Cluster.pool(2),
        placement=Placement.FGD,
        per_job={"milli": [400, 700, 300, 1000]},
        node_sharing=np.array([int(Sharing.MPS)]),
    )
    assert gpus_held(schedule)[:3] == [[0], [1], [1]]


@pytest.mark.parametrize(
    ("placement", "wake_w", "gpu"),
    [
        (Placement.FASTEST, 0.0, 1),
        (Placement.POWER, 0.0, 1),
        (Placement.POWER, 300.0, 0),
        (Placement.PACK, 0.0, 0),
    ],
)
def test_fast_and_frugal_nodes(placement, wake_w, gpu):
    """400 W at speed 2 beat 300 W at speed 1, unless a node must be woken for 300 W."""
    # Per work: 300 / 1 against 400 / 2 = 200, or (400 + 300) / 2 = 350.
    schedule = simulate(
        [(0, 9, 1)],
        Cluster.of("V100:1", "A100:2"),
        placement=placement,
        speed=np.array([[1.0, 2.0]]),
        type_watts=np.array([300.0, 400.0]),
        node_wake_w=np.array([0.0, wake_w]),
    )
    assert gpus_held(schedule) == [[gpu]]


def test_a_fractional_job_shares_only_on_the_fastest_node():
    """The shared GPU of the slow node is left alone while the fast node is free."""
    schedule = simulate(
        [(0, 9, 1), (1, 9, 1), (2, 9, 1)],
        Cluster.of("V100:2", "A100:2"),
        placement=Placement.FASTEST,
        per_job={"milli": [500] * 3, "speed": [[1.0, 2.0]] * 3},
        types=["V100", "V100|A100", "V100|A100"],
        node_sharing=np.full(2, int(Sharing.MPS)),
    )
    assert gpus_held(schedule) == [[0], [2], [2]]
