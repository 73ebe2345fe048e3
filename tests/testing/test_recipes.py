"""The suite for recipes: presets pass, and every rule can be broken."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import ConformanceError, InvalidConfigError
from yardmaster.model.workload import Workload
from yardmaster.testing import check_recipe, recipes
from yardmaster.testing.recipes import judge_recipe
from yardmaster.workloads.recipes.recipe import Recipe


def made(seed: int) -> Workload:
    """Make a few jobs up."""
    dice = np.random.default_rng(seed)
    return Workload.of(
        submit_s=np.sort(dice.integers(0, 1000, 50)), duration_s=dice.integers(1, 99, 50)
    )


def test_presets_conform():
    """A preset keeps every rule, also in another process."""
    assert [one.state for one in judge_recipe("mm").verdicts] == ["kept"] * 7


def test_files_conform(tmp_path: Path):
    """A recipe in a file is checked for what it says; how many and how fast it may leave open."""
    path = tmp_path / "mine.toml"
    path.write_text('jobs = 120\nrate_per_h = 30\ndurations = "lognormal:median=60,sigma=1"\n')
    found = {one.rule: one for one in judge_recipe(path).verdicts}
    assert found["makes as many jobs as it is asked for"].state == "kept"
    assert found["offers the load it is asked for"].state == "not tried"
    assert all(one.state != "broken" for one in found.values())
    check_recipe(Recipe(jobs=30, load=0.5))


def test_functions_conform():
    """A function of a seed keeps the rules; what it is not asked for is not tried."""
    check_recipe(made)
    states = [one.state for one in judge_recipe(made).verdicts]
    assert states.count("not tried") == 4


def test_mistakes_are_told(tmp_path: Path):
    """A file with mistakes is refused with its mistakes, before any rule."""
    path = tmp_path / "bad.toml"
    path.write_text("jobs = 0\nlod = 1\n")
    with pytest.raises(InvalidConfigError, match="lod"):
        check_recipe(path)


calls = itertools.count()


def forgetful(_seed: int) -> Workload:
    return made(next(calls))


def stubborn(_seed: int) -> Workload:
    return made(0)


def late(seed: int) -> Workload:
    jobs = made(seed)
    return jobs.with_columns(deadline_s=jobs.submit_s - 5)


def nothing(_seed: int) -> list[int]:
    return []


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (late, "makes jobs that are valid"),
        (nothing, "makes jobs that are valid"),
        (forgetful, "makes the same jobs from the same seed"),
        (stubborn, "makes other jobs from another seed"),
    ],
)
def test_functions_break_rules(source, rule: str):
    """Invalid jobs, forgotten seeds and ignored seeds are caught."""
    found = {one.rule: one for one in judge_recipe(source).verdicts}
    assert found[rule].state == "broken"
    assert found[rule].reason
    with pytest.raises(ConformanceError, match="breaks a rule"):
        check_recipe(source)


# A recipe is drawn by the repository's own code, so a broken one is a broken drawing.
TAMPERED = {
    "makes as many jobs as it is asked for": lambda jobs: jobs.select(np.arange(len(jobs) - 1)),
    "makes jobs that fit the cluster they are for": lambda jobs: jobs.with_columns(
        gpus=jobs.gpus + 64
    ),
    "offers the load it is asked for": lambda jobs: jobs.with_columns(
        duration_s=jobs.duration_s * 1.1
    ),
    "makes the same jobs in another process": lambda jobs: jobs.with_columns(
        priority=jobs.priority + 1
    ),
}


@pytest.mark.parametrize("rule", TAMPERED)
def test_drawings_break_rules(rule: str, monkeypatch: pytest.MonkeyPatch):
    """Too few jobs, too large ones, another load, another outcome elsewhere: each is caught."""
    drawn = recipes.drawn
    tampered = TAMPERED[rule]
    monkeypatch.setattr(recipes, "drawn", lambda source, seed: tampered(drawn(source, seed)))
    found = {one.rule: one for one in judge_recipe("mm").verdicts}
    assert found[rule].state == "broken"
    assert found[rule].reason
