"""How long a live tick takes with thousands of waiting jobs, and whether many ticks cost memory.

`python benchmarks/live_deciding.py` measures, warm, on 32 nodes of 8 GPUs with 5,000 waiting jobs:
building the state from plain columns (what an adapter does), deciding, and both; then the same for
a live local node of 16 slots. `--soak 10000` runs so many ticks with new jobs at each and compares
the memory in use.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from yardmaster.live.audit import AuditLog
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider, Decision
from yardmaster.live.local.commands import commands_of
from yardmaster.live.local.node import LocalNode
from yardmaster.live.local.slots import Slots, pretended
from yardmaster.live.loop import Loop
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster

SCHEDULERS = (
    "fifo+strict", "sjf+easy", "wfp3+easy", "slurm-multifactor+easy", "fair-share+skip",
    "sjf+conservative", "policy:slowdown-clairvoyant", "meta:mixed",
)  # fmt: skip
ROUNDS = 15


class Queue:
    """A cluster half full of running jobs, and a queue."""

    def __init__(self, waiting: int, nodes: int, seed: int = 1) -> None:
        """Draw the jobs; running ones fill about nine of ten nodes."""
        rng = np.random.default_rng(seed)
        self.cluster = Cluster.of(f"{nodes}x A100:8")
        free, holdings = self.cluster.node_gpus.copy(), []
        gpus: list[int] = []
        for node in range(int(0.9 * nodes)):
            while free[node] > 0:
                held = int(rng.integers(1, free[node] + 1))
                free[node] -= held
                holdings.append((len(gpus), node, held))
                gpus.append(held)
        running = len(gpus)
        count = running + waiting
        submit_s = np.sort(rng.uniform(0.0, 86_400.0, count))
        run_s = rng.lognormal(7.0, 1.5, count)
        self.columns: dict[str, Any] = {
            "id": np.array([f"job-{row}" for row in range(count)]),
            "submit_s": submit_s,
            "duration_s": run_s,
            "estimate_s": run_s,
            "gpus": np.append(gpus, rng.choice([1, 1, 1, 2, 4, 8], waiting)),
            "tenant": [f"team-{number}" for number in rng.integers(0, 20, count)],
        }
        self.since_s = np.full(count, np.nan)
        self.since_s[:running] = submit_s[:running]
        self.holdings = np.array(holdings, dtype=np.int64)

    def state(self) -> State:
        """Return the state, made anew."""
        return State.of(
            time_s=86_401.0,
            columns=self.columns,
            since_s=self.since_s,
            cluster=self.cluster,
            holdings=self.holdings,
        )


def median_ms(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median time of an action, milliseconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return 1000.0 * float(np.median(times))


def measure_queue(waiting: int) -> None:
    """Print the table for a cluster."""
    queue = Queue(waiting, 32)
    state = queue.state()
    print(f"{waiting} jobs wait on {queue.cluster.name}; medians of {ROUNDS}, milliseconds")
    print("| scheduler | observe | decide | both | record |")
    print("| --- | --- | --- | --- | --- |")
    observe_ms = median_ms(queue.state)
    for name in SCHEDULERS:
        decider = Decider(name)
        decider.warm(queue.cluster)
        decision = decider.decide(state)
        decide_ms = median_ms(lambda decider=decider: decider.decide(state))  # type: ignore[misc]
        record_ms = median_ms(lambda one=decision: one.record(state))  # type: ignore[misc]
        print(
            f"| {name} | {observe_ms:.1f} | {decide_ms:.1f} | {observe_ms + decide_ms:.1f} |"
            f" {record_ms:.1f} |"
        )


def measure_node(waiting: int) -> None:
    """Print the same for a live local node, whose jobs are folders."""
    rows = [{"id": f"job-{row}", "command": "true", "estimate_s": 1 + row % 97}
            for row in range(waiting)]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        clock = LiveClock.since(time.time())
        node = LocalNode(commands_of(rows, name="queue"), Slots(pretended(16)), Path(folder), clock)
        decider = Decider("sjf+easy")
        decider.warm(node.cluster)
        both = median_ms(lambda: decider.decide(node.observe()))
        print(f"local node, {waiting} jobs wait, sjf+easy: observe and decide {both:.1f} ms")


class NewJobs:
    """A system in which all jobs are new at every look."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.looks = 0
        self.cluster = Cluster.of("4x A100:8")

    def observe(self) -> State:
        """Return a hundred jobs that were not there before."""
        self.looks += 1
        begin = 1000.0 * self.looks
        return State.of(
            time_s=begin + 200.0,
            columns={
                "id": np.array([f"{self.looks}-{row}" for row in range(100)]),
                "submit_s": begin + np.arange(100.0),
                "duration_s": 60.0 + np.arange(100.0),
                "gpus": 1 + np.arange(100) % 8,
            },
            since_s=np.full(100, np.nan),
            cluster=self.cluster,
        )

    def plan(self, _state: State, _decision: Decision) -> list[Any]:
        """Do nothing."""
        return []

    def apply(self, _operations: Any) -> list[Any]:
        """Do nothing."""
        return []

    def restore(self) -> None:
        """Leave everything as it is."""


def soak(ticks: int) -> None:
    """Print the memory before and after many ticks."""
    with tempfile.TemporaryDirectory() as folder:
        audit = AuditLog(Path(folder) / "audit.jsonl", LiveClock.since(time.time()))
        loop: Loop[Any, Any] = Loop(NewJobs(), Decider("sjf+easy"), audit)
        began = 0.0
        for tick in range(ticks + 500):
            if tick == 500:  # what is loaded once is loaded by now
                gc.collect()
                before_mib, began = _resident_mib(), time.perf_counter()
            loop.tick()
        gc.collect()
        took_s = time.perf_counter() - began
        print(
            f"{ticks:,} ticks with 100 new jobs each: {took_s:.0f} s, resident memory"
            f" {before_mib:.1f} → {_resident_mib():.1f} MiB (peak"
            f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f})"
        )


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=5_000, help="jobs in the queue")
    parser.add_argument("--soak", type=int, default=0, help="ticks to soak for; 0: none")
    options = parser.parse_args()
    if options.soak:
        soak(options.soak)
        return
    measure_queue(options.waiting)
    measure_node(options.waiting)


if __name__ == "__main__":
    main()
