"""One source, several ways to run it: the same results, and machine code kept where it can be."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import pytest

from yardmaster.engine import compilation
from yardmaster.engine.core import events, passes

BOTH_WAYS = """
import itertools, json
import numpy as np
from yardmaster.engine.compilation import is_compiled
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

dice = np.random.default_rng(0)
submit = np.sort(dice.integers(0, 400, 80)) / 10
duration = dice.integers(1, 300, 80) / 10
jobs = Workload.of(
    submit_s=submit,
    duration_s=duration,
    estimate_s=duration * dice.uniform(0.3, 3.0, 80),
    gpus=dice.choice([1, 2, 3, 8, 12, 40], 80),
    max_gpus_per_node=dice.choice([0, 0, 2], 80),
    gpu_types=dice.choice(["", "V100", "T4|V100"], 80),
    user=dice.integers(0, 5, 80),
    deadline_s=submit + 50,
)
equal = Site(equal_speeds=True)  # types differ in nothing but their names: no real cluster
clusters = [Cluster.pool(70), Cluster.of("3x V100:8", "5x T4:4", "1x A100:40").under(equal)]
disciplines = ["strict", "skip", "commit", "easy", "conservative", "easy~estimate"]
disciplines += ["conservative~estimate", "easy@spread", "skip@random", "strict@first"]
schedulers = [
    f"{order}+{discipline}"
    for order, discipline in itertools.product(
        ["sjf", "wfp3", "qssf", "random-feasible", "dynamic-heuristic"], disciplines
    )
]

def fingerprints(compile_core, engine):
    found = {}
    for cluster, scheduler, until_s in itertools.product(clusters, schedulers, [30.0, np.inf]):
        schedule = simulate(
            jobs, cluster, scheduler, seed=3, until_s=until_s, compile_core=compile_core
        )
        assert schedule.engine == engine
        found[f"{cluster.name} {scheduler} {until_s}"] = schedule.fingerprint()
    return found

assert not is_compiled()
plain = fingerprints("never", "uncompiled")
assert not is_compiled()
compiled = fingerprints("always", "compiled")
assert is_compiled()
assert not is_compiled(is_real=True)
assert fingerprints("auto", "compiled") == compiled  # small, but there is nothing to load any more
schedulers = schedulers[:5]
fingerprints("never", "uncompiled")
print(json.dumps([plain, compiled]))
"""

ANNOUNCED = """
from yardmaster.engine.compilation import compile_core
for is_real in (False, True):
    compile_core(lambda text: print("ANNOUNCED", is_real, text), is_real=is_real)
    compile_core(lambda text: print("AGAIN", text), is_real=is_real)
