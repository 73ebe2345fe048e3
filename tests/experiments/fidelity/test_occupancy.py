"""Who holds and who waits at every moment, against counting second by second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.experiments.fidelity import occupancy
from yardmaster.experiments.fidelity.occupancy import (
    Occupancy,
    recorded_occupancy,
    simulated_occupancy,
    wanted_gpus,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

GPUS = 8
ROWS = st.lists(
    st.tuples(
        st.integers(0, 30),  # submit
        st.integers(0, 12),  # wait
        st.integers(0, 12),  # duration
        st.integers(1, 9),  # GPUs: some do not fit, and together they may hold too many
    ),
    min_size=1,
    max_size=12,
)


def made(rows: list[tuple[int, int, int, int]]) -> Workload:
    submit, wait, run, gpus = zip(*sorted(rows), strict=True)
    return Workload.of(submit_s=submit, duration_s=run, gpus=gpus, recorded_wait_s=wait)


def by_second(jobs: Workload) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (jobs, seconds) who waits and who runs during each second, and the GPUs free."""
    second = np.arange(60)
    submit, start = jobs.submit_s, jobs.submit_s + jobs.recorded_wait_s
    waits = (submit[:, None] <= second) & (second < start[:, None])
    end = start + jobs.duration_s
    runs = (start[:, None] <= second) & (second < end[:, None])
    return waits, runs, GPUS - (runs * jobs.gpus[:, None]).sum(axis=0)


@settings(deadline=None)  # others use the machine too
@given(ROWS)
def test_steps_agree_with_counting_seconds(rows):
    """GPUs in use, jobs waiting and the largest request are right in every single second."""
    jobs = made(rows)
    waits, runs, free = by_second(jobs)
    found = recorded_occupancy(jobs, Cluster.pool(GPUS))
    place = np.searchsorted(found.moments_s, np.arange(60), side="right") - 1
    inside = place >= 0
    np.testing.assert_array_equal(found.free[place[inside]], free[inside])
    np.testing.assert_array_equal(found.waiting[place[inside]], waits.sum(axis=0)[inside])
    largest = (waits * jobs.gpus[:, None]).max(axis=0)
    np.testing.assert_array_equal(found.largest[place[inside]], largest[inside])
    assert not runs[:, ~inside].any()


@settings(deadline=None)  # others use the machine too
@given(ROWS)
def test_waiting_with_room_agrees_with_counting_seconds(rows):
    """Seconds a job waited with enough GPUs free for it, and with enough for the largest."""
    jobs = made(rows)
    waits, _, free = by_second(jobs)
    found = recorded_occupancy(jobs, Cluster.pool(GPUS))
    with_room = (waits & (free >= jobs.gpus[:, None])).sum(axis=1)
    np.testing.assert_array_equal(found.waited_with_room_s(), with_room)
    largest = (waits * jobs.gpus[:, None]).max(axis=0)
    for_all = waits.any(axis=0) & (largest <= free)
    np.testing.assert_array_equal(
        found.waited_during_s(found.has_room_for_all), (waits & for_all).sum(axis=1)
    )
    everything = np.ones(len(found.moments_s), dtype=np.bool_)
    np.testing.assert_array_equal(found.waited_during_s(everything), jobs.recorded_wait_s)


@settings(deadline=None)  # others use the machine too
@given(ROWS)
def test_utilisation_is_the_mean_over_seconds(rows):
    """The mean use between two seconds is the mean of the seconds in between."""
    jobs = made(rows)
    _, _, free = by_second(jobs)
    found = recorded_occupancy(jobs, Cluster.pool(GPUS))
    mean = (GPUS - free[5:40]).mean() / GPUS
    assert found.utilisation(5.0, 40.0) == pytest.approx(mean)


def test_jobs_without_a_recorded_wait_are_not_there():
    """They neither wait nor hold anything in the record."""
    jobs = Workload.of(
        submit_s=[0, 0], duration_s=[10, 10], gpus=[4, 2], recorded_wait_s=[np.nan, 5]
    )
    found = recorded_occupancy(jobs, Cluster.pool(GPUS))
    assert found.used.max() == 2
    assert found.waiting.max() == 1
    np.testing.assert_array_equal(found.waited_with_room_s(), [0, 5])


def test_a_simulation_and_the_record_of_it_are_the_same(jobs, pool, record):
    """The occupancy of a schedule equals that of its waits taken as a record."""
    schedule = simulate(jobs, pool, "fifo+easy")
    simulated = simulated_occupancy(schedule)
    recorded = recorded_occupancy(record(jobs, pool, "fifo+easy"), pool)
    for name in ("moments_s", "used", "waiting", "largest", "wants"):
        np.testing.assert_array_equal(getattr(simulated, name), getattr(recorded, name))


def test_many_sizes_are_rounded_up(monkeypatch):
    """With more sizes than are told apart, a request never seems smaller than it is."""
    monkeypatch.setattr(occupancy, "MOST_SIZES", 3)
    gpus = np.arange(1, 9)
    jobs = Workload.of(submit_s=np.zeros(8), duration_s=np.ones(8), gpus=gpus,
                       recorded_wait_s=np.full(8, 10.0))  # fmt: skip
    level, of_job = occupancy._levels(gpus.astype(float))
    assert len(level) == 3
    assert (level[of_job] >= gpus).all()
    assert level[-1] == 8
    assert recorded_occupancy(jobs, Cluster.pool(GPUS)).largest.max() == 8


def test_highest_use_is_a_quantile_over_time():
    """A peak that lasts a tenth of the time is seen at 0.95 and not at 0.85."""
    nothing = np.zeros(0)
    found = Occupancy(
        gpus=10, moments_s=np.array([0.0, 90.0, 100.0]), lasts_s=np.array([90.0, 10.0, 0.0]),
        used=np.array([3.0, 7.0, 0.0]), waiting=np.array([1, 1, 0]), largest=np.zeros(3),
        wants=nothing, came=nothing.astype(np.int64), went=nothing.astype(np.int64),
    )  # fmt: skip
    always = np.ones(3, dtype=np.bool_)
    assert found.highest_use(always, 0.85) == 3
    assert found.highest_use(always, 0.95) == 7
    assert found.highest_use(~always, 0.95) == 0
    assert found.share_of_time(found.used > 5) == pytest.approx(0.1)


def test_parts_of_a_gpu_count_only_where_gpus_are_shared():
    """Half a GPU holds a whole one on a cluster that does not share, and half of one elsewhere."""
    jobs = Workload.of(submit_s=[0], duration_s=[1], gpus=[1], milli_gpu=[500])
    plain = Cluster.of("1x A100:2")
    assert wanted_gpus(jobs, plain).tolist() == [1.0]
    shared = replace(plain, node_sharing=np.ones(1, dtype=np.int64))
    assert wanted_gpus(jobs, shared).tolist() == [0.5]
