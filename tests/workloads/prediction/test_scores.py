"""Scores of predictions, against closed forms and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yardmaster.model.workload import Labels, Workload
from yardmaster.workloads.prediction.history import Prediction
from yardmaster.workloads.prediction.scores import after_warm_up, score


def predicted(seconds, basis=None) -> Prediction:
    basis = basis or ["own"] * len(seconds)
    return Prediction(np.array(seconds, dtype=float), Labels.of(basis), ("own",))


def jobs(durations, **columns) -> Workload:
    return Workload.of(submit_s=np.arange(len(durations)), duration_s=durations, **columns)


def test_errors_are_counted_in_doublings():
    """Twice, half, right and eight times: median 1, mean +0.75, three of four within a factor 2."""
    found = score(jobs([10, 10, 10, 10]), predicted([20, 5, 10, 80]))
    assert found.jobs == 4
    assert found.median_error == pytest.approx(1)
    assert found.bias == pytest.approx(0.75)
    assert found.within_2 == 0.75
    assert found.underestimated == 0.25


def test_censored_jobs_are_not_scored():
    """Nobody knows how long they ran, so a prediction of them is neither right nor wrong."""
    both = jobs([10, 10], status=["completed", "censored"])
    found = score(both, predicted([10, 9999]))
    assert (found.jobs, found.median_error) == (1, 0)


def test_nothing_to_score_is_not_a_number():
    """A part in which all jobs are censored has no figures."""
    found = score(jobs([10], status=["running"]), predicted([10]))
    assert found.jobs == 0
    assert math.isnan(found.median_error)


def test_cold_predictions_are_counted():
    """The share of predictions that rest on a makeshift."""
    found = score(jobs([1, 2, 3]), predicted([1, 2, 3], ["own", "other", "other"]))
    assert found.cold == pytest.approx(2 / 3)


def test_runs_of_no_time_count_as_a_second():
    """A job of 0 s predicted as 1 s is right: the clock does not tell them apart."""
    assert score(jobs([0.0, 0.4]), predicted([1, 1])).median_error == 0


def test_only_the_part_is_scored():
    """The last half are the jobs submitted last; the middle one of three belongs to it."""
    late = after_warm_up(jobs([1, 1, 1]))
    assert late.tolist() == [False, True, True]
    assert score(jobs([1, 1, 1]), predicted([8, 1, 1]), late).bias == 0
