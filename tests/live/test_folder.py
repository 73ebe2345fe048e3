"""The folder of a live run."""

from __future__ import annotations

import json

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.folder import LiveFolder


def begun(folder: LiveFolder) -> int:
    return folder.begin("local", "run", "sjf+easy", nodes=[], workload="w", jobs=3)


def test_a_folder_is_held_by_one_at_a_time(tmp_path):
    """A second process is refused until the first lets go."""
    first = LiveFolder(tmp_path / "run")
    with pytest.raises(YardmasterError, match="Another process"):
        LiveFolder(tmp_path / "run")
    first.close()
    LiveFolder(tmp_path / "run").close()


def test_a_run_that_is_taken_up_again_keeps_its_begin(tmp_path):
    """Restarts are counted and the clock's begin stays."""
    folder = LiveFolder(tmp_path)
    assert begun(folder) == 0
    began = folder.about["began_unix_s"]
    folder.close()
    again = LiveFolder(tmp_path)
    assert begun(again) == 1
    assert again.about["began_unix_s"] == began
    again.end("finished")
    again.close()
    assert json.loads((tmp_path / "live.json").read_text())["state"] == "finished"


def test_another_kind_of_folder_is_left_alone(tmp_path):
    """A folder with other things in it, or of another kind of run, is refused."""
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(YardmasterError, match="something else"):
        LiveFolder(tmp_path)
    folder = LiveFolder(tmp_path / "run")
    begun(folder)
    with pytest.raises(YardmasterError, match="live slurm"):
        folder.begin("slurm", "shadow", "sjf+easy", nodes=[])
    folder.close()


def test_signs_of_life_come_at_most_once_a_second(tmp_path):
    """A second beat within the second writes nothing."""
    folder = LiveFolder(tmp_path)
    folder.beat(tick=1)
    folder.beat(tick=2)
    assert json.loads((tmp_path / "heartbeat.json").read_text())["tick"] == 1
    folder.close()


def test_what_a_crash_at_the_very_begin_leaves_is_no_hindrance(tmp_path):
    """A half-written `live.json` and the lock make a folder that can be begun."""
    (tmp_path / ".live.json.part").write_text("{")
    (tmp_path / "lock").touch()
    folder = LiveFolder(tmp_path)
    assert begun(folder) == 0
    folder.close()
