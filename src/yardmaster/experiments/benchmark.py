"""How fast replay is, measured beside its rivals, and whether that meets the bars.

Every number comes from one run on one machine: nothing is extrapolated. A rival that takes too
long is stopped, and its time is then a lower bound. Times are those of whole calls of `simulate`,
from columns of jobs to a finished schedule, with the core loaded.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from yardmaster.experiments.stopwatch import (
    Contender,
    Timing,
    first_call_s,
    in_fresh_process,
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

OURS = "yardmaster"
SIMPY = "simpy"
LOADS = (0.9, 1.3)
SCHEDULERS = ("fifo+strict", "sjf+strict", "fifo+skip", "fifo+easy")
SIDE_BY_SIDE_NODES, ALONE_NODES, GPUS_PER_NODE = 64, 128, 8
BURST_JOBS = 120_000
"""All submitted at one instant; the cluster takes a thousand, so more than 100,000 wait."""


@dataclass(frozen=True, slots=True)
class Case:
    """Jobs on machines under a scheduler."""

    scheduler: str
    jobs: int
    load: float
    nodes: int

    @property
    def cluster(self) -> Cluster:
        """The machines, eight GPUs each."""
        return Cluster.of(f"{self.nodes}x V100:{GPUS_PER_NODE}")

    @property
    def workload(self) -> Workload:
        """The jobs: 1, 2, 4 or 8 GPUs, log-normal run times, Poisson arrivals."""
        return _workload(self.jobs, self.load, self.nodes)

    @property
    def text(self) -> str:
        """The case in words."""
        return f"{self.scheduler}, {self.jobs:,} jobs, load {self.load:.0%}, {self.nodes} nodes"


@dataclass(frozen=True, slots=True)
class Row:
    """One contender's time on one case."""

    case: Case
    contender: str
    timing: Timing
    ratio: float
    """Its time divided by Yardmaster's; a lower bound if it was stopped."""

    @property
    def jobs_per_s(self) -> float:
        """Simulated jobs per second of real time; an upper bound if it was stopped."""
        return self.case.jobs / self.timing.seconds


@dataclass(frozen=True, slots=True)
class Growth:
    """How Yardmaster's time grows with the number of jobs."""

    scheduler: str
    load: float
    exponent: float
    """Slope of log time over log jobs, from 10,000 jobs up (below, fixed costs dominate)."""
    per_job_ratio: float
    """Time per job at 1,000,000 jobs divided by that at 100,000."""


@dataclass(frozen=True, slots=True)
class DeepQueue:
    """What a deep queue costs: the same jobs submitted at once, and at 90 % load."""

    scheduler: str
    waiting: int
    short_queue_s: float
    deep_queue_s: float

    @property
    def ratio(self) -> float:
        """Time per job with the deep queue, divided by that with the short one."""
        return self.deep_queue_s / self.short_queue_s


@dataclass(frozen=True, slots=True)
class Memory:
    """The most memory a whole process held: interpreter, core, jobs, replay and schedule."""

    case: Case
    mib: float


@dataclass(frozen=True, slots=True)
class FirstCompilation:
    """Seconds of the first simulation ever, with no machine code kept on disk."""

    seconds: float


Result = Row | DeepQueue | Memory | FirstCompilation


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures."""

    name: str
    side_by_side: tuple[int, ...]
    """Numbers of jobs at which rivals are measured too."""
    alone: tuple[int, ...]
    """Numbers of jobs at which only Yardmaster is measured, and its growth."""
    memory: tuple[int, ...]
    burst: int
    """Jobs submitted at one instant for the deep queue; 0 leaves it out."""
    compiles: bool
    """Whether the first compilation is measured."""
    patience_s: float
    """A rival's run is stopped after this long."""


QUICK = Plan(
    name="quick",
    side_by_side=(1_000, 10_000),
    alone=(1_000, 10_000),
    memory=(10_000,),
    burst=0,
    compiles=False,
    patience_s=2.0,
)
FULL = Plan(
    name="full",
    side_by_side=(1_000, 10_000, 100_000),
    alone=(1_000, 10_000, 100_000, 1_000_000),
    memory=(1_000, 100_000, 1_000_000),
    burst=120_000,  # the cluster takes a few hundred at once, so more than 100,000 wait
    compiles=True,
    patience_s=40.0,
)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Everything measured in one run."""

    plan: Plan
    rows: tuple[Row, ...]
    growth: tuple[Growth, ...]
    deep_queues: tuple[DeepQueue, ...]
    memory: tuple[Memory, ...]
    first_compilation: FirstCompilation | None


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
    _replay(Case("fifo+strict", 1_000, 0.9, SIDE_BY_SIDE_NODES))  # load the core
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
        rows=rows,
        growth=tuple(_growth(rows)),
        deep_queues=tuple(result for result in results if isinstance(result, DeepQueue)),
        memory=tuple(result for result in results if isinstance(result, Memory)),
        first_compilation=compilations[0] if compilations else None,
    )


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
    workload, cluster = case.workload, case.cluster
    rule = case.scheduler.partition("+")[2]
    contenders: dict[str, Contender] = {OURS: partial(_replay, case)}
    for name, rival in rivals.items():
        contenders[name] = partial(rival, workload, cluster, rule)
    timings = race(contenders, patience_s=patience_s)
    ours_s = timings[OURS].seconds
    return [Row(case, name, timing, timing.seconds / ours_s) for name, timing in timings.items()]


def _replay(case: Case) -> FloatArray:
    return simulate(case.workload, case.cluster, case.scheduler, compile_core="always").start_s


def _reference(workload: Workload, cluster: Cluster, rule: str) -> FloatArray:
    return simulate(workload, cluster, f"fifo+{rule}", engine="simpy").start_s


@lru_cache(maxsize=1)  # one: a million jobs are large
def _workload(jobs: int, load: float, nodes: int) -> Workload:
    return simple(jobs=jobs, seed=1, gpus=nodes * GPUS_PER_NODE, load=load, sizes=SIZES)


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
        yield Growth(scheduler, load, float(slope), large[-1], large[-2], per_job)


def _deep_queue(scheduler: str, jobs: int) -> list[DeepQueue]:
    case = Case(scheduler, jobs, 0.9, ALONE_NODES)
    spread, cluster = case.workload, case.cluster
    burst = spread.with_columns(submit_s=np.zeros(jobs), deadline_s=np.full(jobs, np.nan))
    replay = partial(simulate, cluster=cluster, scheduler=scheduler, compile_core="always")
    starts_s = replay(burst).start_s
    timings = [race({OURS: lambda: replay(jobs).start_s}, patience_s=math.inf)[OURS].seconds for jobs in (spread, burst)]
    return [DeepQueue(scheduler, int(np.count_nonzero(starts_s > 0)), *timings)]


def _memory(case: Case) -> list[Memory]:
    return [Memory(case, in_fresh_process(_peak_mib, case))]


def _peak_mib(case: Case) -> float:
    _replay(case)
    return peak_memory_mib()


def _first_compilation() -> list[FirstCompilation]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
        return [FirstCompilation(in_fresh_process(_first_call_s, folder))]


def _first_call_s(cache_folder: str) -> float:
    """Return the seconds of this process's first simulation with an empty folder of machine code."""
    os.environ["YARDMASTER_CACHE_DIR"] = cache_folder
    begin = time.perf_counter()
    _replay(Case("fifo+strict", 1_000, 0.9, SIDE_BY_SIDE_NODES))
    return time.perf_counter() - begin
