"""The run folder: whole files, journals that can be cut, one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.folder import (
    RunFolder,
    add_line,
    cut_back,
    default_path,
    read_lines,
    write_json,
    write_whole,
)


def test_a_journal_is_cut_back(tmp_path: Path):
    """Lines after a number of updates go, the others stay as they were."""
    path = tmp_path / "progress.jsonl"
    for updates in range(5):
        add_line(path, {"updates": updates, "loss": 0.1 + updates / 3})
    before = path.read_text().splitlines(keepends=True)
    cut_back(path, 2)
    assert path.read_text() == "".join(before[:3])
    cut_back(path, -1)
    assert path.read_text() == ""


def test_a_half_written_line_is_dropped(tmp_path: Path):
    """What a killed process left of its last line does not spoil the rest."""
    path = tmp_path / "progress.jsonl"
    add_line(path, {"updates": 1})
    with path.open("a") as file:
        file.write('{"updates": 2, "lo')
    assert read_lines(path) == [{"updates": 1}]
    cut_back(path, 9)
    add_line(path, {"updates": 2})
    assert [record["updates"] for record in read_lines(path)] == [1, 2]


def test_no_journal_reads_as_empty(tmp_path: Path):
    """A run that was killed before its first line has none."""
    assert read_lines(tmp_path / "none.jsonl") == []


def test_numbers_that_json_lacks_become_null(tmp_path: Path):
    """NaN and infinity, which JSON cannot write, are null."""
    path = tmp_path / "a.jsonl"
    add_line(path, {"updates": 1, "values": [float("nan"), 1.0], "x": {"y": float("inf")}})
    assert read_lines(path) == [{"updates": 1, "values": [None, 1.0], "x": {"y": None}}]


def test_a_failed_write_keeps_the_old_text(tmp_path: Path):
    """If a file cannot be written whole, the one before stays and nothing is left beside it."""
    path = tmp_path / "run.json"
    write_json(path, {"a": 1})
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_text() == '{\n "a": 1\n}\n'
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_only_runs_are_replaced(tmp_path: Path):
    """A folder of other things is never deleted; one of a run only if asked."""
    folder = RunFolder(tmp_path / "run")
    folder.create()
    write_json(folder.about, {})
    with pytest.raises(YardmasterError, match="already exists; choose another place"):
        folder.create(overwrite=True)
    write_whole(folder.config, "")
    with pytest.raises(YardmasterError, match=r"already exists.*--resume .*run goes on"):
        folder.create()
    folder.create(overwrite=True)
    assert not folder.about.exists()


def test_places_that_cannot_be_written(tmp_path: Path):
    """A file in the way is told as such, without a traceback."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(YardmasterError, match="already exists"):
        RunFolder(tmp_path / "file").create()
    with pytest.raises(YardmasterError, match="Cannot write to"):
        RunFolder(tmp_path / "file" / "run").create()


def test_only_runs_are_resumed(tmp_path: Path):
    """A folder without a run, or none at all, cannot be resumed."""
    with pytest.raises(YardmasterError, match=r"has no config\.toml and run\.json"):
        RunFolder(tmp_path).refuse_if_not_run()
    with pytest.raises(YardmasterError, match="does not exist"):
        RunFolder(tmp_path / "none").refuse_if_not_run()


def test_one_process_at_a_time(tmp_path: Path):
    """A second trainer in the same folder is turned away; afterwards it may enter."""
    folder = RunFolder(tmp_path)
    with folder.held(), pytest.raises(YardmasterError, match="Another process"), folder.held():
        pass
    with folder.held():
        pass


def test_default_places_are_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two runs begun in the same second get different folders."""
    monkeypatch.chdir(tmp_path)
    one = default_path("train", "ppo", "a/b")
    one.mkdir(parents=True)
    other = default_path("train", "ppo", "a/b")
    assert one != other
    assert one.name.startswith("train-ppo-a-b-")
