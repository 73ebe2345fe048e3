"""Per-job columns against values worked out by hand."""

from __future__ import annotations

import numpy as np

from yardmaster.metrics import per_job
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Sharing

NAN = float("nan")


def test_unfinished_jobs_have_no_completion_columns(make):
    """Only finished jobs have wait, JCT and slowdowns; the others have an age or nothing."""
    schedule = make(
        Cluster.pool(2),
        [(0, 4, 24, [0]), (1, 30, 100, [0])],
        cut_s=100.0,
        unfinished=[1],
        unplaceable=[2],
        submit_s=[0, 10, 15, 60, 200],
        duration_s=[20, 500, 5, 5, 5],
        gpus=[1, 1, 9, 2, 1],
    )
    np.testing.assert_array_equal(per_job.wait_s(schedule), [4, NAN, NAN, NAN, NAN])
    np.testing.assert_array_equal(per_job.jct_s(schedule), [24, NAN, NAN, NAN, NAN])
    np.testing.assert_array_equal(per_job.slowdown(schedule), [1.2, NAN, NAN, NAN, NAN])
    np.testing.assert_array_equal(per_job.bounded_slowdown(schedule), [1.2, NAN, NAN, NAN, NAN])
    np.testing.assert_array_equal(per_job.age_s(schedule), [NAN, 90, NAN, 40, NAN])
    np.testing.assert_array_equal(per_job.run_s(schedule), [20, 70, 0, 0, 0])


def test_bounded_slowdown_counts_short_jobs_as_ten_seconds(make):
    """A 2-second job that waited 38 s has slowdown 20 but bounded slowdown 4; never below 1."""
    schedule = make(
        Cluster.pool(2),
        [(0, 38, 40, [0]), (1, 1, 4, [1])],
        submit_s=[0, 1],
        duration_s=[2, 3],
    )
    np.testing.assert_array_equal(per_job.slowdown(schedule), [20, 1])
    np.testing.assert_array_equal(per_job.bounded_slowdown(schedule), [4, 1])


def test_zero_length_jobs_count_as_one_second_in_slowdown(make):
    """A job of no length that waited 6 s has slowdown 7, one that did not wait has 1."""
    schedule = make(
        Cluster.pool(1), [(0, 6, 6, [0]), (1, 2, 2, [0])], submit_s=[0, 2], duration_s=[0, 0]
    )
    np.testing.assert_array_equal(per_job.slowdown(schedule), [7, 1])
    np.testing.assert_array_equal(per_job.bounded_slowdown(schedule), [1, 1])


def test_tardiness_knows_met_missed_open_and_overdue_deadlines(make):
    """Late is late at completion or at the cut; deadlines after the cut say nothing yet."""
    schedule = make(
        Cluster.pool(9),
        [(0, 0, 20, [0]), (1, 0, 20, [1]), (2, 0, 50, [2]), (3, 0, 50, [3]), (4, 0, 20, [4])],
        cut_s=50.0,
        unfinished=[2, 3],
        submit_s=[0, 0, 0, 0, 0, 0],
        duration_s=[20, 20, 99, 99, 20, 20],
        deadline_s=[20, 5, 40, 60, NAN, 30],
    )
    np.testing.assert_array_equal(per_job.tardiness_s(schedule), [0, 15, 10, NAN, NAN, 20])


def test_interrupted_jobs_count_preemptions_and_run_time(make):
    """Each segment that ends early is one preemption; the run time is the sum of the segments."""
    schedule = make(
        Cluster.pool(4),
        [
            (0, 0, 10, [0, 1]),
            (1, 10, 15, [0, 1]),
            (0, 15, 30, [2, 3]),
            (2, 20, 25, [0]),
            (3, 30, 40, [1]),
        ],
        cut_s=40.0,
        unfinished=[2, 3],
        submit_s=[0, 9, 20, 30],
        duration_s=[21, 5, 80, 100],
        gpus=[2, 2, 1, 1],
    )
    # Job 2 was interrupted at 25 and never resumed; job 3 still runs at the cut.
    preemptions = per_job.interruptions(schedule, Cause.PREEMPTED)
    np.testing.assert_array_equal(preemptions, [1, 0, 1, 0])
    np.testing.assert_array_equal(per_job.interrupted_segments(schedule), [1, 0, 0, 1, 0])
    np.testing.assert_array_equal(per_job.run_s(schedule), [25, 5, 5, 10])
    np.testing.assert_array_equal(per_job.jct_s(schedule), [30, 6, NAN, NAN])
    np.testing.assert_array_equal(per_job.wait_s(schedule), [0, 1, NAN, NAN])
    np.testing.assert_array_equal(per_job.queued_s(schedule), [5, 1, NAN, NAN])


