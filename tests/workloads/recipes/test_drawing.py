"""From a recipe and a seed to jobs: reproducible, with exact pace, one part at a time."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import COLUMN_NAMES, Labels, Workload
from yardmaster.workloads.demands import Demands
from yardmaster.workloads.recipes import clocks
from yardmaster.workloads.recipes.arrivals import (
    Alternating,
    AtOnce,
    Bursts,
    MarkovModulated,
    Poisson,
    Replayed,
    Sine,
)
from yardmaster.workloads.recipes.deadlines import NoDeadlines, Slack
from yardmaster.workloads.recipes.distributions import Choice, Fixed, Normal, Uniform
from yardmaster.workloads.recipes.estimates import ExactEstimates, NoisyEstimates
from yardmaster.workloads.recipes.priorities import UniformPriorities
from yardmaster.workloads.recipes.recipe import Recipe
from yardmaster.workloads.recipes.sizes import UniformSizes
from yardmaster.workloads.recipes.tenants import NamedUsers
from yardmaster.workloads.synthetic import generate
from yardmaster.workloads.tables import write_table

HOUR_S = 3600.0
PROCESSES = [
    Poisson(),
    Alternating(),
    Alternating(held=True),
    Sine(period_s=HOUR_S),
    MarkovModulated(rates=(5, 1), sojourns_s=(600, 3000)),
    Bursts(),
]
OTHER_PARTS = {
    "arrivals": (Alternating(), ["submit_s", "deadline_s"]),
    "sizes": (UniformSizes(low=1, high=8), ["gpus", "tenant", "user"]),
    "durations": (
        Uniform(low=30, high=900),
        ["duration_s", "estimate_s", "deadline_s", "user"],
    ),
    "priorities": (UniformPriorities(low=0, high=9), ["priority"]),
    "estimates": (NoisyEstimates(sigma=0.5), ["estimate_s", "deadline_s"]),
    "deadlines": (NoDeadlines(), ["deadline_s"]),
    "tenants": (NamedUsers(names=("ann", "bob")), ["tenant", "user"]),
    "demands": (Demands(kinds="measured", cores=4), ["kind", "cpus"]),
}
"""Another process for every part → the columns it may change."""


def same(one, other):
    if isinstance(one, Labels):
        return one.values() == other.values()
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


@pytest.mark.parametrize("part", OTHER_PARTS)
def test_changing_one_part_does_not_move_the_others(part):
    """Every part draws from its own random numbers; only what follows from it changes."""
    process, concerned = OTHER_PARTS[part]
    recipe = Recipe(jobs=300, rate_per_h=60.0)
    before = generate(recipe, seed=4)
    after = generate(replace(recipe, **{part: process}), seed=4)
    changed = [
        column
        for column in COLUMN_NAMES
        if not same(getattr(before, column), getattr(after, column))
    ]
    assert changed
    assert set(changed) <= set(concerned)


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.process)
@pytest.mark.parametrize("whole", [True, False])
@settings(max_examples=10, deadline=None)
@given(jobs=st.integers(3, 100), seed=st.integers(0, 999), load=st.floats(0.05, 3))
def test_the_load_is_exact_for_every_process(process, whole, jobs, seed, load):
    """Whatever the arrivals, the offered load is the wanted one, up to rounding to seconds."""
    recipe = Recipe(arrivals=process, whole_seconds=whole)
    workload = generate(recipe, jobs=jobs, seed=seed, gpus=16, load=load)
    span_s = workload.submit_s[-1] - workload.submit_s[0]
    wanted_s = workload.work_gpu_s / (16 * load)
    assert abs(span_s - wanted_s) <= (0.5 if whole else 1e-6 * wanted_s) or span_s == 1


def test_equal_seeds_give_equal_bytes(tmp_path):
    """The same recipe and seed give the same file, byte for byte; another seed another."""
    recipe = Recipe(
        jobs=200, rate_per_h=30.0, arrivals=MarkovModulated(rates=(3, 1), sojourns_s=(60, 600))
    )

    def digest(name, seed):
        write_table(generate(recipe, seed=seed), tmp_path / name)
        return hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()

    assert digest("a.parquet", 1) == digest("b.parquet", 1) != digest("c.parquet", 2)


def test_times_are_whole_seconds_unless_told_otherwise():
    """Rounding concerns submissions, run times, estimates and deadlines alike."""
    parts = {
        "durations": Uniform(low=0.1, high=2),
        "estimates": NoisyEstimates(sigma=1),
        "deadlines": Slack(),
    }
    whole = generate(Recipe(jobs=99, rate_per_h=50.0, **parts), seed=1)
    exact = generate(Recipe(jobs=99, rate_per_h=50.0, whole_seconds=False, **parts), seed=1)
    for column in ("submit_s", "duration_s", "estimate_s", "deadline_s"):
        assert (getattr(whole, column) == np.round(getattr(whole, column))).all()
        assert (getattr(exact, column) != np.round(getattr(exact, column))).all()
    assert whole.duration_s.min() == whole.estimate_s.min() == 1
    assert whole.submit_s == pytest.approx(exact.submit_s, abs=0.5)


def test_a_rate_says_how_fast_jobs_come():
    """At 720 jobs/h one comes every 5 s in the mean; a call's rate replaces the recipe's."""
    recipe = Recipe(jobs=20_000, rate_per_h=60.0)
    workload = generate(recipe, seed=1, rate_per_h=720)
    assert workload.submit_s[-1] / 20_000 == pytest.approx(5, rel=0.03)
    assert any("720 jobs/h" in note for note in workload.notes)
    assert generate(recipe, seed=1).submit_s[-1] == pytest.approx(
        12 * workload.submit_s[-1], rel=1e-4
    )


def test_a_span_holds_all_submissions():
    """All lie within, and none is forced to its ends."""
    workload = generate(
        Recipe(jobs=500, span_s=1e4, arrivals=Bursts(), whole_seconds=False), seed=1
    )
    assert workload.submit_s[0] >= 0
    assert 9e3 < workload.submit_s[-1] <= 1e4


def test_until_a_moment_the_number_is_random_and_a_load_keeps_it():
    """With `until_s` the seed decides how many jobs there are; a load only spreads them."""
    recipe = Recipe(until_s=HOUR_S, rate_per_h=100.0)
    numbers = [len(generate(recipe, seed=seed)) for seed in range(5)]
    assert len(set(numbers)) > 1
    workload = generate(recipe, seed=3, gpus=8, load=0.5)
    assert len(workload) == numbers[3]
    assert workload.load(8) == pytest.approx(0.5, rel=1e-3)
    assert (workload.duration_s == generate(recipe, seed=3).duration_s).all()
    assert len(generate(recipe, seed=3, jobs=7)) == 7
    with pytest.raises(InvalidWorkloadError, match="no job is submitted before second"):
        generate(Recipe(until_s=1e-6, rate_per_h=1.0), seed=0)


def test_jobs_at_once_have_no_load():
    """They need no pace; a load is not pretended."""
    recipe = Recipe(jobs=5, arrivals=AtOnce())
    assert set(generate(recipe, seed=0).submit_s) == {0.0}
    workload = generate(recipe, seed=0, gpus=4, load=0.5)
    assert any("no offered load" in note for note in workload.notes)
    assert "5 jobs/h" not in generate(recipe, seed=0, rate_per_h=5.0).notes[0]


def test_replayed_times_need_neither_number_nor_pace(tmp_path):
    """All jobs of the file by default; a number cuts, a load or a rate stretches."""
    path = tmp_path / "trace.csv"
    write_table(Workload.of(submit_s=np.arange(10) * 60 + 500, duration_s=[1] * 10), path)
    recipe = Recipe(arrivals=Replayed(file=str(path)))
    assert generate(recipe, seed=0).submit_s.tolist() == [500 + 60 * k for k in range(10)]
    assert generate(recipe, seed=0, jobs=3).submit_s.tolist() == [500, 560, 620]
    assert len(generate(replace(recipe, until_s=700.0), seed=0)) == 4
    loaded = generate(recipe, seed=0, gpus=4, load=0.3)
    assert loaded.load(4) == pytest.approx(0.3, rel=1e-3)
    assert np.diff(generate(recipe, seed=0, rate_per_h=600).submit_s).mean() == pytest.approx(
        60 / 9
    )


def test_a_recipe_bounds_its_sizes():
    """max_gpus of the recipe, of the call, or the cluster, in this order of weakness."""
    recipe = Recipe(jobs=500, rate_per_h=60.0, sizes=UniformSizes(low=1, high=64))
    assert generate(recipe, seed=0).gpus.max() > 60
    assert generate(recipe, seed=0, gpus=16).gpus.max() == 16
    assert generate(replace(recipe, max_gpus=4), seed=0, gpus=16).gpus.max() == 4
    assert generate(replace(recipe, max_gpus=4), seed=0, gpus=16, max_gpus=9).gpus.max() == 9


def test_parts_of_gpus_count_as_parts():
    """Half a GPU is half the work, in the load too."""
    recipe = Recipe(sizes=Choice(values=(0.5,)), durations=Fixed(value=100))
    workload = generate(recipe, jobs=50, seed=0, gpus=2, load=0.5)
    assert workload.work_gpu_s == 50 * 100 / 2
    assert workload.load(2) == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize(
    ("recipe", "wish", "message"),
    [
        (Recipe(), {"rate_per_h": 60}, "jobs is needed: recipe does not say how many"),
        (Recipe(jobs=5), {}, r"load \(with gpus\) or rate_per_h is needed"),
        (Recipe(jobs=5), {"load": 0.5}, "gpus is needed"),
        (Recipe(jobs=5, load=0.5), {}, "gpus is needed"),
        (Recipe(jobs=5), {"load": 0.5, "gpus": 4, "rate_per_h": 60}, "cannot be given together"),
        (Recipe(jobs=5), {"rate_per_h": -1}, "rate_per_h must be a number above 0"),
        (Recipe(jobs=5, arrivals=AtOnce()), {"seed": -1}, "seed must be at least 0"),
        (Recipe(arrivals=AtOnce()), {}, "jobs is needed"),
        (Recipe(jobs=5), {"gpus": 0, "load": 1}, "gpus must be at least 1"),
        (Recipe(jobs=5), {"rate_per_h": 1e-9}, "rate_per_h is too small: jobs come for"),
        (Recipe(until_s=1e9, rate_per_h=1e6), {}, "until_s is too long: about 277,777,777,778"),
    ],
)
def test_what_is_missing_is_named(recipe, wish, message):
    """Neither number nor pace are guessed."""
    with pytest.raises(InvalidWorkloadError, match=message):
        generate(recipe, **({"seed": 0} | wish))


def test_a_rate_that_changes_all_the_time_is_refused(monkeypatch):
    """Nobody waits for a clock that needs more pieces than there will ever be jobs."""
    monkeypatch.setattr(clocks, "MOST_PIECES", 10_000)
    arrivals = MarkovModulated(rates=(1, 2), sojourns_s=(1e-4, 1e-4))
    with pytest.raises(InvalidWorkloadError, match="the rate changes more than 10,000 times"):
        generate(Recipe(jobs=9, arrivals=arrivals), seed=0, rate_per_h=1)


def test_notes_of_a_recipe_travel_with_its_workloads():
    """What the author of a recipe has to say, readers of the jobs can read."""
    recipe = Recipe(name="mine", jobs=3, rate_per_h=60.0, notes=("not for the faint-hearted",))
    workload = generate(recipe, seed=7)
    assert workload.name == "mine"
    assert workload.notes == (
        "generated: recipe mine, seed 7, 60 jobs/h",
        "not for the faint-hearted",
    )


def test_exact_estimates_of_normal_run_times():
    """Every process can be combined with every other; here the oracle of simple simulators."""
    recipe = Recipe(
        jobs=50, rate_per_h=9.0, durations=Normal(mean=3000, std=2500), estimates=ExactEstimates()
    )
    workload = generate(recipe, seed=0)
    assert (workload.estimate_s == workload.duration_s).all()
