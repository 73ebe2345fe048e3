"""Generated workloads: presets calibrated to published traces, and simple processes.

A preset draws the jobs' sizes and run times, then the submit times over exactly the span that
offers the wanted load, then what people put on their jobs (`Habits`) and what jobs ask for besides
whole GPUs (`Demands`). All numbers come from one seeded generator with an independent child stream
for each of these, so equal arguments give equal workloads, and changing a habit does not move the
arrivals. All times are whole seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.names import Registry
from yardmaster.workloads.arguments import LARGEST_JOBS, finite_number, whole_number
from yardmaster.workloads.arrivals import poisson_arrivals, seasonal_arrivals, span_for_load
from yardmaster.workloads.calibration import calibration
from yardmaster.workloads.demands import Demands
from yardmaster.workloads.habits import Habits

CONSENSUS_SIZES: Mapping[int, float] = MappingProxyType({1: 0.50, 2: 0.20, 4: 0.15, 8: 0.15})
"""GPUs of a job → share of the jobs, in the `lognormal` preset."""

LOAD_TOLERANCE = 1e-3
"""Offered loads further than this fraction from the wanted one are pointed out in the notes."""


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The jobs before anyone submits them.

    Attributes:
        gpus: (jobs,) GPUs of each gang.
        duration_s: (jobs,) run time in whole seconds, ≥ 1.
        length: (jobs,) how long the job is among its like; only the order of the values counts.
        notes: what the reader of the workload must know.
    """

    gpus: IntArray
    duration_s: FloatArray
    length: FloatArray
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """A named way to generate jobs: how they are shaped and when they arrive."""

    name: str
    description: str
    shapes: Callable[[np.random.Generator, int, int], Shapes]
    """(generator, jobs, largest size in GPUs) → jobs."""
    arrivals: Callable[[np.random.Generator, int, float], FloatArray]
    """(generator, jobs, span in seconds) → sorted submit times."""


def generate(
    preset: str = "venus-like",
    *,
    jobs: int,
    seed: int,
    gpus: int,
    load: float,
    max_gpus: int | None = None,
    habits: Habits | None = None,
    demands: Demands | None = None,
) -> Workload:
    """Generate `jobs` jobs of a preset that offer `load` to a cluster of `gpus` GPUs.

    The load is exact up to the rounding of the span to a whole second. Job sizes above `max_gpus`
    (by default the cluster's GPUs) are drawn again.

    Args:
        preset: a name of `PRESETS`, with demands behind a colon if there are any:
            `venus-like:kinds=measured,elastic=0.3` (see `Demands`).
        jobs: number of jobs, at least 1 (a single job has no span and thus no load).
        seed: seed of every random number, at least 0.
        gpus: GPUs of the cluster the load refers to.
        load: work that arrives per second divided by what the cluster can do per second.
        max_gpus: largest job, in GPUs.
        habits: users, estimates, priorities and deadlines; None for the documented defaults.
        demands: what jobs ask for besides whole GPUs, in place of those written in `preset`.

    Raises:
        UnknownNameError: if there is no such preset or demand.
        InvalidWorkloadError: naming the argument that makes no sense.
    """
    name, _, text = preset.partition(":")
    chosen = PRESETS[name]
    return _realised(
        chosen,
        jobs=jobs,
        seed=seed,
        gpus=gpus,
        load=load,
        max_gpus=max_gpus,
        habits=habits,
        demands=demands or (Demands.parsed(text) if text else None),
    )


def simple(
    *,
    jobs: int,
    seed: int,
    gpus: int,
    load: float,
    sizes: Mapping[int, float] = CONSENSUS_SIZES,
    median_s: float = 600.0,
    sigma: float = 1.7,
    max_gpus: int | None = None,
    habits: Habits | None = None,
) -> Workload:
    """Generate Poisson arrivals of jobs with log-normal run times, clipped to 30 s … 2 days.

    Args:
        jobs: number of jobs, at least 1.
        seed: seed of every random number, at least 0.
        gpus: GPUs of the cluster the load refers to.
        load: offered load, see `generate`.
        sizes: GPUs of a job → share of the jobs (any positive weights).
        median_s: median run time in seconds.
        sigma: standard deviation of the logarithm of the run time.
        max_gpus: largest job in GPUs; larger sizes are drawn again.
        habits: users, estimates, priorities and deadlines; None for the documented defaults.

    Raises:
        InvalidWorkloadError: naming the argument that makes no sense.
    """
    median_s = finite_number("median_s", median_s, above=0, largest=1e9)
    sigma = finite_number("sigma", sigma, above=0, largest=20)
    if not sizes:
        raise InvalidWorkloadError("sizes must name at least one size, such as {1: 1.0}.")
    for size, weight in sizes.items():
        whole_number("sizes", size, smallest=1)
        finite_number(f"sizes[{size}]", weight, above=0)
    shapes = partial(_lognormal_shapes, sizes=sizes, median_s=median_s, sigma=sigma)
    preset = Preset("lognormal", PRESETS["lognormal"].description, shapes, poisson_arrivals)
    return _realised(
        preset, jobs=jobs, seed=seed, gpus=gpus, load=load, max_gpus=max_gpus, habits=habits
    )


