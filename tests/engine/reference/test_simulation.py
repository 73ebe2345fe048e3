"""Hand-worked cases for the SimPy reference, and numbers that independent programs agree on."""

import csv
import math
import random
from pathlib import Path

import numpy as np
import pytest

from yardmaster.engine.core import bits
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference import dice as reference_dice
from yardmaster.engine.reference import simulate_reference
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.workload import Workload

ORACLES = Path(__file__).resolve().parents[3] / ".." / "shared" / "oracles"


def simulate(
    discipline,
    jobs,
    cluster,
    *,
    keys=None,
    placement=Placement.PACK,
    expected=None,
    until_s=math.inf,
    one_arrival=False,
    records_gpus=True,
    **columns,
):
    """Simulate jobs given as (submit, duration, GPUs), first come first served by default."""
    submit_s, duration_s, gpus = zip(*jobs, strict=True)
    workload = Workload.of(submit_s=submit_s, duration_s=duration_s, gpus=gpus, **columns)
    options = Options(
        discipline,
        placement,
        None if expected is None else np.array(expected, dtype=np.float64),
        one_arrival=one_arrival,
        records_gpus=records_gpus,
    )
    order = OrderKeys.fixed(np.zeros(len(jobs))) if keys is None else keys
    return simulate_reference(workload, cluster, order, options, scheduler="test", until_s=until_s)


def starts(*args, **kwargs):
    """Return the start times of a simulation."""
    return simulate(*args, **kwargs).start_s.tolist()


def shortest_first(jobs):
    """Return the keys of shortest job first."""
    return OrderKeys.fixed(np.array([duration_s for _, duration_s, _ in jobs]))


def gpus_held(schedule):
    """Return the GPU numbers of each segment."""
    return [schedule.gpus_of(segment).tolist() for segment in range(len(schedule.segment_job))]


def test_strict_lets_nobody_overtake():
    """The third job would fit at once but waits behind the second."""
    jobs = [(0, 10, 3), (0, 5, 2), (0, 5, 1)]
    assert starts(Discipline.STRICT, jobs, Cluster.pool(4)) == [0, 10, 10]


def test_skip_starts_whatever_fits():
    """The third job overtakes the second, which does not fit."""
    jobs = [(0, 10, 3), (0, 5, 2), (0, 5, 1)]
    assert starts(Discipline.SKIP, jobs, Cluster.pool(4)) == [0, 10, 0]


def test_commit_never_chooses_again():
    """A shorter job that arrives later waits for the chosen one; strict would start it."""
    jobs = [(0, 10, 3), (1, 8, 2), (2, 1, 1)]
    keys = shortest_first(jobs)
    assert starts(Discipline.COMMIT, jobs, Cluster.pool(4), keys=keys) == [0, 10, 10]
    assert starts(Discipline.STRICT, jobs, Cluster.pool(4), keys=keys) == [0, 10, 2]


def test_commit_chooses_even_when_nothing_is_free():
    """The job that waits alone is chosen, and keeps its place when a shorter one comes."""
    jobs = [(0, 10, 1), (1, 8, 1), (2, 1, 1)]
    keys = shortest_first(jobs)
    assert starts(Discipline.COMMIT, jobs, Cluster.pool(1), keys=keys) == [0, 10, 18]


@pytest.mark.parametrize(("duration_s", "start_s"), [(8, 2), (9, 15)])
def test_easy_starts_what_ends_by_the_shadow_time(duration_s, start_s):
    """The head can start at second 10: a job of 8 s from second 2 may pass, one of 9 s may not."""
    jobs = [(0, 10, 3), (1, 5, 4), (2, duration_s, 1)]
    assert starts(Discipline.EASY, jobs, Cluster.pool(4)) == [0, 10, start_s]


def test_easy_lends_what_the_head_leaves_over():
    """One of six GPUs is left over at the shadow time: one long job passes, a second does not."""
    jobs = [(0, 10, 4), (1, 5, 5), (2, 100, 1), (3, 100, 1)]
    assert starts(Discipline.EASY, jobs, Cluster.pool(6)) == [0, 10, 2, 15]


