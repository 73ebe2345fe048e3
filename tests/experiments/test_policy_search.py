"""Policies by evolution: they begin as a heuristic, move to what is better, and resume."""

from __future__ import annotations

import argparse
import gzip
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.schedulers.learned.policy_file import read_policy

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
HERE = SimpleNamespace(map=lambda play, asked, **_: [play(one) for one in asked])
"""Players that play in this process."""


@pytest.fixture
def script() -> Iterator[Any]:
    """The script."""
    sys.path.insert(0, str(FOLDER))
    import policy_search

    yield policy_search
    sys.path.remove(str(FOLDER))


def begun(script: Any, name: str, seed: int = 0) -> Any:
    """Return a search at its beginning."""
    aim = script.AIMS[name]
    return script.Search(name, script.first_file(aim), seed, 120, aim.weights)


def few(script: Any, teacher: str, windows: int = 3) -> Any:
    """Return a few small windows with what the teacher reaches in them."""
    cluster = ym.Cluster.of("2x V100:8")
    jobs = [
        ym.generate("lognormal", jobs=60, load=1.2, gpus=cluster.gpus, seed=seed)
        for seed in range(windows)
    ]
    played = [script.measured(ym.simulate(one, cluster, teacher))[:3] for one in jobs]
    return "few", tuple((one, cluster) for one in jobs), np.array(played), min(windows, 2)


@pytest.mark.parametrize(
    ("name", "teacher"), [("jct-blind", "qssf+skip"), ("jct-clairvoyant", "saf+easy")]
)
def test_the_first_weights_decide_as_the_teacher(
    script: Any, name: str, teacher: str, tmp_path: Path
):
    """Before anything is found, nearly every job starts when the heuristic would start it."""
    going = begun(script, name)
    path = tmp_path / "first.npz"
    script.write_policy(path, going.file(going.middle, {}))
    alike = []
    for jobs, cluster in few(script, teacher)[1]:
        mine, theirs = (ym.simulate(jobs, cluster, one) for one in (f"policy:{path}", teacher))
        alike.append(np.mean(mine.start_s == theirs.start_s))
    assert np.mean(alike) > (0.999 if teacher == "qssf+skip" else 0.8)


def test_a_policy_is_behind_by_the_ratio_to_its_rival(script: Any):
    """Against a rival twice as good everywhere it is behind by log 2, by every metric."""
    name, windows, values, played = few(script, "qssf+skip")
    script._FIELDS[:] = [script.Field(name, windows, values / 2.0, played)]
    going = begun(script, "jct-blind")
    [behind] = script.play((going.file(going.middle, {}), [np.arange(3)]))
    np.testing.assert_allclose(behind, np.log(2.0))


def test_the_middle_moves_to_what_costs_less(script: Any, monkeypatch: pytest.MonkeyPatch):
    """On a cost whose least is known, generations come nearer to it."""
    going = begun(script, "jct-blind", seed=3)
    aim = going.middle + 0.3

    def play(asked: Any) -> Any:
        weights = np.concatenate([part.ravel() for part in asked[0].weights.values()])
        return np.full((1, 3), np.mean((weights - aim) ** 2))

    monkeypatch.setattr(script, "play", play)
    field = script.Field("one", ((None, None),), np.ones((1, 3)), 1)
    for _ in range(60):
        going.advance([field], HERE)
    assert np.mean((going.middle - aim) ** 2) < 0.7 * 0.3**2


def test_being_behind_costs_more_than_being_ahead_pays(script: Any):
    """A policy that wins one log as much as it loses another is worse than the heuristic."""
    going = begun(script, "jct-blind")
    assert going.cost(np.array([[0.0, 0.1, 0.0], [0.0, -0.1, 0.0]])) > 0.05
    assert going.cost(np.array([[9.0, -0.1, 9.0]])) == pytest.approx(-0.1)


