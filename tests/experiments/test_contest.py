"""Verdicts from numbers that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yardmaster.experiments.contest import Contest, Entry, by_unit, gap, verdict_of
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.metrics.statistics import Interval, bootstrap_mean, paired_difference

DICE = np.random.default_rng(11)
BASE = DICE.normal(10.0, 5.0, 40)


def entry(name: str, values: np.ndarray, *, how: str = "played", unfinished: float = 0.0) -> Entry:
    scores = dict.fromkeys(HIGHER_IS_BETTER, values)
    scores["unfinished"] = np.full(len(values), unfinished)
    return Entry(name, how, "blind", {"report": scores})


def contest(*entries: Entry, metric: str = "returns", units: np.ndarray | None = None) -> Contest:
    count = len(entries[0].scores["report"]["returns"])
    units = np.arange(count) if units is None else units
    return Contest("jobs on machines", metric, count, {"report": units}, entries)


def test_differences_are_paired():
    """A small steady gain is clear although the episodes differ far more than the players do."""
    gain = 0.5 + 0.1 * DICE.normal(size=40)
    policy, other = entry("p", BASE + gain, how="policy"), entry("o", BASE)
    game = contest(policy, other)
    found = game.difference(policy, other, "report")
    assert found == paired_difference(BASE + gain, BASE).absolute
    assert game.verdict(policy, other, "report") == "better"
    mine, theirs = game.mean(policy, "report"), game.mean(other, "report")
    assert mine.low < theirs.mean < mine.high  # unpaired, nobody could tell


@pytest.mark.parametrize("metric", list(HIGHER_IS_BETTER))
def test_what_is_better_depends_on_the_metric(metric: str):
    """More is better for returns and utilisation, and worse for times and slowdowns."""
    policy, other = entry("p", BASE + 1.0, how="policy"), entry("o", BASE)
    expected = "better" if HIGHER_IS_BETTER[metric] else "worse"
    if metric == "unfinished":  # as many as the other one
        expected = "no difference"
    assert contest(policy, other, metric=metric).verdict(policy, other, "report") == expected


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (Interval(1.0, 0.5, 1.5), "better"),
        (Interval(-1.0, -1.5, -0.5), "worse"),
        (Interval(1.0, -0.5, 2.5), "no difference"),
        (Interval(0.0, 0.0, 0.0), "no difference"),
        (Interval(1.0, math.nan, math.nan), "not comparable"),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_zero(difference: Interval, verdict: str):
    """Better and worse are said only where the whole interval agrees."""
    assert verdict_of(difference, "returns") == verdict


def test_who_leaves_jobs_unfinished_is_not_judged_by_the_others():
    """Means over finished jobs get no verdict where somebody left jobs; returns do."""
    policy = entry("p", BASE - 1.0, how="policy", unfinished=2.0)
    other = entry("o", BASE)
    game = contest(policy, other, metric="wait_s")
    assert game.difference(policy, other, "report").mean == pytest.approx(-1.0)
    assert game.verdict(policy, other, "report") == "not comparable"
    assert contest(policy, other).verdict(policy, other, "report") == "worse"


def test_units_count_once_however_many_episodes_they_have():
    """Repeating an episode is no new evidence: means and intervals stay what they were."""
    twice = np.repeat(BASE, 2)
    units = np.repeat(np.arange(len(BASE)), 2)
    policy = entry("p", twice, how="policy")
    assert contest(policy, units=units).mean(policy, "report") == pytest.approx(
        bootstrap_mean(BASE)
    )
    assert by_unit(np.array([1.0, 5.0, 3.0]), np.array([0, 1, 0])).tolist() == [2.0, 5.0]
    table = np.array([[1.0, 5.0, 3.0], [0.0, 1.0, 0.0]])
    assert by_unit(table, np.array([0, 1, 0])).tolist() == [[2.0, 5.0], [0.0, 1.0]]


def test_few_units_have_no_interval():
    """Below five units there is a mean and no interval; equal in all of them is still equal."""
    policy, other = entry("p", BASE[:4], how="policy"), entry("o", BASE[:4] + 1.0)
    game = contest(policy, other, entry("same", BASE[:4]))
    assert math.isnan(game.mean(policy, "report").low)
    assert game.difference(policy, other, "report").mean == pytest.approx(-1.0)
    assert game.verdict(policy, other, "report") == "too few units"
    assert game.verdict(policy, game.entries[2], "report") == "no difference"
    assert game.records("report")[0]["verdict on p"] == "too few units"


def test_sums_in_another_order_are_no_difference():
    """The same number computed in two ways is the same number."""
    values = np.array([1.0, 100.0, 0.0])
    assert gap(values * (1 + 1e-12), values).tolist() == [0.0, 0.0, 0.0]
    assert gap(values + 1e-3, values).tolist() == pytest.approx([1e-3] * 3)


def test_players_are_ranked_best_first_and_records_are_plain():
    """Who has no number comes last; records hold None where there is none."""
    best, worst = entry("best", BASE + 5, how="policy"), entry("worst", BASE)
    absent = entry("absent", np.full(40, math.nan), how="simulated")
    game = contest(worst, absent, best)
    assert [each.name for each in game.ranked("report")] == ["best", "worst", "absent"]
    rows = game.records("report")
    assert [row["player"] for row in rows] == ["best", "worst", "absent"]
    assert rows[2]["returns"] is None
    assert rows[1]["verdict on best"] == "better"
    assert rows[2]["verdict on best"] == "not comparable"
    assert "verdict on best" not in rows[0]
