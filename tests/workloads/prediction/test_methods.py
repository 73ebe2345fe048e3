"""Filling estimates: no look into the future, and notes that say what was done."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.workload import Workload
from yardmaster.workloads.prediction import boosted
from yardmaster.workloads.prediction.methods import METHODS, predict
from yardmaster.workloads.prediction.past import trace_ends_s

CHEAP = sorted(name for name, method in METHODS.items() if method.is_cheap)


def random_jobs(seed: int, count: int, span_s: int) -> dict[str, object]:
    """Columns of jobs that end among the submissions of others, with all that methods look at."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 6, count)
    duration_s = np.round(np.exp(rng.normal(3 + user / 2, 1.0, count)))
    return {
        "submit_s": np.sort(rng.integers(0, span_s, count)).astype(float),
        "duration_s": duration_s,
        "recorded_wait_s": np.where(rng.random(count) < 0.5, rng.integers(0, 200, count), np.nan),
        "estimate_s": np.where(rng.random(count) < 0.5, duration_s * 3 + 1, np.nan),
        "gpus": rng.choice([1, 2, 8], count),
        "user": [f"u{each}" if each else None for each in user],
        "tenant": [f"t{each % 2}" for each in user],
        "kind": [f"k{each % 3}" for each in user],
        "priority": rng.integers(0, 3, count).astype(float),
        "status": ["completed"] * count,
    }


def with_another_future(
    columns: dict[str, object], now_s: float, seed: int, *, whole: bool
) -> tuple[Workload, np.ndarray]:
    """The same jobs, but everything that ends after `now_s` goes another way.

    Returns:
        The jobs, and the mask of those whose request is still the same. With `whole`, requests of
        what has not ended change too, not only how long it runs and how it ends.
    """
    rng = np.random.default_rng(seed)
    jobs = Workload.of(**columns)
    ends_s = trace_ends_s(jobs)
    open_ = ends_s > now_s
    started_s = ends_s - jobs.duration_s
    shortest_s = np.maximum(now_s - started_s, 0) + 1
    changed = dict(columns)
    changed["duration_s"] = np.where(
        open_, shortest_s + rng.integers(0, 5000, len(jobs)), jobs.duration_s
    )
    fates = rng.choice(["failed", "running", "censored"], len(jobs))
    changed["status"] = np.where(open_, fates, "completed").tolist()
    if whole:
        for key, values in {
            "gpus": rng.choice([4, 16], len(jobs)),
            "user": rng.choice(["u1", "u3", "new"], len(jobs)).astype(object),
            "tenant": rng.choice(["t0", "new"], len(jobs)).astype(object),
            "kind": rng.choice(["k1", ""], len(jobs)).astype(object),
            "estimate_s": rng.choice([7.0, np.nan], len(jobs)),
            "priority": rng.choice([-4.0, 9.0], len(jobs)),
        }.items():
            old = np.array(columns[key], dtype=values.dtype)
            changed[key] = np.where(open_, values, old).tolist()
    return Workload.of(**changed), ~open_ if whole else np.ones(len(jobs), dtype=bool)


def assert_the_future_does_not_matter(columns, method, now_s, seed, *, whole):
    jobs = Workload.of(**columns)
    other, same_request = with_another_future(columns, now_s, seed, whole=whole)
    compared = (jobs.submit_s <= now_s) & same_request
    assert compared.any()
    before = predict(jobs, method).estimate_s[compared]
    np.testing.assert_array_equal(predict(other, method).estimate_s[compared], before)


@pytest.mark.parametrize("method", CHEAP)
@pytest.mark.parametrize("whole", [False, True], ids=["run times", "everything"])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.2, 0.9))
def test_the_future_changes_no_prediction(method, whole, seed, share):
    """Whatever becomes of jobs that end after t, predictions made until t stay the same."""
    columns = random_jobs(seed, 60, 3000)
    ends_s = trace_ends_s(Workload.of(**columns))
    now_s = float(max(np.quantile(columns["submit_s"], share), ends_s.min()))
    assert_the_future_does_not_matter(columns, method, now_s, seed + 1, whole=whole)


@pytest.fixture(params=["scikit-learn", "lightgbm"])
def small_trees(request, monkeypatch):
    """Trees that are trained early and on few jobs, so that small workloads have some."""
    pytest.importorskip({"scikit-learn": "sklearn"}.get(request.param, request.param))
    monkeypatch.setattr(boosted, "FIRST_TRAINING", 60)
    monkeypatch.setattr(boosted, "LEAST_IN_LEAF", 10)
    monkeypatch.setattr(boosted, "TREES", 8)
    monkeypatch.setattr(boosted, "LIBRARIES", {request.param: boosted.LIBRARIES[request.param]})
    return request.param


