"""Attempts: a crash at any point neither loses a job nor runs it twice."""

from __future__ import annotations

import os
import signal
import time

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.local import attempts as module
from yardmaster.live.local.attempts import KILLED, VANISHED, Attempt, attempts_of
from yardmaster.live.local.processes import process_of

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def launch(attempt: Attempt, command: str):
    return attempt.launch(
        ("/bin/sh", "-c", command), folder="/", environment=ENVIRONMENT, facts={"start_s": 1.0}
    )


def end_of(attempt: Attempt, seconds: float = 5.0):
    deadline = time.monotonic() + seconds
    while attempt.ending() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return attempt.ending()


def test_the_shell_writes_output_and_exit_code(tmp_path):
    """Whoever started it need not be there when it ends."""
    attempt = Attempt(tmp_path / "attempt-1")
    process, popen = launch(attempt, "echo out; echo err >&2; exit 7")
    assert end_of(attempt).exit_code == 7
    popen.wait()
    assert (attempt.path / "stdout.log").read_text() == "out\n"
    assert (attempt.path / "stderr.log").read_text() == "err\n"
    assert attempt.process() == process
    assert attempts_of(tmp_path) == [attempt]


def test_nothing_runs_before_it_is_written_down_who_runs_it(tmp_path, monkeypatch):
    """If writing down fails, or the runner dies there, the gate closes and nothing runs."""
    attempt = Attempt(tmp_path / "attempt-1")

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_json", die)
    with pytest.raises(KeyboardInterrupt):
        launch(attempt, f"touch {tmp_path}/ran")
    time.sleep(0.2)
    assert not (tmp_path / "ran").exists()
    assert not attempt.has_begun()
    assert attempt.ending() is None
    monkeypatch.undo()
    _, popen = launch(attempt, f"touch {tmp_path}/ran")
    assert end_of(attempt).exit_code == 0
    popen.wait()
    assert (tmp_path / "ran").exists()


def test_the_same_attempt_never_runs_twice(tmp_path):
    """An attempt that has begun cannot be launched again."""
    attempt = Attempt(tmp_path / "attempt-1")
    _, popen = launch(attempt, "exit 0")
    popen.wait()
    with pytest.raises(YardmasterError, match="has run before"):
        launch(attempt, "exit 0")


def test_a_command_that_is_asked_to_end_can_say_how(tmp_path):
    """SIGTERM reaches the command and not its shell, which still writes the exit code."""
    attempt = Attempt(tmp_path / "attempt-1")
    process, popen = launch(attempt, "trap 'exit 9' TERM; sleep 30 & wait")
    deadline = time.monotonic() + 5
    while not attempt.has_begun() and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.1)
    assert process.signal_group(signal.SIGTERM)
    popen.wait(timeout=5)
    assert attempt.ending().exit_code == 9


@pytest.mark.parametrize(("is_ours", "code"), [(False, VANISHED), (True, KILLED)])
def test_processes_that_are_killed_leave_an_ending_all_the_same(tmp_path, is_ours, code):
    """After kill -9 of the whole group the attempt has ended, and it is said whether by us."""
    attempt = Attempt(tmp_path / "attempt-1")
    process, popen = launch(attempt, "sleep 30")
    deadline = time.monotonic() + 5
    while not attempt.has_begun() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert attempt.ending() is None
    process.signal_group(signal.SIGKILL)
    popen.wait()
    if is_ours:
        attempt.note_killed()
    assert attempt.ending().exit_code == code
    assert attempt.ending().exit_code == code  # and it stays so


def test_a_command_that_does_not_exist_ends_like_in_any_shell(tmp_path):
    """Exit code 127, and a sentence in its error log."""
    attempt = Attempt(tmp_path / "attempt-1")
    _, popen = attempt.launch(
        ("/no/such/program",), folder="/", environment=ENVIRONMENT, facts={"start_s": 0.0}
    )
    popen.wait()
    assert attempt.ending().exit_code == 127
    with pytest.raises(YardmasterError, match="Cannot start"):
        Attempt(tmp_path / "attempt-2").launch(
            ("true",), folder="/no/such/folder", environment=ENVIRONMENT, facts={}
        )
    assert process_of(popen.pid) is None


@pytest.mark.parametrize("spoilt", ["", '{"exit_code": 0, "end_un', "[]", "{}"])
def test_an_ending_that_cannot_be_read_is_none_that_anybody_knows(tmp_path, spoilt):
    """A file that a power cut spoilt reads as an attempt that went away without a word."""
    attempt = Attempt(tmp_path / "attempt-1")
    _, popen = launch(attempt, "exit 0")
    popen.wait()
    (attempt.path / "exit.json").write_text(spoilt)
    assert attempt.ending().exit_code == VANISHED
    assert attempt.ending().exit_code == VANISHED
    (attempt.path / "process.json").write_text(spoilt)
    assert attempt.process() is None
    assert attempt.facts() is None


@pytest.mark.parametrize(
    ("code", "is_early", "is_asked", "is_stopped"),
    [
        (0, True, True, False),
        (3, True, True, False),
        (0, False, True, True),
        (3, False, True, True),
        (0, False, False, False),
        (3, False, False, True),
    ],
)
def test_only_what_we_ended_counts_as_no_attempt(tmp_path, code, is_early, is_asked, is_stopped):
    """Who ended before we asked was not stopped, nor who ended well without being asked."""
    attempt = Attempt(tmp_path / "attempt-1")
    assert not attempt.is_stopped
    _, popen = launch(attempt, f"sleep 0.1; exit {code}")
    if is_early:
        popen.wait()
    attempt.mark_stopped(is_asked=is_asked)
    if not is_early:
        assert attempt.is_stopped  # as long as it lives
    popen.wait()
    assert attempt.is_stopped is is_stopped