def test_easy_counts_overdue_jobs_as_ending_now():
    """An overdue job makes the shadow time now: nothing passes that needs the head's GPUs."""
    jobs = [(0, 10, 3), (6, 1, 4), (6, 3, 1)]
    assert starts(Discipline.EASY, jobs, Cluster.pool(4), expected=[5, 1, 3]) == [0, 10, 11]


def test_easy_reserves_nodes_not_only_counts():
    """The head needs a whole node; a long job passes only on the other one."""
    # Node 0 is held until 10, node 1 (one GPU taken) until 20: the head of 4 goes to node 0 at 10.
    jobs = [(0, 10, 3), (0, 20, 2), (1, 5, 4), (2, 100, 1), (2, 100, 1), (2, 100, 1)]
    schedule = simulate(Discipline.EASY, jobs, Cluster.of("2x V100:4"))
    assert schedule.start_s.tolist() == [0, 0, 10, 2, 2, 15]
    assert gpus_held(schedule) == [[0, 1, 2], [4, 5], [6], [7], [0, 1, 2, 3], [0]]


def test_conservative_protects_every_promise():
    """A long narrow job would delay the third under EASY, which protects only the head."""
    jobs = [(0, 10, 3), (1, 10, 3), (2, 5, 4), (3, 30, 1)]
    assert starts(Discipline.CONSERVATIVE, jobs, Cluster.pool(4)) == [0, 10, 20, 25]
    assert starts(Discipline.EASY, jobs, Cluster.pool(4)) == [0, 10, 33, 3]


def test_conservative_uses_holes_between_promises():
    """A job that fits before the promise starts at once; one that does not waits."""
    jobs = [(0, 10, 2), (1, 10, 4), (2, 8, 2), (2, 9, 2)]
    assert starts(Discipline.CONSERVATIVE, jobs, Cluster.pool(4)) == [0, 10, 2, 20]


def test_conservative_plans_anew_after_a_surprise():
    """A job that ends before its expected time brings the promises forward."""
    jobs = [(0, 4, 4), (1, 5, 4)]
    assert starts(Discipline.CONSERVATIVE, jobs, Cluster.pool(4), expected=[10, 5]) == [0, 4]


def test_conservative_waits_for_overdue_jobs():
    """A job past its expected end is planned to end soon, and holds its GPUs until it does."""
    jobs = [(0, 10, 4), (7, 5, 4), (8, 1, 1)]
    assert starts(Discipline.CONSERVATIVE, jobs, Cluster.pool(4), expected=[2, 5, 1]) == [0, 10, 15]


def test_conservative_replans_for_a_job_of_better_key():
    """A shorter newcomer takes the promise of a longer job that waits."""
    jobs = [(0, 10, 4), (1, 9, 4), (2, 3, 4)]
    keys = shortest_first(jobs)
    assert starts(Discipline.CONSERVATIVE, jobs, Cluster.pool(4), keys=keys) == [0, 13, 10]


def test_gang_spans_nodes_only_where_it_must():
    """Ten GPUs on nodes of four: two whole nodes, and two GPUs of the third."""
    schedule = simulate(Discipline.STRICT, [(0, 5, 10), (0, 5, 2)], Cluster.of("3x V100:4"))
    assert gpus_held(schedule) == [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11]]


def test_gang_within_its_limit_per_node():
    """A limit of two per node spreads four GPUs over two nodes."""
    schedule = simulate(
        Discipline.STRICT, [(0, 5, 4)], Cluster.of("3x V100:4"), max_gpus_per_node=[2]
    )
    assert gpus_held(schedule) == [[0, 1, 4, 5]]


@pytest.mark.parametrize(
    ("placement", "last"), [(Placement.FIRST, [1]), (Placement.PACK, [5]), (Placement.SPREAD, [6])]
)
def test_placements_differ_on_the_last_job(placement, last):
    """First takes the lowest node, pack the fullest, spread the emptiest."""
    # Nodes of 4, 2 and 4 GPUs hold 1, 1 and 0 when the one-GPU job comes.
    jobs = [(0, 9, 1), (0, 9, 1), (1, 5, 1)]
    cluster = Cluster.of("V100:4", "A100:2", "V100:4")
    schedule = simulate(
        Discipline.STRICT, jobs, cluster, placement=placement, gpu_types=["V100", "A100", None]
    )
    assert gpus_held(schedule) == [[0], [4], last]


