"""One node as a live system: what is seen of it, and what is done to it."""

from __future__ import annotations

import math
import os
import signal
import time

import numpy as np

from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.local.commands import commands_of
from yardmaster.live.local.node import Launch, LocalNode
from yardmaster.live.local.processes import process_of
from yardmaster.live.local.slots import Slots, pretended

SUBMISSIONS = (("a", 0.0), ("b", 0.5))


def a_node(folder, *rows, slots: int = 2) -> LocalNode:
    jobs = commands_of([{"estimate_s": 9.0, **row} for row in rows], name="w")
    return LocalNode(jobs, Slots(pretended(slots)), folder, LiveClock.since(time.time()))


def finish(node: LocalNode) -> None:
    deadline = time.monotonic() + 10
    while node.running() and time.monotonic() < deadline:
        node.wait(0.5)
        list(node.ended())
    assert not node.running()


def test_it_is_seen_who_waits_and_who_runs(tmp_path):
    """Jobs are seen from their submission on, with what they hold, until they are over."""
    node = a_node(
        tmp_path,
        {"id": "a", "command": "sleep 0.3", "gpus": 2},
        {"id": "b", "command": "true"},
        {"id": "later", "command": "true", "submit_s": 60},
    )
    state = node.observe()
    assert state.jobs.id.tolist() == ["a", "b"]
    assert state.waiting.tolist() == [0, 1]
    decision = Decider("fifo+strict").decide(state)
    assert [one.outcome for one in node.apply(node.plan(state, decision))] == ["done"]
    state = node.observe()
    assert state.running.tolist() == [0]
    assert state.holdings.tolist() == [[0, 0, 2]]
    assert state.free_gpus.tolist() == [0]
    finish(node)
    assert node.observe().jobs.id.tolist() == ["b"]
    assert not node.is_done


def test_a_job_that_finds_no_slot_keeps_its_place_and_its_tries(tmp_path):
    """Starting more than there is room for is skipped; nobody is lost by it."""
    node = a_node(
        tmp_path, {"id": "a", "command": "sleep 0.2", "gpus": 2}, {"id": "b", "command": "true"}
    )
    outcomes = node.apply([Launch(0, "a"), Launch(1, "b"), Launch(0, "a")])
    assert [one.outcome for one in outcomes] == ["done", "skipped", "skipped"]
    finish(node)
    assert [one.outcome for one in node.apply([Launch(1, "b")])] == ["done"]
    finish(node)
    assert node.is_done
    assert [fate.exit_code for fate in node.fates] == [0, 0]


def test_a_job_that_cannot_be_started_uses_up_its_tries(tmp_path):
    """A folder that does not exist fails the attempt, and after the last one the job is over."""
    node = a_node(tmp_path, {"id": "a", "command": "true", "folder": "/no/such", "retries": 1})
    assert node.apply([Launch(0, "a")])[0].outcome == "failed"
    assert not node.is_done
    assert node.observe().is_held.tolist() == [True]  # it waits out its back-off
    assert node.apply([Launch(0, "a")])[0].outcome == "failed"
    assert node.is_done


def test_restoring_ends_what_runs(tmp_path):
    """Whatever was started is ended, and its slots are free again."""
    node = a_node(tmp_path, {"id": "a", "command": "sleep 60"}, {"id": "b", "command": "sleep 60"})
    node.apply([Launch(0, "a"), Launch(1, "b")])
    node.restore()
    node.kill_overdue()
    finish(node)
    assert node.slots.free == 2


def test_thousands_of_waiting_jobs_are_seen_quickly(tmp_path):
    """2,000 waiting jobs are observed with all columns, each look the same digest."""
    node = a_node(tmp_path, *({"id": f"j{row}", "command": "true"} for row in range(2000)))
    first, second = node.observe(), node.observe()
    assert len(first.waiting) == 2000
    assert first.digest() == second.digest()
    assert np.array_equal(first.jobs.gpus, np.ones(2000))


