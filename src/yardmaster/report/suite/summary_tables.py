"""Who is best: every scheduler over all regimes, and the best scheduler of every regime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from yardmaster.experiments.suite.results import GAP
from yardmaster.metrics.statistics import Interval, excludes_zero
from yardmaster.report.legend import INFORMATION_MARKS
from yardmaster.report.suite.columns import (
    Part,
    change_column,
    estimate_column,
    estimate_text,
    number_column,
    record_of,
    table,
    text_column,
)
from yardmaster.report.suite.estimates import (
    best_fixed,
    in_hindsight,
    mean_gaps,
    means,
    relative_difference,
    seed_means,
)
from yardmaster.report.suite.measures import title, unit
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.words import counted, family_words
from yardmaster.report.tables import Cell, Column, Record, Table
from yardmaster.report.values import PERCENT, decimals, number, plain, sentence

ORACLE = "best fixed in hindsight"
"""The row of the scheduler that is chosen anew for every run, knowing how all of them end."""
_BESIDE = (
    ("mean_jct_s", 1), ("p95_jct_s", 2), ("p99_jct_s", 8), ("mean_bounded_slowdown", 3),
    ("sla", 4), ("utilisation", 9), ("max_queue", 5), ("queue_exploded", 6), ("jain_jobs", 7),
)  # fmt: skip
"""Numbers shown beside the objective, and how soon each is left out where space is short."""
_IF_ANY = (("unfinished", 0), ("failed", 0), ("switches", 10), ("choice_entropy", 11))
"""Numbers that are news as soon as one scheduler has any."""


def scheduler_table(runs: Runs, objective: str) -> Table:
    """Return every scheduler over all regimes of a family, best first, and the hindsight best.

    Args:
        runs: undisturbed runs.
        objective: what schedulers are ranked by; less is better.
    """
    whole = _with_oracle(runs, objective)
    averages = seed_means(whole, objective).mean(axis=1)
    order = sorted(
        range(len(whole.schedulers)),
        key=lambda row: (whole.schedulers[row] == ORACLE, np.isnan(averages[row]), averages[row]),
    )
    baseline = best_fixed(runs, objective)
    parts = [*_names(whole, order), *_judgement(runs, whole, objective, baseline, order)]
    parts += _beside(whole, objective, order)
    return table(
        f"{plain(runs.family)}: schedulers by {title(objective)}",
        parts,
        list(_records(whole, order, objective, baseline)),
        legend=_legend(runs, objective, baseline),
        notes=left_out_words(runs),
    )


def left_out_words(runs: Runs) -> tuple[str, ...]:
    """Say what does not count because runs are missing."""
    if not runs.left_out:
        return ()
    named = ", ".join(plain(name) for name in runs.left_out[:8])
    more = f" and {len(runs.left_out) - 8} more" if len(runs.left_out) > 8 else ""
    return (f"Left out of {plain(runs.family)}, since runs are missing: {named}{more}.",)


def _with_oracle(runs: Runs, objective: str) -> Runs:
    chosen = in_hindsight(runs, objective)
    return replace(
        runs,
        schedulers=(*runs.schedulers, ORACLE),
        information={**runs.information, ORACLE: ""},
        numbers={
            name: np.concatenate([values, chosen[name]]) for name, values in runs.numbers.items()
        },
    )


def _names(whole: Runs, order: Sequence[int]) -> list[Part]:
    names = [whole.schedulers[row] for row in order]
    marks = [INFORMATION_MARKS.get(whole.information[name], "") for name in names]
    return [
        text_column("scheduler", names, ["strong" if name == names[0] else "" for name in names]),
        (Column("", align="left"), [Cell(mark) for mark in marks]),
    ]


def _judgement(
    runs: Runs, whole: Runs, objective: str, baseline: str, order: Sequence[int]
) -> list[Part]:
    """Return the objective, its difference from the best fixed scheduler's, and the gap."""
    every = means(whole, objective)
    estimates = [every[row] for row in order]
    found = [*mean_gaps(runs, objective), Interval(0.0, 0.0, 0.0)]
    wins = best_counts(runs, objective)
    places = [row for row in order if row < len(runs.schedulers)]
    counts = [float(wins[row]) if row in places else float("nan") for row in order]
    return [
        estimate_column(title(objective), estimates, unit(objective, (e.mean for e in estimates))),
        change_column(
            f"Δ vs {plain(baseline)}",
            [_difference(whole, row, objective, baseline) for row in order],
            none="baseline",
        ),
        change_column("hindsight gap", [found[row] for row in order]),
        number_column("best in", counts, importance=12),
    ]


def _difference(whole: Runs, row: int, objective: str, baseline: str) -> Interval | None:
    if whole.schedulers[row] == baseline:
        return None
    units = seed_means(whole, objective)
    return relative_difference(units[row], units[whole.row(baseline)])


