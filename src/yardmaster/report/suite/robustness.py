"""What disturbances do to schedulers: every scheduler against itself on the undisturbed regimes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.metrics.statistics import Interval
from yardmaster.report.suite.estimates import relative_difference, seed_means, seed_spread
from yardmaster.report.suite.runs import Runs


@dataclass(frozen=True, slots=True)
class Effect:
    """One scheduler under one perturbation of one severity, against the same regimes undisturbed.

    Attributes:
        scheduler: who schedules.
        perturbation: what goes wrong.
        severity: how badly; None for the mean over all severities.
        change: objective → relative change; 0.1 is 10 % worse.
        explosions: share of the disturbed runs whose queue exploded.
        clean_explosions: the same of the undisturbed runs.
        seed_spread: objective → standard deviation over seeds / mean, averaged over regimes.
    """

    scheduler: str
    perturbation: str
    severity: float | None
    change: dict[str, Interval]
    explosions: float
    clean_explosions: float
    seed_spread: dict[str, float]


@dataclass(frozen=True, slots=True)
class Robustness:
    """All effects within one family.

    Attributes:
        runs: clean and disturbed runs.
        perturbations: kinds, with their severities from mild to strong.
        scenarios: effects by (perturbation, severity, scheduler).
        overall: effects by (perturbation, scheduler), all severities together.
        clean_spread: (scheduler, objective) → spread over seeds without any disturbance.
    """

    runs: Runs
    objectives: tuple[str, ...]
    perturbations: dict[str, tuple[float, ...]]
    scenarios: dict[tuple[str, float, str], Effect]
    overall: dict[tuple[str, str], Effect]
    clean_spread: dict[tuple[str, str], float]


def robustness(runs: Runs, objectives: tuple[str, ...]) -> Robustness | None:
    """Return the effects of all perturbations; None if nothing was disturbed."""
    kinds: dict[str, tuple[float, ...]] = {}
    for scenario in runs.scenarios:
        if not scenario.is_clean:
            known = kinds.get(scenario.perturbation, ())
            kinds[scenario.perturbation] = tuple(sorted({*known, scenario.severity}))
    clean = runs.clean()
    if not kinds or not clean.scenarios:
        return None
    scenarios: dict[tuple[str, float, str], Effect] = {}
    overall: dict[tuple[str, str], Effect] = {}
    for kind, severities in kinds.items():
        for severity in severities:
            for effect in _effects(runs, clean, kind, severity, objectives):
                scenarios[kind, severity, effect.scheduler] = effect
        for effect in _effects(runs, clean, kind, None, objectives):
            overall[kind, effect.scheduler] = effect
    spreads = {objective: seed_spread(clean, objective) for objective in objectives}
    clean_spread = {
        (scheduler, objective): float(spreads[objective][row])
        for row, scheduler in enumerate(clean.schedulers)
        for objective in objectives
    }
    return Robustness(runs, objectives, kinds, scenarios, overall, clean_spread)


def _effects(
    runs: Runs, clean: Runs, kind: str, severity: float | None, objectives: tuple[str, ...]
) -> list[Effect]:
    """Return the effect on every scheduler, on the regimes that ran both disturbed and not."""
    disturbed = runs.only(
        lambda scenario, _: (
            scenario.perturbation == kind and (severity is None or scenario.severity == severity)
        )
    )
    regimes = {each.regime for each in disturbed.scenarios}
    regimes &= {each.regime for each in clean.scenarios}
    before = clean.only(lambda scenario, _: scenario.regime in regimes)
    after = disturbed.only(lambda scenario, _: scenario.regime in regimes)
    if not regimes:
        return []
    means = {name: (seed_means(after, name), seed_means(before, name)) for name in objectives}
    spreads = {name: seed_spread(after, name) for name in objectives}
    return [
        Effect(
            scheduler=scheduler,
            perturbation=kind,
            severity=severity,
            change={name: relative_difference(a[row], b[row]) for name, (a, b) in means.items()},
            explosions=_explosions(after, row),
            clean_explosions=_explosions(before, row),
            seed_spread={name: float(values[row]) for name, values in spreads.items()},
        )
        for row, scheduler in enumerate(runs.schedulers)
    ]


def _explosions(runs: Runs, row: int) -> float:
    return float(np.mean(runs.numbers["queue_exploded"][row]))
