"""The loop: observe, decide, plan, apply, and write it down."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog, read_lines
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.loop import Loop
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster


@dataclass(frozen=True)
class Done:
    """What became of a start."""

    job: str
    outcome: str

    def record(self):
        """Return it as the log has it."""
        return {"operation": "start", "job": self.job, "outcome": self.outcome}


class Machine:
    """A machine on which every started job ends by the next look, and others take its place."""

    def __init__(self, outcome: str = "done", *, is_still: bool = False) -> None:
        self.outcome, self.is_still, self.looks, self.started = outcome, is_still, 0, 0
        self.cluster = Cluster.of("2x A100:8")

    def observe(self) -> State:
        """Return forty waiting jobs, others each time unless the machine is still."""
        self.looks += not self.is_still or self.looks == 0
        first = self.looks * 1000
        return State.of(
            time_s=float(first + 100),
            columns={
                "id": np.array([f"job-{first + row}" for row in range(40)]),
                "submit_s": first + np.arange(40.0),
                "duration_s": np.full(40, 60.0),
                "gpus": 1 + np.arange(40) % 8,
            },
            since_s=np.full(40, np.nan),
            cluster=self.cluster,
        )

    def plan(self, state, decision):
        """Return the ids of what is to start."""
        return [str(state.jobs.id[start.row]) for start in decision.starts]

    def apply(self, operations):
        """Count the starts, and say of each what this machine says of all."""
        self.started += len(operations)
        return [Done(job, self.outcome) for job in operations]

    def restore(self):
        """Nothing to undo."""


def loop_on(machine, path, name="sjf+easy", **more) -> Loop:
    return Loop(machine, Decider(name), AuditLog(path, LiveClock.since(0.0)), **more)


def kinds(path) -> list[str]:
    return [line["what"] for line in read_lines(path)]


def test_every_step_is_written_down(tmp_path):
    """A tick leaves its observation, its decision and what was done in the log, with one digest."""
    path = tmp_path / "audit.jsonl"
    tick = loop_on(Machine(), path).tick()
    lines = list(read_lines(path))
    assert [line["what"] for line in lines[:2]] == ["observe", "decide"]
    assert lines[0]["digest"] == lines[1]["digest"] == tick.decision.digest
    assert [line["job"] for line in lines[2:]] == [one["job"] for one in lines[1]["starts"]]


def test_nothing_new_is_not_decided_again(tmp_path):
    """Equal observations after the first leave no line and no work."""
    path = tmp_path / "audit.jsonl"
    machine = Machine(is_still=True)
    loop = loop_on(machine, path)
    loop.tick()
    before, started = len(kinds(path)), machine.started
    assert all(loop.tick().decision is None for _ in range(5))
    assert len(kinds(path)) == before
    assert machine.started == started


def test_what_failed_is_tried_again(tmp_path):
    """A failed operation makes the next tick decide, though nothing seems to have changed."""
    loop = loop_on(Machine("failed", is_still=True), tmp_path / "audit.jsonl")
    loop.tick()
    assert loop.tick().decision is not None


def test_a_scheduler_that_fails_is_stood_in_for(tmp_path):
    """Without a stand-in the tick is skipped and says why; with one, that one decides."""
    path = tmp_path / "audit.jsonl"
    loop = loop_on(Machine(), path)

    def fail(_state):
        raise YardmasterError("no idea")

    loop._decider.decide = fail
    assert loop.tick().decision is None
    assert kinds(path)[-1] == "skip"
    loop._fallback = Decider("fifo+skip")
    assert loop.tick().decision.scheduler == "fifo+skip"


def test_memory_does_not_grow_with_ticks(tmp_path):
    """After warming up, 100 further ticks with new jobs each leave nothing behind."""
    loop = loop_on(Machine(), tmp_path / "audit.jsonl")
    for _ in range(50):
        loop.tick()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(100):
        loop.tick()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
