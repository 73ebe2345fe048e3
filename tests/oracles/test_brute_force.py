"""Small cases against every permutation, and bounds that hold for every schedule."""

import itertools

import numpy as np
import pytest

from yardmaster.engine.state import OrderKind
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import DISCIPLINES
from yardmaster.schedulers.orders import ORDERS
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import view_for

POOL = 6


def jobs_at_zero(seed, jobs=5):
    """Return a few random jobs, all submitted at second 0."""
    dice = np.random.default_rng(seed)
    return Workload.of(
        submit_s=np.zeros(jobs),
        duration_s=dice.integers(1, 10, jobs),
        gpus=dice.integers(1, POOL + 1, jobs),
        priority=dice.permutation(jobs),
        deadline_s=dice.integers(1, 60, jobs),
        user=dice.integers(0, 2, jobs),
    )


def list_schedule(jobs, order, pool=POOL):
    """Start jobs in the given order, each as soon as it fits and all before it have started."""
    running, now = [], 0.0
    starts = np.zeros(len(jobs))
    for row in order:
        while sum(gpus for end, gpus in running if end > now) + jobs.gpus[row] > pool:
            now = min(end for end, _ in running if end > now)
        starts[row] = now
        running.append((now + jobs.duration_s[row], jobs.gpus[row]))
    return starts


@pytest.mark.parametrize("seed", range(3))
def test_strict_is_list_scheduling(seed):
    """For every permutation given as priorities, strict starts jobs as the list does."""
    jobs = jobs_at_zero(seed)
    for order in itertools.permutations(range(len(jobs))):
        priority = np.zeros(len(jobs))
        priority[list(order)] = -np.arange(len(jobs))
        schedule = simulate(
            jobs.with_columns(priority=priority), Cluster.pool(POOL), "static-priority+strict"
        )
        assert schedule.start_s.tolist() == list_schedule(jobs, order).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_no_order_beats_the_best_permutation(seed):
    """Every order's strict schedule is that of its own list, so none beats the best of them."""
    jobs = jobs_at_zero(seed, jobs=6)
    cluster = Cluster.pool(POOL)
    best = min(
        list_schedule(jobs, order).mean() for order in itertools.permutations(range(len(jobs)))
    )
    for order in ORDERS.values():
        schedule = simulate(jobs, cluster, f"{order.name}+strict", seed=seed)
        assert schedule.start_s.mean() >= best
        run_s = jobs.duration_s if order.reads_run_time else None
        keys = order.keys(view_for(order.name, jobs, cluster, run_s))
        if keys.kind == OrderKind.FIXED:
            in_order = np.argsort(keys.offset, kind="stable")
            assert schedule.start_s.tolist() == list_schedule(jobs, in_order).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_shortest_first_is_optimal_on_one_gpu(seed):
    """With everything there at once, no permutation has a lower mean completion time."""
    dice = np.random.default_rng(seed)
    duration = dice.integers(1, 20, 7).astype(float)
    jobs = Workload.of(submit_s=np.zeros(7), duration_s=duration)
    best = min(np.cumsum(order).mean() for order in itertools.permutations(duration))
    for discipline in set(DISCIPLINES) - {"timeslice"}:
        schedule = simulate(jobs, Cluster.pool(1), f"sjf+{discipline}")
        assert schedule.end_s.mean() == best


@pytest.mark.parametrize("seed", range(5))
def test_earliest_deadline_is_optimal_on_one_gpu(seed):
    """With everything there at once, no permutation has a smaller greatest lateness (Jackson)."""
    jobs = jobs_at_zero(seed, jobs=6).with_columns(gpus=np.ones(6, dtype=int))
    rows = [np.array(order) for order in itertools.permutations(range(6))]
    best = min((np.cumsum(jobs.duration_s[row]) - jobs.deadline_s[row]).max() for row in rows)
    schedule = simulate(jobs, Cluster.pool(1), "edf")
    assert (schedule.end_s - jobs.deadline_s).max() == best


def random_jobs(seed, jobs=60):
    """Return random jobs that overload a small cluster."""
    dice = np.random.default_rng(seed)
    duration = dice.integers(1, 50, jobs)
    return Workload.of(
        submit_s=np.sort(dice.integers(0, 150, jobs)),
        duration_s=duration,
        estimate_s=np.maximum(1, duration * dice.uniform(0.3, 3.0, jobs)),
        gpus=dice.integers(1, 13, jobs),
    )


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize(
    "cluster", [Cluster.pool(16), Cluster.of("2x V100:8")], ids=["pool", "nodes"]
)
def test_makespan_is_at_least_the_area(discipline, cluster):
    """No schedule ends before the work from any moment on, spread over all GPUs, is done."""
    orders = {"timeslice": ["fifo"], "preemptive": ["fifo", "ljf", "saf", "edf"]}.get(
        discipline, ["fifo", "ljf", "saf", "unicep"]
    )
    for seed, order in itertools.product(range(3), orders):
        jobs = random_jobs(seed)
        schedule = simulate(jobs, cluster, f"{order}+{discipline}")
        work = jobs.duration_s * jobs.gpus
        for moment in np.unique(jobs.submit_s):
            still_to_do = work[jobs.submit_s >= moment].sum()
            assert schedule.end_s.max() >= moment + still_to_do / cluster.gpus
        assert np.all(schedule.start_s >= jobs.submit_s)
        ran_s = np.bincount(
            schedule.segment_job, schedule.segment_end_s - schedule.segment_start_s, len(jobs)
        )
        assert ran_s.tolist() == jobs.duration_s.tolist()


@pytest.mark.parametrize("order", ["fifo", "ljf", "sjf", "largest-first", "random-feasible"])
def test_skip_is_at_most_twice_the_bound(order):
    """Greedy schedules of jobs that are all there end by twice the lower bound.

    If the longest job is shorter than half the makespan C, then at any moment t < C/2 and at
    t + C/2 together more than all GPUs are busy, or a job that runs at the later moment would have
    started at the earlier one; so the work exceeds GPUs · C/2 (Garey and Graham).
    """
    for seed in range(20):
        jobs = jobs_at_zero(seed, jobs=25)
        schedule = simulate(jobs, Cluster.pool(POOL), f"{order}+skip", seed=seed)
        area_s = float(np.sum(jobs.duration_s * jobs.gpus)) / POOL
        assert schedule.end_s.max() <= 2 * max(area_s, jobs.duration_s.max())
