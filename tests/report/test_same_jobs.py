"""The same jobs under several schedulers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.schedule import Outcome
from yardmaster.report.same_jobs import SameJobs, same_jobs, side_of


def test_jobs_that_nobody_scheduled_do_not_count(comparison):
    """What could not be placed or was not submitted is no scheduler's doing; failures are."""
    schedule = comparison.schedules[0]
    outcome = schedule.outcome.copy()
    outcome[:3] = (Outcome.UNPLACEABLE, Outcome.NOT_SUBMITTED, Outcome.FAILED)
    side = side_of(replace(schedule, outcome=outcome), "mine")
    assert side.name == "mine"
    assert np.flatnonzero(~side.counts).tolist() == [0, 1]
    assert side.failed == 1
    assert not side.is_whole
    assert side.finished == len(outcome) - 3


def test_a_schedule_in_which_all_finished_is_whole(comparison):
    """Unplaceable jobs do not make it less."""
    schedule = comparison.schedules[0]
    assert side_of(schedule).is_whole
    outcome = schedule.outcome.copy()
    outcome[0] = Outcome.UNPLACEABLE
    assert side_of(replace(schedule, outcome=outcome)).is_whole


def test_columns_of_other_jobs_are_refused(comparison):
    """Numbers of jobs that differ are told."""
    jobs = same_jobs(comparison.schedules[:1])
    fewer = jobs.workload.select(np.arange(10))
    with pytest.raises(YardmasterError, match="320 jobs, the workload 10"):
        SameJobs(fewer, jobs.sides)
