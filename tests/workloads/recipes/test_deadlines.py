"""By when jobs should end, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.recipes.deadlines import NoDeadlines, Slack

JOBS = 50_000
DURATION_S = np.random.default_rng(0).uniform(1, 10_000, JOBS)


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("of", ["estimate", "duration"])
def test_deadlines_leave_the_stated_slack(of):
    """A share of the jobs has one, at submit + U(low, high) × estimate or duration."""
    submit_s, estimate_s = np.arange(JOBS, dtype=float), 3 * DURATION_S
    process = Slack(low=1.2, high=2.0, share=0.4, follows=of)
    deadline_s = process.draw(rng(), submit_s, DURATION_S, estimate_s)
    has = ~np.isnan(deadline_s)
    assert has.mean() == pytest.approx(0.4, abs=0.01)
    expected_s = estimate_s if of == "estimate" else DURATION_S
    slack = ((deadline_s - submit_s) / expected_s)[has]
    assert stats.kstest(slack, stats.uniform(1.2, 0.8).cdf).statistic < 1.95 / np.sqrt(len(slack))
    nothing = NoDeadlines().draw(rng(), submit_s, DURATION_S, estimate_s)
    assert np.isnan(nothing).all()


@pytest.mark.parametrize(
    ("process", "values", "message"),
    [
        (Slack, {"low": 3, "high": 2}, "low is 3, above high, 2"),
        (Slack, {"share": 2}, "share must be from 0 to 1"),
    ],
)
def test_parameters_that_make_no_sense_are_named(process, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        process(**values)
