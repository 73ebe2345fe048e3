"""Modules that a user's file imports from its own folder."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.neighbours import PACKAGE, neighbours
from yardmaster.schedulers.simulation import simulate

JOBS = Workload.of(submit_s=[0, 1, 2, 3], duration_s=[10, 3, 2, 1], gpus=[1] * 4)
NAMES = ("neighbour_keys", "neighbour_signs", "neighbour_kit")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget modules and import paths that a test adds."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in list(sys.modules):
        if name.startswith(("yardmaster_user_", PACKAGE, *NAMES)):
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
        other="",
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


LATE = "def by(jobs):\n    from neighbour_signs import SIGN\n    return SIGN * jobs.submit_s\n"


def test_what_functions_import_is_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A copy of a program plays as it did, though the folder one works in has another version."""
    path = write(tmp_path / "kept", mine=LATE, neighbour_signs="SIGN = -1\n")
    write(tmp_path / "here", neighbour_signs="SIGN = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "here")
    assert sequence(f"{path}:by") == [0, 3, 2, 1]


def test_functions_of_two_folders_import_their_own(tmp_path: Path):
    """Modules of one name, whatever was imported first, and others behind them that differ."""
    one, two = (
        write(
            tmp_path / name,
            mine=LATE,
            neighbour_signs="from neighbour_kit.deep import SIGN\n",
            neighbour_kit____init__="",
            neighbour_kit__deep=f"SIGN = {sign}\n",
        )
        for name, sign in (("one", -1), ("two", 1))
    )
    assert sequence(f"{one}:by") == [0, 3, 2, 1]
    assert sequence(f"{two}:by") == [0, 1, 2, 3]
    assert sequence(f"{one}:by") == [0, 3, 2, 1]


def test_orders_of_one_folder_share_its_modules(tmp_path: Path):
    """One that imports late works after another was loaded, or failed to be, in between."""
    late = write(tmp_path, late=LATE, neighbour_signs="SIGN = -1\nclass Kind:\n    pass\n")
    eager = write(tmp_path, eager="from neighbour_signs import SIGN as S, Kind\n" + LATE)
    broken = write(tmp_path, broken="import neighbour_signs\n1 / 0\n" + LATE)
    assert sequence(f"{eager}:by") == [0, 3, 2, 1]
    with pytest.raises(YardmasterError, match="division by zero"):
        sequence(f"{broken}:by")
    assert sequence(f"{late}:by") == [0, 3, 2, 1]
    kind = sys.modules[f"yardmaster_user_eager_{_digest(eager)}"].Kind
    assert pickle.loads(pickle.dumps(kind)) is kind  # noqa: S301  (made here)


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    "words",
    [
        "import neighbour_kit.deep",
        "import neighbour_kit.deep as deep",
        "from neighbour_kit import deep",
        "from neighbour_kit.deep import *",
        "from neighbour_kit import relative",
    ],
)
def test_every_way_to_import_works(tmp_path: Path, words: str):
    """Packages and their parts, by other names, all that is in them, relative to each other."""
    sign = {
        "import neighbour_kit.deep": "neighbour_kit.deep.SIGN",
        "from neighbour_kit.deep import *": "SIGN",
        "from neighbour_kit import relative": "relative.DEEP.SIGN",
    }.get(words, "deep.SIGN")
    path = write(
        tmp_path,
        mine=f"{words}\ndef by(jobs):\n    return {sign} * jobs.submit_s\n",
        neighbour_kit__deep="SIGN = -1\n",
        neighbour_kit__relative="from . import deep as DEEP\n",
    )
    assert sequence(f"{path}:by") == [0, 3, 2, 1]


def test_a_neighbour_that_imports_the_order_is_nobody_elses(tmp_path: Path):
    """Nor is a module beside a folder of the same name something else."""
    for name, sign in (("one", -1), ("two", 1)):
        path = write(
            tmp_path / name,
            mine=f"VALUE = {sign}\nfrom neighbour_keys import key\n"
            "def by(jobs):\n    return key(jobs)\n",
            neighbour_keys="def key(jobs):\n    import mine\n"
            "    return mine.VALUE * jobs.submit_s\n",
        )
        (tmp_path / name / "neighbour_keys").mkdir()
        assert sequence(f"{path}:by") == ([0, 3, 2, 1] if sign < 0 else [0, 1, 2, 3])
    assert "mine" not in sys.modules


def test_the_program_keeps_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A module of the program that has a neighbour's name stays what it was, and so do paths."""
    write(tmp_path / "host", neighbour_signs="SIGN = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "host")
    before = importlib.import_module("neighbour_signs")
    order = "from neighbour_signs import SIGN\ndef by(jobs):\n    return SIGN * jobs.submit_s\n"
    path = write(tmp_path / "own", mine=order, neighbour_signs="SIGN = -1\n")
    paths = list(sys.path)
    assert sequence(f"{path}:by") == [0, 3, 2, 1]
    assert sys.modules["neighbour_signs"] is before
    assert sys.path == paths


def test_what_fails_is_told_and_can_be_mended(tmp_path: Path):
    """The mistake of a module that is imported late is told as it is; mended, it is read anew."""
    path = write(tmp_path, mine="import neighbour_keys\n1 / 0\n" + LATE, neighbour_keys="SIGN = 1")
    late = write(tmp_path, late=LATE, neighbour_signs="1 / 0\n")
    with pytest.raises(YardmasterError, match="division by zero"):
        sequence(f"{path}:by")
    with pytest.raises(YardmasterError, match="division by zero"):
        sequence(f"{late}:by")
    write(tmp_path, mine="from neighbour_keys import SIGN\n" + LATE, neighbour_keys="SIGN = -1")
    write(tmp_path, neighbour_signs="from neighbour_keys import SIGN")
    assert sequence(f"{path}:by") == sequence(f"{late}:by") == [0, 3, 2, 1]


def test_names_of_libraries_mean_libraries(tmp_path: Path):
    """A folder or a file of such a name beside a program is none of its neighbours."""
    order = (
        "import numpy, colorsys, neighbour_keys\n"
        "def by(jobs):\n    return -numpy.asarray(jobs.submit_s)\n"
    )
    sys.modules.pop("colorsys", None)
    path = write(tmp_path, mine=order, numpy__plots="", colorsys="1 / 0", neighbour_keys="")
    assert list(neighbours(path)) == ["neighbour_keys.py"]
    assert sequence(f"{path}:by") == [0, 3, 2, 1]


def test_links_are_neighbours_under_their_own_names(tmp_path: Path):
    """A module that is a link to a file elsewhere is found, and is called as it is imported."""
    write(tmp_path / "common", real="SIGN = -1\n")
    path = write(tmp_path / "own", mine=LATE)
    (tmp_path / "own" / "neighbour_signs.py").symlink_to(tmp_path / "common" / "real.py")
    assert list(neighbours(path)) == ["neighbour_signs.py"]
    assert sequence(f"{path}:by") == [0, 3, 2, 1]


def test_warnings_are_for_who_runs_a_file(tmp_path: Path):
    """Looking for neighbours warns of nothing in them, and misses none of them for it."""
    path = write(tmp_path, mine='import first\ntext = "\\d"\n', first="")
    assert list(neighbours(path)) == ["first.py"]


def test_a_neighbour_that_is_not_there_is_named(tmp_path: Path):
    """The error says which module, and whose order."""
    path = write(tmp_path, mine="import neighbour_nowhere\ndef by(jobs):\n    return jobs.gpus\n")
    with pytest.raises(YardmasterError, match=r"mine\.py:by.*neighbour_nowhere"):
        sequence(f"{path}:by")
