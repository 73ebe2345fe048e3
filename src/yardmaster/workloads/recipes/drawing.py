"""From a recipe and a seed to a workload.

All numbers come from one seeded generator with an independent child stream for each part, so equal
arguments give equal workloads, and changing one part does not move the random numbers of another.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.workloads.arguments import LARGEST_JOBS, finite_number, whole_number
from yardmaster.workloads.arrivals import HOUR_S, LONGEST_SPAN_S, span_for_load
from yardmaster.workloads.recipes.distributions import Exponential
from yardmaster.workloads.recipes.durations import draw_durations
from yardmaster.workloads.recipes.recipe import Recipe
from yardmaster.workloads.recipes.sizes import DrawnSizes, draw_sizes, follow_durations

LOAD_TOLERANCE = 1e-3
"""Offered loads further than this fraction from the wanted one are pointed out in the notes."""

Stream = np.random.Generator


class Wish(NamedTuple):
    """What was asked for beyond the recipe; None is what the recipe says."""

    seed: int
    jobs: int | None = None
    gpus: int | None = None
    load: float | None = None
    rate_per_h: float | None = None
    max_gpus: int | None = None


class Shapes(NamedTuple):
    """The jobs before anyone submits them: sizes, run times, and which of them are long."""

    sizes: DrawnSizes
    duration_s: FloatArray
    length: FloatArray

    @property
    def gpus(self) -> IntArray:
        """GPUs of each gang."""
        return self.sizes.gpus


def draw(recipe: Recipe, wish: Wish, *, called: str) -> Workload:
    """Generate the workload of a recipe and a seed.

    Args:
        recipe: what to draw.
        wish: the seed, and what overrides the recipe.
        called: what the notes call the recipe, such as `preset mm`.

    Raises:
        InvalidWorkloadError: naming the argument that makes no sense or is missing.
    """
    wish = _checked(recipe, wish)
    streams = np.random.Generator(np.random.PCG64(wish.seed)).spawn(7)
    jobs, known_s = _number(recipe, wish, copy.deepcopy(streams[1]))
    shapes = _shapes(recipe, wish, jobs, streams[0])
    asked = recipe.demands.columns(streams[6], shapes.gpus, shapes.sizes.milli_gpu)
    work_gpu_s = shapes.duration_s * shapes.gpus * (asked.get("milli_gpu", 1000) / 1000)
    submit_s = _submissions(
        recipe, wish, streams[1], known_s, jobs=jobs, work_gpu_s=float(np.sum(work_gpu_s))
    )
    tenant, user = recipe.tenants.draw(streams[2], shapes.gpus, shapes.length)
    estimate_s = _rounded(recipe, recipe.estimates.draw(streams[3], shapes.duration_s))
    priority = recipe.priorities.draw(streams[4], shapes.duration_s)
    deadline_s = recipe.deadlines.draw(streams[5], submit_s, shapes.duration_s, estimate_s)
    workload = Workload.of(
        name=recipe.name,
        notes=(f"generated: {called}, seed {wish.seed}, {_pace(recipe, wish)}",),
        submit_s=submit_s,
        duration_s=shapes.duration_s,
        gpus=shapes.gpus,
        tenant=tenant,
        user=user,
        estimate_s=estimate_s,
        priority=priority,
        deadline_s=np.ceil(deadline_s) if recipe.whole_seconds else deadline_s,
        **asked,
    )
    return workload.renamed(workload.name, *_notes(recipe, wish, shapes, workload))


def _checked(recipe: Recipe, wish: Wish) -> Wish:
    """Fill what was not asked for from the recipe; refuse what makes no sense or is missing."""
    seed = whole_number("seed", wish.seed, smallest=0)
    jobs = recipe.jobs if wish.jobs is None else wish.jobs
    if jobs is not None:
        jobs = whole_number("jobs", jobs, smallest=1, largest=LARGEST_JOBS)
    gpus = None if wish.gpus is None else whole_number("gpus", wish.gpus, smallest=1)
    largest = recipe.max_gpus if wish.max_gpus is None else wish.max_gpus
    largest = gpus if largest is None else whole_number("max_gpus", largest, smallest=1)
    load = recipe.load if wish.load is None and wish.rate_per_h is None else wish.load
    rate_per_h = recipe.rate_per_h if wish.rate_per_h is None else wish.rate_per_h
    if load is not None:
        load = finite_number("load", load, above=0)
        if gpus is None:
            raise InvalidWorkloadError("gpus is needed: a load refers to a number of GPUs.")
        if wish.rate_per_h is not None:
            raise InvalidWorkloadError("load and rate_per_h cannot be given together.")
    if rate_per_h is not None:
        rate_per_h = finite_number("rate_per_h", rate_per_h, above=0)
    elif load is None and not recipe.has_pace:
        raise InvalidWorkloadError(
            f"load (with gpus) or rate_per_h is needed: {recipe.name} does not say how fast jobs"
            " are submitted."
        )
    if load is None and rate_per_h is not None and jobs is not None:
        years = jobs / rate_per_h * HOUR_S / LONGEST_SPAN_S * 1000
        if years > 1000:
            raise InvalidWorkloadError(
                f"rate_per_h is too small: jobs come for {years:,.0f} years."
            )
    return Wish(seed, jobs, gpus, load, rate_per_h, largest)


def _number(recipe: Recipe, wish: Wish, rng: Stream) -> tuple[int, FloatArray | None]:
    """Return how many jobs there are, and the submit times that say so if some do."""
    if wish.jobs is not None:
        return wish.jobs, None
    if recipe.arrivals.counts_jobs:
        times = recipe.arrivals.own_times(None, recipe.until_s)
    elif recipe.until_s is not None and wish.rate_per_h is not None:
        expected = recipe.until_s * wish.rate_per_h / HOUR_S
        if expected > LARGEST_JOBS:
            raise InvalidWorkloadError(f"until_s is too long: about {expected:,.0f} jobs.")
        times = recipe.arrivals.until(rng, recipe.until_s, wish.rate_per_h / HOUR_S)
    else:
        raise InvalidWorkloadError(f"jobs is needed: {recipe.name} does not say how many.")
    if not len(times):
        raise InvalidWorkloadError(
            f"{recipe.name}: no job is submitted before second {recipe.until_s}."
        )
    return len(times), times


def _shapes(recipe: Recipe, wish: Wish, jobs: int, rng: Stream) -> Shapes:
    """Draw sizes and run times, first the one that the other follows."""
    size_rng, duration_rng = rng.spawn(2)
    if isinstance(recipe.durations, Exponential):
        # Exponential run times are older than the streams of sizes and durations; drawing them
        # from the parent keeps every workload of the preset `mm` what it was.
        duration_rng = rng
    run_times = partial(
        draw_durations, recipe.durations, duration_rng, whole_seconds=recipe.whole_seconds
    )
    if follow_durations(recipe.sizes):
        duration_s, length = run_times(np.ones(jobs, dtype=np.int64))
        sizes = draw_sizes(recipe.sizes, size_rng, duration_s, wish.max_gpus)
    else:
        sizes = draw_sizes(recipe.sizes, size_rng, np.ones(jobs), wish.max_gpus)
        duration_s, length = run_times(sizes.gpus)
    return Shapes(sizes, duration_s, length)


def _submissions(
    recipe: Recipe,
    wish: Wish,
    rng: Stream,
    known_s: FloatArray | None,
    *,
    jobs: int,
    work_gpu_s: float,
) -> FloatArray:
    """Draw the submit times at the pace that was asked for."""
    arrivals = recipe.arrivals
    if wish.load is not None and wish.gpus is not None:
        span_s = span_for_load(work_gpu_s, wish.gpus, wish.load, whole_seconds=recipe.whole_seconds)
        times = arrivals.filling(rng, jobs, span_s)
    elif known_s is not None and not arrivals.has_times:
        times = known_s
    elif wish.rate_per_h is not None:
        times = arrivals.at_rate(rng, jobs, wish.rate_per_h / HOUR_S)
    elif recipe.span_s is not None:
        times = arrivals.over_span(rng, jobs, recipe.span_s)
    else:
        times = arrivals.own_times(jobs, recipe.until_s)
    return np.round(times) if recipe.whole_seconds else times


def _rounded(recipe: Recipe, seconds: FloatArray) -> FloatArray:
    return np.maximum(1.0, np.round(seconds)) if recipe.whole_seconds else seconds


def _pace(recipe: Recipe, wish: Wish) -> str:
    """Say how fast jobs come, for the notes."""
    if recipe.arrivals.process == "at-once":
        return "all at once"
    if wish.load is not None:
        return f"load {wish.load:g} on {wish.gpus} GPUs"
    if wish.rate_per_h is not None:
        return f"{wish.rate_per_h:g} jobs/h"
    return f"over {recipe.span_s:g} s" if recipe.span_s else "submit times as they are"


def _notes(recipe: Recipe, wish: Wish, shapes: Shapes, workload: Workload) -> tuple[str, ...]:
    """Say what the reader must know: sources, sizes drawn again, demands, and a load not met."""
    said = (
        *(recipe.notes or ()),
        *shapes.sizes.notes,
        *recipe.durations.remarks(),
        *recipe.demands.notes(),
        *_load_note(workload, wish),
    )
    return tuple(dict.fromkeys(said))


def _load_note(workload: Workload, wish: Wish) -> tuple[str, ...]:
    """Say so when the wanted load could not be met."""
    if wish.load is None or wish.gpus is None:
        return ()
    offered = workload.load(wish.gpus)
    if abs(offered - wish.load) <= LOAD_TOLERANCE * wish.load:
        return ()
    if not np.isfinite(offered):
        return ("all jobs are submitted at one instant: there is no offered load",)
    return (f"offered load is {offered:.4g}, not {wish.load:g}: too few or too short jobs",)
