"""Which factors are ours is known even after a crash between writing down and sending."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.changes import SetFactor
from yardmaster.live.slurm.driving import factors_to_zero
from yardmaster.live.slurm.ledger import FORGOTTEN_AFTER_S, KEPT_VALUES, NAME, Ledger


def test_what_was_intended_is_known_to_the_next_process(tmp_path: Path):
    """Written before it is sent: after a crash both the old and the new value are known."""
    Ledger(tmp_path).intend([SetFactor("7", 100)])
    Ledger(tmp_path).intend([SetFactor("7", 200)])
    ledger = Ledger(tmp_path)
    assert ledger.is_ours("7", 100)
    assert ledger.is_ours("7", 200)
    assert not ledger.is_ours("7", 150)
    assert not ledger.is_ours("8", 100)


@settings(max_examples=20, deadline=None)  # each writes to the disk and waits for it
@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_the_latest_values_are_kept(values: list[int]):
    """Of many values of a job, the latest distinct ones are ours; none at all is nobody's."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        for value in values:
            ledger.intend([SetFactor("1", value)])
        latest = list(dict.fromkeys(reversed(values)))[:KEPT_VALUES]
        assert all(ledger.is_ours("1", value) for value in [*latest, 0])
        assert len(ledger) == 1


def test_jobs_long_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A day after a job was last seen its values are dropped; who is still there is kept."""
    import time

    ledger = Ledger(tmp_path)
    ledger.intend([SetFactor("1", 5), SetFactor("2", 5)])
    later = time.time() + FORGOTTEN_AFTER_S + 10
    monkeypatch.setattr(time, "time", lambda: later)
    ledger.seen(["2"])
    assert Ledger(tmp_path).jobs == {"2"}


def test_a_broken_file_is_not_guessed_at(tmp_path: Path):
    """Half a file is an error that names it."""
    (tmp_path / NAME).write_text('{"version":1,"jo')
    with pytest.raises(YardmasterError, match=NAME):
        Ledger(tmp_path)


def test_only_ours_are_taken_away(tmp_path: Path):
    """Other people's factors stay unless everyone's are asked for; silent ones of ours go."""
    ledger = Ledger(tmp_path)
    ledger.intend([SetFactor("1", 5), SetFactor("2", 6), SetFactor("9", 3)])
    sites = {"1": 5, "2": 77, "3": 8, "4": 0}
    ours = {change.job for change in factors_to_zero(sites, ledger, unweighed=["9", "10"])}
    assert ours == {"1", "9"}
    everyone = {change.job for change in factors_to_zero(sites, ledger, everyone=True)}
    assert everyone == {"1", "2", "3"}
