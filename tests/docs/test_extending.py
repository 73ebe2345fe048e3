"""The programs of docs/extending.md run as they stand, in the order in which they are shown."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text("utf-8")
PROGRAMS = {
    code.partition("\n")[0].removeprefix("# "): code
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
}
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
    for other, code in PROGRAMS.items():
        (tmp_path / other).write_text(code, "utf-8")
    runpy.run_path(name, run_name="__main__")
    assert SAID[name] in capsys.readouterr().out


def test_commands_run(tmp_path: Path):
    """The commands shown for an order of one's own work."""
    (tmp_path / "my_orders.py").write_text(PROGRAMS["my_orders.py"], "utf-8")
    ((shown,),) = [re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)]
    for line in shown.splitlines():
        command = [sys.executable, "-m", "yardmaster", *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "short_and_old" in done.stdout or "mean JCT" in done.stdout
