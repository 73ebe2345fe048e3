"""One node as a live system: what is seen of it, and what is done to it."""

from __future__ import annotations

import time

import numpy as np

from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.local.commands import commands_of
from yardmaster.live.local.node import Launch, LocalNode
from yardmaster.live.local.slots import Slots, pretended


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
