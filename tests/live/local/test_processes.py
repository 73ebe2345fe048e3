"""Processes: ours are ended, others are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace

from yardmaster.live.local.processes import process_of

MARK = "YARDMASTER_FOLDER=/a"


def sleeper(script: str = "sleep 60", folder: str = "/a") -> subprocess.Popen[bytes]:
    environment = {"PATH": os.environ["PATH"], "YARDMASTER_FOLDER": folder}
    return subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True, env=environment)


def test_a_process_is_told_by_pid_and_start_time():
    """The same pid with another start time, or of another boot, is not ours and gets no signal."""
    popen = sleeper()
    process = process_of(popen.pid)
    strangers = (
        replace(process, start_ticks=process.start_ticks - 1),
        replace(process, boot="another"),
    )
    for stranger in strangers:
        assert not stranger.is_alive()
        assert not stranger.signal_group(signal.SIGKILL)
        assert stranger.kill_leftovers(MARK) == 0
    assert process.is_alive()
    assert popen.poll() is None
    assert process.signal_group(signal.SIGKILL)
    popen.wait()
    assert not process.is_alive()
    assert process_of(popen.pid) is None


def test_a_zombie_is_not_alive():
    """Who has ended and was not buried yet does not run any more."""
    popen = sleeper("exit 0")
    process = process_of(popen.pid)
    deadline = time.monotonic() + 5
    while process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not process.is_alive()
    popen.wait()


def test_what_a_job_leaves_behind_is_ended_and_nothing_else():
    """Background processes of its session are killed after it; our own children are not."""
    other = sleeper()
    popen = sleeper("sleep 60 & echo")
    process = process_of(popen.pid)
    popen.wait()
    assert process.kill_leftovers("YARDMASTER_FOLDER=/another") == 0
    assert process.kill_leftovers(MARK) == 1
    deadline = time.monotonic() + 5  # who was killed ends when it gets a core
    while process.kill_leftovers(MARK) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.kill_leftovers(MARK) == 0
    assert other.poll() is None
    os.killpg(other.pid, signal.SIGKILL)
    other.wait()
