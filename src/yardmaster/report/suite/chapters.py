"""The report's content: chapters of tables and figures, whatever they are written to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from yardmaster.report.suite import other_tables
from yardmaster.report.suite.ablation import MEASURES, ablation_bars
from yardmaster.report.suite.experiment import Experiment
from yardmaster.report.suite.gap_figures import gap_bars, gap_map
from yardmaster.report.suite.level_figures import (
    completion_curves,
    levels,
    tail_latency,
    utilisation_by_gpus,
)
from yardmaster.report.suite.looks import Looks, looks_of
from yardmaster.report.suite.robustness import robustness
from yardmaster.report.suite.robustness_figures import by_severity, radar, recovery
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.sketches import Sketch
from yardmaster.report.suite.summary_tables import regime_table, scheduler_table
from yardmaster.report.suite.words import counted
from yardmaster.report.tables import Table
from yardmaster.report.values import plain

LEVELS = ("mean_jct_s", "mean_bounded_slowdown")
"""Numbers that have a figure of their own."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table and the name of its files."""

    name: str
    table: Table
    is_folded: bool = False
    """Whether a page shows it on request only."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of the report.

    Attributes:
        name: short name, unique within the report.
        title: heading.
        tables: tables, shown first.
        figures: figures.
        maps: tall figures that stand beside each other, shown last.
    """

    name: str
    title: str
    tables: tuple[NamedTable, ...]
    figures: tuple[Sketch, ...]
    maps: tuple[Sketch, ...] = field(default=())

    @property
    def sketches(self) -> tuple[Sketch, ...]:
        """All figures."""
        return (*self.figures, *self.maps)


def chapters(experiment: Experiment) -> tuple[Chapter, ...]:
    """Return every chapter the experiment has runs for."""
    looks = looks_of(experiment.schedulers)
    found: list[Chapter] = []
    for runs in experiment.families:
        clean = runs.clean()
        if len(clean):
            found.append(_schedulers(experiment, clean, looks))
        found += _robustness(experiment, runs, looks)
        found += _recovery(clean, looks)
    found += _ablation(experiment)
    return tuple(found)


def _schedulers(experiment: Experiment, runs: Runs, looks: Looks) -> Chapter:
    objectives = experiment.objectives
    tables = [
        NamedTable(
            f"schedulers-{file_word(objective)}-{runs.family}",
            scheduler_table(runs, objective),
            is_folded=objective != objectives[0],
        )
        for objective in objectives
    ]
    tables.append(
        NamedTable(f"regimes-{runs.family}", regime_table(runs, objectives), is_folded=True)
    )
    figures = [
        gap_bars(runs, looks, objectives),
        *(levels(runs, looks, name) for name in LEVELS),
        tail_latency(runs, looks),
        *_completion(experiment, runs, looks),
        utilisation_by_gpus(runs, looks),
    ]
    return Chapter(
        f"schedulers-{runs.family}",
        f"Schedulers on {plain(runs.family)}: {counted(len(runs.scenarios), 'regime')},"
        f" {counted(len(runs.seeds), 'paired seed')}",
        tuple(tables),
        tuple(figure for figure in figures if figure is not None),
        tuple(gap_map(runs, objective) for objective in objectives),
    )


def _completion(experiment: Experiment, runs: Runs, looks: Looks) -> Iterator[Sketch]:
    if experiment.jct_quantiles_s is not None:
        yield completion_curves(runs, looks, experiment.jct_quantiles_s)


def _robustness(experiment: Experiment, runs: Runs, looks: Looks) -> Iterator[Chapter]:
    found = robustness(runs, experiment.objectives)
    if found is None:
        return
    tables = [
        NamedTable(
            f"robustness-{file_word(objective)}-{runs.family}",
            other_tables.robustness_table(found, objective),
            is_folded=objective != found.objectives[0],
        )
        for objective in found.objectives
    ]
    scenarios = other_tables.scenario_table(found)
    tables.append(NamedTable(f"scenarios-{runs.family}", scenarios, is_folded=True))
    star = radar(found, looks)
    figures = [by_severity(found, looks, objective) for objective in found.objectives]
    yield Chapter(
        f"robustness-{runs.family}",
        f"Robustness on {plain(runs.family)}: {counted(len(found.scenarios), 'scenario')}",
        tuple(tables),
        (*((star,) if star else ()), *figures),
    )


def _recovery(runs: Runs, looks: Looks) -> Iterator[Chapter]:
    table, figure = other_tables.recovery_table(runs), recovery(runs, looks)
    if table is not None and figure is not None:
        yield Chapter(
            f"recovery-{runs.family}",
            f"Recovery after changes on {plain(runs.family)}",
            (NamedTable(f"recovery-{runs.family}", table),),
            (figure,),
        )


def _ablation(experiment: Experiment) -> Iterator[Chapter]:
    found = experiment.ablation
    if found is None:
        return
    measures = [name for name in MEASURES if (found.whole, name) in found.values]
    yield Chapter(
        "ablation",
        "Ablation",
        (NamedTable("ablation", other_tables.ablation_table(found, found.measures)),),
        (ablation_bars(found, measures),),
    )


def file_word(objective: str) -> str:
    """Return the name of an objective for the name of a file."""
    return objective.removesuffix("_s").replace("_", "-")
