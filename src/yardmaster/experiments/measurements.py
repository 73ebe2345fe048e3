"""What a benchmark measured: plain numbers, in the order in which a reader asks for them."""

from __future__ import annotations

from dataclasses import dataclass

from yardmaster.experiments.stopwatch import Timing

OURS = "yardmaster"
SIMPY = "simpy"
HEAP_LOOP = "heap loop"
INDEXED_HEAP_LOOP = "indexed heap loop"
"""The rival that source checkouts bring along, in `benchmarks/`."""

LOADS = (0.9, 1.3)
SIDE_BY_SIDE_NODES = 64
ALONE_NODES = 128


@dataclass(frozen=True, slots=True)
class Case:
    """Jobs on machines under a scheduler."""

    scheduler: str
    jobs: int
    load: float
    nodes: int

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
    smaller: int
    larger: int
    per_job_ratio: float
    """Time per job at `larger` jobs divided by that at `smaller`, the two largest sizes."""


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
    machine: str
    rows: tuple[Row, ...]
    growth: tuple[Growth, ...]
    deep_queues: tuple[DeepQueue, ...]
    memory: tuple[Memory, ...]
    first_compilation: FirstCompilation | None
