"""Factors put the queue into the wished order, within a bound, touching as few jobs as possible."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.live.slurm.factors import (
    SLACK,
    Queue,
    Scale,
    attainable,
    longest_falling,
    plan_factors,
)

SCALES = st.builds(
    Scale,
    age_weight=st.sampled_from([100, 1000, 20_000, 1_000_000]),
    max_age_s=st.sampled_from([600.0, 86_400.0, 604_800.0]),
    max_advance_s=st.sampled_from([60.0, 3600.0, 86_400.0]),
)


@st.composite
def queues(draw: st.DrawFn) -> tuple[Queue, Scale]:
    """Jobs with any base, factors of ours or none, and priorities that are up to a minute old."""
    scale = draw(SCALES)
    jobs = draw(st.integers(1, 40))
    numbers = st.integers(0, 3 * scale.points + 50)
    base = np.array(draw(st.lists(numbers, min_size=jobs, max_size=jobs)), dtype=np.int64)
    some = st.lists(st.integers(0, scale.points), min_size=jobs, max_size=jobs)
    site = np.array(draw(some), dtype=np.int64)
    site[draw(st.lists(st.integers(0, jobs - 1)))] = 0
    stale = draw(st.integers(0, int(60 * scale.points_per_s)))
    held = np.maximum(base + site - stale, 1)
    job = np.array(draw(st.permutations(range(1, jobs + 1))), dtype=np.int64)
    return Queue(job, base, site, held), scale


def as_slurm_sorts(queue: Queue, priority: np.ndarray) -> list[int]:
    """Highest priority first, of equals the lower number: Slurm's own rule."""
    return np.lexsort((queue.job, -priority)).tolist()


def after(queue: Queue, site: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Priorities right after the changes, and after Slurm has weighed everybody again."""
    weighed = np.maximum(queue.base + site, 1)
    return np.where(site != queue.site, weighed, queue.held), weighed


@settings(max_examples=300, deadline=None)
@given(queues())
def test_slurms_sorting_gives_the_planned_order(case: tuple[Queue, Scale]):
    """Sorted by Slurm's rule, now and after its next weighing, the queue is as planned."""
    queue, scale = case
    labels = plan_factors(queue, scale)
    head = min(len(queue.job), scale.places)
    now, later = after(queue, labels.site)
    if head == len(queue.job):
        assert as_slurm_sorts(queue, now) == labels.order.tolist()
    assert as_slurm_sorts(queue, later) == labels.order.tolist()


@settings(max_examples=300, deadline=None)
@given(queues())
def test_nobody_is_passed_beyond_the_bound(case: tuple[Queue, Scale]):
    """Factors stay within 0 and the bound, so no job passes one whose base is that much higher."""
    queue, scale = case
    labels = plan_factors(queue, scale)
    assert labels.site.min() >= 0
    assert labels.site.max() <= scale.points
    base = np.maximum(queue.base[labels.order], 1)  # no priority is lower
    highest_behind = np.maximum.accumulate(base[::-1])[::-1]
    assert (highest_behind - base <= scale.points).all()


@settings(max_examples=200, deadline=None)
@given(queues())
def test_nobody_goes_higher_than_needed(case: tuple[Queue, Scale]):
    """Who is put first stands a little above the highest, not half the bound: others are there."""
    queue, scale = case
    bare = Queue(queue.job, queue.base, np.zeros_like(queue.site), np.maximum(queue.base, 1))
    highest = (bare.base + plan_factors(bare, scale).site).max()
    room = scale.margin * (1 + SLACK) * len(queue.job)
    assert highest <= max(queue.base.max(), 1) + room


@settings(max_examples=200, deadline=None)
@given(queues())
def test_what_stands_right_is_left_alone(case: tuple[Queue, Scale]):
    """Planning once more after the changes were made, and weighed again, changes nothing."""
    queue, scale = case
    labels = plan_factors(queue, scale)
    _, weighed = after(queue, labels.site)
    again = plan_factors(Queue(queue.job, queue.base, labels.site, weighed), scale)
    assert not again.changed.any()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(0, 10**6))
