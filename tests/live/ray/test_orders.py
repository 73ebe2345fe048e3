"""Orders: one name per attempt, one folder, one claim."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from yardmaster.live.folder import ABOUT, write_json
from yardmaster.live.ray.orders import Order, claim, submission_id


def order(tmp_path: Path, **changes) -> Order:
    """Return an order to run `true` on node n1."""
    fields = {
        "run": "r1", "run_folder": str(tmp_path / "run"), "began_unix_s": 0.0, "node_folder": "",
        "node": "n1", "job": "a", "attempt": 1, "gpus": 1, "command": ("true",),
        "folder": str(tmp_path), "environment": (("X", "1"),), "timeout_s": None, "grace_s": 1.0,
        "version": "",
    }  # fmt: skip
    return Order(**(fields | changes))


def test_an_attempt_has_one_name(tmp_path):
    """Run, job and attempt make the name, and a record gives the same order back."""
    first = order(tmp_path)
    assert Order.of(json.loads(json.dumps(first.record()))) == first
    assert first.submission == submission_id("r1", "a", 1)
    names = {submission_id(run, job, k) for run in "xy" for job in ("a", "b") for k in (1, 2)}
    assert len(names) == 8


def test_the_runs_own_folder_is_used_where_it_is_seen(tmp_path, monkeypatch):
    """A node that sees this very run writes there; others, and another run's, elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    one = order(tmp_path)
    assert one.place().is_relative_to(tmp_path / "home")
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / ABOUT, {"settings": {"run": "r1"}})
    assert one.place() == tmp_path / "run/jobs/a/attempt-1"
    assert order(tmp_path, run="r2").place().is_relative_to(tmp_path / "home")
    forced = order(tmp_path, node_folder=str(tmp_path / "scratch"))
    assert forced.place() == tmp_path / "scratch/r1/jobs/a/attempt-1"


def test_a_folder_is_claimed_once(tmp_path):
    """However many try at once, one gets it."""
    places = [tmp_path / f"p{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        for place in places:
            got = list(pool.map(lambda _, place=place: claim(place, "keeper"), range(8)))
            assert sum(got) == 1
