"""The same jobs at another load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.operations.scaling import scaled_by, scaled_to_load


@given(st.integers(0, 10**6), st.floats(0.05, 20.0), st.integers(1, 5000))
def test_the_load_is_the_one_asked_for(random_jobs, seed, load, gpus):
    """Up to the rounding of the span to a second, and work and order are as before."""
    jobs = random_jobs(seed, jobs=300)
    changed = scaled_to_load(jobs, gpus=gpus, load=load)
    span_s = float(changed.submit_s[-1] - changed.submit_s[0])
    assert changed.work_gpu_s / (gpus * load) == pytest.approx(max(span_s, 1.0), abs=0.51)
    np.testing.assert_array_equal(changed.duration_s, jobs.duration_s)
    np.testing.assert_array_equal(changed.id, jobs.id)


@given(st.integers(0, 10**6), st.floats(0.01, 100.0))
def test_a_factor_multiplies_the_load(random_jobs, seed, factor):
    """Twice as fast is twice the load; each submission moves in proportion."""
    jobs = random_jobs(seed, jobs=100)
    faster = scaled_by(jobs, factor)
    first = jobs.submit_s[0]
    expected = first + (jobs.submit_s - first) / factor
    np.testing.assert_allclose(faster.submit_s, expected, atol=0.51)
    np.testing.assert_allclose(
        faster.deadline_s - faster.submit_s, jobs.deadline_s - jobs.submit_s, rtol=1e-9, atol=1e-6
    )
    assert faster.load(8) == pytest.approx(jobs.load(8) * factor, rel=1e-3 * max(1.0, factor))


def test_what_is_no_longer_true_is_dropped(random_jobs):
    """A stretched day is no calendar day, and nobody waited so at this load."""
    jobs = random_jobs(0)
    for changed in (scaled_by(jobs, 2.0), scaled_to_load(jobs, gpus=64, load=0.5)):
        assert changed.begins == ""
        assert np.isnan(changed.recorded_wait_s).all()
        assert any("dates were dropped" in note for note in changed.notes)
        assert any("recorded waits were dropped" in note for note in changed.notes)
    undated = jobs.with_columns(recorded_wait_s=None)
    bare = Workload.of(submit_s=undated.submit_s, duration_s=undated.duration_s)
    assert len(scaled_by(bare, 2.0).notes) == 1


def test_a_load_that_is_not_reached_is_not_claimed(random_jobs):
    """All submissions within a second is the most there is; the notes tell the load of that."""
    scaled = scaled_to_load(random_jobs(1), gpus=4, load=1e300)
    note = next(note for note in scaled.notes if "were stretched" in note)
    assert f"→ {scaled.load(4):.4g} on 4 GPUs" in note


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), "x"])
def test_bad_factors_are_refused(random_jobs, factor):
    """A rate is multiplied by something positive."""
    with pytest.raises(InvalidWorkloadError, match="factor must be"):
        scaled_by(random_jobs(0), factor)


def test_what_cannot_be_stretched_is_named(random_jobs):
    """One instant has no rate, and a thousand years are a typing mistake."""
    at_once = Workload.of(name="burst", submit_s=[5, 5], duration_s=[1, 1])
    with pytest.raises(InvalidWorkloadError, match="burst: all jobs are submitted at one instant"):
        scaled_by(at_once, 2)
    with pytest.raises(InvalidWorkloadError, match="one instant"):
        scaled_to_load(at_once, gpus=1, load=0.5)
    with pytest.raises(InvalidWorkloadError, match=r"factor 1e-12 is too small: .* years"):
        scaled_by(random_jobs(0), 1e-12)
