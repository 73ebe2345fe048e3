"""The keeper, with real processes and without Ray: a command runs once, and is looked after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from yardmaster.live.folder import read_json, write_json
from yardmaster.live.local.processes import process_of
from yardmaster.live.ray.keeping import close_and_look, report_of
from yardmaster.live.ray.occupants import occupants
from yardmaster.live.ray.orders import CLAIM, Order


@pytest.fixture
def keep(tmp_path):
    """Return what starts a keeper of a command on GPU n1/0, as a reservation does."""
    lines: list[Any] = []

    def kept(command: str, job: str = "a", **changes) -> tuple[Order, Any]:
        fields = {
            "run": "r1", "run_folder": str(tmp_path / "run"), "began_unix_s": time.time(),
            "node_folder": str(tmp_path / "node"), "node": "n1", "job": job, "attempt": 1,
            "gpus": 1, "command": ("/bin/sh", "-c", command), "folder": str(tmp_path),
            "environment": (), "timeout_s": None, "grace_s": 0.3, "version": "",
        }  # fmt: skip
        order = Order(**(fields | changes))
        process = subprocess.Popen(
            [sys.executable, "-m", "yardmaster.live.ray.keeping"], stdin=subprocess.PIPE
        )
        gpus = [f"{tmp_path.name}/0"]
        message = {"order": order.record(), "gpus": gpus, "place": str(order.place())}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        process.wait()
        lines.append(process.stdin)
        return order, process.stdin

    yield kept
    for line in lines:
        line.close()


def settled(order: Order, *states: str, seconds: float = 15.0) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while (report := report_of(order.place()))["state"] not in states:
        assert time.monotonic() < until, report
        time.sleep(0.01)
    return report


def numbers(file: Path, count: int) -> list[int]:
    """Wait until a command has written so many numbers; return them."""
    until = time.monotonic() + 10
    while len(found := file.read_text().split() if file.exists() else []) < count:
        assert time.monotonic() < until
        time.sleep(0.01)
    return list(map(int, found))


def is_alive(pid: int) -> bool:
    process = process_of(pid)
    return process is not None and process.is_alive()


def test_a_command_runs_once_however_often_it_is_asked_for(keep, tmp_path):
    """Two keepers of one attempt: one runs it, the other leaves; the exit code is its own."""
    command = "echo x >> ran; sleep 0.3; exit 4"
    order, _ = keep(command)
    again, _ = keep(command)
    assert again.place() == order.place()
    report = settled(order, "ended")
    assert (report["exit_code"], report["is_lost"], report["is_stopped"]) == (4, False, False)
    assert (tmp_path / "ran").read_text().split() == ["x"]
    assert close_and_look(order)["exit_code"] == 4


def test_a_closed_attempt_never_runs(keep, tmp_path):
    """Who closes an attempt before its keeper comes can be sure that it will not run."""
    order, line = keep("true", job="other")
    settled(order, "ended")
    line.close()
    fresh = Order.of(order.record() | {"job": "closed", "command": ["/usr/bin/touch", "ran"]})
    assert close_and_look(fresh)["state"] == "never"
    keep("touch ran", job="closed")
    time.sleep(0.5)
    assert report_of(fresh.place())["state"] == "never"
    assert not (tmp_path / "ran").exists()


def test_all_of_a_job_ends_with_its_reservation(keep, tmp_path):
    """A closed pipe kills the command and what has escaped from it, deaf as it may be."""
    order, line = keep("trap '' TERM; setsid sleep 60 & echo $! $$ > pids; sleep 60")
    settled(order, "running")
    escaped, shell = numbers(tmp_path / "pids", 2)
    assert is_alive(shell)
    line.close()
    report = settled(order, "ended")
    assert (report["exit_code"], report["is_lost"]) == (137, True)
    until = time.monotonic() + 5
    while (is_alive(escaped) or is_alive(shell)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(escaped)
    assert not is_alive(shell)


def test_a_word_asks_it_to_end_and_so_does_time(keep):
    """Stopped by us it counts as stopped; over its time it is killed if it does not listen."""
    order, line = keep("trap 'exit 5' TERM; sleep 60 & wait")
    settled(order, "running")
    time.sleep(0.2)
    line.write(b"stop\n")
    line.flush()
    report = settled(order, "ended")
    assert (report["exit_code"], report["is_stopped"]) == (5, True)
    late, _ = keep("trap '' TERM; sleep 60", job="late", timeout_s=0.3)
    report = settled(late, "ended")
    assert (report["exit_code"], report["timed_out"], report["is_lost"]) == (137, True, False)


def test_a_gpu_that_is_not_free_is_refused(keep, tmp_path):
    """While something of an earlier job lives on the GPU, the next one is not started there."""
    order, _ = keep("setsid sleep 60 > /dev/null 2>&1 & echo $! > pid")
    settled(order, "ended")
    (orphan,) = numbers(tmp_path / "pid", 1)
    gpu = [f"{tmp_path.name}/0"]
    assert [who for who in occupants(gpu) if "of job a" in who]
    assert occupants([f"{tmp_path.name}/1"]) == []
    busy, _ = keep("touch ran", job="next")
    report = settled(busy, "refused")
    assert (report["why"], "of job a" in report["detail"]) == ("busy", True)
    os.kill(orphan, signal.SIGKILL)
    while occupants(gpu):
        time.sleep(0.05)
    after, _ = keep("touch ran", job="after")
    assert settled(after, "ended")["exit_code"] == 0


def test_a_command_that_cannot_start_says_why(keep):
    """A folder that is not there is the order's fault, and is told."""
    order, _ = keep("true", folder="/nowhere/at/all")
    report = settled(order, "refused")
    assert report["why"] == "cannot start"
    assert "nowhere" in report["detail"]


def test_other_machines_processes_are_not_judged(keep):
    """Without an exit code, an attempt of another machine is unknown; after a reboot, lost."""
    order, _ = keep("sleep 60")
    settled(order, "running")
    path: Path = order.place() / CLAIM
    claimed = read_json(path)
    write_json(path, claimed | {"view": "elsewhere", "host": "elsewhere"})
    assert report_of(order.place())["state"] == "unknown"
    write_json(path, claimed | {"view": "before", "boot": "before"})
    assert report_of(order.place())["state"] == "lost"
