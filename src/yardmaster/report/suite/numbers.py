"""The figures of an experiment as plain numbers, for the part of it that somebody asks about.

Estimates and intervals come from the functions behind the report's tables and figures; nothing is
computed here in another way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.results import GAP, is_fixed
from yardmaster.metrics.statistics import Interval
from yardmaster.model.workload import FloatArray
from yardmaster.names import unknown
from yardmaster.report.evaluation import TITLES, unit_of
from yardmaster.report.lookahead import Lookahead
from yardmaster.report.suite.ablation import SHARES, Ablation
from yardmaster.report.suite.estimates import gaps, mean_gaps, means
from yardmaster.report.suite.experiment import Experiment
from yardmaster.report.suite.looks import short_names
from yardmaster.report.suite.measures import better, definition, title, unit
from yardmaster.report.suite.robustness import robustness
from yardmaster.report.suite.runs import Runs, Scenario
from yardmaster.report.values import plain, sentence

Record = dict[str, Any]
MOST_REGIMES = 400
"""Rows of a map; a page cannot show more at once."""
_NOT_SHOWN = ("jobs", "cell", "training_seed")


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody asks about.

    Attributes:
        family: family of regimes; the first one if None.
        metric: the number of the map; the first objective if None.
        schedulers: those that are shown; all if empty. The best in hindsight is that of all.
        labels: label of regimes → its values that count, as text; labels left out count with all.
    """

    family: str | None = None
    metric: str | None = None
    schedulers: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def experiment_numbers(experiment: Experiment, choice: Choice) -> Record:
    """Return the numbers of every figure of the part asked for.

    Raises:
        YardmasterError: if a name is unknown, or nothing is left.
    """
    runs = _family(experiment, choice.family)
    part = _part(runs, choice)
    metrics = _metrics(runs, experiment.objectives)
    metric = choice.metric or experiment.objectives[0]
    if metric not in metrics:
        raise unknown("metric", metric, metrics)
    rows = _rows(runs, choice)
    clean = part.clean()
    return {
        "name": plain(experiment.name),
        "description": plain(experiment.description),
        "runs": experiment.rows,
        "failures": [plain(each) for each in experiment.failures[:20]],
        "failed": len(experiment.failures),
        "families": [each.family for each in experiment.families],
        "family": runs.family,
        "metrics": [_metric(name) for name in metrics],
        "metric": metric,
        "objectives": list(experiment.objectives),
        "labels": _labels(runs),
        "all_schedulers": [_scheduler(runs, row) for row in range(len(runs.schedulers))],
        "schedulers": rows,
        "seeds": len(runs.seeds),
        "regimes": len({each.regime for each in clean.scenarios}),
        "left_out": [plain(each) for each in runs.left_out],
        "map": _map(clean, metric, experiment.objectives, rows),
        "levels": _picked(means(clean, metric), rows) if len(clean) else [],
        "gaps": {
            objective: _picked(mean_gaps(clean, objective), rows)
            for objective in experiment.objectives
            if len(clean)
        },
        "robustness": _robustness(part, metric, experiment.objectives, rows),
        "ablation": _ablation(experiment.ablation),
    }


def _family(experiment: Experiment, name: str | None) -> Runs:
    families = {runs.family: runs for runs in experiment.families}
    if not families:
        raise YardmasterError(f"{experiment.name} has no complete regimes yet.")
    if name is None:
        return experiment.families[0]
    if name not in families:
        raise unknown("family of regimes", name, families)
    return families[name]


def _part(runs: Runs, choice: Choice) -> Runs:
    """Return the runs of the regimes that are asked for."""
    known = {name for labels in runs.labels for name in labels}
    for name in choice.labels:
        if name not in known:
            raise unknown("label of regimes", name, known)

    def wanted(_: Scenario, labels: Mapping[str, Any]) -> bool:
        return all(_text(labels.get(name)) in values for name, values in choice.labels.items())

    part = runs.only(wanted) if choice.labels else runs
    if not part.scenarios:
        raise YardmasterError("No regime has all these labels.")
    return part


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rows(runs: Runs, choice: Choice) -> list[int]:
    """Return where the schedulers asked for stand."""
    for name in choice.schedulers:
        if name not in runs.schedulers:
            raise unknown("scheduler", name, runs.schedulers)
    return [
        row
        for row, name in enumerate(runs.schedulers)
        if not choice.schedulers or name in choice.schedulers
    ]


