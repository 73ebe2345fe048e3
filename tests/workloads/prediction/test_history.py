"""Predictions without a model, against the same rules written once more in plain Python."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.model.workload import Workload
from yardmaster.workloads.prediction import history
from yardmaster.workloads.prediction.past import Past

JOB = st.fixed_dictionaries(
    {
        "submit_s": st.integers(0, 30),
        "duration_s": st.integers(0, 15),
        "recorded_wait_s": st.sampled_from([None, 0, 1, 7]),
        "gpus": st.sampled_from([1, 2]),
        "user": st.sampled_from(["ann", "bob", None]),
        "tenant": st.sampled_from(["lab", None]),
        "estimate_s": st.sampled_from([None, 3, 10]),
    }
)
JOBS = st.lists(JOB, min_size=1, max_size=30).map(
    lambda jobs: sorted(jobs, key=lambda job: job["submit_s"])
)


def as_workload(jobs) -> Workload:
    return Workload.of(**{key: [job[key] for job in jobs] for key in jobs[0]})


def ended_before(jobs, job):
    """The jobs that had ended when `job` was submitted, in the order in which they ended."""
    now = job["submit_s"]
    known = []
    for row, other in enumerate(jobs):
        end = other["submit_s"] + (other["recorded_wait_s"] or 0) + other["duration_s"]
        if end <= now and other["submit_s"] < now:
            known.append((end, row, other))
    return [other for _, _, other in sorted(known, key=lambda item: item[:2])]


def run_times(jobs):
    return [max(job["duration_s"], 1) for job in jobs]


def capped(seconds, job):
    return min(seconds, job["estimate_s"] or seconds)


def same(*keys):
    """Whether two jobs agree in all keys; a missing user or tenant agrees with nobody."""

    def agree(one, other):
        return all(
            one[key] == other[key] and (one[key] is not None or key == "estimate_s") for key in keys
        )

    return agree


def history_by_hand(jobs, job):
    known = ended_before(jobs, job)
    tiers = [same("user", "gpus"), same("user"), same("tenant", "gpus"), same("gpus"), same()]
    if job["estimate_s"] is not None:
        tiers.insert(0, same("user", "gpus", "estimate_s"))
    for agree in tiers:
        alike = [other for other in known if agree(job, other)]
        if alike:
            return capped(statistics.median(run_times(alike)[-5:]), job)
    return job["estimate_s"] or 3600


def last_two_by_hand(jobs, job):
    known = ended_before(jobs, job)
    own = [other for other in known if job["user"] is not None and other["user"] == job["user"]]
    if own:
        return capped(statistics.fmean(run_times(own)[-2:]), job)
    if job["estimate_s"] is not None:
        return job["estimate_s"]
    return statistics.median(run_times(known)) if known else 3600


def whole_past_by_hand(statistic):
    def by_hand(jobs, job):
        known = run_times(ended_before(jobs, job))
        return capped(statistic(known), job) if known else job["estimate_s"] or 3600

    return by_hand


def user_by_hand(jobs, job):
    known = run_times(ended_before(jobs, job))
    return job["estimate_s"] or (statistics.median(known) if known else 3600)


@pytest.mark.parametrize(
    ("method", "by_hand"),
    [
        (history.history, history_by_hand),
        (history.last_two, last_two_by_hand),
        (history.mean, whole_past_by_hand(statistics.fmean)),
        (history.median, whole_past_by_hand(statistics.median)),
        (history.user, user_by_hand),
    ],
    ids=["history", "last-two", "mean", "median", "user"],
)
@settings(deadline=None)
@given(jobs=JOBS)
def test_predictions_follow_their_rules(method, by_hand, jobs):
    """Each method predicts what its rule, applied to one job at a time, says."""
    predicted = method(Past.of(as_workload(jobs))).run_s
    assert predicted == pytest.approx([by_hand(jobs, job) for job in jobs])


@pytest.mark.parametrize("method", [history.history, history.last_two])
def test_users_who_repeat_themselves_are_foreseen(method):
    """If each user always runs the same time, everything after the first end is exact."""
    rng = np.random.default_rng(3)
    user = rng.integers(0, 20, 2000)
    jobs = Workload.of(
        submit_s=np.sort(rng.integers(0, 200_000, 2000)),
        duration_s=100.0 + 37.0 * user,
        gpus=rng.choice([1, 2, 4], 2000),
        user=user.tolist(),
    )
    prediction = method(Past.of(jobs))
    warm = ~prediction.is_cold
    assert warm.sum() > 1900
    assert (prediction.run_s == jobs.duration_s)[warm].all()


def test_before_anything_has_ended_an_hour_or_the_request():
    """The cold start: the requested time where there is one, one hour elsewhere, and it is told."""
    jobs = Workload.of(submit_s=[0, 1], duration_s=[50, 50], estimate_s=[None, 120])
    for method in (history.history, history.last_two, history.mean, history.median):
        prediction = method(Past.of(jobs))
        assert prediction.run_s.tolist() == [3600, 120]
        assert prediction.basis.values() == ["nothing", "requested time"]
        assert prediction.is_cold.all()


def test_what_predictions_rest_on_is_told():
    """Each tier is named, and shares add up to one."""
    jobs = Workload.of(
        submit_s=[0, 10, 20, 30, 40, 50],
        duration_s=[1] * 6,
        gpus=[1, 1, 2, 1, 4, 4],
        user=["a", "a", "a", "b", None, "a"],
        tenant=["t", "t", "t", "t", None, "t"],
        estimate_s=[None, None, None, None, None, 9],
    )
    prediction = history.history(Past.of(jobs))
    assert prediction.basis.values() == [
        "nothing", "user and GPUs", "user", "tenant and GPUs", "all jobs", "user",
    ]  # fmt: skip
    assert prediction.is_cold.tolist() == [True, False, False, True, True, False]
    assert sum(prediction.shares().values()) == pytest.approx(1)
    assert prediction.shares()["user"] == pytest.approx(2 / 6)
