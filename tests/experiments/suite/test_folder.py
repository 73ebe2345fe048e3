"""An experiment's folder belongs to it, and to one process at a time."""

from __future__ import annotations

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.folder import SuiteFolder


def taken_up(place, suite, *, overwrite=False) -> None:
    with place.held():
        place.take_up(suite, overwrite=overwrite)


def test_the_same_experiment_goes_on(small, tmp_path):
    """Taking up a folder again changes nothing in it."""
    place = SuiteFolder(tmp_path / "runs" / "mine")
    taken_up(place, small)
    place.results.write_bytes(b"table")
    before = place.document.read_bytes()
    taken_up(place, small)
    assert place.document.read_bytes() == before
    assert place.results.read_bytes() == b"table"
    assert place.suite() == small


def test_another_experiment_is_refused(small, tmp_path):
    """Unless it may take the place: runs stay, the other one's table goes."""
    place = SuiteFolder(tmp_path / "mine")
    taken_up(place, small)
    place.store.write_bytes(b"runs")
    place.results.write_bytes(b"table")
    other = small.with_changes(seeds=5)
    with pytest.raises(YardmasterError, match="holds another experiment"):
        taken_up(place, other)
    assert place.suite() == small
    taken_up(place, other, overwrite=True)
    assert place.suite() == other
    assert place.store.read_bytes() == b"runs"
    assert not place.results.exists()


def test_somebody_elses_folder_is_left_alone(small, tmp_path):
    """A folder with other things in it is never taken."""
    (tmp_path / "thesis.txt").write_text("years of work")
    place = SuiteFolder(tmp_path)
    with pytest.raises(YardmasterError, match="is not the folder of an experiment"):
        taken_up(place, small, overwrite=True)
    with pytest.raises(YardmasterError, match=r"has no experiment\.toml"):
        place.suite()
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".toml"] == ["thesis.txt"]


def test_what_killed_processes_left_is_swept(small, tmp_path):
    """A lock without a document, and files half written, are no obstacle and do not stay."""
    place = SuiteFolder(tmp_path / "mine")
    place.path.mkdir()
    (place.path / ".lock").touch()
    (place.path / ".results.parquet.123.unfinished").touch()
    taken_up(place, small)
    assert {path.name for path in place.path.iterdir()} == {".lock", "experiment.toml"}


def test_two_processes_do_not_share_a_folder(tmp_path):
    """The second one is told so."""
    place = SuiteFolder(tmp_path / "mine")
    with place.held(), pytest.raises(YardmasterError, match="Another process"), place.held():
        pass
    with place.held():
        pass
