"""Boosted trees: when they are trained, what they learn, and what is said without a library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.workload import Workload
from yardmaster.workloads.prediction import boosted
from yardmaster.workloads.prediction.history import history
from yardmaster.workloads.prediction.past import Past
from yardmaster.workloads.prediction.scores import after_warm_up, score

MODULES = {"scikit-learn": "sklearn", "lightgbm": "lightgbm"}


@pytest.fixture(params=MODULES)
def library(request) -> str:
    pytest.importorskip(MODULES[request.param])
    return request.param


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=300))
def test_every_job_is_predicted_by_teachers_it_could_know(steps):
    """Jobs from the first training on are predicted once, by jobs that had ended by then."""
    known = np.cumsum(steps)
    predicted = np.zeros(len(known), dtype=int)
    for ended, pupils in boosted.training_turns(known):
        assert (known[pupils] >= ended).all()
        predicted[pupils] += 1
    np.testing.assert_array_equal(predicted, known >= boosted.FIRST_TRAINING)


def test_models_are_renewed_in_time():
    """Never more than a tenth (or 100, or 2,000 jobs) has ended since the training."""
    known = np.arange(60_000)
    for ended, pupils in boosted.training_turns(known):
        behind = known[pupils] - ended
        assert behind.max() < min(max(100, ended // 10), 2000)


def by_memory(seed: int, count: int) -> Workload:
    """Jobs whose run time depends on what `history` does not look at: their memory."""
    rng = np.random.default_rng(seed)
    memory = rng.choice([8.0, 64.0], count)
    return Workload.of(
        submit_s=np.sort(rng.integers(0, count * 200, count)),
        duration_s=np.where(memory > 8, 1500.0, 60.0),
        memory_gib=memory,
        user=["one"] * count,
    )


def test_trees_learn_what_history_cannot_see(library):
    """Where run times follow memory, history is a coin toss and trees are right."""
    jobs = by_memory(1, 2000)
    past = Past.of(jobs)
    late = after_warm_up(jobs)
    by_trees = score(jobs, boosted.boosted(past, library=library), late)
    assert score(jobs, history(past), late).within_2 < 0.6
    assert by_trees.within_2 > 0.95
    assert by_trees.median_error < 0.1


def test_trees_leave_alone_what_history_knows(library):
    """If each user always runs the same time, trees change nothing: errors stay 0."""
    rng = np.random.default_rng(3)
    user = rng.integers(0, 10, 1500)
    jobs = Workload.of(
        submit_s=np.sort(rng.integers(0, 10**6, 1500)),
        duration_s=100.0 + 370.0 * user,
        gpus=rng.choice([1, 2, 4], 1500),
        user=user.tolist(),
    )
    found = boosted.boosted(Past.of(jobs), library=library)
    late = after_warm_up(jobs)
    assert not found.is_cold[late].any()
    assert (found.run_s == jobs.duration_s)[late].all()


def test_the_same_jobs_give_the_same_predictions(library):
    """Nothing is left to chance or to the order of threads."""
    past = Past.of(by_memory(2, 1200))
    first, second = (boosted.boosted(past, library=library).run_s for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_history_predicts_until_the_first_training(library):
    """With too few jobs ended there is no model, and the prediction says so."""
    jobs = by_memory(3, 300)
    found = boosted.boosted(Past.of(jobs), library=library)
    np.testing.assert_array_equal(found.run_s, history(Past.of(jobs)).run_s)
    assert found.is_cold.all()
    assert "before the first training" in found.basis.names[1]


def test_progress_is_told(library):
    """Every training is announced with the number of all of them."""
    told = []
    boosted.boosted(Past.of(by_memory(4, 900)), lambda *step: told.append(step), library=library)
    assert [done for _, done, _ in told] == list(range(len(told)))
    assert {total for _, _, total in told} == {len(told)}


def test_without_a_library_the_way_to_get_one_is_told(monkeypatch):
    """The message holds the command that installs what is missing."""
    monkeypatch.setattr(boosted, "find_spec", lambda _: None)
    with pytest.raises(YardmasterError, match="pip install scikit-learn"):
        boosted.boosted(Past.of(by_memory(5, 10)))
    with pytest.raises(YardmasterError, match="pip install lightgbm"):
        boosted.chosen_library("lightgbm")


def test_the_library_that_is_there_is_taken(monkeypatch):
    """Without scikit-learn, LightGBM trains the trees; unknown libraries are refused."""
    monkeypatch.setattr(boosted, "find_spec", lambda name: name if name == "lightgbm" else None)
    assert boosted.chosen_library() == "lightgbm"
    with pytest.raises(UnknownNameError, match="lightgbm"):
        boosted.chosen_library("xgboost")
