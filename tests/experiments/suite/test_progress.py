"""How far an experiment is, seen from outside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.cells import cells_of
from yardmaster.experiments.suite.document import Suite
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.measuring import JCT_SHARES, MEASURES
from yardmaster.experiments.suite.progress import Watch, is_held
from yardmaster.experiments.suite.run import run_suite
from yardmaster.experiments.suite.store import Kept, opened


def kept(key: str) -> Kept:
    """Return a run with numbers of no meaning."""
    return Kept(key, np.ones(len(MEASURES)), np.ones(len(JCT_SHARES), dtype=np.float32), 0.1)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_runs_are_counted_while_they_are_made(small: Suite, tmp_path: Path):
    """Done, failed and the whole, before, during and after; strangers in the store do not count."""
    place = SuiteFolder(tmp_path / "here")
    cells = cells_of(small)
    with place.held():
        place.take_up(small, overwrite=False)
        watch = Watch(place.path)
        begun = watch.look()
        assert (begun.total, begun.done, begun.failed) == (len(cells), 0, 0)
        assert begun.is_running
        with opened(place.store) as store:
            store.add(MEASURES, [kept(cells[0].key), kept(cells[1].key), kept("of another time")])
            store.add_failures([(cells[2].key, "no memory")])
            state = watch.look()
    assert (state.done, state.failed, state.is_complete) == (2, 1, False)
    assert state.failures == (f"{cells[2]}: no memory",)
    assert not watch.look().is_running


def test_looking_leaves_nothing_behind(small: Suite, tmp_path: Path):
    """A stopped experiment has the same files after somebody looked."""
    place = SuiteFolder(tmp_path / "here")
    with place.held():
        place.take_up(small, overwrite=False)
        with opened(place.store) as store:
            store.add(MEASURES, [kept(cells_of(small)[0].key)])
    before = files(place.path)
    assert Watch(place.path).look().done == 1
    assert files(place.path) == before


def test_a_complete_experiment_is_read_from_its_table(small: Suite, tmp_path: Path):
    """All runs are done; failures that were written down are counted."""
    run_suite(small, tmp_path / "run", workers=1)
    state = Watch(tmp_path / "run").look()
    assert state.is_complete
    assert not state.is_running
    assert state.done == state.total == len(cells_of(small))
    lost = tmp_path / "run" / "failures.json"
    lost.write_text(json.dumps([{"run": "sjf on x", "reason": "no memory"}]))
    state = Watch(tmp_path / "run").look()
    assert (state.failed, state.failures) == (1, ("sjf on x: no memory",))
    lost.write_text("[3]")
    with pytest.raises(YardmasterError, match="damaged"):
        Watch(tmp_path / "run").look()


def test_trainings_of_a_study_are_counted(tmp_path: Path):
    """Those that have ended, of all that the document names."""
    (tmp_path / "trainings.toml").write_text(
        "[full-0.train]\nseed = 0\n\n[full-1.train]\nseed = 1\n"
    )
    state = Watch(tmp_path).look()
    assert (state.trainings, state.trained, state.total) == (2, 0, 0)


def test_a_lock_is_seen_without_being_touched(tmp_path: Path):
    """Held while somebody works, and whoever looks does not keep anybody out."""
    place = SuiteFolder(tmp_path / "here")
    lock = place.path / ".lock"
    assert not is_held(lock)
    with place.held():
        assert is_held(lock)
    assert not is_held(lock)
    with place.held():  # looking did not take it
        assert is_held(lock)
