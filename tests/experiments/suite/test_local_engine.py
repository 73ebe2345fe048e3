"""Worker processes may be killed; what they worked on is made by others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from yardmaster.experiments.suite.batch import Kit, run_batch
from yardmaster.experiments.suite.cells import batches_of, cells_of
from yardmaster.experiments.suite.engines import GIVEN_UP, carried_out
from yardmaster.experiments.suite.fingerprints import code_fingerprint
from yardmaster.experiments.suite.local_engine import LocalEngine

DEADLY = """
import os

def deadly(jobs):
    os._exit(9)
"""


@pytest.fixture
def kit() -> Kit:
    return Kit(code_fingerprint())


def carried(engine, batches, after_first=lambda: None) -> tuple[dict[str, bytes], dict[str, str]]:
    made, failed = {}, {}

    def take(outcome):
        is_first = not made
        made.update({run.key: run.numbers.tobytes() for run in outcome.runs})
        failed.update(outcome.failures)
        if is_first:
            after_first()

    carried_out(engine, batches, take=take, is_stopped=lambda: False)
    return made, failed


def test_killed_workers_cost_nothing(small, kit):
    """After one process was killed, all runs are made, the same as without processes."""
    cells = cells_of(small)
    expected = {run.key: run.numbers.tobytes() for run in run_batch(kit, cells).runs}
    with closing(LocalEngine(kit, 2)) as engine:

        def kill_one():
            next(iter(engine._pool._processes.values())).kill()

        made, failed = carried(engine, batches_of(cells, 4), kill_one)
    assert made == expected
    assert not failed


def test_only_what_kills_its_process_fails(small, kit, tmp_path):
    """An order that ends the process is found and named; its neighbours are made."""
    file = tmp_path / "deadly.py"
    file.write_text(DEADLY)
    changed = small.with_changes(schedulers=("sjf+skip", f"{file}:deadly+skip"), seeds=1)
    cells = [cell for cell in cells_of(changed) if cell.setting.name == "base-low-2"][:3]
    with closing(LocalEngine(kit, 1)) as engine:  # every death costs a start of all processes
        made, failed = carried(engine, batches_of(cells, 2))
    deadly = {cell.key for cell in cells if "deadly" in cell.scheduler}
    assert set(failed) == deadly
    assert set(failed.values()) == {GIVEN_UP}
    assert set(made) == {cell.key for cell in cells} - deadly


PARENT = """
import os, signal, sys
from yardmaster.experiments.suite.batch import Kit
from yardmaster.experiments.suite.local_engine import LocalEngine

if __name__ == "__main__":
    engine = LocalEngine(Kit("x"), 1)
    engine._pool.submit(abs, -1).result()
    print(next(iter(engine._pool._processes)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.is_file() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_workers_end_with_their_parent(tmp_path):
    """A parent that is killed leaves no processes behind."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    worker = int(ended.stdout)
    last = time.monotonic() + 10
    while is_alive(worker) and time.monotonic() < last:
        time.sleep(0.05)
    assert not is_alive(worker)
    assert os.getpid() != worker
