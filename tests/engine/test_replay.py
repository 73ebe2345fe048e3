"""Replays on unusual machines, against a plain re-enactment of every start.

The re-enactment keeps a set of free GPUs, walks through the recorded starts and ends in time, and
works out which GPUs each job should have got by the words of the placement rules.
"""

import heapq
import math

import numpy as np
import pytest

from yardmaster.engine.setup import FIRST_PROFILE_ROOM
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import gpu_types
from yardmaster.model.schedule import Outcome
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate


def random_jobs(seed, gpus, jobs=120, **columns):
    """Return overlapping jobs with GPUs drawn from a list."""
    dice = np.random.default_rng(seed)
    drawn = {name: dice.choice(values, jobs) for name, values in columns.items()}
    return Workload.of(
        submit_s=np.sort(dice.integers(0, jobs, jobs)),
        duration_s=dice.integers(1, 40, jobs),
        gpus=dice.choice(gpus, jobs),
        **drawn,
    )


def expected_nodes(free, gang, cap, allowed, placement):
    """Return {node: GPUs} for one gang by the words of the rule; `free` maps node to its count."""
    plan = {}
    on_one_node = gang <= cap
    while (missing := gang - sum(plan.values())) > 0:
        least = missing if on_one_node else 1
        usable = [n for n in allowed if n not in plan and free[n] >= least]
        completing = [n for n in usable if min(free[n], cap) >= missing]
        if placement == "first":
            node = min(usable)
        elif placement == "pack" and completing:
            node = min(completing, key=lambda n: (free[n], n))
        else:
            node = min(usable, key=lambda n: (-free[n], n))
        plan[node] = min(free[node], cap, missing)
    return plan


def reenact(schedule, placement):
    """Walk through the schedule and check every GPU of every start."""
    cluster, jobs = schedule.cluster, schedule.workload
    node_of = cluster.gpu_node.tolist()
    free = set(range(cluster.gpus))
    running = []
    labels = jobs.gpu_types.values()
    for segment, row in enumerate(schedule.segment_job.tolist()):
        while running and running[0][0] <= schedule.segment_start_s[segment]:
            free.update(heapq.heappop(running)[1])
        names = set((labels[row] or "").split("|")) - {""}
        allowed = [
            node
            for node, kind in enumerate(cluster.node_type.tolist())
            if not names or cluster.gpu_types[kind].name in names
        ]
        most = max(cluster.node_gpus[allowed])
        cap = min(most, int(jobs.max_gpus_per_node[row]) or most)
        held = schedule.gpus_of(segment).tolist()
        by_node = {node: [] for node in range(cluster.nodes)}
        for gpu in sorted(free):
            by_node[node_of[gpu]].append(gpu)
        if placement == "random":
            check_any(held, free, node_of, allowed, cap, int(jobs.gpus[row]))
        else:
            counts = {node: len(gpus) for node, gpus in by_node.items()}
            plan = expected_nodes(counts, int(jobs.gpus[row]), cap, allowed, placement)
            lowest = [gpu for node, count in plan.items() for gpu in by_node[node][:count]]
            assert held == sorted(lowest)
        free.difference_update(held)
        heapq.heappush(running, (schedule.segment_end_s[segment], held))


def check_any(held, free, node_of, allowed, cap, gang):
    """Check that a random placement is a possible one."""
    nodes = [node_of[gpu] for gpu in held]
    assert free.issuperset(held)
    assert len(set(held)) == len(held) == gang
    assert set(nodes) <= set(allowed)
    assert all(nodes.count(node) <= cap for node in set(nodes))
    assert gang > cap or len(set(nodes)) == 1


PLACEMENTS = ["pack", "first", "spread", "random"]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("cluster", "gpus"),
    [
        (Cluster.of("70x V100:3"), [1, 2, 3, 4, 17, 100]),
        (Cluster.of("40x V100:8"), [1, 2, 4, 8, 9, 64]),
        (Cluster.of("5x V100:33", "3x V100:64"), [1, 5, 31, 32, 33, 34, 64, 65, 100]),
        (Cluster.of("3x V100:65", "1x V100:200"), [1, 30, 65, 66, 129, 200, 300]),
        (Cluster.pool(500), [1, 31, 32, 33, 64, 65, 400]),
    ],
    ids=["70 nodes", "40 nodes", "33 and 64 GPUs", "65 and 200 GPUs", "pool"],
)
def test_every_gpu_is_where_the_placement_says(cluster, gpus, placement):
    """More than 32 nodes, and nodes of more than 32 and 64 GPUs: all bits are looked at."""
    for scheduler in ("fifo+strict", "saf+skip"):
        schedule = simulate(random_jobs(1, gpus), cluster, f"{scheduler}@{placement}", seed=4)
        assert schedule.count(Outcome.FINISHED) == 120
        reenact(schedule, placement)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_many_gpu_types(placement):
    """Every type of the catalogue in one cluster, jobs that accept one, two or any of them."""
    names = [kind.name for kind in gpu_types()]
    cluster = Cluster.of(*(f"2x {name}:{2 + index % 5}" for index, name in enumerate(names)))
    wanted = ["", *names, *(f"{a}|{b}" for a, b in zip(names, names[3:], strict=False))]
    jobs = random_jobs(2, [1, 2, 3], jobs=150, gpu_types=wanted)
    schedule = simulate(jobs, cluster, f"fifo+skip@{placement}", seed=4)
    assert schedule.count(Outcome.FINISHED) == 150
    reenact(schedule, placement)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_limits_per_node(placement):
    """A gang never has more GPUs on one node than it allows, and spans nodes instead."""
    cluster = Cluster.of("12x V100:4", "4x T4:8")
    jobs = random_jobs(
        3, [1, 2, 4, 6, 12], max_gpus_per_node=[0, 1, 2, 3, 8], gpu_types=["", "V100", "T4|V100"]
    )
    schedule = simulate(jobs, cluster, f"fifo+skip@{placement}", seed=4)
    assert schedule.count(Outcome.FINISHED) == 120
    reenact(schedule, placement)


