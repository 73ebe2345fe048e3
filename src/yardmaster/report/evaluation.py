"""What a contest between policies and schedulers looks like: a table, sentences, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from yardmaster.experiments.contest import LEAST_UNITS, Contest, Entry, Verdict
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.metrics.statistics import Interval
from yardmaster.report.drawing import INK, Figure, draw
from yardmaster.report.tables import Cell, Column, Table, Tone
from yardmaster.report.values import (
    PERCENT,
    PLAIN,
    Unit,
    decimals,
    duration_unit,
    interval,
    number,
    plain,
    sentence,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

TITLES = {
    "returns": "return",
    "jct_s": "mean JCT",
    "wait_s": "mean wait",
    "bounded_slowdown": "bounded slowdown",
    "slowdown": "slowdown",
    "utilisation": "utilisation",
    "makespan_s": "makespan",
    "unfinished": "unfinished jobs",
}
HOW = {"policy": "policy", "played": "in the environment", "simulated": "simulated"}
SETS = {"train": "TRAIN", "val": "VAL", "report": "REPORT", "all": "ALL"}
PANELS_ACROSS = 2
"""Sets drawn side by side; further ones below."""
_BESIDE = (("bounded_slowdown", 5), ("wait_s", 4), ("utilisation", 6), ("unfinished", 3))
"""Metrics shown beside the one that counts, and how soon each is left out of a narrow table."""
_TONES: dict[Verdict, Tone] = {"better": "better", "worse": "worse"}
_COLOUR = "#0072B2"


def set_title(split: str) -> str:
    """Return what a set is called on paper; those of a scene have its name behind them."""
    name, _, scene = split.partition(" ")
    return f"{SETS[name]} {plain(scene)}" if scene else SETS[name]


def contest_tables(contest: Contest) -> list[Table]:
    """Return one table per set of episodes, the best player first; the last has the legend."""
    last = contest.splits[-1]
    return [_table(contest, split, is_last=split == last) for split in contest.splits]


def _table(contest: Contest, split: str, *, is_last: bool) -> Table:
    ranked = contest.ranked(split)
    means = [contest.mean(entry, split) for entry in ranked]
    unit = unit_of(contest.metric, means)
    parts = [
        (Column("player", align="left"), [_name(entry) for entry in ranked]),
        (Column("information", align="left"), [Cell(entry.information) for entry in ranked]),
        (Column("run", align="left", importance=2), [Cell(HOW[entry.how]) for entry in ranked]),
        (Column(TITLES[contest.metric], unit.symbol), _estimates(means, unit)),
        *(part for policy in contest.policies for part in _against(contest, policy, split, unit)),
        *_beside(contest, split, ranked),
    ]
    columns, cells = zip(*parts, strict=True)
    return Table(
        title=f"{set_title(split)}: {plain(contest.task)}, {contest.episodes} episodes",
        columns=columns,
        rows=tuple(zip(*cells, strict=True)),
        legend=_legend(contest) if is_last else (),
        notes=tuple(map(plain, contest.notes)) if is_last else (),
        facts={"task": contest.task, "metric": contest.metric, "set": split},
        records=tuple(contest.records(split)),
    )


def unit_of(metric: str, means: Sequence[Interval]) -> Unit:
    """Return the unit a metric is written in."""
    if metric.endswith("_s"):
        return duration_unit(each.mean for each in means)
    return PERCENT if metric == "utilisation" else PLAIN


def _name(entry: Entry) -> Cell:
    return Cell(plain(entry.name), "strong" if entry.is_policy else "")


def _estimates(means: Sequence[Interval], unit: Unit) -> list[Cell]:
    places = decimals((end for each in means for end in (each.mean, each.low)), unit)
    return [Cell(estimate(each, places, unit)) for each in means]


def estimate(each: Interval, places: int, unit: Unit = PLAIN, *, signed: bool = False) -> str:
    """Write a number and its interval."""
    ends = interval(each.low, each.high, places, unit, signed=signed)
    return f"{number(each.mean, places, unit, signed=signed)} {ends}".rstrip()


def _against(
    contest: Contest, policy: Entry, split: str, unit: Unit
) -> list[tuple[Column, list[Cell]]]:
    """Return two columns: by how much a policy differs from each player, and what that means."""
    ranked = contest.ranked(split)
    gaps = [contest.difference(policy, entry, split) for entry in ranked]
    places = decimals((end for gap in gaps for end in (gap.mean, gap.low)), unit)
    differences, verdicts = [], []
    for entry, gap in zip(ranked, gaps, strict=True):
        verdict = contest.verdict(policy, entry, split)
        is_itself = entry is policy
        text = "" if is_itself else estimate(gap, places, unit, signed=True)
        differences.append(Cell(text, _TONES.get(verdict, "")))
        verdicts.append(Cell("" if is_itself else verdict, _TONES.get(verdict, "")))
    name = plain(policy.name)
    return [
        (Column(f"{name} − player", unit.symbol), differences),
        (Column(f"{name} is", align="left"), verdicts),
    ]


def _beside(
    contest: Contest, split: str, ranked: Sequence[Entry]
) -> list[tuple[Column, list[Cell]]]:
    parts = []
    for metric, importance in _BESIDE:
        values = [contest.mean(entry, split, metric) for entry in ranked]
        is_news = metric != "unfinished" or any(value.mean > 0 for value in values)
        if metric != contest.metric and is_news:
            unit = unit_of(metric, values)
            places = decimals((value.mean for value in values), unit)
            cells = [Cell(number(value.mean, places, unit)) for value in values]
            parts.append((Column(TITLES[metric], unit.symbol, importance=importance), cells))
    return parts


def _legend(contest: Contest) -> tuple[str, ...]:
    better = "higher" if HIGHER_IS_BETTER[contest.metric] else "lower"
    title = sentence(TITLES[contest.metric])
    return (
        f"{title}: {better} is better. [low, high]: 95 % interval, differences paired by episode.",
        f"Over fewer than {LEAST_UNITS} units there is no interval and no verdict.",
        "Better, worse: the interval of the difference excludes zero.",
        "In the environment: with the window and the choices of the first policy.",
        "Simulated: with the whole queue, and whatever else the scheduler does.",
    )


def findings(contest: Contest) -> list[str]:
    """Say of every policy and set whom it beats, whom it does not, and to whom it loses."""
    return [
        _finding(contest, policy, split) for policy in contest.policies for split in contest.splits
    ]


def _finding(contest: Contest, policy: Entry, split: str) -> str:
    others = [entry for entry in contest.ranked(split) if entry is not policy]
    by_verdict: dict[Verdict, list[str]] = {}
    for entry in others:
        verdict = contest.verdict(policy, entry, split)
        by_verdict.setdefault(verdict, []).append(plain(entry.name))
    words: tuple[tuple[Verdict, str], ...] = (
        ("worse", "loses to"),
        ("no difference", "does not differ clearly from"),
        ("better", "beats"),
        ("too few units", "played on too few units to tell it from"),
        ("not comparable", "cannot be compared with"),
    )
    told = [
        f"{said} {', '.join(by_verdict[verdict])}"
        for verdict, said in words
        if verdict in by_verdict
    ]
    by = f"by {TITLES[contest.metric]} on {set_title(split)}"
    return (
        f"{plain(policy.name)} {'; '.join(told) or 'had nobody to play against'} ({by})."
        f"{_unequal(policy, others)}"
    )


def _unequal(policy: Entry, others: Sequence[Entry]) -> str:
    """Say which opponents read true run times that the policy may not see."""
    if policy.information == "clairvoyant":
        return ""
    knowing = [entry for entry in others if entry.information == "clairvoyant"]
    if not knowing:
        return ""
    fairer = [f"{entry.name}~estimate" for entry in knowing if not entry.is_policy]
    hint = f": fairer are {plain(', '.join(fairer))}" if fairer else ""
    names = plain(", ".join(entry.name for entry in knowing))
    verb = "read" if len(knowing) > 1 else "reads"
    return f" {names} {verb} true run times, {plain(policy.name)} does not{hint}."


def contest_figure(contest: Contest) -> Figure:
    """Draw every player's mean with its interval, one panel per set, the best on top."""
    title = TITLES[contest.metric]
    across = min(len(contest.splits), PANELS_ACROSS)
    rows = -(-len(contest.splits) // across)

    def paint(canvas: Canvas) -> None:
        panels = canvas.subplots(rows, across, squeeze=False).ravel()
        for axes in panels[len(contest.splits) :]:
            axes.set_visible(False)
        for axes, split in zip(panels, contest.splits, strict=False):
            _paint(axes, contest, split)

    last = contest.splits[-1]
    told = ", ".join(
        f"{plain(entry.name)} {contest.mean(entry, last).mean:.4g}"
        for entry in contest.ranked(last)
        if not isnan(contest.mean(entry, last).mean)
    )
    return draw(
        "evaluation",
        title=f"{sentence(title)} of each player",
        caption="Dots are means over episodes, lines their 95 % intervals; policies are filled.",
        alt=f"{sentence(title)} on {set_title(last)}, best first: {told}.",
        height_in=rows * max(1.0 + 0.28 * len(contest.entries), 2.2),
        paint=paint,
    )


def _paint(axes: Axes, contest: Contest, split: str) -> None:
    ranked = [e for e in contest.ranked(split) if not isnan(contest.mean(e, split).mean)]
    means = [contest.mean(entry, split) for entry in ranked]
    unit = unit_of(contest.metric, means)
    for place, (entry, each) in enumerate(zip(ranked, means, strict=True)):
        colour = _COLOUR if entry.is_policy else INK
        face = colour if entry.is_policy else "none"
        ends = [each.low / unit.size, each.high / unit.size]
        axes.plot(ends, [place, place], color=colour, linewidth=1.4)
        axes.plot([each.mean / unit.size], [place], "o", color=colour, markerfacecolor=face)
    axes.set_yticks(range(len(ranked)), [plain(entry.name) for entry in ranked])
    axes.set_ylim(len(ranked) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.set_title(set_title(split), fontsize=10, color=INK)
    symbol = f" ({unit.symbol})" if unit.symbol else ""
    axes.set_xlabel(f"{TITLES[contest.metric]}{symbol}")
