"""Policies by evolution: they begin as a heuristic, move to what is better, and resume."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yardmaster as ym

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def script() -> Iterator[Any]:
    """The script."""
    sys.path.insert(0, str(FOLDER))
    import policy_search

    yield policy_search
    sys.path.remove(str(FOLDER))


def few(script: Any, name: str, windows: int = 3) -> list[Any]:
    """Return a few small windows with what the rivals reach in them."""
    cluster = ym.Cluster.of("2x V100:8")
    found = []
    for seed in range(windows):
        jobs = ym.generate("lognormal", jobs=60, load=1.2, gpus=cluster.gpus, seed=seed)
        rivals = script.RIVALS[name.rsplit("-", 1)[1]]
        played = [script.measured(ym.simulate(jobs, cluster, rival))[:3] for rival in rivals]
        found.append(script.Match(jobs, cluster, np.min(played, axis=0)))
    return found


@pytest.mark.parametrize(
    ("name", "teacher"), [("jct-blind", "qssf+skip"), ("jct-clairvoyant", "saf+easy")]
)
def test_the_first_weights_decide_as_the_teacher(script: Any, name: str, teacher: str):
    """Before anything is found, nearly every job starts when the heuristic would start it."""
    going = script.Search.begun(script.AIMS[name], 0)
    policy = going.policy(going.middle)
    alike = []
    for match in few(script, name):
        mine, _ = script.drive_policy(
            match.jobs, match.machines, policy, placement="pack", called="candidate"
        )
        theirs = ym.simulate(match.jobs, match.machines, teacher)
        alike.append(np.mean(mine.start_s == theirs.start_s))
    assert np.mean(alike) > (0.999 if teacher == "qssf+skip" else 0.8)


def test_the_cloud_moves_to_what_costs_less(script: Any, monkeypatch: pytest.MonkeyPatch):
    """On a cost whose least is known, generations come near it."""
    going = script.Search.begun(script.AIMS["jct-blind"], 3)
    monkeypatch.setattr(script.Search, "policy", lambda _, step: step)
    monkeypatch.setattr(script, "behind", lambda step, _: np.full(3, np.mean((step - 1.0) ** 2)))
    for _ in range(120):
        going.advance([None])
    assert np.mean((going.middle - 1.0) ** 2) < 0.2


def test_being_behind_costs_more_than_being_ahead_pays(script: Any):
    """A policy that wins one window as much as it loses another is worse than the heuristic."""
    going = script.Search.begun(script.AIMS["jct-blind"], 0)
    assert going.cost(np.array([[0.0, 0.1, 0.0], [0.0, -0.1, 0.0]])) == pytest.approx(0.05)
    assert going.cost(np.array([[9.0, -0.1, 9.0]])) == pytest.approx(-0.1)


def test_a_search_goes_on_where_it_was_left(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Stopped and taken up again, it ends with the same bytes as in one go."""
    name = "jct-blind"
    kept = few(script, name, windows=1)
    monkeypatch.setattr(script, "matches", lambda _: kept)
    monkeypatch.setattr(script, "CANDIDATES", 4)
    script.search(name, 20, 0, tmp_path / "one")
    script.search(name, 10, 0, tmp_path / "two")
    script.search(name, 20, 0, tmp_path / "two")
    one, two = ((tmp_path / folder / f"{name}.npz").read_bytes() for folder in ("one", "two"))
    assert one == two
    policy = f"policy:{tmp_path / 'one' / name}.npz"
    assert ym.simulate(kept[0].jobs, "2x V100:8", policy).scheduler == policy