def test_random_placement_reaches_every_node():
    """Over many jobs each of 40 nodes is chosen, none far more often than the others."""
    jobs = Workload.of(submit_s=np.arange(2000) * 2.0, duration_s=np.ones(2000))
    schedule = simulate(jobs, Cluster.of("40x V100:1"), "fifo@random", seed=1)
    counts = np.bincount(schedule.gpu_ids, minlength=40)
    assert np.sum((counts - 50) ** 2 / 50) < 72.1  # 0.1 % of fair dice exceed this (39 degrees)


@pytest.mark.parametrize("discipline", ["strict", "skip", "commit", "easy", "conservative"])
def test_huge_pool(discipline):
    """A pool of 100,000 GPUs counts right under every discipline."""
    jobs = random_jobs(5, [1, 33, 4_096, 50_000, 99_999, 100_000], jobs=16)
    schedule = simulate(jobs, Cluster.pool(100_000), f"fifo+{discipline}")
    assert schedule.count(Outcome.FINISHED) == 16
    assert np.array_equal(np.diff(schedule.segment_gpu_offset), jobs.gpus[schedule.segment_job])
    for segment in range(16):
        start_s = schedule.segment_start_s[segment]
        beside = (schedule.segment_start_s <= start_s) & (schedule.segment_end_s > start_s)
        held = np.concatenate([schedule.gpus_of(other) for other in np.flatnonzero(beside)])
        assert len(np.unique(held)) == len(held)


def test_deep_queue():
    """Thousands of equal requests waiting at once leave in order of length."""
    dice = np.random.default_rng(6)
    duration = dice.permutation(3000) + 1.0
    jobs = Workload.of(submit_s=np.zeros(3000), duration_s=duration)
    machines = [0.0] * 4
    expected = np.zeros(3000)
    for row in np.argsort(duration).tolist():
        expected[row] = heapq.heappop(machines)
        heapq.heappush(machines, expected[row] + duration[row])
    for discipline in ("strict", "easy"):
        schedule = simulate(jobs, Cluster.pool(4), f"sjf+{discipline}")
        assert np.array_equal(schedule.start_s, expected)


def test_conservative_profile_grows():
    """With far more promises than the profile has steps at first, everybody still queues up."""
    count = 4 * FIRST_PROFILE_ROOM + 10
    duration = np.arange(count, 0, -1.0)
    jobs = Workload.of(submit_s=np.zeros(count), duration_s=duration)
    schedule = simulate(jobs, Cluster.pool(1), "fifo+conservative", compile_core="always")
    assert np.array_equal(schedule.start_s, np.cumsum(duration) - duration)