"""


def run(code, **environment):
    """Run a script in a process of its own, in which nothing is compiled yet."""
    return subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    ).stdout


def test_compiled_and_plain_agree():
    """Both ways give bit-identical schedules: orders, disciplines, placements, cuts, estimates."""
    plain, compiled = json.loads(run(BOTH_WAYS))
    assert len(plain) == 200
    assert plain == compiled


def test_compilation_is_announced_once_per_machine(tmp_path):
    """Each variant is announced when none of its machine code is found, and only then."""
    folder = {"YARDMASTER_CACHE_DIR": str(tmp_path)}
    first = run(ANNOUNCED, **folder)
    assert "ANNOUNCED False Compiling" in first
    assert "ANNOUNCED True Compiling" in first
    assert "AGAIN" not in first
    version = next((tmp_path / "yardmaster").iterdir())
    (version / "plain" / "events.replay-84.py311.1.nbc").touch()
    assert run(ANNOUNCED, **folder) == first  # that file is not of this installation
    assert "False" not in run(ANNOUNCED)  # compiled before the tests began


def test_modules_stay_plain():
    """Making copies of the core leaves its modules as they are; copies see only copies."""
    seen = []

    def compiler(function, special):
        seen.append((function, special))
        return ("copy of", function)

    before = events.replay
    made = compilation.copies(compiler, is_real=False, replaced={"bare": "pointer"})
    assert events.replay is before
    assert events.schedule is passes.schedule
    assert len(made) == len(seen)
    copy = made["events.run"][1]
    assert copy is not events.run
    assert copy.__globals__["schedule"] == made["passes.schedule"]
    assert copy.__globals__["bare"] == "pointer"
    assert copy.__globals__["REAL_CLUSTERS"] is False
    assert events.run.__globals__["REAL_CLUSTERS"] is True
    caches = {function.__name__ for function, special in seen if special.get("cache")}
    assert caches == {"replay", "start_planned", "number_slots", "expand_records"}


@pytest.fixture
def numba_config():
    """Restore where Numba keeps its machine code."""
    import numba

    before = numba.config.CACHE_DIR
    yield numba.config
    numba.config.CACHE_DIR = before


def test_cache_folder_by_environment(monkeypatch, tmp_path):
    """Our own variable wins over the desktop's, which wins over the home folder."""
    monkeypatch.delenv("YARDMASTER_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert compilation.cache_folder().is_relative_to(tmp_path / "home" / ".cache" / "yardmaster")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compilation.cache_folder().is_relative_to(tmp_path / "xdg" / "yardmaster")
    monkeypatch.setenv("YARDMASTER_CACHE_DIR", str(tmp_path / "own"))
    assert compilation.cache_folder().is_relative_to(tmp_path / "own" / "yardmaster")
    assert not (tmp_path / "own").exists()  # asking creates nothing


@pytest.mark.parametrize("is_real", [False, True])
def test_cache_folder_is_created(monkeypatch, tmp_path, numba_config, is_real):
    """The folder is made when it is needed and left empty; each variant has its own."""
    monkeypatch.setenv("YARDMASTER_CACHE_DIR", str(tmp_path / "a" / "b"))
    compilation._set_cache_folder(compilation.cache_folder(is_real=is_real))
    folder = Path(numba_config.CACHE_DIR)
    assert folder == compilation.cache_folder(is_real=is_real)
    assert folder != compilation.cache_folder(is_real=not is_real)
    assert list(folder.iterdir()) == []
    assert not compilation.is_cached(is_real=is_real)


@pytest.mark.parametrize("is_real", [False, True])
def test_unwritable_cache_falls_back(monkeypatch, tmp_path, numba_config, is_real):
    """Where no folder can be made, a temporary one serves, and nothing fails."""
    obstacle = tmp_path / "file"
    obstacle.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("YARDMASTER_CACHE_DIR", str(obstacle / "below"))
    compilation._set_cache_folder(compilation.cache_folder(is_real=is_real))
    folder = Path(numba_config.CACHE_DIR)
    assert folder.is_dir()
    assert folder.parent == tmp_path
    assert not compilation.is_cached(is_real=is_real)


def test_machine_code_of_another_installation_does_not_count(tmp_path, numba_config):
    """Code is on disk once it has been made, but not for the same source at another place."""
    numba_config.CACHE_DIR = str(tmp_path / "cache")
    source = tmp_path / "tiny.py"
    source.write_text("def one():\n    return 1\n")

    def loaded(source: Path) -> Any:
        spec = importlib.util.spec_from_file_location("tiny", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return numba.njit(cache=True)(module.one)

    first = loaded(source)
    assert not compilation.is_on_disk(first)
    assert first() == 1
    assert compilation.is_on_disk(loaded(source))
    (tmp_path / "elsewhere").mkdir()
    elsewhere = shutil.copy(source, tmp_path / "elsewhere")
    assert not compilation.is_on_disk(loaded(Path(elsewhere)))


CORE_FILES = (
    "engine/core/bits.py",
    "engine/core/tables.py",
    "engine/state.py",
    "model/site.py",
    "model/schedule.py",
)


@pytest.mark.parametrize("is_real", [False, True])
def test_every_change_of_the_core_gets_its_own_folder(monkeypatch, tmp_path, is_real):
    """Changing any file of the core changes the folder: stale machine code is never found."""
    package = Path(compilation.__file__).parents[1]
    for name in ("engine", "model"):
        shutil.copytree(package / name, tmp_path / name)
    monkeypatch.setattr(compilation, "__file__", str(tmp_path / "engine" / "compilation.py"))
    folders = {compilation.cache_folder(is_real=is_real)}
    for name in (*CORE_FILES, "engine/compilation.py"):
        with (tmp_path / name).open("a") as file:
            file.write("\n# changed\n")
        folders.add(compilation.cache_folder(is_real=is_real))
    assert len(folders) == 7
