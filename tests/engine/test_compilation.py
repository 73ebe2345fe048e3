"""One source, two ways to run it: the same results, and machine code kept where it can be."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from yardmaster.engine import compilation

BOTH_WAYS = """
import itertools, json
import numpy as np
from yardmaster.engine.compilation import is_compiled
from yardmaster.model.cluster import Cluster
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
clusters = [Cluster.pool(70), Cluster.of("3x V100:8", "5x T4:4", "1x A100:40")]
disciplines = ["strict", "skip", "commit", "easy", "conservative", "easy~estimate"]
disciplines += ["conservative~estimate", "easy@spread", "skip@random", "strict@first"]
schedulers = [
    f"{order}+{discipline}"
    for order, discipline in itertools.product(
        ["sjf", "wfp3", "qssf", "random-feasible", "dynamic-heuristic"], disciplines
    )
]

def fingerprints(compile_core):
    return {
        f"{cluster.name} {scheduler} {until_s}": simulate(
            jobs, cluster, scheduler, seed=3, until_s=until_s, compile_core=compile_core
        ).fingerprint()
        for cluster, scheduler, until_s in itertools.product(clusters, schedulers, [30.0, np.inf])
    }

assert not is_compiled()
plain = fingerprints("never")
assert not is_compiled()
compiled = fingerprints("always")
assert is_compiled()
assert fingerprints("never") == compiled  # there is no way back within a process
print(json.dumps([plain, compiled]))
"""

ANNOUNCED = """
from yardmaster.engine.compilation import compile_core
compile_core(lambda text: print("ANNOUNCED", text))
compile_core(lambda text: print("AGAIN", text))
"""


def run(code, **environment):
    """Run a script in a process of its own, because compiling cannot be undone."""
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
    """The announcement comes when no machine code of this version is found, and only then."""
    folder = {"YARDMASTER_CACHE_DIR": str(tmp_path)}
    first = run(ANNOUNCED, **folder)
    assert "ANNOUNCED Compiling" in first
    assert "AGAIN" not in first
    version = next((tmp_path / "yardmaster").iterdir())
    (version / "events.replay-84.py311.1.nbc").touch()
    assert run(ANNOUNCED, **folder) == ""


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


def test_cache_folder_is_created(monkeypatch, tmp_path, numba_config):
    """The folder is made when it is needed and left empty."""
    monkeypatch.setenv("YARDMASTER_CACHE_DIR", str(tmp_path / "a" / "b"))
    compilation._set_cache_folder()
    folder = Path(numba_config.CACHE_DIR)
    assert folder == compilation.cache_folder()
    assert list(folder.iterdir()) == []
    assert not compilation.is_cached()


def test_unwritable_cache_falls_back(monkeypatch, tmp_path, numba_config):
    """Where no folder can be made, a temporary one serves, and nothing fails."""
    obstacle = tmp_path / "file"
    obstacle.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("YARDMASTER_CACHE_DIR", str(obstacle / "below"))
    compilation._set_cache_folder()
    folder = Path(numba_config.CACHE_DIR)
    assert folder.is_dir()
    assert folder.parent == tmp_path
    assert not compilation.is_cached()


def test_every_change_of_the_core_gets_its_own_folder(monkeypatch, tmp_path):
    """Changing any file of the core changes the folder: stale machine code is never found."""
    engine = Path(compilation.__file__).parent
    shutil.copytree(engine, tmp_path / "engine")
    monkeypatch.setattr(compilation, "__file__", str(tmp_path / "engine" / "compilation.py"))
    folders = {compilation.cache_folder()}
    for name in ("core/bits.py", "core/tables.py", "state.py", "compilation.py"):
        with (tmp_path / "engine" / name).open("a") as file:
            file.write("\n# changed\n")
        folders.add(compilation.cache_folder())
    assert len(folders) == 5