def test_slowdown_refers_to_the_duration_asked_for(make):
    """A job of 100 s that a faster GPU ends after 40 s, having waited 10 s, has slowdown 0.5."""
    schedule = make(
        Cluster.pool(2), [(0, 10, 50, [0]), (1, 0, 60, [1])],
        submit_s=[0, 0], duration_s=[100, 20],
    )  # fmt: skip
    np.testing.assert_array_equal(per_job.slowdown(schedule), [0.5, 3])
    np.testing.assert_array_equal(per_job.bounded_slowdown(schedule), [1, 3])


def test_causes_are_counted_apart(make):
    """One job is moved, resized, preempted and loses a node; another loses its node for good."""
    schedule = make(
        Cluster.of("2x A100:4"),
        [
            (0, 0, 10, [0, 1], Cause.MIGRATED),
            (0, 10, 20, [4, 5], Cause.RESIZED),
            (0, 20, 30, [4, 5, 6], Cause.PREEMPTED),
            (0, 35, 40, [0], Cause.NODE_FAILED),
            (0, 45, 60, [4], Cause.FINISHED),
            (1, 0, 40, [3], Cause.NODE_FAILED),
            (1, 50, 55, [3], Cause.NODE_FAILED),
        ],
        failed=[1],
        submit_s=[0, 0],
        duration_s=[50, 90],
        gpus=[2, 1],
    )
    for cause in (Cause.MIGRATED, Cause.RESIZED, Cause.PREEMPTED):
        np.testing.assert_array_equal(per_job.interruptions(schedule, cause), [1, 0])
    np.testing.assert_array_equal(per_job.interruptions(schedule, Cause.NODE_FAILED), [1, 2])
    np.testing.assert_array_equal(per_job.restarts(schedule), [1, 1])
    np.testing.assert_array_equal(per_job.queued_s(schedule), [10, NAN])
    np.testing.assert_array_equal(per_job.held_gpu_s(schedule), [20 + 20 + 30 + 5 + 15, 45])


def test_waste_counts_the_gpus_of_its_segment(make, share):
    """Two seconds wasted on 3 GPUs and one on 1 are 7; half a shared GPU counts half."""
    schedule = make(
        share(Cluster.of("1x A100:4"), Sharing.MPS),
        [(0, 0, 5, [0, 1, 2], Cause.RESIZED, 2.0), (0, 5, 9, [0], Cause.FINISHED, 1.0),
         (1, 0, 8, [3], Cause.FINISHED, 4.0)],
        submit_s=[0, 0], duration_s=[9, 8], milli_gpu=[1000, 500],
    )  # fmt: skip
    np.testing.assert_array_equal(per_job.wasted_gpu_s(schedule), [7, 2])
    np.testing.assert_array_equal(per_job.held_gpu_s(schedule), [19, 4])


def test_failed_jobs_miss_every_deadline(make):
    """A failed job is late up to the end of the horizon, and has missed a later deadline too."""
    schedule = make(
        Cluster.pool(4),
        [(0, 0, 20, [0]), (1, 0, 20, [1]), (2, 0, 20, [2]), (3, 0, 50, [3])],
        cut_s=50.0,
        failed=[0, 1, 2],
        submit_s=[0, 0, 0, 0],
        duration_s=[30] * 4,
        deadline_s=[10, 80, NAN, 50],
    )
    np.testing.assert_array_equal(per_job.tardiness_s(schedule), [40, 0, NAN, 0])
    np.testing.assert_array_equal(per_job.deadline_missed(schedule), [1, 1, NAN, 0])
    assert np.isnan(per_job.jct_s(schedule)[:3]).all()
    assert np.isnan(per_job.age_s(schedule)).all()


def test_gpu_share_counts_fractions(make):
    """A job on 250 thousandths of a GPU holds a quarter of it."""
    schedule = make(
        Cluster.pool(4),
        [(0, 0, 1, [0]), (1, 0, 1, [1, 2, 3])],
        submit_s=[0, 0],
        duration_s=[1, 1],
        gpus=[1, 3],
        milli_gpu=[250, 1000],
    )
    np.testing.assert_array_equal(per_job.gpu_share(schedule), [0.25, 3])
