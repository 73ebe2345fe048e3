"""Sizes: whole GPUs or parts of one, redrawn where they do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.calibration import calibration
from yardmaster.workloads.recipes.distributions import (
    BoundedPareto,
    Choice,
    Exponential,
    Fixed,
    LogNormal,
)
from yardmaster.workloads.recipes.sizes import (
    SIZES,
    CalibratedSizes,
    PowersOfTwo,
    SizesFollowingDurations,
    UniformSizes,
    draw_sizes,
)

JOBS = 40_000
NO_MATTER = np.ones(JOBS)


def drawn(sizes, largest=None, duration_s=NO_MATTER, seed=1):
    return draw_sizes(sizes, np.random.default_rng(seed), duration_s, largest)


def test_uniform_sizes_are_whole_and_equally_likely():
    """U{1…8}: every whole number alike (chi-square), unlike a rounded uniform law."""
    gpus = drawn(UniformSizes(low=1, high=8)).gpus
    counts = np.bincount(gpus)[1:]
    assert len(counts) == 8
    assert stats.chisquare(counts).pvalue > 1e-3


def test_real_laws_are_rounded_to_whole_gpus():
    """A log-normal size is its rounded value, at least one GPU."""
    sizes = drawn(LogNormal(median=4, sigma=1))
    law = stats.lognorm(1, scale=4)
    for size in (1, 2, 4, 9):
        share = law.cdf(size + 0.5) - (law.cdf(size - 0.5) if size > 1 else 0)
        assert np.mean(sizes.gpus == size) == pytest.approx(share, abs=4 * 0.5 / np.sqrt(JOBS))
    assert sizes.gpus.min() == 1
    assert (sizes.milli_gpu == 1000).all()


@pytest.mark.parametrize(("mean", "largest"), [(5.68, 1024), (26.77, 1024), (3.0, 4), (1.2, 8)])
def test_powers_of_two_meet_their_mean(mean, largest):
    """The mean is exact, sizes are powers of two, and one factor leads from each to the next."""
    sizes, weights = PowersOfTwo(mean=mean, largest=largest).values_and_weights()
    assert sizes.tolist() == [2.0**k for k in range(int(np.log2(largest)) + 1)]
    assert np.average(sizes, weights=weights) == pytest.approx(mean, rel=1e-9)
    factors = weights[1:] / weights[:-1]
    assert factors == pytest.approx(factors[0], rel=1e-9)
    gpus = drawn(PowersOfTwo(mean=mean, largest=largest)).gpus
    assert gpus.mean() == pytest.approx(mean, abs=4 * gpus.std() / np.sqrt(JOBS))


def test_sizes_below_one_are_parts_of_a_gpu():
    """0.25 of a GPU is one GPU of which 250 thousandths are used."""
    sizes = drawn(Choice(values=(0.25, 1, 2)))
    part = sizes.milli_gpu == 250
    assert part.mean() == pytest.approx(1 / 3, abs=0.01)
    assert (sizes.gpus[part] == 1).all()
    assert set(sizes.gpus[~part].tolist()) == {1, 2}
    assert set(sizes.milli_gpu[~part].tolist()) == {1000}


def test_calibrated_sizes_have_the_shares_of_the_trace():
    """Parts included, shares are those of the trace (chi-square)."""
    known = calibration("openb-like")
    sizes = drawn(CalibratedSizes(trace="openb-like"))
    asked = sizes.gpus * sizes.milli_gpu / 1000
    counts = [np.sum(np.isclose(asked, size)) for size in known.sizes]
    assert sum(counts) == JOBS
    assert stats.chisquare(counts, known.shares * JOBS).pvalue > 1e-3
    assert sizes.notes[0].startswith("calibrated to Alibaba")


def test_listed_sizes_that_do_not_fit_are_drawn_again():
    """The others keep their proportions, and the notes say how many are concerned."""
    sizes = drawn(Choice(values=(1, 2, 64), weights=(3, 1, 1)), largest=8)
    assert np.mean(sizes.gpus == 1) == pytest.approx(0.75, abs=0.01)
    assert sizes.notes == ("sizes above 8 GPUs (20.00% of such jobs) were drawn again",)
    assert drawn(Choice(values=(1, 2)), largest=8).notes == ()


def test_real_sizes_that_do_not_fit_are_drawn_again():
    """What is left is the law given that it fits."""
    law = BoundedPareto(alpha=1, low=1, high=1000)
    small = drawn(law, largest=8)
    assert small.gpus.max() == 8
    assert "were drawn again" in small.notes[0]
    all_ = drawn(law, seed=2).gpus
    for size in (1, 3, 8):
        expected = np.mean(all_[all_ <= 8] == size)
        assert np.mean(small.gpus == size) == pytest.approx(expected, abs=0.012)


def test_heavy_tails_end_somewhere():
    """Without a cluster no job exceeds a million GPUs, and the notes say what was drawn again."""
    sizes = drawn(LogNormal(median=1e5, sigma=20))
    assert 1 <= sizes.gpus.min() <= sizes.gpus.max() <= 1_000_000
    assert "sizes above 1000000 GPUs" in sizes.notes[0]
    with pytest.raises(InvalidWorkloadError, match="smallest job has 1e\\+09"):
        drawn(Fixed(value=1e9))


def test_sizes_that_never_fit_are_refused():
    """Where no job is small enough the error says so instead of drawing forever."""
    with pytest.raises(InvalidWorkloadError, match="max_gpus is 4, but the smallest job has 8"):
        drawn(Fixed(value=8), largest=4)
    with pytest.raises(InvalidWorkloadError, match="hardly any job is that small"):
        drawn(LogNormal(median=1e6, sigma=0.1), largest=4)


def test_sizes_follow_durations_as_defined():
    """round(0.7·(1 + floor(d^0.6·7)) + 0.3·U{1…8}), once more from the definition."""
    duration_s = np.random.default_rng(3).uniform(0, 10_000, JOBS)
    sizes = drawn(SizesFollowingDurations(longest_s=10_000), duration_s=duration_s)
    by_duration = 1 + np.floor((duration_s / 10_000) ** 0.6 * 7)
    # Which of the eight throws explains a size? At least one must.
    explained = [np.rint(0.7 * by_duration + 0.3 * throw) == sizes.gpus for throw in range(1, 9)]
    assert np.any(explained, axis=0).all()
    for part in (1, 3, 5):
        rows = by_duration == part
        expected = np.mean([np.rint(0.7 * part + 0.3 * throw) for throw in range(1, 9)])
        noise = 4 * 0.8 / np.sqrt(rows.sum())
        assert sizes.gpus[rows].mean() == pytest.approx(expected, abs=noise)
    assert stats.spearmanr(duration_s, sizes.gpus).statistic > 0.8


def test_following_sizes_know_the_largest():
    """With fewer GPUs the same formula holds with those; longer jobs than the longest are equal."""
    duration_s = np.full(JOBS, 20_000.0)
    sizes = drawn(SizesFollowingDurations(longest_s=10_000), largest=4, duration_s=duration_s)
    assert set(sizes.gpus.tolist()) == {3, 4}  # round(0.7·4 + 0.3·U{1…4})
    assert sizes.notes == ("sizes follow run times up to 4 GPUs in place of 8",)


@pytest.mark.parametrize(
    ("process", "values", "message"),
    [
        (UniformSizes, {"low": 8, "high": 1}, "low is 8, above high, 1"),
        (UniformSizes, {"low": 1.5, "high": 3}, "low must be a whole number"),
        (PowersOfTwo, {"mean": 3, "largest": 12}, "largest must be a power of two, got 12"),
        (PowersOfTwo, {"mean": 9, "largest": 8}, "mean is 9, not below largest, 8"),
        (SizesFollowingDurations, {"longest_s": 0}, "longest_s must be a number above 0"),
        (SizesFollowingDurations, {"longest_s": 9, "weight": 2}, "weight must be from 0 to 1"),
    ],
)
def test_parameters_that_make_no_sense_are_named(process, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        process(**values)


def test_exponential_sizes_exist_too():
    """Laws that only grow by chance can be sizes."""
    assert SIZES["exponential"] is Exponential
    assert drawn(Exponential(mean=6)).gpus.mean() == pytest.approx(6.1, abs=0.2)
