"""How fast replay is, measured beside its rivals, and whether that meets the bars.

Every number comes from one run on one machine: nothing is extrapolated. A rival that takes too
long is stopped, and its time is then a lower bound. Times are those of whole calls of `simulate`,
from columns of jobs to a finished schedule, with the core loaded.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from yardmaster.experiments.measurements import (
    ALONE_NODES,
    FULL,
    LOADS,
    OURS,
    SIDE_BY_SIDE_NODES,
    SIMPY,
    Benchmark,
    Case,
    DeepQueue,
    FirstCompilation,
    Growth,
    Memory,
    Plan,
    Row,
)
from yardmaster.experiments.stopwatch import (
    Contender,
    in_fresh_process,
    machine,
    peak_memory_mib,
    race,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

Rival = Callable[[Workload, Cluster, str], FloatArray]
"""(workload, cluster, `strict` or `skip`) → start second of every job, first in, first out."""
Progress = Callable[[str, float], None]
"""Told what is being measured now, and which fraction of the work is behind."""
Result = Row | DeepQueue | Memory | FirstCompilation

RULES = ("strict", "skip")
SCHEDULERS = ("fifo+strict", "sjf+strict", "fifo+skip", "fifo+easy")
GPUS_PER_NODE = 8
SMALL = Case("fifo+strict", 1_000, 0.9, SIDE_BY_SIDE_NODES)


def measure(
    plan: Plan = FULL,
    *,
    rivals: Mapping[str, Rival] | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """Measure replay, alone and beside the SimPy reference and other rivals.

    Args:
        plan: `QUICK` (half a minute) or `FULL` (several minutes).
        rivals: further contenders by name, the SimPy reference is always one.
        progress: told about every step.

    Raises:
        ConformanceError: if a rival's start times differ from ours.
    """
    measured_on = machine()  # before the work: how busy others keep it
    _replay_case(SMALL)  # load the core
    steps = list(_steps(plan, {SIMPY: _reference, **(rivals or {})}))
    results: list[Result] = []
    for number, (label, work) in enumerate(steps):
        if progress is not None:
            progress(label, number / len(steps))
        results += work()
    rows = tuple(result for result in results if isinstance(result, Row))
    compilations = [result for result in results if isinstance(result, FirstCompilation)]
    return Benchmark(
        plan=plan,
        machine=measured_on,
        rows=rows,
        growth=tuple(_growth(rows)),
        deep_queues=tuple(result for result in results if isinstance(result, DeepQueue)),
        memory=tuple(result for result in results if isinstance(result, Memory)),
        first_compilation=compilations[0] if compilations else None,
    )


def checkout_rivals() -> dict[str, Rival]:
    """Return the rivals of the source checkout this package runs from; none if installed."""
    rivals: dict[str, Rival] = {}
    for path in sorted((Path(__file__).resolve().parents[3] / "benchmarks").glob("*_loop.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            rivals |= module.RIVALS
    return rivals


def _steps(
    plan: Plan, rivals: Mapping[str, Rival]
) -> Iterator[tuple[str, Callable[[], Sequence[Result]]]]:
    """Yield the parts of the work, each with its label."""
    for jobs, load in itertools.product(plan.side_by_side, LOADS):
        for rule in RULES:
            case = Case(f"fifo+{rule}", jobs, load, SIDE_BY_SIDE_NODES)
            yield case.text, partial(_side_by_side, case, rivals, plan.patience_s)
    for jobs, load in itertools.product(plan.alone, LOADS):
        for scheduler in SCHEDULERS:
            case = Case(scheduler, jobs, load, ALONE_NODES)
            yield f"alone: {case.text}", partial(_side_by_side, case, {}, math.inf)
    for scheduler in SCHEDULERS if plan.burst else ():
        yield f"deep queue: {scheduler}", partial(_deep_queue, scheduler, plan.burst)
    for jobs in plan.memory:
        case = Case("fifo+strict", jobs, 0.9, ALONE_NODES)
        yield f"memory: {case.text}", partial(_memory, case)
    if plan.compiles:
        yield "first compilation", _first_compilation


def _side_by_side(case: Case, rivals: Mapping[str, Rival], patience_s: float) -> list[Row]:
    workload, cluster = _workload(case.jobs, case.load, case.nodes), _cluster(case.nodes)
    rule = case.scheduler.partition("+")[2]
    contenders: dict[str, Contender] = {OURS: partial(_replay, workload, cluster, case.scheduler)}
    for name, rival in rivals.items():
        contenders[name] = partial(rival, workload, cluster, rule)
    timings = race(contenders, patience_s=patience_s)
    ours_s = timings[OURS].seconds
    return [Row(case, name, timing, timing.seconds / ours_s) for name, timing in timings.items()]


def _replay(workload: Workload, cluster: Cluster, scheduler: str) -> FloatArray:
    return simulate(workload, cluster, scheduler, compile_core="always").start_s


def _replay_case(case: Case) -> None:
    _replay(_workload(case.jobs, case.load, case.nodes), _cluster(case.nodes), case.scheduler)


def _reference(workload: Workload, cluster: Cluster, rule: str) -> FloatArray:
    return simulate(workload, cluster, f"fifo+{rule}", engine="simpy").start_s


def _cluster(nodes: int) -> Cluster:
    return Cluster.of(f"{nodes}x V100:{GPUS_PER_NODE}")


@lru_cache(maxsize=1)  # one: a million jobs are large
def _workload(jobs: int, load: float, nodes: int) -> Workload:
    return simple(jobs=jobs, seed=1, gpus=nodes * GPUS_PER_NODE, load=load)


def _growth(rows: Sequence[Row]) -> Iterator[Growth]:
    """Yield the growth of every scheduler that was measured alone at two large sizes or more."""
    for scheduler, load in itertools.product(SCHEDULERS, LOADS):
        seconds = {
            row.case.jobs: row.timing.seconds
            for row in rows
            if row.case.nodes == ALONE_NODES
            and (row.case.scheduler, row.case.load) == (scheduler, load)
        }
        large = sorted(jobs for jobs in seconds if jobs >= 10_000)
        if len(large) < 2:
            continue
        slope = np.polyfit(np.log(large), np.log([seconds[jobs] for jobs in large]), 1)[0]
        per_job = seconds[large[-1]] / large[-1] / (seconds[large[-2]] / large[-2])
        yield Growth(scheduler, load, float(slope), large[-2], large[-1], per_job)


def _deep_queue(scheduler: str, jobs: int) -> list[DeepQueue]:
    case = Case(scheduler, jobs, 0.9, ALONE_NODES)
    spread, cluster = _workload(case.jobs, case.load, case.nodes), _cluster(case.nodes)
    burst = spread.with_columns(submit_s=np.zeros(jobs), deadline_s=np.full(jobs, np.nan))
    waiting = int(np.count_nonzero(_replay(burst, cluster, scheduler) > 0))
    timings = race(
        {
            "short": partial(_replay, spread, cluster, scheduler),
            "deep": partial(_replay, burst, cluster, scheduler),
        },
        patience_s=math.inf,
        must_agree=False,
    )
    return [DeepQueue(scheduler, waiting, timings["short"].seconds, timings["deep"].seconds)]


def _memory(case: Case) -> list[Memory]:
    return [Memory(case, in_fresh_process(_peak_mib, case))]


def _peak_mib(case: Case) -> float:
    _replay_case(case)
    return peak_memory_mib()


def _first_compilation() -> list[FirstCompilation]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
        return [FirstCompilation(in_fresh_process(_first_call_s, folder))]


def _first_call_s(cache_folder: str) -> float:
    """Return the seconds of this process's first simulation, machine code going to a folder."""
    os.environ["YARDMASTER_CACHE_DIR"] = cache_folder
    begin = time.perf_counter()
    _replay_case(SMALL)
    return time.perf_counter() - begin
