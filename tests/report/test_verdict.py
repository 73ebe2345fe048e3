"""What the headline may say."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import pytest

from yardmaster.experiments.comparison import Estimate
from yardmaster.report.verdict import clearly_better, clearly_worse, headline


@pytest.fixture
def two(comparison):
    """Return a builder of comparisons of one blind scheduler with the baseline."""

    def build(difference, *, is_winner, information="blind", objective="mean_jct_s"):
        other = next(row for row in comparison.rows if row.scheduler == "fifo+skip")
        other = replace(
            other,
            difference=Estimate(*difference),
            is_winner=is_winner,
            information=information,
        )
        fifo = comparison.rows[-1]
        return replace(comparison, rows=(other, fifo), schedules=(), objective=objective)

    return build


def test_a_winner_is_named_with_its_interval(two):
    """The sentence gives the size of the gain and its interval, positive and in order."""
    text = headline(two((-0.31, -0.34, -0.28), is_winner=True))
    assert text.startswith("fifo+skip cut mean JCT by 31 % [28, 34] against fifo")


def test_a_gain_in_a_higher_is_better_metric_is_raised(two):
    """Utilisation is raised, not cut."""
    text = headline(two((0.08, 0.05, 0.11), is_winner=True, objective="utilisation"))
    assert "raised utilisation by 8 % [5, 11] against fifo" in text


def test_an_interval_with_zero_is_not_called_better(two):
    """Where chance could explain the difference the headline says so."""
    text = headline(two((-0.02, -0.07, 0.03), is_winner=False))
    assert text.startswith("No scheduler is clearly better")
    assert "includes zero" in text
    assert "−2 % [−7, +3]" in text


def test_better_than_the_baseline_is_not_better_than_all(two):
    """A clear gain over the baseline without a clear lead over the others is told as such."""
    text = headline(two((-0.2, -0.3, -0.1), is_winner=False))
    assert "cut mean JCT by 20 % [10, 30]" in text
    assert "not clearly better than every other" in text


def test_exact_ties_are_no_difference(two):
    """Where all have the same value nobody leads, and the reason is told if nobody waited."""
    tied = two((0.0, 0.0, 0.0), is_winner=False, information="clairvoyant")

    def with_metric(name, value, found):
        rows = (
            replace(row, metrics=row.metrics | {name: Estimate(value, value, value)})
            for row in found.rows
        )
        return replace(found, rows=tuple(rows))

    same = with_metric("mean_wait_s", 5.0, with_metric("mean_jct_s", 60.0, tied))
    assert headline(same) == "No difference: mean JCT is the same under all 2 schedulers."
    idle = with_metric("mean_wait_s", 0.0, same)
    assert headline(idle).endswith("under all 2 schedulers: no job ever waited.")


def test_one_measurement_has_no_verdict(two):
    """Without an interval the difference is reported, and doubted."""
    text = headline(two((-0.2, nan, nan), is_winner=False))
    assert "cut mean JCT by 20 % against fifo" in text
    assert "without an interval" in text


def test_a_clairvoyant_winner_is_followed_by_an_honest_one(comparison, two):
    """Reading true durations is said aloud, with the best that could run on a real cluster."""
    text = headline(comparison)
    assert "It is clairvoyant" in text
    assert "the best is estimate+skip" in text
    text = headline(two((-0.2, -0.3, -0.1), is_winner=True, information="clairvoyant"))
    assert "the baseline fifo is the best" in text


@pytest.mark.parametrize(
    ("low", "is_hedged"), [(2.0, False), (-0.5, True)], ids=["clearly worse", "unclear"]
)
def test_only_an_interval_with_zero_is_hedged(comparison, low, is_hedged):
    """The best that can be deployed may be clearly worse than the baseline; then that is said."""
    rows = tuple(
        replace(row, difference=Estimate(10.0, low, 15.0))
        if row.scheduler == "estimate+skip"
        else row
        for row in comparison.rows
    )
    text = headline(replace(comparison, rows=rows))
    assert ("not a clear difference" in text) == is_hedged


def test_the_baseline_can_win(comparison):
    """If nothing beats the baseline, that is the finding."""
    fifo, other = comparison.rows[-1], comparison.rows[-2]
    worse = replace(other, difference=Estimate(0.2, 0.1, 0.3), is_winner=False)
    won = replace(comparison, rows=(replace(fifo, is_winner=True), worse), schedules=())
    assert "The baseline fifo has the best mean JCT" in headline(won)
    led = replace(comparison, rows=(fifo, worse), schedules=())
    assert headline(led).startswith("No scheduler is clearly better")


def test_nothing_to_compare(comparison):
    """One scheduler or none gives no finding."""
    assert "Nothing" in headline(replace(comparison, rows=()))
    assert "nothing to compare" in headline(replace(comparison, rows=comparison.rows[-1:]))


def test_small_ends_are_not_rounded_to_zero(two):
    """An interval that excludes zero does not show a zero."""
    text = headline(two((-0.1, -0.196, -0.004), is_winner=True))
    assert "[0.4, 19.6]" in text


def test_without_an_interval_nothing_is_clear(comparison):
    """NaN ends are neither better nor worse."""
    unknown = Estimate(-0.5, nan, nan)
    assert not clearly_better(comparison, unknown)
    assert not clearly_worse(comparison, unknown)
