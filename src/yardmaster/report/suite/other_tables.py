"""What disturbances, changes and missing parts do, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from yardmaster.report.suite.ablation import Ablation
from yardmaster.report.suite.columns import (
    Part,
    change_column,
    estimate_column,
    number_column,
    record_of,
    table,
    text_column,
)
from yardmaster.report.suite.measures import better, title, unit
from yardmaster.report.suite.recovery import recoveries
from yardmaster.report.suite.robustness import Effect, Robustness
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.summary_tables import left_out_words
from yardmaster.report.suite.words import counted, family_words
from yardmaster.report.tables import Record, Table
from yardmaster.report.values import PERCENT, plain


def robustness_table(found: Robustness, objective: str) -> Table:
    """Return the change of every scheduler under each perturbation, all severities together."""
    names = found.runs.schedulers
    kinds = list(found.perturbations)
    effects = {name: [found.overall[kind, name] for kind in kinds] for name in names}
    order = sorted(names, key=lambda name: fmean(e.change[objective].mean for e in effects[name]))
    parts: list[Part] = [text_column("scheduler", order)]
    for place, kind in enumerate(kinds):
        changes = [effects[name][place].change[objective] for name in order]
        parts.append(change_column(kind, changes))
    spread = [fmean(e.seed_spread[objective] for e in effects[name]) for name in order]
    parts += [
        number_column("clean explosions", [effects[n][0].clean_explosions for n in order], PERCENT),
        number_column(
            "explosions", [fmean(e.explosions for e in effects[name]) for name in order], PERCENT
        ),
        number_column(
            "clean seed sd", [found.clean_spread[name, objective] for name in order], PERCENT
        ),
        number_column("seed sd", spread, PERCENT),
    ]
    records = [_record(effect, found) for name in order for effect in effects[name]]
    return table(
        f"{plain(found.runs.family)}: change of {title(objective)} under perturbations",
        parts,
        records,
        legend=_legend(found),
        notes=left_out_words(found.runs),
    )


def scenario_table(found: Robustness) -> Table:
    """Return every perturbation of every severity, for every scheduler."""
    effects = list(found.scenarios.values())
    parts = [
        text_column("perturbation", [effect.perturbation for effect in effects]),
        number_column("severity", [effect.severity or 0.0 for effect in effects]),
        text_column("scheduler", [effect.scheduler for effect in effects]),
        *(
            change_column(f"Δ {title(name)}", [effect.change[name] for effect in effects])
            for name in found.objectives
        ),
        number_column("explosions", [effect.explosions for effect in effects], PERCENT),
        number_column(
            "seed sd", [effect.seed_spread[found.objectives[0]] for effect in effects], PERCENT
        ),
    ]
    return table(
        f"{plain(found.runs.family)}: {counted(len(effects), 'scenario')}",
        parts,
        [_record(effect, found) for effect in effects],
        legend=_legend(found),
        notes=left_out_words(found.runs),
    )


def _legend(found: Robustness) -> tuple[str, ...]:
    return (
        (
            f"Change against the same regimes undisturbed, means over {family_words(found.runs)};"
            f" [low, high]: 95 % interval over {counted(len(found.runs.seeds), 'paired seed')}."
        ),
        (
            "Explosions: share of the runs whose queue exploded. Seed sd: standard deviation over"
            " seeds / mean, averaged over regimes. Clean: without disturbance."
        ),
    )


def _record(effect: Effect, found: Robustness) -> Record:
    about: Record = {
        "family": found.runs.family,
        "perturbation": effect.perturbation,
        "severity": effect.severity,
        "scheduler": effect.scheduler,
    }
    numbers = {f"change_{name}": effect.change[name] for name in found.objectives}
    spreads = {f"seed_sd_{name}": effect.seed_spread[name] for name in found.objectives}
    explosions = {"explosions": effect.explosions, "clean_explosions": effect.clean_explosions}
    return about | record_of(numbers) | record_of(explosions) | record_of(spreads)


def recovery_table(runs: Runs) -> Table | None:
    """Return how long the queue takes to recover from changes; None if nothing changes."""
    found = sorted(recoveries(runs), key=lambda each: each.mean_s.mean)
    if not found:
        return None
    times = [each.mean_s for each in found]
    parts = [
        text_column("scheduler", [each.scheduler for each in found]),
        estimate_column("recovery", times, unit("recovery_s", (each.mean for each in times))),
        number_column("recovered", [each.recovered for each in found], PERCENT),
    ]
    records: list[Record] = [
        {
            "family": runs.family,
            "scheduler": each.scheduler,
            **record_of({"recovery_s": each.mean_s, "recovered": each.recovered}),
        }
        for each in found
    ]
    return table(
        f"{plain(runs.family)}: recovery after changes",
        parts,
        records,
        legend=(
            (
                "Recovery: time after a change until the queue is half its maximum since, mean over"
                f" the changes of a run, {family_words(runs)} and seeds; [low, high]: 95 % interval"
                f" over {counted(len(runs.seeds), 'seed')}."
            ),
            (
                "Recovered: share of the runs that recovered from every change; the others have no"
                " time."
            ),
        ),
        notes=left_out_words(runs),
    )


def ablation_table(found: Ablation, measures: Sequence[str]) -> Table:
    """Return by how much every number changes when a part is left out."""
    parts = [text_column("variant", found.variants)]
    for place, name in enumerate(measures):
        changes = [found.change(variant, name) for variant in found.variants]
        part = change_column(f"Δ {title(name)}", changes, importance=place)
        parts.append(part if better(name) != "higher" else _turned(part))
    records: list[Record] = [
        {
            "variant": variant,
            "against": found.whole,
            **record_of({f"change_{name}": found.change(variant, name) for name in measures}),
        }
        for variant in found.variants
    ]
    return table(
        f"What each part is worth: change against {plain(found.whole)}",
        parts,
        records,
        legend=(
            (
                f"Relative change when a part is left out, of explosions and gaps the difference"
                f" in percentage points; [low, high]: 95 % interval over"
                f" {counted(found.units, found.unit_name)}, paired."
            ),
        ),
    )


def _turned(part: Part) -> Part:
    """Return a column of which more is better: its tones are the other way round."""
    column, cells = part
    tones = {"better": "worse", "worse": "better"}
    return column, [cell._replace(tone=tones.get(cell.tone, cell.tone)) for cell in cells]  # type: ignore[arg-type]
