"""The workbench: real commands as child processes, a few at a time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from yardmaster.dashboard.bench import Work, Workbench
from yardmaster.dashboard.refusals import Refusal

SLOW = ("simulate", "--engine=simpy", "--jobs=50000", "--scheduler=sjf+easy")


def within_loop(action: Callable[[], Awaitable[Any]]) -> Any:
    """Run in a loop of its own: the browser's has this thread."""

    async def limited() -> Any:
        return await asyncio.wait_for(action(), 60.0)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(limited())).result()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  (the bench has no events to wait for)
        await asyncio.sleep(0.02)


def submitted(bench: Workbench, *words: str, folder: Path) -> Work:
    return bench.submit("play", words, run=folder.name, folder=folder)


def test_a_command_runs_to_its_end_and_is_never_seen_by_a_shell(tmp_path: Path):
    """Output and exit code are kept; a word with a shell's signs is only a word."""
    trap = tmp_path / "trap"

    async def action() -> tuple[Work, Work]:
        bench = Workbench()
        good = submitted(bench, "--version", folder=tmp_path / "a")
        bad = submitted(bench, "list", f"$(touch {trap});`touch {trap}`", folder=tmp_path / "b")
        await until(lambda: not good.is_open and not bad.is_open)
        return good, bad

    good, bad = within_loop(action)
    assert (good.state, good.exit_code) == ("finished", 0)
    assert "0.1" in good.output[-1]
    assert bad.state == "failed"
    assert "$(touch" in "".join(bad.output)
    assert not trap.exists()


def test_only_so_many_run_and_wait(tmp_path: Path):
    """The second waits for the first, the third is refused; a cancelled one makes room."""

    async def action() -> None:
        bench = Workbench(running=1, waiting=1)
        first = submitted(bench, *SLOW, f"--out={tmp_path / 'a'}", folder=tmp_path / "a")
        second = submitted(bench, "--version", folder=tmp_path / "b")
        assert (first.state, second.state) == ("running", "waiting")
        with pytest.raises(Refusal, match="wait for one") as refused:
            submitted(bench, "--version", folder=tmp_path / "c")
        assert refused.value.status == 429
        bench.cancel(first)
        await until(lambda: not second.is_open)
        assert first.state == "cancelled"
        assert second.state == "finished"

    within_loop(action)


def test_a_run_is_worked_on_once(tmp_path: Path):
    """A second command for the folder of one that waits or runs is refused."""

    async def action() -> None:
        bench = Workbench()
        first = submitted(bench, "--version", folder=tmp_path / "a")
        with pytest.raises(Refusal, match="already") as refused:
            submitted(bench, "--version", folder=tmp_path / "a")
        assert refused.value.status == 409
        await until(lambda: not first.is_open)
        again = submitted(bench, "--version", folder=tmp_path / "a")
        await until(lambda: not again.is_open)

    within_loop(action)


def test_a_cancelled_command_leaves_nothing_behind(tmp_path: Path):
    """It is interrupted in the middle of a simulation; no folder, no process is left."""

    async def action() -> int:
        bench = Workbench()
        work = submitted(bench, *SLOW, f"--out={tmp_path / 'a'}", folder=tmp_path / "a")
        await until(lambda: any(tmp_path.iterdir()))
        assert work.process is not None
        pid = work.process.pid
        bench.cancel(work)
        await until(lambda: not work.is_open)
        assert work.state == "cancelled"
        assert work.exit_code != 0
        return pid

    pid = within_loop(action)
    assert not Path(f"/proc/{pid}").exists()
    assert not list(tmp_path.iterdir())


def test_progress_is_read_from_what_the_command_says(tmp_path: Path):
    """A comparison tells how many of its simulations are done while it goes on."""
    seen: set[tuple[int, int]] = set()

    async def action() -> Work:
        bench = Workbench()
        words = (
            "compare",
            "--schedulers=fifo,sjf,saf",
            "--seeds=4",
            "--jobs=500",
            "--engine=simpy",
        )
        work = submitted(bench, *words, f"--out={tmp_path / 'a'}", folder=tmp_path / "a")
        while work.is_open:
            seen.add((work.done, work.total))
            await asyncio.sleep(0.02)
        return work

    work = within_loop(action)
    assert work.state == "finished", work.output
    done = sorted(done for done, total in seen if total == 12)
    assert len(done) >= 2
    assert done[0] < done[-1]


def test_closing_stops_everything(tmp_path: Path):
    """When the server ends, what runs is interrupted and what waits never begins."""

    async def action() -> list[Work]:
        bench = Workbench(running=1)
        works = [
            submitted(bench, *SLOW, f"--out={tmp_path / name}", folder=tmp_path / name)
            for name in ("a", "b")
        ]
        await until(lambda: works[0].process is not None)
        await bench.close()
        with pytest.raises(Refusal):
            submitted(bench, "--version", folder=tmp_path / "c")
        return works

    works = within_loop(action)
    assert [work.state for work in works] == ["cancelled", "cancelled"]
    assert works[1].exit_code is None


LONG_UPDATES = """
[task]
preset = "default"
cluster = "2x V100:4"
jobs = 24
window = 8
episodes = 16
[learner]
name = "ppo"
steps_per_update = 16384
[learner.network]
arch = "mlp"
hidden = [8]
[train]
steps = 100000000
envs = 4
eval_episodes = 4
against = ["fifo"]
threads = 1
tensorboard = false
"""


def test_a_training_saves_however_long_its_update_takes(tmp_path: Path, monkeypatch):
    """Neither Cancel nor the server's end costs what it has learned; the server waits for none."""
    monkeypatch.setattr("yardmaster.dashboard.bench.PATIENCE_S", 0.0)
    (tmp_path / "long.toml").write_text(LONG_UPDATES, encoding="utf-8")
    folder = tmp_path / "a"

    async def action() -> tuple[subprocess.Popen[bytes], float]:
        bench = Workbench()
        words = ("train", f"--config={tmp_path / 'long.toml'}", f"--out={folder}")
        work = bench.submit("training", words, run="a", folder=folder)
        await until(lambda: (folder / "progress.jsonl").is_file() or not work.is_open)
        assert work.process is not None, work.output
        process, asked_s = work.process, time.time()
        bench.cancel(work)
        await bench.close()
        assert process.poll() is None, "the update was too short to show anything"
        return process, asked_s

    process, asked_s = within_loop(action)  # the thread that started it ends: told a second time
    assert process.wait(timeout=40.0) == 130
    assert (folder / "checkpoints" / "last.pt").stat().st_mtime > asked_s


_SERVER = """
import asyncio, sys
from pathlib import Path
from yardmaster.dashboard.bench import Workbench

async def main():
    folder = Path(sys.argv[1])
    bench = Workbench()
    work = bench.submit("play", [*sys.argv[2:], f"--out={folder}"], run="a", folder=folder)
    while not list(folder.parent.iterdir()):
        await asyncio.sleep(0.02)
    print(work.process.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_commands_do_not_outlive_a_killed_server(tmp_path: Path):
    """A server that is killed outright cannot tidy up; its commands notice and end."""
    command = [sys.executable, "-c", _SERVER, str(tmp_path / "a"), *SLOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        os.kill(pid, 0)
        server.send_signal(signal.SIGKILL)
    limit = time.monotonic() + 10.0
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < limit:
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    assert time.monotonic() < limit
    assert not list(tmp_path.iterdir())