def _beside(whole: Runs, objective: str, order: Sequence[int]) -> list[Part]:
    parts = []
    for name, importance in (*_BESIDE, *_IF_ANY):
        if name == objective or name not in whole.numbers:
            continue
        values = seed_means(whole, name).mean(axis=1)[list(order)]
        is_news = (name, importance) in _BESIDE or bool((values > 0).any())
        if is_news and np.isfinite(values).any():
            written_in = unit(name, values.tolist())
            parts.append(number_column(title(name), values.tolist(), written_in, importance))
    return parts


def best_counts(runs: Runs, objective: str) -> list[int]:
    """Return in how many regimes each scheduler has the least mean, alone or with others."""
    values = runs.numbers[objective].mean(axis=2)
    best = np.nanmin(values, axis=0) if values.size else np.zeros(0)
    return [int(count) for count in (values == best).sum(axis=1)]


def _records(whole: Runs, order: Sequence[int], objective: str, baseline: str) -> Iterator[Record]:
    """Yield every number of every scheduler for programs; what is judged by has intervals."""
    judged = [name for name in (objective, GAP + objective) if name in whole.numbers]
    estimates = {name: means(whole, name) for name in judged}
    averages = {name: seed_means(whole, name).mean(axis=1) for name in whole.numbers}
    for row in order:
        name = whole.schedulers[row]
        about: Record = {
            "family": whole.family,
            "scheduler": name,
            "information": whole.information[name] or None,
            "baseline": baseline,
        }
        difference = _difference(whole, row, objective, baseline) or Interval(0.0, 0.0, 0.0)
        judgement = {"difference": difference} | {key: estimates[key][row] for key in judged}
        rest = {key: float(each[row]) for key, each in averages.items() if key not in judged}
        yield about | record_of(judgement) | record_of(rest)


def _legend(runs: Runs, objective: str, baseline: str) -> tuple[str, ...]:
    seeds = counted(len(runs.seeds), "paired seed")
    marks = {each: INFORMATION_MARKS.get(each, "") for each in runs.information.values()}
    known = ", ".join(f"{mark} {name}" for name, mark in sorted(marks.items()) if mark)
    return (
        (
            f"{sentence(title(objective))}: lower is better. Means over {family_words(runs)} and"
            f" {seeds}; [low, high]: 95 % interval over seeds, paired in comparisons."
        ),
        (
            f"Δ vs {plain(baseline)}: against the fixed scheduler with the least mean. Hindsight"
            " gap: against the best fixed scheduler of each run, negative is better than all."
        ),
        (
            f"{sentence(ORACLE)}: in each run the numbers of the fixed scheduler with the least"
            f" {title(objective)}. Best in: regimes in which none has a lower mean."
        ),
        *((f"Knows of run times: {known}.",) if known else ()),
    )


def regime_table(runs: Runs, objectives: Sequence[str]) -> Table:
    """Return the best scheduler of every regime by each objective, and how far the next one is."""
    names = [scenario.regime for scenario in runs.scenarios]
    parts: list[Part] = [text_column("regime", names)]
    records: list[Record] = [{"family": runs.family, "regime": name} for name in names]
    for objective in objectives:
        found = [_winner(runs, place, objective) for place in range(len(names))]
        values = [value for _, value, _ in found]
        written_in = unit(objective, values)
        places = decimals(values, written_in)
        parts += [
            text_column(f"least {title(objective)}", [_named(best) for best, _, _ in found]),
            (
                Column(title(objective), written_in.symbol),
                [Cell(number(value, places, written_in)) for value in values],
            ),
            (Column("next", PERCENT.symbol), [_margin_cell(margin) for _, _, margin in found]),
        ]
        for record, (best, value, margin) in zip(records, found, strict=True):
            record[f"best_{objective}"] = " ".join(best)
            record.update(record_of({objective: value, f"next_{objective}": margin}))
    return table(
        f"{plain(runs.family)}: the best scheduler of every regime",
        parts,
        records,
        legend=(
            (
                "Next: how much worse the best of the other schedulers is, with its 95 % interval"
                f" over {counted(len(runs.seeds), 'paired seed')}; an interval that holds 0"
                " means that either could be best."
            ),
        ),
        notes=left_out_words(runs),
    )


def _winner(runs: Runs, place: int, objective: str) -> tuple[list[str], float, Interval]:
    """Return the best schedulers of a regime, their value, and the distance of the next one."""
    values = runs.numbers[objective][:, place]
    averages = np.nan_to_num(values.mean(axis=1), nan=np.inf)
    least = averages.min()
    best = np.flatnonzero(averages == least)
    others = np.flatnonzero(averages > least)
    nothing = Interval(float("nan"), float("nan"), float("nan"))
    margin = nothing
    if len(others):
        second = others[averages[others].argmin()]
        margin = relative_difference(values[second], values[best[0]])
    return [runs.schedulers[row] for row in best], float(least), margin


def _named(best: Sequence[str]) -> str:
    return best[0] if len(best) == 1 else f"{best[0]} and {len(best) - 1} more"


def _margin_cell(margin: Interval) -> Cell:
    text = estimate_text(margin, 1, PERCENT, signed=True)
    return Cell(text, "strong" if excludes_zero(margin) else "")