def _metrics(runs: Runs, objectives: Iterable[str]) -> list[str]:
    """Return the numbers there are, objectives first; those nobody has are left out."""
    others = [
        name
        for name, values in runs.numbers.items()
        if not name.startswith(GAP) and name not in _NOT_SHOWN and not _is_missing(values)
    ]
    return list(dict.fromkeys([*objectives, *others]))


def _is_missing(values: FloatArray) -> bool:
    return all(math.isnan(value) for value in values.ravel().tolist())


def _metric(name: str) -> Record:
    return {
        "name": name,
        "title": sentence(title(name)),
        "better": better(name),
        "definition": definition(name),
    }


def _labels(runs: Runs) -> list[Record]:
    """Return the labels that tell regimes apart, with their values."""
    names = dict.fromkeys(name for labels in runs.labels for name in labels)
    found = [(name, runs.values_of(name)) for name in names]
    return [
        {"name": name, "values": [_text(value) for value in values]}
        for name, values in found
        if 1 < len(values) <= 24
    ]


def _scheduler(runs: Runs, row: int) -> Record:
    name = runs.schedulers[row]
    return {
        "name": plain(name),
        "short": short_names(runs.schedulers)[row],
        "information": runs.information.get(name, ""),
        "is_fixed": is_fixed(name),
    }


def _map(runs: Runs, metric: str, objectives: tuple[str, ...], rows: list[int]) -> Record:
    """Return the mean over seeds of the number, and of the gap where it is an objective."""
    shown = slice(0, MOST_REGIMES)
    values = runs.numbers[metric].mean(axis=2)
    written = unit(metric, values[rows].ravel().tolist())
    found: Record = {
        "regimes": [plain(each.regime) for each in runs.scenarios][shown],
        "more": max(len(runs.scenarios) - MOST_REGIMES, 0),
        "values": _table(values[rows].T[shown]),
        "unit": written.symbol,
        "size": written.size,
        "gaps": None,
    }
    if metric in objectives and len(runs):
        found["gaps"] = _table(gaps(runs, metric).mean(axis=2)[rows].T[shown])
    return found


def _robustness(
    runs: Runs, metric: str, objectives: tuple[str, ...], rows: list[int]
) -> Record | None:
    objective = metric if metric in objectives else objectives[0]
    found = robustness(runs, (objective,))
    if found is None:
        return None
    names = [found.runs.schedulers[row] for row in rows]
    kinds = [kind for kind in found.perturbations if (kind, names[0]) in found.overall]
    return {
        "objective": objective,
        "title": sentence(title(objective)),
        "perturbations": kinds,
        "severities": {kind: list(found.perturbations[kind]) for kind in kinds},
        "changes": [
            [_interval(found.overall[kind, name].change[objective]) for kind in kinds]
            for name in names
        ],
    }


def _ablation(found: Ablation | None) -> Record | None:
    if found is None:
        return None
    return {
        "whole": plain(found.whole),
        "variants": [plain(each) for each in found.variants],
        "units": found.units,
        "unit_name": found.unit_name,
        "measures": [
            {
                "name": name,
                "title": sentence(title(name.removeprefix(GAP))) + _gap_words(name),
                "better": "lower" if name.startswith(GAP) else better(name),
                "is_share": name in SHARES,
                "changes": [_interval(found.change(variant, name)) for variant in found.variants],
            }
            for name in found.measures
        ],
    }


def _gap_words(name: str) -> str:
    return ": hindsight gap" if name.startswith(GAP) else ""


def lookahead_numbers(found: Lookahead) -> Record:
    """Return the numbers of the study of lookahead."""
    rows = list(found.scores)
    estimates = [found.mean(*row) for row in rows]
    written = unit_of(found.metric, estimates)
    return {
        "name": f"lookahead on {found.task}",
        "description": f"Networks trained for {found.steps:,} steps, with and without lookahead",
        "lookahead": {
            "title": TITLES[found.metric],
            "unit": written.symbol,
            "size": written.size,
            "trainings": found.trainings,
            "rows": [
                {"name": f"{arch}, {mode}"} | _interval(each)
                for (arch, mode), each in zip(rows, estimates, strict=True)
            ],
            "differences": [
                {"name": f"{arch}, {mode}"} | _interval(change)
                for arch, mode in rows
                if (change := found.difference(arch, mode)) is not None
            ],
        },
    }


def _picked(estimates: list[Interval], rows: list[int]) -> list[Record]:
    return [_interval(estimates[row]) for row in rows]


def _interval(each: Interval) -> Record:
    return {"mean": _number(each.mean), "low": _number(each.low), "high": _number(each.high)}


def _table(values: FloatArray) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in values.tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
