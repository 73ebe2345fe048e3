"""Workloads drawn from a workload."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.operations.sampling import resampled_blocks, resampled_jobs, thinned

HOUR_S, DAY_S, WEEK_S = 3600, 86_400, 604_800


def shapes(workload: Workload) -> list[tuple[object, ...]]:
    """Return what each job is like, without when it comes and what it is called."""
    distance = np.nan_to_num(workload.deadline_s - workload.submit_s, nan=-1.0)
    return list(
        zip(
            workload.duration_s.tolist(), workload.gpus.tolist(), workload.milli_gpu.tolist(),
            workload.tenant.values(), workload.user.values(), workload.status.values(),
            distance.round(6).tolist(), strict=True,
        )
    )  # fmt: skip


@given(st.integers(0, 10**6), st.floats(0.05, 1.0))
def test_thinning_keeps_jobs_as_they_are(random_jobs, seed, share):
    """What is left is a part of the workload, waits aside; equal seeds give equal parts."""
    jobs = random_jobs(seed, jobs=200)
    kept = thinned(jobs, seed=seed, share=share)
    same = jobs.with_columns(recorded_wait_s=None).select(kept.id)
    assert kept.fingerprint() == same.fingerprint()
    assert kept.fingerprint() == thinned(jobs, seed=seed, share=share).fingerprint()
    assert (kept.begins, kept.name) == (jobs.begins, jobs.name)


def test_thinning_keeps_the_share(random_jobs):
    """Of many jobs the binomial share is kept, or exactly so many."""
    jobs = random_jobs(1, jobs=20_000)
    kept = len(thinned(jobs, seed=5, share=0.3))
    assert abs(kept - 6000) < 5 * (20_000 * 0.3 * 0.7) ** 0.5
    assert len(thinned(jobs, seed=5, jobs=777)) == 777
    assert len(thinned(jobs, seed=5, share=1.0)) == 20_000


def test_every_job_is_equally_likely_to_stay():
    """Over many seeds each of ten jobs is among three as often as the others."""
    jobs = Workload.of(submit_s=range(10), duration_s=[1] * 10)
    counts = Counter(
        name for seed in range(2000) for name in thinned(jobs, seed=seed, jobs=3).id.tolist()
    )
    assert set(counts) == set(range(10))
    assert all(abs(count - 600) < 5 * (2000 * 0.3 * 0.7) ** 0.5 for count in counts.values())


@given(st.integers(0, 10**6), st.sampled_from(["1w", "1d", "12h", "2w"]), st.integers(1, 60))
def test_blocks_are_whole_and_at_their_hour(random_jobs, seed, block, days):
    """Each block of the result is one of the source, moved by weeks as far as hours can tell."""
    jobs = random_jobs(seed, jobs=400, days=35)
    drawn = resampled_blocks(jobs, seed=seed, block=block, length=f"{days}d")
    block_s = {"1w": WEEK_S, "1d": DAY_S, "12h": DAY_S / 2, "2w": 2 * WEEK_S}[block]
    first = jobs.submit_s[0]
    names = [name.split("@") for name in drawn.id.tolist()]
    rows = np.array([int(name) for name, _ in names])
    place = np.array([int(number) for _, number in names])
    moved = drawn.submit_s - jobs.submit_s[rows]
    assert np.all(moved % WEEK_S == 0)
    assert drawn.submit_s.max() < first + days * DAY_S
    np.testing.assert_array_equal((drawn.submit_s - first) // block_s, place)
    source_shapes = shapes(jobs)
    assert shapes(drawn) == [source_shapes[row] for row in rows]
    end_s = first + days * DAY_S
    for number in set(place.tolist()):
        own = rows[place == number]
        source = (jobs.submit_s[own[0]] - first) // block_s
        inside = (jobs.submit_s - first) // block_s == source
        cut = jobs.submit_s + moved[place == number][0] < end_s
        assert own.tolist() == np.flatnonzero(inside & cut).tolist()


def test_blocks_of_weeks_keep_the_profile_of_the_week():
    """A rhythm that repeats every week is the same in every sample, hour for hour."""
    hours = np.repeat(np.arange(24 * 7), np.arange(24 * 7) % 5)
    weeks = 10
    submit_s = np.concatenate([hours * HOUR_S + week * WEEK_S for week in range(weeks)])
    jobs = Workload.of(
        submit_s=submit_s.astype(float),
        duration_s=np.ones(len(submit_s)),
        begins="2020-04-08T05:00",
    )
    drawn = resampled_blocks(jobs, seed=3, length="30w")
    profile = np.bincount((jobs.submit_s // HOUR_S % 168).astype(int), minlength=168)
    found = np.bincount((drawn.submit_s // HOUR_S % 168).astype(int), minlength=168)
    np.testing.assert_array_equal(found, profile * 3)
    assert drawn.begins == jobs.begins
    by_day = resampled_blocks(jobs, seed=3, length="30w", block="1d")
    found = np.bincount((by_day.submit_s // HOUR_S % 168).astype(int), minlength=168)
    np.testing.assert_array_equal(found, profile * 3)


def test_every_complete_block_is_equally_likely():
    """The incomplete last week is never drawn, each other one as often as the rest."""
    submit_s = [week * WEEK_S + 100.0 for week in range(5)] + [4.4 * WEEK_S]
    jobs = Workload.of(submit_s=submit_s, duration_s=[1] * 6)
    drawn = resampled_blocks(jobs, seed=0, length="4000w")
    counts = Counter(int(name.split("@")[0]) for name in drawn.id.tolist())
    assert set(counts) == {0, 1, 2, 3}
    assert all(abs(count - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5 for count in counts.values())


def test_every_day_of_the_same_weekday_is_equally_likely():
    """Of ten days, three weekdays are there twice and the others once; all of them are drawn."""
    jobs = Workload.of(submit_s=np.arange(11) * float(DAY_S), duration_s=np.ones(11))
    drawn = resampled_blocks(jobs, seed=0, length="1000w", block="1d")
    counts = Counter(int(name.split("@")[0]) for name in drawn.id.tolist())
    assert [counts[day] for day in (3, 4, 5, 6)] == [1000] * 4
    twice = [counts[day] for day in (0, 1, 2, 7, 8, 9)]
    assert all(abs(count - 500) < 5 * (1000 * 0.25) ** 0.5 for count in twice)


def test_a_last_block_may_be_almost_complete():
    """Two weeks whose last job comes an hour before their end are two weeks."""
    jobs = Workload.of(submit_s=[0, WEEK_S, 2 * WEEK_S - HOUR_S], duration_s=[1, 1, 1])
    assert "drawn from 2 with" in resampled_blocks(jobs, seed=0).notes[-1]


@given(st.integers(0, 10**6))
def test_drawing_jobs_keeps_arrivals_and_shapes(random_jobs, seed):
    """Every arrival stays; every job is, in all its columns, one of the source."""
    jobs = random_jobs(seed, jobs=100)
    drawn = resampled_jobs(jobs, seed=seed)
    np.testing.assert_array_equal(drawn.submit_s, jobs.submit_s)
    assert set(shapes(drawn)) <= set(shapes(jobs))
    assert np.isnan(drawn.recorded_wait_s).all()
    assert drawn.fingerprint() == resampled_jobs(jobs, seed=seed).fingerprint()


def test_jobs_are_drawn_evenly_and_independently():
    """Each job's count is binomial, and neighbours are not alike any more."""
    jobs = Workload.of(submit_s=np.arange(4000.0), duration_s=np.repeat([1.0, 2.0, 3.0, 4.0], 1000))
    drawn = resampled_jobs(jobs, seed=2).duration_s
    counts = Counter(drawn.tolist())
    assert all(abs(count - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5 for count in counts.values())
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 5 / 4000**0.5


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda jobs: thinned(jobs, seed=0), "either a share of the jobs or their number"),
        (lambda jobs: thinned(jobs, seed=0, share=0.5, jobs=3), "either a share"),
        (lambda jobs: thinned(jobs, seed=0, share=0.0), "share must be a number above 0"),
        (lambda jobs: thinned(jobs, seed=0, share=1e-12), "Take a larger share"),
        (lambda jobs: thinned(jobs, seed=0, jobs=61), "jobs must be at most 60"),
        (lambda jobs: thinned(jobs, seed=-1, jobs=6), "seed must be at least 0"),
        (lambda jobs: resampled_blocks(jobs, seed=0, block="5d"), "whole weeks or an even part"),
        (lambda jobs: resampled_blocks(jobs, seed=0, block="0"), "whole weeks or an even part"),
        (
            lambda jobs: resampled_blocks(jobs, seed=0, block="3w"),
            r"need one of them .* but the 60",
        ),
        (lambda jobs: resampled_blocks(jobs, seed=0, length="0d"), "length must be more than"),
        (lambda jobs: resampled_blocks(jobs, seed=0, length="1e12w"), "length must be a time"),
        (lambda jobs: resampled_blocks(jobs, seed=0, length=1e15), "length is too long"),
    ],
)
def test_mistakes_are_explained(random_jobs, draw, message):
    """Each message names the argument or what the workload covers."""
    with pytest.raises(InvalidWorkloadError, match=message):
        draw(random_jobs(0))


def test_days_need_a_whole_week_to_draw_from():
    """Otherwise some weekday would have no block."""
    jobs = Workload.of(submit_s=[0, 5 * DAY_S], duration_s=[1, 1])
    with pytest.raises(InvalidWorkloadError, match="need 7 of them, a whole week"):
        resampled_blocks(jobs, seed=0, block="1d")
