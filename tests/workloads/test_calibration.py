"""The shipped statistics: equal to their source, and turned into run times correctly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import UnknownNameError
from yardmaster.workloads.calibration import calibration

STATISTICS = Path(__file__).resolve().parents[2] / ".." / "shared/traces/generator_stats.json"
SOURCES = {
    "venus-like": "helios_venus_2020-04..07",
    "philly-like": "philly_2017-10-03..31",
    "openb-like": "openb_2023",
}
OWN_CLASSES = {"openb-like": {"2+"}}
"""Size classes that the published statistics do not have: from the 74 jobs of the pod list."""


@pytest.mark.skipif(not STATISTICS.exists(), reason="needs shared/traces beside the repository")
@pytest.mark.parametrize("name", SOURCES)
def test_the_shipped_statistics_are_those_of_the_trace(name):
    """Sizes, run times, weights and dispersion equal the published statistics."""
    stats = json.loads(STATISTICS.read_text())[SOURCES[name]]
    ours = calibration(name)
    pmf = {float(size): share for size, share in stats["gpu_pmf"].items()}
    assert dict(zip(ours.sizes.tolist(), ours.shares, strict=True)) == pytest.approx(
        {size: share / sum(pmf.values()) for size, share in pmf.items()}
    )
    quantiles = {key: v for key, v in stats["duration_quantiles_s"].items() if key != "all"}
    own = OWN_CLASSES.get(name, set())
    assert {c.name for c in ours.classes} == set(quantiles) | own
    for size_class in ours.classes:
        if size_class.name in own:
            continue
        known = quantiles[size_class.name]
        assert ours.probabilities.tolist() == [float(key) for key in known]
        assert size_class.quantiles_s == pytest.approx(list(known.values()), abs=0.06)
    assert ours.season.hour_weights.tolist() == stats.get("hour_of_day_weight", [1.0] * 24)
    assert ours.season.weekday_weights.tolist() == stats.get("day_of_week_weight_mon0", [1.0] * 7)
    mean, dispersion = stats["hourly_count_mean"], stats["hourly_count_index_of_dispersion"]
    assert ours.season.rate_cv2 == pytest.approx((dispersion - 1) / mean, rel=1e-3)
    assert ours.jobs_per_h == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("name", SOURCES)
def test_every_size_belongs_to_exactly_one_class(name):
    """No size of the statistics is without run times, none has two kinds."""
    ours = calibration(name)
    sizes = np.arange(1, ours.sizes.max() + 1)
    assert (sum(c.holds(sizes).astype(int) for c in ours.classes) == 1).all()


@pytest.mark.parametrize("name", SOURCES)
def test_run_times_pass_through_the_known_quantiles(name):
    """At a known probability the run time is the known quantile; it never falls in between."""
    ours = calibration(name)
    for size_class in ours.classes:
        at = ours.probabilities
        gpus = np.full(len(at), size_class.smallest)
        assert ours.durations(gpus, at) == pytest.approx(
            np.maximum(1, np.round(size_class.quantiles_s)), abs=1
        )
        grid = np.linspace(0, 1, 500, endpoint=False)
        seconds = ours.durations(np.full(500, size_class.smallest), grid)
        assert (np.diff(seconds) >= 0).all()
        assert seconds.min() >= 1
        assert (seconds == np.round(seconds)).all()


def test_larger_jobs_than_the_trace_has_run_as_long_as_its_largest():
    """Recipes may combine the run times of a trace with any sizes."""
    ours = calibration("philly-like")
    at = np.array([0.25, 0.5, 0.9])
    huge, largest = (ours.durations(np.full(3, gpus), at) for gpus in (512, 16))
    assert (huge == largest).all()


def test_between_quantiles_the_logarithm_is_linear():
    """Half way between two probabilities lies the geometric mean of the quantiles."""
    ours = calibration("philly-like")
    seconds = ours.durations(np.array([1]), np.array([0.375]))
    assert seconds[0] == pytest.approx(np.sqrt(559 * 1684), abs=0.5)


def test_an_unknown_calibration_is_named():
    """Asking for statistics that are not there suggests those that are."""
    with pytest.raises(UnknownNameError, match="Did you mean 'venus-like'"):
        calibration("venus")
