"""What was stopped for whom is on disk before it is done, and bounds what is done later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.stops import KEPT_S, NAME, Stopped, Stops


def test_stops_are_found_again_after_a_crash(tmp_path: Path):
    """Another process sees what was intended: by job, by whom it was for, and in an hour."""
    now = time.time()
    Stops(tmp_path).intend([Stopped("1", "9", now - 4000.0, 700.0)])
    Stops(tmp_path).intend([Stopped("2", "8", now, 60.0)])
    stops = Stops(tmp_path)
    assert [one.waiting for one in stops.of("1")] == ["9"]
    assert [one.job for one in stops.made_for("8")] == ["2"]
    assert (stops.within(3600.0), stops.within(5000.0), stops.of("3")) == (1, 2, [])
    stops.intend([Stopped("5", "6", now - KEPT_S - 1.0, 1.0)])
    stops.intend([])
    assert not stops.of("5"), "what is long ago is forgotten"


def test_jobs_in_somebodys_hands_stay_there_until_they_are_gone(tmp_path: Path):
    """A job held while it waited is known to be when it runs, also to another process."""
    Stops(tmp_path).see(["1", "2"], ["1", "2", "3"])
    stops = Stops(tmp_path)
    stops.see([], ["2", "3"])
    assert (stops.is_in_hands("1"), stops.is_in_hands("2")) == (False, True)
    before = (tmp_path / NAME).stat().st_mtime_ns
    stops.see([], ["2", "3"])
    assert (tmp_path / NAME).stat().st_mtime_ns == before


def test_a_spoilt_file_is_refused(tmp_path: Path):
    """Without it no bound would hold."""
    (tmp_path / NAME).write_text('{"version": 1, "stopped": [{"job": "1"}], "in_hands": []}')
    with pytest.raises(YardmasterError, match="Cannot read"):
        Stops(tmp_path)