@pytest.mark.parametrize("whole", [False, True], ids=["run times", "everything"])
@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.usefixtures("small_trees")
def test_the_future_changes_no_prediction_of_trees(whole, share, seed):
    """The same for boosted trees: nothing that ends later teaches, or counts, or is seen."""
    columns = random_jobs(seed, 600, 30_000)
    now_s = float(np.quantile(columns["submit_s"], share))
    assert_the_future_does_not_matter(columns, "boosted", now_s, seed + 1, whole=whole)


@pytest.mark.parametrize("method", CHEAP)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), row=st.integers(0, 39), run_s=st.sampled_from([0, 1, 1e6]))
def test_no_job_knows_its_own_run_time(method, seed, row, run_s):
    """However long a job runs, its prediction is the same, even if it takes no time at all."""
    columns = random_jobs(seed, 40, 300)
    before = predict(Workload.of(**columns), method).estimate_s[row]
    columns["duration_s"] = columns["duration_s"].copy()
    columns["duration_s"][row] = run_s
    assert predict(Workload.of(**columns), method).estimate_s[row] == before


@pytest.mark.usefixtures("small_trees")
def test_no_job_tells_trees_its_own_run_time():
    """The same for boosted trees."""
    columns = random_jobs(7, 400, 20_000)
    before = predict(Workload.of(**columns), "boosted").estimate_s[350]
    for run_s in (0.0, 1e6):
        columns["duration_s"] = columns["duration_s"].copy()
        columns["duration_s"][350] = run_s
        assert predict(Workload.of(**columns), "boosted").estimate_s[350] == before


@pytest.mark.parametrize("method", CHEAP)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_estimates_are_whole_and_never_beyond_the_request(method, seed):
    """Every job gets a positive estimate, at most the requested time."""
    jobs = Workload.of(**random_jobs(seed, 30, 500))
    filled = predict(jobs, method)
    assert filled.has_estimates
    assert (filled.estimate_s > 0).all()
    requested = ~np.isnan(jobs.estimate_s)
    assert (filled.estimate_s[requested] <= jobs.estimate_s[requested]).all()
    assert filled.with_columns(estimate_s=jobs.estimate_s).fingerprint() == jobs.fingerprint()


def test_existing_estimates_can_be_kept():
    """With keep_existing only missing estimates are filled, and the notes count both."""
    jobs = Workload.of(submit_s=[0, 9, 9], duration_s=[4, 4, 4], estimate_s=[None, 8, None])
    filled = predict(jobs, "median", keep_existing=True)
    assert filled.estimate_s.tolist() == [3600, 8, 4]
    text = " | ".join(filled.notes)
    assert "missing estimates are predictions (median)" in text
    assert "1 of 3 jobs had estimates (median 8 s): kept" in text
    again = predict(jobs.with_columns(estimate_s=[5, 8, 9]), keep_existing=True)
    assert again.estimate_s.tolist() == [5, 8, 9]
    assert again.notes == ("every job has an estimate: nothing was predicted",)


def test_notes_say_what_was_done():
    """Method, where ends come from, what predictions rest on, what was there, what is censored."""
    jobs = Workload.of(
        submit_s=[0, 9], duration_s=[4, 4], estimate_s=[5, 8], status=["censored", None],
        notes=["the first note"],
    )  # fmt: skip
    notes = predict(jobs, "mean").notes
    assert notes[0] == "the first note"
    text = " | ".join(notes)
    assert "estimates are predictions (mean)" in text
    assert "no waits are recorded" in text
    assert "rest on all jobs 50 %, requested time 50 %" in text
    assert "2 of 2 jobs had estimates (median 6.5 s): predictions never exceed them" in text
    assert "1 censored jobs" in text


def test_predictions_are_not_taken_for_requests():
    """A second prediction would be cut to the first one: it is refused."""
    once = predict(Workload.of(submit_s=[0, 9], duration_s=[4, 4]))
    with pytest.raises(InvalidWorkloadError, match="predictions already"):
        predict(once, "mean")


def test_ends_of_a_schedule_can_be_given():
    """What ended only later in the schedule is not known yet."""
    jobs = Workload.of(submit_s=[0, 9], duration_s=[4, 4])
    assert predict(jobs, "median").estimate_s.tolist() == [3600, 4]
    later = predict(jobs, "median", ended_s=np.array([10.0, 20.0]))
    assert later.estimate_s.tolist() == [3600, 3600]


def test_unknown_methods_are_refused_with_a_hint():
    """A misspelt method names the nearest one and all of them."""
    with pytest.raises(UnknownNameError, match=r"Did you mean 'boosted'.*last-two"):
        predict(Workload.of(submit_s=[0], duration_s=[1]), "bosted")
