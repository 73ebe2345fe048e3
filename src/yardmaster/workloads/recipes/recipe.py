"""A recipe: everything that jobs have, each from its own process, and how fast the jobs come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from yardmaster.workloads.arguments import LARGEST_JOBS
from yardmaster.workloads.arrivals import LONGEST_SPAN_S
from yardmaster.workloads.demands import Demands
from yardmaster.workloads.recipes.arrival_process import Arrivals
from yardmaster.workloads.recipes.arrivals import ARRIVALS, Poisson
from yardmaster.workloads.recipes.deadlines import DEADLINES, Deadlines, Slack
from yardmaster.workloads.recipes.distributions import Choice, LogNormal
from yardmaster.workloads.recipes.durations import DURATIONS, Durations, follow_sizes
from yardmaster.workloads.recipes.estimates import ESTIMATES, Estimates, NoEstimates, RoundLimits
from yardmaster.workloads.recipes.parameters import Part, number, text, texts, whole, yes_or_no
from yardmaster.workloads.recipes.priorities import PRIORITIES, Priorities, PriorityClasses
from yardmaster.workloads.recipes.sizes import SIZES, Sizes, follow_durations, odd_sizes
from yardmaster.workloads.recipes.tenants import TENANTS, Teams, Tenants

PROCESSES: Mapping[str, Mapping[str, type[Part]]] = MappingProxyType(
    {
        "arrivals": ARRIVALS,
        "sizes": SIZES,
        "durations": DURATIONS,
        "priorities": PRIORITIES,
        "estimates": ESTIMATES,
        "deadlines": DEADLINES,
        "tenants": TENANTS,
    }
)
"""The parts of a recipe, and the processes each can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Part):
    """How to generate a workload; what is not said is as below.

    `load`, `rate_per_h` and `span_s` say how fast jobs come, and at most one of them may; without,
    whoever generates a workload must. `jobs` or `until_s` say how many there are. A load changes
    neither: with `until_s` there are as many jobs as `rate_per_h` brings until then, spread over
    the span that offers the load.

    Attributes:
        arrivals: when jobs are submitted; memoryless.
        sizes: GPUs of a job; 1, 2, 4 or 8.
        durations: how long a job runs; log-normal, median 10 min, from 30 s to 2 days.
        priorities: 0, 1 or 2; most jobs 0.
        estimates: what users ask for; round and never too little.
        deadlines: by when a job should end; one job in five has one.
        tenants: who submits; 8 teams of 8 people.
        demands: what jobs ask for besides GPUs; nothing.
    """

    name: str = text("name of the workloads", default="recipe")
    description: str = text("what it is, in one line", default="")
    jobs: int | None = whole("number of jobs", default=None, least=1, most=LARGEST_JOBS)
    until_s: float | None = number(
        "all jobs until then, at the mean rate; in place of jobs",
        unit="s",
        default=None,
        above=0,
        most=LONGEST_SPAN_S,
    )
    rate_per_h: float | None = number("mean rate", unit="jobs/h", default=None, above=0)
    load: float | None = number(
        "offered load; needs to know the cluster", default=None, above=0, most=1e6
    )
    span_s: float | None = number(
        "all submissions lie within so many seconds",
        unit="s",
        default=None,
        above=0,
        most=LONGEST_SPAN_S,
    )
    max_gpus: int | None = whole("largest job; by default the cluster", default=None, least=1)
    whole_seconds: bool = yes_or_no("round all times to seconds", default=True)
    notes: tuple[str, ...] | None = texts(
        "what the reader of such a workload must know", default=None
    )
    arrivals: Arrivals = field(default_factory=Poisson)
    sizes: Sizes = field(
        default_factory=lambda: Choice(values=(1, 2, 4, 8), weights=(0.50, 0.20, 0.15, 0.15))
    )
    durations: Durations = field(
        default_factory=lambda: LogNormal(median=600.0, sigma=1.7, low=30.0, high=172_800.0)
    )
    priorities: Priorities = field(default_factory=PriorityClasses)
    estimates: Estimates = field(default_factory=RoundLimits)
    deadlines: Deadlines = field(default_factory=lambda: Slack(low=1.5, high=5.0, share=0.2))
    tenants: Tenants = field(default_factory=Teams)
    demands: Demands = field(default_factory=Demands)

    @property
    def has_pace(self) -> bool:
        """Whether the recipe says how fast jobs come."""
        paces = (self.load, self.rate_per_h, self.span_s)
        return self.arrivals.has_times or any(pace is not None for pace in paces)

    @property
    def has_number(self) -> bool:
        """Whether the recipe says how many jobs there are."""
        return any((self.jobs, self.until_s, self.arrivals.process == "replayed"))

    def contradictions(self) -> Iterator[str]:
        """Yield what makes no sense although every part does."""
        yield from self._bad_pace()
        yield from odd_sizes(self.sizes)
        if follow_sizes(self.durations) and follow_durations(self.sizes):
            yield "sizes follow durations and durations follow sizes: one of them must not."
        if (
            isinstance(self.deadlines, Slack)
            and self.deadlines.follows == "estimate"
            and isinstance(self.estimates, NoEstimates)
        ):
            yield "deadlines follow estimates, but there are none; write follows=duration."

    def _bad_pace(self) -> Iterator[str]:
        if self.span_s and (self.load or self.rate_per_h):
            yield "span_s cannot be given together with load or rate_per_h."
        if self.load and self.rate_per_h and not self.until_s:
            yield "load and rate_per_h cannot be given together, except with until_s."
        if self.until_s and self.jobs:
            yield "until_s cannot be given together with jobs."
        if self.until_s and not self.arrivals.counts_jobs:
            if not self.arrivals.has_rate:
                yield f"until_s needs arrivals with a rate; {self.arrivals.process} has none."
            elif not self.rate_per_h:
                yield "until_s needs rate_per_h."
