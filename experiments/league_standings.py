"""Who is best: chosen on training windows, or known in hindsight; and how far others are from it.

Differences are relative, of means over windows: mean(a) / mean(b) − 1, with the 95 % interval that
`metrics.statistics` gives when windows are drawn again, the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from league_heuristics import LEAGUES, PREEMPTIVE, heuristics, may_play
from league_scenes import PARTS, SCENES, Part
from league_store import METRICS, Record

from yardmaster.metrics.catalogue import metric as described
from yardmaster.metrics.statistics import Interval, excludes_zero, paired_difference
from yardmaster.report.values import PERCENT, decimals, interval, metric_title, number

Verdict = Literal["wins", "no difference", "loses"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
HEURISTICS_TOLD = 6
"""Heuristics of each league in the short list."""


@dataclass(frozen=True)
class Standing:
    """A policy in one scene, by one metric, beside the heuristics of its league.

    Attributes:
        scene: its name.
        metric: what is compared.
        policy: who.
        value: its mean over validation windows.
        chosen: the heuristic that is best on training windows.
        chosen_value: that heuristic's mean over validation windows.
        to_chosen: relative difference of the policy to it.
        best: the heuristic that is best on validation windows, in hindsight.
        best_value: that heuristic's mean.
        to_best: relative difference of the policy to it.
    """

    scene: str
    metric: str
    policy: str
    value: float
    chosen: str
    chosen_value: float
    to_chosen: Interval
    best: str
    best_value: float
    to_best: Interval


def is_policy(name: str) -> bool:
    """Return whether somebody was trained: policies and choosers name themselves so."""
    return name.startswith(("policy:", "meta:"))


OBJECTIVES = {
    "p95": "p95_jct_s",
    "slowdown": "mean_bounded_slowdown",
    "jct": "mean_jct_s",
    "utilisation": "utilisation",
    "mixed": "mean_jct_s",
}
"""Words in what a policy says it was trained for → the metric that judges it. Of several objectives
at once the mean JCT is the one in the middle."""


def judged_by(objective: str) -> str:
    """Return the metric that judges a policy of some objective.

    The bounded slowdown judges those of several objectives, and those that say nothing.
    """
    said = objective.lower().replace("p95 jct", "p95").replace("p95_jct", "p95")
    found = {metric for word, metric in OBJECTIVES.items() if word in said}
    return found.pop() if len(found) == 1 else METRICS[0]


def is_better(metric: str) -> Literal["lower", "higher"]:
    """Return which values of a metric are better."""
    return "higher" if described(metric).better == "higher" else "lower"


def in_league(record: Record, league: str) -> list[str]:
    """Return the heuristics of a league that have played in a scene; none of them stops jobs."""
    played = record.entries
    return [
        name
        for name in heuristics()
        if name in played and may_play(played[name].information, league)
    ]


def without_twins(record: Record, names: Iterable[str]) -> list[str]:
    """Return the schedulers without those that do in every window what one before them does."""
    first: dict[bytes, str] = {}
    for name in names:
        values = record.entries[name].values
        first.setdefault(b"".join(values[part].tobytes() for part in PARTS), name)
    return list(first.values())


def ranked(record: Record, names: Iterable[str], part: Part, metric: str) -> list[str]:
    """Return schedulers, the best first; equal ones as they were given."""
    means = record.means(part, metric)
    sign = -1.0 if is_better(metric) == "higher" else 1.0
    return sorted(names, key=lambda name: sign * means[name])


def difference(record: Record, name: str, other: str, metric: str) -> Interval:
    """Return how a scheduler differs from another on validation windows, relatively."""
    one, two = (record.column(who, "validation", metric) for who in (name, other))
    return paired_difference(one, two).relative


def verdict(found: Interval, metric: str) -> Verdict:
    """Say in a word whether a difference is a gain, a loss, or neither for sure."""
    if not excludes_zero(found):
        return "no difference"
    return "wins" if (found.mean < 0) == (is_better(metric) == "lower") else "loses"


def standing(record: Record, policy: str, metric: str) -> Standing:
    """Hold a policy against the best heuristics of its league."""
    rivals = in_league(record, record.entries[policy].information)
    chosen = ranked(record, rivals, "training", metric)[0]
    best = ranked(record, rivals, "validation", metric)[0]
    means = record.means("validation", metric)
    return Standing(
        record.scene,
        metric,
        policy,
        means[policy],
        chosen,
        means[chosen],
        difference(record, policy, chosen, metric),
        best,
        means[best],
        difference(record, policy, best, metric),
    )


def percent(found: Interval) -> str:
    """Write a relative difference with its interval, in percent."""
    ends = interval(found.low, found.high, 1, PERCENT, signed=True)
    return f"{number(found.mean, 1, PERCENT, signed=True)} {ends}".strip()


def best_page(records: Sequence[Record]) -> str:
    """Return the best heuristics of each scene and league, in short."""
    lines = ["# The best heuristics of each scene and league", ""]
    lines += [f"Means over windows. Rank on training windows in brackets. {_known()}", ""]
    for record in records:
        scene = SCENES[record.scene]
        training, validation = record.windows
        lines += [
            f"## {record.scene}: {scene.title}",
            "",
            f"{training} training and {validation} validation windows of {scene.jobs} jobs.",
            "",
        ]
        for league in LEAGUES:
            lines += [f"- {league}, by bounded slowdown: {_shortlist(record, league)}"]
            lines += [f"  - {_others(record, league)}"]
        means = record.means("validation", METRICS[0])
        lines += [
            "- who may stop jobs: "
            + ", ".join(f"{name} {means[name]:.2f}" for name in PREEMPTIVE if name in means),
            "",
        ]
    return "\n".join(lines)


def _known() -> str:
    return "The leagues of those who read run times hold the blind, too."


def _shortlist(record: Record, league: str) -> str:
    metric = METRICS[0]
    names = without_twins(record, in_league(record, league))
    on_training = ranked(record, names, "training", metric)
    on_validation = ranked(record, names, "validation", metric)
    means = record.means("validation", metric)
    told = on_validation[:HEURISTICS_TOLD]
    told += [on_training[0]] if on_training[0] not in told else []
    return ", ".join(f"{name} {means[name]:.2f} ({on_training.index(name) + 1})" for name in told)


def _others(record: Record, league: str) -> str:
    """Return the best heuristic by each of the other metrics, on training and in hindsight."""
    told = []
    for metric in METRICS[1:]:
        names, means = in_league(record, league), record.means("validation", metric)
        chosen, best = (
            ranked(record, names, part, metric)[0] for part in ("training", "validation")
        )
        places = decimals(means.values())
        said = f"{chosen} {number(means[chosen], places)}"
        if chosen != best:
            said += f" (in hindsight {best} {number(means[best], places)})"
        told.append(f"{metric_title(metric)}: {said}")
    return "; ".join(told)
