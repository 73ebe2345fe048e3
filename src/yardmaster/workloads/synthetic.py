"""Generated workloads: from a preset, from a recipe of your own, or from a few numbers.

See `recipes`: what a recipe is made of, the presets, and how workloads are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.arguments import finite_number, whole_number
from yardmaster.workloads.demands import Demands
from yardmaster.workloads.habits import Habits
from yardmaster.workloads.recipes.distributions import Choice, LogNormal
from yardmaster.workloads.recipes.document import find_recipe, is_recipe_file
from yardmaster.workloads.recipes.drawing import Wish, draw
from yardmaster.workloads.recipes.presets import PRESETS, Preset
from yardmaster.workloads.recipes.recipe import Recipe

__all__ = ["CONSENSUS_SIZES", "PRESETS", "Preset", "Recipe", "generate", "simple"]

CONSENSUS_SIZES: Mapping[int, float] = MappingProxyType({1: 0.50, 2: 0.20, 4: 0.15, 8: 0.15})
"""GPUs of a job → share of the jobs, in the `lognormal` preset."""


def generate(
    preset: str | Path | Recipe = "venus-like",
    *,
    seed: int,
    jobs: int | None = None,
    gpus: int | None = None,
    load: float | None = None,
    rate_per_h: float | None = None,
    max_gpus: int | None = None,
    habits: Habits | None = None,
    demands: Demands | None = None,
) -> Workload:
    """Generate the jobs of a preset or a recipe.

    With a load, submissions span what offers it to a cluster of `gpus` GPUs; the load is exact, up
    to the rounding of the span to a whole second where times are whole seconds. With a rate, jobs
    come at that mean rate. With neither, the recipe must say how fast they come.

    Args:
        preset: a name of `PRESETS`, with options and demands behind a colon if there are any
            (`venus-like:kinds=measured,elastic=0.3`); a recipe; or the name of a recipe file.
        seed: seed of every random number, at least 0.
        jobs: number of jobs, at least 1 (a single job has no span and thus no load); by default
            what the recipe says.
        gpus: GPUs of the cluster the load refers to; larger jobs are drawn again.
        load: work that arrives per second divided by what the cluster can do per second.
        rate_per_h: mean rate of submissions in jobs per hour.
        max_gpus: largest job in GPUs, in place of the cluster's.
        habits: users, estimates, priorities and deadlines, in place of the recipe's.
        demands: what jobs ask for besides whole GPUs, in place of the recipe's.

    Raises:
        UnknownNameError: if there is no such preset or option.
        InvalidConfigError: with everything that is wrong in a recipe file.
        InvalidWorkloadError: naming the argument that makes no sense or is missing.
    """
    recipe = preset if isinstance(preset, Recipe) else find_recipe(preset)
    if habits is not None:
        recipe = replace(recipe, **habits.parts())
    if demands is not None:
        recipe = replace(recipe, demands=demands)
    is_own = isinstance(preset, Recipe) or is_recipe_file(preset)
    wish = Wish(seed, jobs, gpus, load, rate_per_h, max_gpus)
    return draw(recipe, wish, called=f"{'recipe' if is_own else 'preset'} {recipe.name}")


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
    recipe = Recipe(
        name="lognormal",
        sizes=Choice(values=tuple(sizes), weights=tuple(sizes.values())),
        durations=LogNormal(median=median_s, sigma=sigma, low=30.0, high=172_800.0),
        **(habits or Habits()).parts(),
    )
    wish = Wish(seed, jobs, gpus, load, None, max_gpus)
    return draw(recipe, wish, called="preset lognormal")