def test_what_is_submitted_while_nobody_looks_is_overdue(tmp_path):
    """A job that comes between a look and its end is due at once, not with the next event."""
    node = a_node(tmp_path, *({"id": i, "command": "true", "submit_s": s} for i, s in SUBMISSIONS))
    assert node.observe().jobs.id.tolist() == ["a"]
    time.sleep(max(0.6 - node.clock.time_s(), 0.0))
    assert node.next_s() == 0.5
    assert node.observe().jobs.id.tolist() == ["a", "b"]
    assert node.next_s() == math.inf


def test_who_starts_nothing_any_more_waits_for_no_submission(tmp_path):
    """While a run stops, jobs that come are no reason to wake up."""
    node = a_node(tmp_path, *({"id": i, "command": "true", "submit_s": s} for i, s in SUBMISSIONS))
    node.observe()
    node.hold_back()
    assert node.next_s() == math.inf


def test_a_sign_wakes_it_up_once(tmp_path):
    """After it was woken it sleeps again: a stopping run does not spin."""
    node = a_node(tmp_path, {"id": "a", "command": "true"})
    reading, writing = os.pipe2(os.O_NONBLOCK)
    node.watch_also(reading)
    os.write(writing, b"x")
    node.wait(30.0)
    began = time.monotonic()
    node.wait(0.2)
    assert time.monotonic() - began >= 0.19
    os.close(reading)
    os.close(writing)


def test_who_was_done_when_the_stop_came_is_done(tmp_path):
    """An end that nobody had noticed yet when the run was stopped counts."""
    node = a_node(tmp_path, {"id": "a", "command": "true"})
    running = node.apply([Launch(0, "a")])[0].running
    running.popen.wait()
    running.attempt.mark_stopped()
    assert [one.ending.exit_code for one in node.ended()] == [0]
    assert node.is_done


def test_an_attempt_that_nobody_got_to_ask_goes_on(tmp_path):
    """Taken up alive, with an intention to stop it and no more, it runs to its end and counts."""
    first = a_node(tmp_path, {"id": "a", "command": "sleep 0.3"})
    running = first.apply([Launch(0, "a")])[0].running
    running.attempt.mark_stopped(is_asked=False)
    second = a_node(tmp_path, {"id": "a", "command": "sleep 0.3"})
    assert len(second.running()) == 1
    assert not running.attempt.is_stopped
    running.popen.wait()
    finish(second)
    assert second.is_done


def test_remains_of_dead_attempts_are_ended_before_the_job_is_tried_again(tmp_path):
    """If the shell of an attempt died without its command, a second runner ends that first."""
    job = {"id": "a", "command": f"echo $$ > {tmp_path}/pid; sleep 60", "retries": 1}
    (tmp_path / "run").mkdir()
    running = a_node(tmp_path / "run", job).apply([Launch(0, "a")])[0].running
    deadline = time.monotonic() + 10
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    command = process_of(int((tmp_path / "pid").read_text()))
    os.kill(running.process.pid, signal.SIGKILL)
    running.popen.wait()
    assert command.is_alive()
    second = a_node(tmp_path / "run", job)
    assert second.fates[0].attempts == 1
    while command.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_power_cut_spoilt_does_not_keep_a_job_from_running(tmp_path):
    """If nobody can read who ran an attempt, it counts for nothing and the next one runs."""
    job = {"id": "a", "command": "true"}
    running = a_node(tmp_path, job).apply([Launch(0, "a")])[0].running
    running.popen.wait()
    for name in ("process.json", "../job.json"):
        (running.attempt.path / name).write_text("")
    (running.attempt.path / "exit.json").unlink()
    second = a_node(tmp_path, job)
    launched = second.apply([Launch(0, "a")])[0]
    assert launched.outcome == "done", launched.detail
    finish(second)
    assert second.is_done
    assert second.fates[0].exit_code == 0


def test_an_attempt_that_was_stopped_before_it_began_is_not_used_again(tmp_path):
    """A mark of an earlier stop does not make the next try one that was stopped, too."""
    job = {"id": "a", "command": "true"}
    first = a_node(tmp_path, job)
    running = first.apply([Launch(0, "a")])[0].running
    running.popen.wait()
    running.attempt.mark_stopped()
    for name in ("begun", "exit.json"):
        (running.attempt.path / name).unlink()
    second = a_node(tmp_path, job)
    second.apply([Launch(0, "a")])
    finish(second)
    assert second.is_done