def _realised(
    preset: Preset,
    *,
    jobs: int,
    seed: int,
    gpus: int,
    load: float,
    max_gpus: int | None,
    habits: Habits | None,
    demands: Demands | None = None,
) -> Workload:
    """Draw a workload of a preset, each part from its own stream of random numbers."""
    jobs = whole_number("jobs", jobs, smallest=1, largest=LARGEST_JOBS)
    seed = whole_number("seed", seed, smallest=0)
    gpus = whole_number("gpus", gpus, smallest=1)
    load = finite_number("load", load, above=0)
    largest = gpus if max_gpus is None else whole_number("max_gpus", max_gpus, smallest=1)
    habits, demands = habits or Habits(), demands or Demands()
    streams = np.random.Generator(np.random.PCG64(seed)).spawn(7)
    shapes = preset.shapes(streams[0], jobs, largest)
    asked = demands.columns(streams[6], shapes.gpus)
    work_gpu_s = shapes.duration_s * shapes.gpus * (asked.get("milli_gpu", 1000) / 1000)
    span_s = span_for_load(float(np.sum(work_gpu_s)), gpus, load)
    submit_s = preset.arrivals(streams[1], jobs, span_s)
    tenant, user = habits.owners(streams[2], shapes.gpus, shapes.length)
    estimate_s = habits.estimates(streams[3], shapes.duration_s)
    workload = Workload.of(
        name=preset.name,
        notes=(f"generated: preset {preset.name}, seed {seed}, load {load:g} on {gpus} GPUs",),
        submit_s=submit_s,
        duration_s=shapes.duration_s,
        gpus=shapes.gpus,
        tenant=tenant,
        user=user,
        estimate_s=estimate_s,
        priority=habits.priorities(streams[4], jobs),
        deadline_s=habits.deadlines(streams[5], submit_s, estimate_s),
        **asked,
    )
    return workload.renamed(
        workload.name, *shapes.notes, *demands.notes(), *_load_note(workload, gpus, load)
    )


def _load_note(workload: Workload, gpus: int, load: float) -> tuple[str, ...]:
    """Say so when whole seconds did not allow the wanted load."""
    offered = workload.load(gpus)
    if abs(offered - load) <= LOAD_TOLERANCE * load:
        return ()
    if not np.isfinite(offered):
        return ("all jobs are submitted at one instant: there is no offered load",)
    return (f"offered load is {offered:.4g}, not {load:g}: too few or too short jobs",)


def _drawn_sizes(
    rng: np.random.Generator, jobs: int, max_gpus: int, sizes: IntArray, shares: FloatArray
) -> tuple[IntArray, tuple[str, ...]]:
    """Draw sizes; drawing again while too large is drawing from the sizes that fit."""
    fits = sizes <= max_gpus
    if not fits.any():
        raise InvalidWorkloadError(
            f"max_gpus is {max_gpus}, but the smallest job of the preset has {sizes.min()} GPUs."
        )
    chosen = rng.choice(sizes[fits], size=jobs, p=shares[fits] / shares[fits].sum())
    if fits.all():
        return chosen, ()
    too_large = float(shares[~fits].sum() / shares.sum())
    note = f"sizes above {max_gpus} GPUs ({too_large:.2%} of such jobs) were drawn again"
    return chosen, (note,)


def _calibrated_shapes(rng: np.random.Generator, jobs: int, max_gpus: int, *, name: str) -> Shapes:
    stats = calibration(name)
    size_rng, length_rng = rng.spawn(2)
    gpus, notes = _drawn_sizes(size_rng, jobs, max_gpus, stats.sizes, stats.shares)
    position = length_rng.random(jobs)
    notes = (f"calibrated to {stats.source}", *((stats.caveat,) if stats.caveat else ()), *notes)
    return Shapes(gpus, stats.durations(gpus, position), position, notes)


def _calibrated_arrivals(
    rng: np.random.Generator, jobs: int, span_s: float, *, name: str
) -> FloatArray:
    return seasonal_arrivals(rng, jobs, span_s, calibration(name).season)


def _lognormal_shapes(
    rng: np.random.Generator,
    jobs: int,
    max_gpus: int,
    *,
    sizes: Mapping[int, float],
    median_s: float,
    sigma: float,
) -> Shapes:
    size_rng, length_rng = rng.spawn(2)
    known = np.array(list(sizes), dtype=np.int64)
    shares = np.array(list(sizes.values()), dtype=np.float64)
    gpus, notes = _drawn_sizes(size_rng, jobs, max_gpus, known, shares)
    length = length_rng.standard_normal(jobs)
    duration_s = np.clip(np.round(median_s * np.exp(sigma * length)), 30.0, 172_800.0)
    return Shapes(gpus, duration_s, length, notes)


def _exponential_shapes(rng: np.random.Generator, jobs: int, _max_gpus: int) -> Shapes:
    length = rng.standard_exponential(jobs)
    duration_s = np.maximum(1.0, np.round(3600.0 * length))
    return Shapes(np.ones(jobs, dtype=np.int64), duration_s, length)


PRESETS: Registry[Preset] = Registry("workload")
"""Every workload that can be generated by name."""

for _name, _trace in (("venus-like", "Helios Venus (2020)"), ("philly-like", "Philly (2017)")):
    PRESETS.add(
        _name,
        Preset(
            name=_name,
            description=f"calibrated to {_trace}: sizes, run times, days, weeks and bursts",
            shapes=partial(_calibrated_shapes, name=_name),
            arrivals=partial(_calibrated_arrivals, name=_name),
        ),
    )
PRESETS.add(
    "lognormal",
    Preset(
        name="lognormal",
        description="Poisson arrivals, log-normal run times (median 10 min), 1, 2, 4 or 8 GPUs",
        shapes=partial(_lognormal_shapes, sizes=CONSENSUS_SIZES, median_s=600.0, sigma=1.7),
        arrivals=poisson_arrivals,
    ),
)
PRESETS.add(
    "mm",
    Preset(
        name="mm",
        description="M/M/c: Poisson arrivals, exponential run times (mean 1 h), 1 GPU each",
        shapes=_exponential_shapes,
        arrivals=poisson_arrivals,
    ),
)
