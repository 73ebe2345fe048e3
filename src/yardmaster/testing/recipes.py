"""Does a recipe, or a function that makes workloads up, keep the promises of a generator?

from yardmaster.testing import check_recipe

def test_my_recipe():
    check_recipe("mine.toml")
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from yardmaster.model.workload import Labels, Workload
from yardmaster.testing.verdicts import Conformance, NotTriedError, Rule, judged
from yardmaster.workloads.recipes.recipe import Recipe

JOBS, GPUS, LOAD = 400, 64, 0.8
"""Asked of recipes that leave it open."""

_ELSEWHERE = """
import sys
from yardmaster.testing.recipes import drawn, fingerprint
print(fingerprint(drawn(sys.argv[1], 3)))
"""

Source = str | Path | Recipe | Callable[[int], Workload]


def judge_recipe(source: Source) -> Conformance:
    """Try every rule on a few workloads.

    Args:
        source: a TOML file, a preset's name, a `Recipe`, or a function from a seed to a `Workload`.

    Raises:
        YardmasterError: if there is no such preset or file, or the recipe has mistakes.
    """
    if isinstance(source, str | Path):
        from yardmaster.workloads.recipes.document import find_recipe

        find_recipe(source)
    suite = _Suite(source)
    name = getattr(source, "__name__", "") or getattr(source, "name", "") or str(source)
    return judged(
        "recipe",
        str(source) if isinstance(source, str | Path) else name,
        [
            Rule("makes jobs that are valid", suite.is_valid, is_needed=True),
            Rule("makes as many jobs as it is asked for", suite.makes_enough),
            Rule("makes the same jobs from the same seed", suite.repeats),
            Rule("makes other jobs from another seed", suite.varies),
            Rule("makes the same jobs in another process", suite.repeats_elsewhere),
            Rule("makes jobs that fit the cluster they are for", suite.fits),
            Rule("offers the load it is asked for", suite.offers),
        ],
    )


def check_recipe(source: Source) -> None:
    """Check a recipe; see `judge_recipe`.

    Raises:
        ConformanceError: with the first rule that is broken, and why.
        YardmasterError: if there is no such preset or file, or the recipe has mistakes.
    """
    judge_recipe(source).insist()


def drawn(source: Source, seed: int) -> Workload:
    """Return the jobs of one seed, for the cluster and the load that all rules ask for."""
    from yardmaster.workloads.recipes.document import find_recipe
    from yardmaster.workloads.synthetic import generate

    if not isinstance(source, str | Path | Recipe):
        return source(seed)
    recipe = source if isinstance(source, Recipe) else find_recipe(source)
    return generate(
        recipe,
        seed=seed,
        jobs=None if recipe.has_number else JOBS,
        gpus=GPUS,
        load=None if recipe.has_pace else LOAD,
    )


def fingerprint(workload: Workload) -> str:
    """Return a digest of every column."""
    import hashlib

    digest = hashlib.sha256()
    for field in fields(workload):
        value = getattr(workload, field.name)
        if isinstance(value, Labels):
            digest.update(repr(value.names).encode())
            value = value.codes
        if isinstance(value, np.ndarray):
            digest.update(repr(value.tolist()).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Suite:
    source: Source

    def is_valid(self) -> str:
        for seed in range(3):
            jobs: object = drawn(self.source, seed)
            if not isinstance(jobs, Workload):
                return f"seed {seed} gives a {type(jobs).__name__}, not a Workload"
            problem = _problem(jobs)
            if problem:
                return f"seed {seed}: {problem}"
        return ""

    def makes_enough(self) -> str:
        recipe = self._recipe()
        if recipe.has_number and not recipe.jobs:
            raise NotTriedError("it says how long, not how many")
        wanted = recipe.jobs or JOBS
        got = len(drawn(self.source, 0))
        return "" if got == wanted else f"{wanted} jobs were asked for, {got} came"

    def _recipe(self) -> Recipe:
        from yardmaster.workloads.recipes.document import find_recipe

        if isinstance(self.source, Recipe):
            return self.source
        if not isinstance(self.source, str | Path):
            raise NotTriedError("a function is asked for nothing but a seed")
        return find_recipe(self.source)

    def repeats(self) -> str:
        once, again = (fingerprint(drawn(self.source, 1)) for _ in range(2))
        return "" if once == again else "seed 1 gave other jobs the second time"

    def varies(self) -> str:
        if isinstance(self.source, str | Path | Recipe):
            replayed = self._recipe().arrivals.process == "replayed"
            if replayed:
                raise NotTriedError("it replays what happened")
        alike = fingerprint(drawn(self.source, 1)) == fingerprint(drawn(self.source, 2))
        return "seeds 1 and 2 give the same jobs" if alike else ""

    def repeats_elsewhere(self) -> str:
        if not isinstance(self.source, str | Path):
            raise NotTriedError("only files and presets can be named to another process")
        command = [sys.executable, "-c", _ELSEWHERE, str(self.source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            return f"it cannot be drawn there: {done.stderr.strip().splitlines()[-1]}"
        same = done.stdout.strip() == fingerprint(drawn(self.source, 3))
        return "" if same else "seed 3 gives other jobs there"

    def fits(self) -> str:
        recipe = self._recipe()
        largest = int(drawn(self.source, 0).gpus.max())
        most = recipe.max_gpus or GPUS
        return "" if largest <= most else f"a job asks for {largest} GPUs of {most}"

    def offers(self) -> str:
        recipe = self._recipe()
        wanted = recipe.load or LOAD
        if recipe.has_pace and not recipe.load:
            raise NotTriedError("it says how fast jobs come, not which load they offer")
        got = drawn(self.source, 0).load(GPUS)
        return "" if abs(got / wanted - 1) < 0.01 else f"{wanted:g} was asked for, {got:.3f} came"


def _problem(jobs: Workload) -> str:
    """Return what is wrong with jobs that were made up."""
    if not len(jobs):
        return "there is no job"
    if np.any(np.diff(jobs.submit_s) < 0) or jobs.submit_s[0] < 0:
        return "submissions are not in order, or before second 0"
    for name in ("submit_s", "duration_s"):
        if not np.isfinite(getattr(jobs, name)).all():
            return f"{name} is not finite everywhere"
    if jobs.duration_s.min() < 0 or jobs.gpus.min() < 1:
        return "a job runs for less than nothing, or asks for no GPU"
    if (jobs.estimate_s <= 0).any():  # NaN: no estimate
        return "an estimate is not above 0"
    late = jobs.deadline_s < jobs.submit_s  # NaN: no deadline, and not late
    return "a deadline lies before its submission" if late.any() else ""
