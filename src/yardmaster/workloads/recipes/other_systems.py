"""The synthetic workloads of other schedulers' papers and programs, exactly as they define them.

RLTune (`dshruti20/RLTune`) is missing on purpose: it ships a file and no process, and in that file
run times rise with submit times, so that shortest-first and first-come-first-served are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from yardmaster.workloads.recipes.arrival_process import Arrivals
from yardmaster.workloads.recipes.arrivals import Alternating, AtOnce, Bursts, Poisson, Sine
from yardmaster.workloads.recipes.deadlines import NoDeadlines, Slack
from yardmaster.workloads.recipes.distributions import Fixed, HeavyTailed, Normal, Uniform
from yardmaster.workloads.recipes.estimates import ExactEstimates
from yardmaster.workloads.recipes.parameters import Part, choice, number
from yardmaster.workloads.recipes.priorities import (
    ChosenPriorities,
    PrioritiesFollowingDurations,
    UniformPriorities,
)
from yardmaster.workloads.recipes.recipe import Recipe
from yardmaster.workloads.recipes.sizes import SizesFollowingDurations, UniformSizes
from yardmaster.workloads.recipes.tenants import NamedUsers, NoTenants

HOUR_S = 3600.0


def drl_scheduler(_options: Part) -> Recipe:
    """Return Poisson arrivals at 2.5 jobs/s, far more than the 56 GPUs of the original can do."""
    return Recipe(
        rate_per_h=2.5 * HOUR_S,
        whole_seconds=False,
        arrivals=Poisson(),
        sizes=UniformSizes(low=1, high=8),
        durations=Normal(mean=3000.0, std=2500.0, low=1.0),
        priorities=ChosenPriorities(values=(0.5, 1.0, 2.5, 5.0)),
        estimates=ExactEstimates(),
        deadlines=NoDeadlines(),
        tenants=NamedUsers(names=("101", "102", "103")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuOptimizerOptions(Part):
    """The choices of the original."""

    mode: str = choice("run times", ("heavy", "uniform"), default="heavy")
    priority: str = choice(
        "correlation of priority with run time",
        ("negative", "positive", "none"),
        default="negative",
    )
    arrivals: str = choice("submissions", ("bursty", "at-once"), default="bursty")
    max_duration_s: float = number(
        "longest run time, and the span of submissions", unit="s", above=0, default=10_000.0
    )


def gpu_optimizer(options: GpuOptimizerOptions) -> Recipe:
    """Return bursts of jobs whose sizes and priorities follow their run times."""
    longest_s = options.max_duration_s
    is_bursty = options.arrivals == "bursty"
    return Recipe(
        jobs=400,
        span_s=longest_s if is_bursty else None,
        whole_seconds=False,
        arrivals=Bursts(centres=6, share=0.8, width=0.03) if is_bursty else AtOnce(),
        sizes=SizesFollowingDurations(largest=8, longest_s=longest_s, weight=0.7, exponent=0.6),
        durations=(
            HeavyTailed(longest=longest_s, short_share=0.85, short_low=0.01, short_high=0.08)
            if options.mode == "heavy"
            else Uniform(low=0.05 * longest_s, high=0.2 * longest_s)
        ),
        priorities=PrioritiesFollowingDurations(
            correlation=options.priority, longest_s=longest_s, highest=10, weight=0.6, exponent=0.8
        ),
        estimates=ExactEstimates(),
        deadlines=NoDeadlines(),
        tenants=NoTenants(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RlmetadqnOptions(Part):
    """Twelve of these with 2, 4, 8 and 16 GPUs are the 48 regimes of the original."""

    workload: str = choice(
        "shape of the rate", ("base", "bursty", "diurnal", "shifted"), default="base"
    )
    intensity: str = choice(
        "60, 120, 240 or 360 jobs/h, before the shape",
        ("low", "medium", "high", "super-high"),
        default="medium",
    )
    gaps: str = choice(
        "held: as the original program, which draws each gap at the rate of its beginning",
        ("exact", "held"),
        default="exact",
    )


RLMETADQN_RATES_PER_H = {"low": 60.0, "medium": 120.0, "high": 240.0, "super-high": 360.0}
RLMETADQN_HORIZON_S = HOUR_S


def rlmetadqn(options: RlmetadqnOptions) -> Recipe:
    """Return one hour of 1-GPU jobs with deadlines at a rate of one of four shapes."""
    held = options.gaps == "held"
    sine = partial(Sine, period_s=RLMETADQN_HORIZON_S, depth=0.5, held=held)
    shapes: dict[str, Arrivals] = {
        "base": Poisson(),
        "bursty": Alternating(busy=3.0, quiet=0.3, every_s=300.0, held=held),
        "diurnal": sine(),
        "shifted": sine(shift_s=RLMETADQN_HORIZON_S / 4),
    }
    # Three times the rate and 0.3 times the rate in turn are 1.65 times the rate in the mean.
    mean = 1.65 if options.workload == "bursty" else 1.0
    return Recipe(
        rate_per_h=RLMETADQN_RATES_PER_H[options.intensity] * mean,
        until_s=RLMETADQN_HORIZON_S,
        whole_seconds=False,
        arrivals=shapes[options.workload],
        sizes=Fixed(value=1),
        durations=Uniform(low=30.0, high=900.0),
        priorities=UniformPriorities(low=0, high=3),
        estimates=ExactEstimates(),
        deadlines=Slack(low=1.2, high=2.0, share=1.0, follows="duration"),
        tenants=NoTenants(),
    )