def test_conservative_promises_grow():
    """Gangs over many nodes need more entries than there are jobs; the promises hold."""
    jobs = Workload.of(submit_s=[0] * 12, duration_s=[7] * 12, gpus=[40] * 12)
    schedule = simulate(jobs, Cluster.of("40x V100:1"), "fifo+conservative")
    assert schedule.start_s.tolist() == [7.0 * row for row in range(12)]


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_unplaceable_jobs(engine):
    """Jobs that can never fit are reported, delay nobody, and hold nothing."""
    jobs = Workload.of(
        submit_s=[0, 0, 0, 1, 2],
        duration_s=[5, 5, 5, 5, 5],
        gpus=[9, 4, 1, 3, 1],
        gpu_types=[None, None, "A100", "V100|A100", None],
        id=["huge", "a", "foreign", "b", "c"],
    )
    schedule = simulate(jobs, Cluster.of("1x V100:4"), "fifo+strict", engine=engine)
    assert schedule.count(Outcome.UNPLACEABLE) == 2
    assert schedule.outcome[[0, 2]].tolist() == [Outcome.UNPLACEABLE] * 2
    assert np.isnan(schedule.start_s[[0, 2]]).all()
    assert schedule.start_s[[1, 3, 4]].tolist() == [0, 5, 5]
    assert 0 not in schedule.segment_job
    [note] = schedule.notes
    assert "2 of 5 jobs can never be placed" in note
    assert "1 asks for 9 GPUs, the cluster has 4 (job huge)" in note
    assert "1 asks for A100, the cluster has V100 (job foreign)" in note


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_nothing_placeable(engine):
    """A workload of impossible jobs ends at its last submission with an empty schedule."""
    jobs = Workload.of(submit_s=[0, 7], duration_s=[5, 5], gpus=[9, 9])
    schedule = simulate(jobs, Cluster.pool(4), "sjf+easy", engine=engine)
    assert schedule.count(Outcome.UNPLACEABLE) == 2
    assert schedule.horizon_s == (0, 7)
    assert len(schedule.gpu_ids) == len(schedule.segment_job) == 0


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_fractions_of_a_gpu(engine):
    """Jobs that ask for part of a GPU get a whole one, and a note says so."""
    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[5, 5, 5], milli_gpu=[500, 1000, 100])
    schedule = simulate(jobs, Cluster.pool(1), "fifo", engine=engine)
    assert schedule.start_s.tolist() == [0, 5, 10]
    assert schedule.notes == ("2 jobs ask for part of a GPU; each holds a whole one here",)


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_cut(engine):
    """At the cut some have finished, some run, some wait, some have not come; all are counted."""
    jobs = Workload.of(submit_s=[0, 0, 5, 20, 21], duration_s=[10, 30, 10, 5, 5])
    schedule = simulate(jobs, Cluster.pool(1), "fifo", until_s=20.0, engine=engine)
    outcomes = [Outcome.FINISHED, Outcome.RUNNING, Outcome.QUEUED, Outcome.QUEUED]
    assert schedule.outcome.tolist() == [*outcomes, Outcome.NOT_SUBMITTED]
    assert schedule.horizon_s == (0, 20)
    assert schedule.start_s[:2].tolist() == [0, 10]
    assert schedule.end_s[0] == 10
    assert np.isnan(schedule.end_s[1:]).all()
    assert schedule.segment_end_s.tolist() == [10, 20]


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_the_second_of_the_cut_still_happens(engine):
    """Ends, arrivals and starts at the very second of the cut are part of the schedule."""
    jobs = Workload.of(submit_s=[0, 10], duration_s=[10, 10])
    schedule = simulate(jobs, Cluster.pool(1), "fifo", until_s=10.0, engine=engine)
    assert schedule.outcome.tolist() == [Outcome.FINISHED, Outcome.RUNNING]
    assert schedule.start_s.tolist() == [0, 10]


@pytest.mark.parametrize("until_s", [0.0, 2.9])
@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_cut_before_the_first_submission(until_s, engine):
    """Nothing has happened yet; the horizon is empty and does not end before it begins."""
    jobs = Workload.of(submit_s=[3, 4], duration_s=[1, 1])
    schedule = simulate(jobs, Cluster.pool(1), "fifo", until_s=until_s, engine=engine)
    assert schedule.count(Outcome.NOT_SUBMITTED) == 2
    assert schedule.horizon_s == (3, 3)


def test_a_cut_changes_nothing_before_it():
    """What happens up to the cut is what happens without one."""
    jobs = random_jobs(8, [1, 2, 3, 4])
    for scheduler in ("sjf+easy", "wfp3+conservative", "random-feasible"):
        whole = simulate(jobs, Cluster.pool(6), scheduler)
        cut = simulate(jobs, Cluster.pool(6), scheduler, until_s=200.0)
        begun = whole.start_s <= 200
        assert np.array_equal(cut.start_s[begun], whole.start_s[begun])
        assert np.isnan(cut.start_s[~begun]).all()
        ended = whole.end_s <= 200
        assert np.array_equal(cut.end_s[ended], whole.end_s[ended])
        assert not ended.all()


def test_times_of_every_size():
    """Seconds up to the largest allowed, and down to nanoseconds, are exact where floats are."""
    jobs = Workload.of(submit_s=[0, 1e-9, 1e15], duration_s=[1e-9, 1.0, 1e15])
    schedule = simulate(jobs, Cluster.pool(1), "fifo+easy")
    assert schedule.start_s.tolist() == [0, 1e-9, 1e15]
    assert schedule.end_s.tolist() == [1e-9, 1e-9 + 1.0, 2e15]
    assert math.isfinite(schedule.horizon_s[1])


@pytest.mark.parametrize("discipline", ["strict", "skip", "commit", "easy", "conservative"])
def test_jobs_of_no_length(discipline):
    """More jobs of no length than GPUs take turns within one second."""
    jobs = Workload.of(submit_s=[0] * 9, duration_s=[0] * 8 + [3], gpus=[1] * 8 + [2])
    schedule = simulate(jobs, Cluster.pool(2), f"fifo+{discipline}")
    assert schedule.start_s.tolist() == [0] * 9
    assert schedule.end_s.tolist() == [0] * 8 + [3]
