"""Stopping jobs: optimality on one GPU, queues known in closed form, and the cheapest victims."""

import heapq
import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Checkpoints, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

ONE_GPU = Cluster.pool(1)


def shortest_remaining_first(submit, work):
    """Return the completion times of SRPT on one machine, by an independent little program."""
    now, coming, waiting, end = 0.0, list(range(len(submit))), [], [0.0] * len(submit)
    while coming or waiting:
        if not waiting:
            now = max(now, submit[coming[0]])
        while coming and submit[coming[0]] <= now:
            heapq.heappush(waiting, (work[coming[0]], coming[0]))
            coming.pop(0)
        left, row = heapq.heappop(waiting)
        pause = submit[coming[0]] if coming else math.inf
        if now + left <= pause:
            now += left
            end[row] = now
        else:
            heapq.heappush(waiting, (left - (pause - now), row))
            now = pause
    return np.array(end)


def whole_jobs(seed, jobs, longest=12):
    """Return submissions and work in whole seconds that keep one GPU busy."""
    dice = np.random.default_rng(seed)
    submit = np.sort(dice.integers(0, longest * jobs // 3, jobs)).astype(float)
    return submit, dice.integers(1, longest, jobs).astype(float)


@pytest.mark.parametrize("seed", range(6))
def test_srpt_is_the_textbook_program(seed):
    """On one GPU the mean completion time is, to the last bit, that of an independent program."""
    submit, work = whole_jobs(seed, 60)
    jobs = Workload.of(submit_s=submit, duration_s=work)
    ours = simulate(jobs, ONE_GPU, "srpt+preemptive", compile_core="never")
    assert np.sum(ours.end_s - submit) == np.sum(shortest_remaining_first(submit, work) - submit)
    assert np.count_nonzero(ours.segment_cause == Cause.PREEMPTED) > 5
    assert np.mean(ours.end_s) < np.mean(simulate(jobs, ONE_GPU, "sjf").end_s)


@pytest.mark.parametrize("seed", range(6))
def test_srpt_is_optimal(seed):
    """No schedule that may stop jobs at any second, and no order without stops, does better."""
    submit, work = whole_jobs(seed, 5, longest=6)

    @cache
    def least(now, left):
        """Return the least sum of completion times from here, trying everybody every second."""
        there = [row for row, rest in enumerate(left) if rest and submit[row] <= now]
        if not there:
            return 0 if not any(left) else least(now + 1, left)
        results = []
        for row in there:
            rest = tuple(part - (other == row) for other, part in enumerate(left))
            results.append(least(now + 1, rest) + (now + 1 if rest[row] == 0 else 0))
        return min(results)

    def in_order(rows):
        now, total = 0.0, 0.0
        for row in rows:
            now = max(now, submit[row]) + work[row]
            total += now
        return total

    jobs = Workload.of(submit_s=submit, duration_s=work)
    total = np.sum(simulate(jobs, ONE_GPU, "srpt+preemptive", compile_core="never").end_s)
    assert total == least(0, tuple(int(part) for part in work))
    assert total <= min(map(in_order, permutations(range(5))))


def mean_responses(scheduler, draw, *, load, jobs, replications, quantum_s=0.0):
    """Return (ours, first come first served): mean times in an M/G/1 queue of mean service 1."""
    cluster = ONE_GPU.under(Site(quantum_s=quantum_s))
    ours, fifo = [], []
    for seed in range(replications):
        dice = np.random.default_rng(seed)
        service, gaps = draw(dice, jobs), dice.exponential(1.0 / load, jobs)
        submit = np.cumsum(gaps)
        workload = Workload.of(submit_s=submit, duration_s=service)
        ours.append(
            np.mean(simulate(workload, cluster, scheduler, compile_core="never").end_s - submit)
        )
        wait, waits = 0.0, []
        for gap, before in zip(gaps[1:], service, strict=False):  # Lindley's recursion
            waits.append(wait)
            wait = max(wait + before - gap, 0.0)
        fifo.append(np.mean(service) + np.mean([*waits, wait]))
    return np.array(ours), np.array(fifo)


def assert_near(values, theory, relative):
    """Check replications against theory: within three standard errors and a few per cent."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert abs(np.mean(values) - theory) <= 3.0 * error
    assert np.mean(values) == pytest.approx(theory, rel=relative)


def controlled(ours, fifo, fifo_theory):
    """Correct each replication by how lucky first come first served was on the same path."""
    slope = np.cov(ours, fifo)[0, 1] / np.var(fifo, ddof=1)
    return ours - slope * (fifo - fifo_theory)


def exponential(dice, jobs):
    """Draw exponential service times of mean 1."""
    return dice.exponential(1.0, jobs)


def uniform(dice, jobs):
    """Draw service times between 0 and 2: mean 1."""
    return dice.uniform(0.0, 2.0, jobs)


def grid(longest):
    """Return midpoints and the step of a fine grid over service times."""
    step = longest / 100_000
    return (np.arange(100_000) + 0.5) * step, step


def test_schrage_and_miller():
    """SRPT in M/M/1 takes as long as the formula of Schrage and Miller says, less than FIFO."""
    load = 0.7
    x, step = grid(30.0)
    density, tail = np.exp(-x), np.exp(-x)
    busy = load * (np.cumsum(x * density) - 0.5 * x * density) * step
    second = load * (np.cumsum(x * x * density) * step + x * x * tail)
    waits = second / (2 * (1 - busy) ** 2)
    serves = (np.cumsum(1 / (1 - busy)) - 0.5 / (1 - busy)) * step
    theory = np.sum((waits + serves) * density) * step
    ours, fifo = mean_responses(
        "srpt+preemptive", exponential, load=load, jobs=1000, replications=10
    )
    assert_near(controlled(ours, fifo, 1 / (1 - load)), theory, 0.05)
    assert np.all(ours < fifo)


@pytest.mark.parametrize("scheduler", ["fifo+timeslice", "las+preemptive"])
def test_blind_turns_are_worth_nothing_without_memory(scheduler):
    """In M/M/1 whoever knows nothing takes 1/(μ − λ), taking turns (processor sharing) or not."""
    load = 0.5
    ours, fifo = mean_responses(
        scheduler, exponential, load=load, jobs=300, replications=10, quantum_s=0.1
    )
    assert_near(controlled(ours, fifo, 1 / (1 - load)), 1 / (1 - load), 0.08)
    assert np.any(ours != fifo)


def test_foreground_background():
    """Least attained service in M/G/1 takes as long as the foreground-background formula says.

    Service times that are nearly used up are served last, so for uniform ones it is worse than
    first come first served.
    """
    load = 0.5
    x, step = grid(2.0)
    tail = 1.0 - x / 2.0
    busy = load * (np.cumsum(tail) - 0.5 * tail) * step
    second = load * (np.cumsum(x * x) * 0.5 * step + x * x * tail)
    theory = np.sum((second / (2 * (1 - busy) ** 2) + x / (1 - busy)) * 0.5) * step
    fifo_theory = 1 + load * (4 / 3) / (2 * (1 - load))
    ours, fifo = mean_responses(
        "las+preemptive", uniform, load=load, jobs=300, replications=10, quantum_s=0.1
    )
    assert_near(controlled(ours, fifo, fifo_theory), theory, 0.08)
    assert np.mean(ours) > np.mean(fifo)


def test_the_long_gang_is_spared_until_it_has_saved():
    """Eight fresh small jobs go before a gang an hour from its checkpoint, as operators ask for.

    Rules by priority and number of victims stop the gang, which is one victim instead of eight.
    """
    site = Site(
        checkpoints=Checkpoints(every_s=3600.0, restore_s=60.0, on_preemption=False),
        quantum_s=60.0,
    )
    cluster = Cluster.of("2x V100:8").under(site)
    for urgent_s, victims, wasted_gpu_s in (
        (3500, set(range(1, 9)), 8 * 100),  # against 8 · 3500 of the gang
        (3660, {0}, 8 * (60 + 60)),  # just saved: 8 · 60 and restoring, against 8 · 260
    ):
        jobs = Workload.of(
            submit_s=[0] + [3400] * 8 + [urgent_s],
            duration_s=[20_000] + [4_000] * 8 + [600],
            gpus=[8] + [1] * 8 + [8],
            priority=[0] * 9 + [1],
        )
        schedule = simulate(jobs, cluster, "static-priority+preemptive", compile_core="never")
        stopped = schedule.segment_cause == Cause.PREEMPTED
        assert set(schedule.segment_job[stopped].tolist()) == victims
        assert schedule.start_s[9] == urgent_s
        assert schedule.segment_wasted_s @ np.diff(schedule.segment_gpu_offset) == wasted_gpu_s


EVERY_S, RESTORE_S = 100.0, 10.0


def by_priority(submit, work, rank, gpus, victim):
    """Simulate 1-GPU jobs that stop lower ranks, by an independent program; return ends and waste.

    `victim(candidates, lost, rank)` chooses whom to stop; work since the last checkpoint is lost.
    """
    left, overhead, end = work.copy(), np.zeros(len(work)), np.zeros(len(work))
    coming, waiting, running, wasted = list(range(len(work))), set(), {}, 0.0
    while coming or waiting or running:
        ends = {row: start + overhead[row] + left[row] for row, start in running.items()}
        now = min([submit[row] for row in coming[:1]] + list(ends.values()))
        for row in [row for row in ends if ends[row] == now]:
            del running[row]
            end[row] = now
            wasted += overhead[row]
        while coming and submit[coming[0]] == now:
            waiting.add(coming.pop(0))
        while waiting:
            row = min(waiting, key=lambda row: (rank[row], row))
            if len(running) == gpus:
                lower = [v for v in running if rank[v] > rank[row] and running[v] < now]
                if not lower:
                    break
                ran = {v: max(now - running[v] - overhead[v], 0.0) for v in lower}
                lost = {v: ran[v] % EVERY_S for v in lower}
                out = victim(lower, lost, rank)
                wasted += min(overhead[out], now - running.pop(out)) + lost[out]
                left[out] -= ran[out] - lost[out]
                overhead[out] = RESTORE_S if left[out] < work[out] else 0.0
                waiting.add(out)
            waiting.remove(row)
            running[row] = now
    return end, wasted


def cheapest(candidates, lost, _rank):
    """Stop the one that loses least."""
    return min(candidates, key=lambda row: (lost[row], row))


def lowest(candidates, _lost, rank):
    """Stop the lowest rank, the last submitted of it."""
    return max(candidates, key=lambda row: (rank[row], row))


@pytest.mark.parametrize("classes", [2, 3])
def test_victims_by_lost_work_waste_less(classes):
    """With a few priorities, choosing victims by lost work wastes less than by rank alone."""
    ours, by_rank = 0.0, 0.0
    costs = Checkpoints(every_s=EVERY_S, restore_s=RESTORE_S, on_preemption=False)
    for seed in range(6):
        dice = np.random.default_rng(seed)
        submit = np.sort(dice.integers(0, 6000, 100)).astype(float)
        work = dice.integers(50, 700, 100).astype(float)
        rank = dice.integers(0, classes, 100).astype(float)
        jobs = Workload.of(submit_s=submit, duration_s=work, priority=-rank)
        cluster = Cluster.pool(6).under(Site(checkpoints=costs))
        schedule = simulate(jobs, cluster, "static-priority+preemptive", compile_core="never")
        wasted = schedule.segment_wasted_s.sum()
        if classes == 2:  # all candidates are of one rank: the program must say the same
            end, expected = by_priority(submit, work, rank, 6, cheapest)
            assert schedule.end_s == pytest.approx(end)
            assert wasted == pytest.approx(expected)
        ours += wasted
        by_rank += by_priority(submit, work, rank, 6, lowest)[1]
    assert ours < 0.9 * by_rank
