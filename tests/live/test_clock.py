"""The clock of a live run."""

from __future__ import annotations

import time

import pytest

from yardmaster.live.clock import LiveClock


def test_the_clock_counts_from_the_begin_of_the_run():
    """Taken up again, a run's clock shows as much as if it had never stopped."""
    began = time.time() - 100.0
    first, second = LiveClock.since(began), LiveClock.since(began)
    assert first.time_s() == pytest.approx(100.0, abs=0.5)
    assert second.time_s() == pytest.approx(first.time_s(), abs=0.05)
    assert first.of_unix(began + 40.0) == pytest.approx(40.0, abs=0.05)


def test_setting_the_machines_clock_does_not_move_it(monkeypatch):
    """It goes on evenly when somebody sets the time of day."""
    clock = LiveClock.since(time.time())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600.0)
    assert clock.time_s() == pytest.approx(0.0, abs=0.5)
