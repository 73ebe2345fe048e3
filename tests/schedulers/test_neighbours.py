"""Modules that a user's file imports from its own folder."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.neighbours import neighbours
from yardmaster.schedulers.simulation import simulate

JOBS = Workload.of(submit_s=[0, 1, 2, 3], duration_s=[10, 3, 2, 1], gpus=[1] * 4)
NAMES = ("neighbour_keys", "neighbour_signs", "neighbour_kit")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget modules and import paths that a test adds."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in list(sys.modules):
        if name.startswith(("yardmaster_user_", *NAMES)):
            del sys.modules[name]


def write(folder: Path, **texts: str) -> Path:
    """Write modules, dots in place of folders; return the first of them."""
    paths = [folder / f"{name.replace('__', '/')}.py" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return paths[0]


def sequence(scheduler: str) -> list[int]:
    """Return the rows in order of start."""
    return simulate(JOBS, Cluster.pool(1), scheduler).segment_job.tolist()


def test_what_is_imported_beside_a_file_is_found(tmp_path: Path):
    """Directly or through others, in functions too; packages whole, and nothing else."""
    path = write(
        tmp_path,
        mine="import numpy, first\ndef f(jobs):\n    from second.part import sign\n",
        first="import third, mine\n",
        third="import first",
        second__part="from . import other",
        second__other="",
        second__deep__more="import fourth",
        fourth="",
        unused="",
    )
    assert list(neighbours(path)) == [
        "first.py",
        "fourth.py",
        "second/deep/more.py",
        "second/other.py",
        "second/part.py",
        "third.py",
    ]
    assert neighbours(path)["first.py"] == tmp_path.resolve() / "first.py"
    assert neighbours(tmp_path / "unused.py") == {}


def test_what_cannot_be_read_imports_nothing(tmp_path: Path):
    """A file with mistakes is a neighbour all the same; one that is missing has none."""
    path = write(tmp_path, mine="import broken", broken="import (")
    assert list(neighbours(path)) == ["broken.py"]
    assert neighbours(tmp_path / "nowhere.py") == {}


def test_libraries_are_no_neighbours(tmp_path: Path):
    """Neither those beside an installed module, nor a folder with the sources of yardmaster."""
    assert neighbours(Path(sysconfig.get_path("stdlib")) / "random.py") == {}
    path = write(tmp_path, mine="import yardmaster", yardmaster__errors="")
    assert neighbours(path) == {}


def test_an_order_imports_what_stands_beside_it(tmp_path: Path):
    """Wherever one works: when it is loaded, and when it is asked."""
    path = write(
        tmp_path,
        mine="from neighbour_keys import key\n"
        "def newest(jobs):\n    from neighbour_signs import SIGN\n    return SIGN * key(jobs)\n",
        neighbour_keys="def key(jobs):\n    return jobs.submit_s\n",
        neighbour_signs="SIGN = -1\n",
    )
    assert sequence(f"{path}:newest") == [0, 3, 2, 1]


def test_neighbours_of_one_name_do_not_mix(tmp_path: Path):
    """Two folders with modules of the same name: each order has its own."""
    order = "from neighbour_kit.signs import SIGN\ndef by(jobs):\n    return SIGN * jobs.submit_s\n"
    paths = [
        write(tmp_path / name, mine=order, neighbour_kit__signs=f"SIGN = {sign}\n")
        for name, sign in (("one", "-1.0"), ("two", "1"))
    ]
    assert [sequence(f"{path}:by") for path in paths] == [[0, 3, 2, 1], [0, 1, 2, 3]]
    assert sequence(f"{paths[0]}:by") == [0, 3, 2, 1]


def test_a_neighbour_that_is_not_there_is_named(tmp_path: Path):
    """The error says which module, and whose order."""
    path = write(tmp_path, mine="import neighbour_nowhere\ndef by(jobs):\n    return jobs.gpus\n")
    with pytest.raises(YardmasterError, match=r"mine\.py:by.*neighbour_nowhere"):
        sequence(f"{path}:by")