def test_random_placement_follows_the_dice():
    """The node is the one the dice name among those that fit."""
    cluster = Cluster.of("5x V100:1")
    jobs = [(0, 5, 1)] * 5
    schedule = simulate(Discipline.STRICT, jobs, cluster, placement=Placement.RANDOM)
    left = list(range(5))
    wanted = [left.pop(bits.dice(0, row, 0) % len(left)) for row in range(5)]
    assert gpus_held(schedule) == [[gpu] for gpu in wanted]


def test_reference_throws_the_same_dice_as_the_core():
    """Both engines draw the same numbers, whatever the size of the arguments."""
    draw = random.Random(1)
    for _ in range(500):
        numbers = [draw.getrandbits(draw.choice((3, 20, 32))) for _ in range(3)]
        assert reference_dice.dice(*numbers) == bits.dice(*numbers)


def test_jobs_wait_for_an_allowed_gpu_type():
    """A job that accepts one type waits for it although another is free."""
    schedule = simulate(
        Discipline.SKIP,
        [(0, 10, 2), (1, 5, 1), (1, 5, 1)],
        Cluster.of("V100:2", "A100:2"),
        gpu_types=["A100", "A100", "A100|V100"],
    )
    assert schedule.start_s.tolist() == [0, 10, 1]


@pytest.mark.parametrize("discipline", list(Discipline))
def test_zero_durations_finish_at_the_instant_they_start(discipline):
    """Jobs of no length follow one another on one GPU within one instant."""
    schedule = simulate(discipline, [(0, 0, 1), (0, 0, 1), (0, 5, 1)], Cluster.pool(1))
    assert schedule.start_s.tolist() == [0, 0, 0]
    assert schedule.end_s.tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    ("until_s", "outcome"),
    [
        (9.5, [Outcome.RUNNING, Outcome.QUEUED, Outcome.NOT_SUBMITTED]),
        (10, [Outcome.FINISHED, Outcome.RUNNING, Outcome.NOT_SUBMITTED]),
        (11, [Outcome.FINISHED, Outcome.RUNNING, Outcome.QUEUED]),
        (99, [Outcome.FINISHED, Outcome.FINISHED, Outcome.FINISHED]),
    ],
)
def test_cut_includes_events_at_its_very_moment(until_s, outcome):
    """Events at the cut happen, later ones do not; running segments end at the cut."""
    jobs = [(0, 10, 1), (0, 5, 1), (11, 1, 1)]
    schedule = simulate(Discipline.STRICT, jobs, Cluster.pool(1), until_s=until_s)
    assert schedule.outcome.tolist() == outcome
    assert schedule.horizon_s == (0, until_s)
    assert max(schedule.segment_end_s) == min(until_s, 16)


def test_impossible_jobs_are_reported_and_block_nobody():
    """A job larger than the cluster never enters the queue and is named in the notes."""
    schedule = simulate(Discipline.STRICT, [(0, 5, 9), (0, 5, 1)], Cluster.pool(4))
    assert schedule.outcome.tolist() == [Outcome.UNPLACEABLE, Outcome.FINISHED]
    assert "1 of 2 jobs can never be placed" in schedule.notes[0]
    assert schedule.engine == "simpy"


def test_one_arrival_chooses_before_the_rest_of_the_instant():
    """With an empty queue the first arrival is chosen before its shorter neighbour is seen."""
    jobs = [(0, 5, 1), (5, 3, 1), (5, 1, 1)]
    keys = shortest_first(jobs)
    pool = Cluster.pool(1)
    assert starts(Discipline.COMMIT, jobs, pool, keys=keys, one_arrival=True) == [0, 5, 8]
    assert starts(Discipline.COMMIT, jobs, pool, keys=keys) == [0, 6, 5]


def test_promise_beside_a_job_about_to_end_is_made_anew():
    """With one arrival at a time the pass precedes the completion; the promise must not last."""
    jobs = [(0, 5, 1), (5, 3, 1)]
    assert starts(Discipline.CONSERVATIVE, jobs, Cluster.pool(1), one_arrival=True) == [0, 5]