def test_a_search_goes_on_where_it_was_left(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Stopped and taken up again, it ends with the same bytes as in one go."""
    name, windows = "jct-blind", few(script, "qssf+skip", windows=2)
    monkeypatch.setattr(script, "PAIRS", 2)
    asked = argparse.Namespace(workers=1, minutes=9.0, begin=[], weigh=[], seed=0, generations=6)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        with gzip.open(tmp_path / folder / "blind.pkl.gz", "wb") as file:
            pickle.dump([windows], file)
    script.search(name, argparse.Namespace(**vars(asked) | {"out": tmp_path / "one"}))
    two = argparse.Namespace(**vars(asked) | {"out": tmp_path / "two"})
    half = script.Search.advance

    def advance(self: Any, *rest: Any) -> Any:
        if self.generation == 3:
            raise KeyboardInterrupt
        return half(self, *rest)

    monkeypatch.setattr(script.Search, "advance", advance)
    monkeypatch.setattr(script, "KEEP_EVERY", 3)
    with pytest.raises(KeyboardInterrupt):
        script.search(name, two)
    monkeypatch.setattr(script.Search, "advance", half)
    script.search(name, two)
    one, other = (tmp_path / folder / f"{name}.npz" for folder in ("one", "two"))
    assert one.read_bytes() == other.read_bytes()
    assert read_policy(one).about["generations"] == 6
    assert ym.simulate(windows[1][0][0], "2x V100:8", f"policy:{one}").scheduler == f"policy:{one}"


def test_a_search_is_not_taken_up_as_another(script: Any, tmp_path: Path):
    """With another seed, length, weight or beginning it is refused, and the file named."""
    shipped = FOLDER.parent / "src/yardmaster/schedulers/learned/shipped/jct-blind.npz"
    asked = {"out": tmp_path, "begin": [], "weigh": [], "seed": 0, "generations": 5}
    script._FIELDS[:] = [script.Field(*few(script, "qssf+skip", windows=1))]
    script._keep(script._taken_up("jct-blind", argparse.Namespace(**asked)), tmp_path)
    assert script._taken_up("jct-blind", argparse.Namespace(**asked)).generation == 0
    for word, change in {
        "seed": {"seed": 1},
        "generations": {"generations": 6},
        "weights": {"weigh": [script.weight("jct=2")]},
        "network": {"begin": [f"jct-blind={shipped}"]},
    }.items():
        with pytest.raises(SystemExit, match=f"jct-blind.state.npz was begun with another {word}:"):
            script._taken_up("jct-blind", argparse.Namespace(**asked | change))


def test_a_search_can_begin_as_a_policy(script: Any, tmp_path: Path):
    """Who begins as a policy has its weights and its sight, and says so."""
    shipped = FOLDER.parent / "src/yardmaster/schedulers/learned/shipped/slowdown-clairvoyant.npz"
    name = "slowdown-clairvoyant"
    begin = [f"{name}={shipped}"]
    asked = argparse.Namespace(out=tmp_path, begin=begin, weigh=[], seed=0, generations=5)
    going = script._taken_up(name, asked)
    script._FIELDS[:] = [script.Field(*few(script, "saf+easy", windows=1))]
    script._keep(going, tmp_path)
    kept, first = read_policy(tmp_path / f"{name}.npz"), read_policy(shipped)
    assert kept.sight == first.sight
    assert kept.about["began"] == first.about
    for part, values in first.weights.items():
        np.testing.assert_array_equal(kept.weights[part], values)


def test_a_policy_that_is_taken_up_waits_as_it_is_aimed_to(script: Any, tmp_path: Path):
    """Whoever knows run times and goes for slowdown may wait at will; all else stays."""
    path = tmp_path / "before.npz"
    file = script.first_file(script.AIMS["jct-estimate"])
    assert file.sight["noop"] == "when_blocked"
    script.write_policy(path, file)
    for name, noop in (("slowdown-estimate", "always"), ("slowdown-blind", "when_blocked")):
        begin = [f"{name}={path}"]
        asked = argparse.Namespace(out=tmp_path, begin=begin, weigh=[], seed=0, generations=120)
        base = script._taken_up(name, asked).base
        assert base.sight == file.sight | {"noop": noop}
        np.testing.assert_array_equal(base.weights["noop"], file.weights["noop"])


@pytest.mark.parametrize("seed", range(5))
def test_widened_jobs_are_short_and_find_room(script: Any, seed: int):
    """Some short jobs of a stretch ask for whole nodes, a quarter of all or more."""
    cluster = ym.Cluster.of("12x V100:8")
    jobs = ym.generate("lognormal", jobs=400, load=1.0, gpus=cluster.gpus, seed=seed)
    wider = script.widened(jobs, cluster, np.random.default_rng(seed))
    for column in ("submit_s", "duration_s", "estimate_s"):
        np.testing.assert_array_equal(getattr(wider, column), getattr(jobs, column))
    rows = np.flatnonzero(wider.gpus != jobs.gpus)
    assert 0 < len(rows) <= rows[-1] - rows[0] + 1 <= 0.4 * len(jobs)
    assert np.all(jobs.estimate_s[rows] <= np.median(jobs.estimate_s))
    assert np.all(wider.gpus[rows] % 8 == 0)
    assert np.all((wider.gpus[rows] >= cluster.gpus / 4) & (wider.gpus[rows] <= cluster.gpus))
    played = ym.simulate(wider, cluster, "fifo+easy")
    assert np.all(np.isfinite(played.end_s))


def test_a_weight_is_of_a_metric(script: Any):
    """A metric that does not exist is refused, and those that do are named."""
    assert script.weight("jct=1.5") == ("jct", 1.5)
    with pytest.raises(argparse.ArgumentTypeError, match="wait=1: metrics are bounded_slowdown"):
        script.weight("wait=1")