def test_the_attainable_order_is_as_near_as_can_be(bases: list[int], room: int):
    """Each next job is the first wished one that passes nobody beyond the bound."""
    base = np.array(bases, dtype=np.int64)
    left = list(range(len(bases)))
    for row in attainable(base, room).tolist():
        highest = max(bases[one] for one in left)
        assert row == next(one for one in left if bases[one] >= highest - room)
        left.remove(row)


@given(st.lists(st.integers(-20, 20), max_size=12))
def test_the_longest_falling_run_is_the_longest(keys: list[int]):
    """The chosen keys fall, and no longer falling run exists (all of them tried)."""
    chosen = longest_falling(np.array(keys, dtype=np.int64))
    picked = [key for key, is_in in zip(keys, chosen, strict=True) if is_in]
    assert all(first > second for first, second in pairwise(picked))
    best = [1] * len(keys)
    for end, key in enumerate(keys):
        best[end] = 1 + max((best[one] for one in range(end) if keys[one] > key), default=0)
    assert len(picked) == max(best, default=0)


def test_one_job_out_of_place_is_one_change():
    """Of 1,000 jobs in order, the one that is to come first is the only one that is changed."""
    scale = Scale(1_000_000, 86_400.0, 86_400.0)
    base = np.arange(20_000, 10_000, -10)
    wished = np.roll(base, 1)  # the last job is to come first
    numbers = np.roll(np.arange(1, 1001), 1)
    labels = plan_factors(Queue(numbers, wished, np.zeros(1000, np.int64), wished), scale)
    assert np.flatnonzero(labels.changed).tolist() == [0]


def test_a_stream_of_newcomers_costs_few_changes():
    """Jobs that come and go in any place of the order cost hardly more than a change each."""
    scale, dice = Scale(1_000_000, 86_400.0, 86_400.0), random.Random(1)
    waiting = [(dice.expovariate(1.0), number, 30 * number) for number in range(100)]
    factors, changes = dict.fromkeys(range(100), 0), 0
    for number in range(100, 200):
        waiting.append((dice.expovariate(1.0), number, 30 * number))
        waiting.sort()
        del waiting[dice.randrange(5)]
        job = np.array([one for _, one, _ in waiting])
        base = np.array([int(scale.points_per_s * (6000 - since)) for *_, since in waiting])
        site = np.array([factors.get(one, 0) for one in job.tolist()])
        labels = plan_factors(Queue(job, base, site, np.maximum(base + site, 1)), scale)
        factors = dict(zip(job.tolist(), labels.site.tolist(), strict=True))
        changes += int(labels.changed.sum())
    assert changes <= 300


@given(st.integers(0, 100_000), st.integers(1, 60))
def test_priorities_that_are_old_all_alike_are_left_alone(stale: int, apart: int):
    """Slurm weighs all jobs at once, now and then: in order is in order, however long ago."""
    scale = Scale(1_000_000, 86_400.0, 86_400.0)
    base = np.arange(50, 0, -1) * apart + stale
    queue = Queue(np.arange(1, 51), base, np.zeros(50, np.int64), np.maximum(base - stale, 1))
    assert not plan_factors(queue, scale).changed.any()


@given(st.integers(0, 700))
def test_a_newcomer_among_old_priorities_is_one_change(stale: int):
    """The one job that is to come first is changed; jobs behind it stay, weighed or not."""
    scale = Scale(1_000_000, 86_400.0, 86_400.0)
    base = np.roll(np.arange(20_000, 10_000, -10), 1)
    queue = Queue(
        np.roll(np.arange(1, 1001), 1), base, np.zeros(1000, np.int64), np.maximum(base - stale, 1)
    )
    assert np.flatnonzero(plan_factors(queue, scale).changed).tolist() == [0]


@pytest.mark.parametrize(("weight", "advance_s", "points"), [(6000, 100.0, 1000), (600, 1.0, 1)])
def test_points_are_seconds_of_waiting(weight: int, advance_s: float, points: int):
    """The highest factor is what the bound's seconds of waiting are worth in Slurm."""
    assert Scale(weight, 600.0, advance_s).points == points
