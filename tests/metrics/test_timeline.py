"""Step functions over time: hand-made schedules, Little's law, and areas that must agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.metrics import per_job, timeline
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Sharing


@st.composite
def interrupted_runs(draw):
    """Jobs of one to three segments with whole-second times; gaps and lengths may be zero."""
    submit, runs = [], []
    for job in range(draw(st.integers(1, 6))):
        now = draw(st.integers(0, 20))
        submit.append(now)
        for _ in range(draw(st.integers(1, 3))):
            start = now + draw(st.integers(0, 5))
            now = start + draw(st.integers(0, 9))
            runs.append((job, float(start), float(now), [job]))
    order = np.argsort(submit, kind="stable")
    row = {int(job): place for place, job in enumerate(order)}
    runs = [(row[job], *run) for job, *run in runs]
    return sorted(submit), runs


def test_queue_counts_waiting_before_and_between_segments(make):
    """A preempted job is back in the queue; arrivals and starts of one instant cancel out."""
    schedule = make(
        Cluster.pool(1),
        [(0, 0, 10, [0]), (1, 10, 14, [0]), (0, 14, 20, [0])],
        submit_s=[0, 4],
        duration_s=[16, 4],
    )
    queue = timeline.queue_length(schedule)
    assert [queue.at(t) for t in (0, 3.9, 4, 9.9, 10, 13.9, 14, 19)] == [0, 0, 1, 1, 1, 1, 0, 0]
    assert queue.maximum() == 1
    assert queue.time_average() == 10 / 20


def test_jobs_started_at_submission_never_queue(make):
    """A queue of zero length in time does not show, not even in the maximum."""
    schedule = make(
        Cluster.pool(2),
        [(0, 0, 5, [0]), (1, 0, 5, [1]), (2, 5, 5, [0])],
        submit_s=[0, 0, 5],
        duration_s=[5, 5, 0],
    )
    assert timeline.queue_length(schedule).maximum() == 0
    assert timeline.running_jobs(schedule).maximum() == 2


def test_cut_jobs_stay_in_the_queue_to_the_end(make):
    """Queued and interrupted jobs wait up to the cut; jobs outside the simulation never do."""
    schedule = make(
        Cluster.pool(4),
        [(0, 0, 10, [0])],
        cut_s=30.0,
        unfinished=[0],
        unplaceable=[1],
        submit_s=[0, 0, 20, 99],
        duration_s=[50, 1, 1, 1],
        gpus=[1, 9, 1, 1],
    )
    queue = timeline.queue_length(schedule)
    np.testing.assert_array_equal(queue.edges_s, [0, 10, 20, 30])
    np.testing.assert_array_equal(queue.values, [0, 1, 2])


def test_failed_jobs_leave_the_queue(make):
    """A job that lost its node waits until it starts again, but not after it has failed."""
    schedule = make(
        Cluster.pool(2),
        [(0, 2, 10, [0], Cause.NODE_FAILED), (0, 15, 20, [0], Cause.NODE_FAILED),
         (1, 0, 30, [1])],
        failed=[0], submit_s=[0, 0], duration_s=[50, 30],
    )  # fmt: skip
    queue = timeline.queue_length(schedule)
    np.testing.assert_array_equal(queue.edges_s, [0, 2, 10, 15, 20, 30])
    np.testing.assert_array_equal(queue.values, [1, 0, 1, 0, 0])


def test_busy_gpus_count_held_gpus_whole_where_nodes_do_not_share(make, share):
    """Ten jobs that each asked for a tenth of a GPU hold ten GPUs, or one that they share."""
    columns = {
        "submit_s": [0.0] * 11, "duration_s": [10.0] * 11, "milli_gpu": [100] * 10 + [1000],
    }  # fmt: skip
    runs = [(job, 0.0, 10.0, [job]) for job in range(10)] + [(10, 20.0, 30.0, [0])]
    alone = make(Cluster.of("1x A100:10"), runs, **columns)
    np.testing.assert_array_equal(timeline.busy_gpus(alone).values, [10, 0, 1])
    runs = [(job, start, end, [0]) for job, start, end, _ in runs]
    shared = make(share(Cluster.of("1x A100:10"), Sharing.MPS), runs, **columns)
    np.testing.assert_array_equal(timeline.busy_gpus(shared).values, [1, 0, 1])


@given(interrupted_runs())
def test_littles_law_holds_exactly(make, drawn):
    """Mean number in the system × horizon = sum of JCT, for schedules that are complete."""
    submit, runs = drawn
    schedule = make(Cluster.pool(8), runs, submit_s=submit, duration_s=[1] * len(submit))
    begin, end = schedule.horizon_s
    if end == begin:
        return
    queue, running = timeline.queue_length(schedule), timeline.running_jobs(schedule)
    in_system = queue.time_average() + running.time_average()
    rate = len(submit) / (end - begin)
    assert in_system == pytest.approx(rate * np.mean(per_job.jct_s(schedule)))
    assert running.time_average() == pytest.approx(rate * np.mean(per_job.run_s(schedule)))
    assert (queue.values >= 0).all()


@given(interrupted_runs(), st.integers(1, 40))
def test_resampling_keeps_the_area(make, drawn, bins):
    """Bins hold time averages, so their mean is the time average and none exceeds the maximum."""
    submit, runs = drawn
    schedule = make(Cluster.pool(8), runs, submit_s=submit, duration_s=[1] * len(submit))
    queue = timeline.queue_length(schedule)
    edges, means = queue.resample(bins)
    assert len(edges) == bins + 1
    if edges[0] == edges[-1]:
        assert np.isnan(means).all()
        return
    assert means.mean() == pytest.approx(queue.time_average())
    assert means.max() <= queue.maximum() + 1e-9


def test_resampling_averages_within_bins(make):
    """A job that waits from 0 to 3 of 4 seconds fills the first bin and half of the second."""
    schedule = make(Cluster.pool(1), [(0, 3, 4, [0])], submit_s=[0], duration_s=[1])
    edges, means = timeline.queue_length(schedule).resample(2)
    np.testing.assert_array_equal(edges, [0, 2, 4])
    np.testing.assert_allclose(means, [1, 0.5])


def backlog(make, *, waiting, last_submit_s):
    """A cluster of one GPU with `waiting` jobs behind a long one, then one more submission."""
    jobs = waiting + 1
    runs = [(job, 1000.0 + job, 1001.0 + job, [0]) for job in range(1, jobs)]
    runs += [(0, 0.0, 1000.0, [0]), (jobs, 5000.0, 5001.0, [0])]
    submit = [0.0] * jobs + [last_submit_s]
    return make(Cluster.pool(1), runs, submit_s=submit, duration_s=[1] * len(submit))


def test_explosion_needs_a_long_queue_at_the_last_submission(make):
    """Passing the threshold explodes the queue only if it has not drained when arrivals end."""
    assert timeline.queue_exploded(backlog(make, waiting=201, last_submit_s=500.0))
    assert not timeline.queue_exploded(backlog(make, waiting=201, last_submit_s=4000.0))
    assert not timeline.queue_exploded(backlog(make, waiting=199, last_submit_s=500.0))
    assert timeline.queue_exploded(backlog(make, waiting=20, last_submit_s=500.0), threshold=5)


def test_explosion_passes_above_and_drains_below_the_threshold(make):
    """Exactly the threshold is not passed; having passed it, exactly the threshold is undrained."""
    schedule = backlog(make, waiting=10, last_submit_s=1001.5)
    # Ten wait at first; the first of them starts at 1001, and at 1001.5 one more arrives: 10 again.
    assert timeline.queue_length(schedule).at(1001.5) == 10
    assert not timeline.queue_exploded(schedule, threshold=10)
    late = backlog(make, waiting=10, last_submit_s=1002.5)
    assert timeline.queue_length(late).at(1002.5) == 9
    assert timeline.queue_exploded(late, threshold=9)


def test_a_horizon_of_no_length_has_no_average(make):
    """One job of zero length: nothing queued, and averages over no time are NaN."""
    schedule = make(Cluster.pool(1), [(0, 3, 3, [0])], submit_s=[3], duration_s=[0])
    queue = timeline.queue_length(schedule)
    assert np.isnan(queue.time_average())
    assert queue.maximum() == 0
