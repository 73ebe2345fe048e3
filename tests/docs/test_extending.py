"""The programs of docs/extending.md run as they stand, in the order in which they are shown."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
PROGRAMS = {
    code.partition("\n")[0].removeprefix("# "): code
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
}
RECIPES = {
    text.partition("\n")[0].removeprefix("# "): text
    for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
}
SHOWN = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
((PATCH,),) = [re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)]
SAID = {
    "my_orders.py": "short-and-old+easy",
    "my_metric.py": "sjf+easy: wait of large jobs",
    "my_reward.py": "fifo: -",
    "my_format.py": "asked for no card",
    "my_workload.py": "",
    "my_learner.py": "",
    "train_mine.py": "policy:mine",
}


@pytest.fixture
def _registries() -> Iterator[None]:
    """What a program registers is forgotten after it: other tests count names."""
    from yardmaster.agents.learners import LEARNERS
    from yardmaster.envs.rewards import REWARDS
    from yardmaster.schedulers.orders import ORDERS
    from yardmaster.workloads.traces.formats import trace_formats

    kept = [
        (names, dict(names))
        for names in (LEARNERS._items, REWARDS._items, ORDERS._items, trace_formats())
    ]
    yield
    for names, before in kept:
        names.clear()
        names.update(before)
    sys.modules.pop("my_learner", None)


def test_every_program_is_run():
    """The page has no program that the test below does not know."""
    assert set(PROGRAMS) == set(SAID)


@pytest.mark.usefixtures("_registries")
@pytest.mark.parametrize("name", SAID)
def test_programs_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Each program does what the page says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for other, code in (PROGRAMS | RECIPES).items():
        (tmp_path / other).write_text(code, "utf-8")
    runpy.run_path(name, run_name="__main__")
    assert SAID[name] in capsys.readouterr().out


def run(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of `yardmaster` in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *shlex.split(line)[1:]],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_run(tmp_path: Path):
    """The commands shown for an order of one's own work."""
    (tmp_path / "my_orders.py").write_text(PROGRAMS["my_orders.py"], "utf-8")
    for line in SHOWN[0].splitlines():
        done = run(line, tmp_path)
        assert done.returncode == 0, done.stderr
        assert "short_and_old" in done.stdout or "mean JCT" in done.stdout


CHECKED = {
    "my_reward.py:POLITE": "conforms (reward)",
    "my_format.py:FORMAT --sample tickets.csv": "conforms (trace format)",
    "mine.toml": "conforms (recipe)",
}


@pytest.mark.parametrize("target", CHECKED)
def test_plug_ins_are_checked_by_the_command_line(target: str, tmp_path: Path):
    """`check` finds out what each plug-in of the page is, as the page says, and that it is well."""
    assert f"`yardmaster check {target}`" in PAGE
    for name, text in (PROGRAMS | RECIPES).items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "tickets.csv").write_text("ticket,asked_at,cards,minutes\nA,0,4,30\nB,60,1,5\n")
    done = run(f"yardmaster check {target}", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert CHECKED[target] in done.stdout


@pytest.mark.usefixtures("_registries")
def test_the_learner_of_the_page_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever copies the page's learner gets one that keeps every rule."""
    from yardmaster.testing import check_learner

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_learner.py").write_text(PROGRAMS["my_learner.py"], "utf-8")
    check_learner(importlib.import_module("my_learner").Reinforce)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources with the page's placement in it."""
    folder = tmp_path_factory.mktemp("patched")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [shutil.which("git") or "git", "apply", "-"],
        cwd=folder,
        input=PATCH,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_a_placement_is_added(patched: Path):
    """The patch of the page applies to the sources as they are, and its commands then run."""
    for line in SHOWN[1].splitlines():
        done = run(line, patched, PYTHONPATH=str(patched / "src"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "conforms (placement)" in done.stdout or "mean JCT" in done.stdout


def test_a_placement_that_differs_between_engines_is_caught(patched: Path):
    """Getting the rule wrong in one of the two places breaks a rule, and says which job differs."""
    scores = patched / "src" / "yardmaster" / "engine" / "core" / "scores.py"
    right = scores.read_text("utf-8")
    line = "return float(ints[ints[NODE_GPUS] + node])"
    assert right.count(line) == 1
    scores.write_text(right.replace(line, line.replace("float", "-float")), "utf-8")
    done = run("yardmaster check @smallest", patched, PYTHONPATH=str(patched / "src"))
    scores.write_text(right, "utf-8")
    assert done.returncode == 1, done.stderr
    assert "BROKEN     places as the plain reference does: job" in done.stdout