def test_ageing_keys_let_the_patient_overtake():
    """The key falls twice as fast for the second job and passes the first at second 10."""
    keys = OrderKeys.ageing(
        offset=np.array([0.0, 10.0, 20.0]),
        rate=np.array([0.0, -1.0, -2.0]),
        since=np.array([0.0, 0.0, 0.0]),
    )
    for busy_s, wanted in ((9, [0, 9, 10]), (11, [0, 12, 11])):
        jobs = [(0, busy_s, 1), (0, 1, 1), (0, 1, 1)]
        assert starts(Discipline.STRICT, jobs, Cluster.pool(1), keys=keys) == wanted


def test_ageing_keys_stop_at_their_bounds():
    """With age bounded to 5 s the second job never overtakes."""
    keys = OrderKeys.ageing(
        offset=np.array([0.0, 10.0, 20.0]),
        rate=np.array([0.0, -1.0, -2.0]),
        since=np.zeros(3),
        clip_s=(0.0, 5.0),
    )
    jobs = [(0, 11, 1), (0, 1, 1), (0, 1, 1)]
    assert starts(Discipline.STRICT, jobs, Cluster.pool(1), keys=keys) == [0, 11, 12]


def test_shuffled_keys_follow_the_dice_of_the_pass():
    """One job starts per pass: the one with the lowest throw of that pass."""
    jobs = [(0, 1, 1)] * 4
    began = starts(Discipline.STRICT, jobs, Cluster.pool(1), keys=OrderKeys.shuffled(4))
    waiting = list(range(4))
    for number in range(1, 5):
        row = min(waiting, key=lambda row: bits.dice(0, number, row))
        assert began[row] == number - 1
        waiting.remove(row)


def test_history_is_looked_up_on_arrival():
    """The key is GPUs × the group's mean run time; a group without history takes that of all."""
    # At second 9 group 0 has run 3 s on average, group 1 nothing: keys 4 × 3, 1 × 3 and 2 × 3.
    jobs = [(0, 2, 4), (2, 4, 4), (6, 20, 4), (9, 1, 4), (9, 1, 1), (9, 1, 2)]
    keys = OrderKeys.history(np.array([0, 0, 1, 0, 0, 1]))
    began = starts(Discipline.STRICT, jobs, Cluster.pool(4), keys=keys)
    assert began == [0, 2, 6, 27, 26, 26]


def test_called_order_sees_the_waiting_jobs_before_every_pass():
    """A Python order is asked for the keys of the waiting rows, ascending, and obeyed."""
    asked = []

    def last_come_first(rows, now_s):
        asked.append((rows.tolist(), now_s))
        return -rows.astype(np.float64)

    jobs = [(0, 2, 1), (1, 2, 1), (1, 2, 1)]
    keys = OrderKeys.called(3, last_come_first)
    assert starts(Discipline.STRICT, jobs, Cluster.pool(1), keys=keys) == [0, 4, 2]
    assert asked == [([0], 0.0), ([1, 2], 1.0), ([1, 2], 2.0), ([1], 4.0)]


def test_gpus_need_not_be_recorded():
    """Without recording, segments hold no GPU numbers and everything else is the same."""
    schedule = simulate(Discipline.SKIP, [(0, 5, 2)], Cluster.pool(4), records_gpus=False)
    assert schedule.segment_gpu_offset.tolist() == [0, 0]
    assert len(schedule.gpu_ids) == 0
    assert schedule.end_s.tolist() == [5]


@pytest.mark.skipif(not ORACLES.exists(), reason="no folder `shared` beside the repository")
@pytest.mark.parametrize(
    ("discipline", "jobs", "mean_wait_s"),
    [
        (Discipline.STRICT, 1000, 3975.926),
        (Discipline.EASY, 1000, 2612.896),
        (Discipline.EASY, 999, 2604.5945945945946),
        (Discipline.CONSERVATIVE, 1000, 2473.606),
        (Discipline.CONSERVATIVE, 999, 2465.1001001001),
    ],
)
def test_mean_waits_equal_those_of_independent_programs(discipline, jobs, mean_wait_s):
    """First come first served on a pool of 64 gives the waits on which other programs agree."""
    with (ORACLES / "w1000_l110_n8.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = [(float(row["submit"]), float(row["duration"]), int(row["gpus"])) for row in rows]
    schedule = simulate(discipline, table, Cluster.pool(64))
    waits_s = (schedule.start_s - schedule.workload.submit_s)[:jobs]
    assert waits_s.mean() == pytest.approx(mean_wait_s, rel=1e-12)
