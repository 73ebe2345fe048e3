"""Figures of completion times and utilisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from yardmaster.report.suite.experiment import Experiment
from yardmaster.report.suite.level_figures import (
    completion_curves,
    levels,
    panels,
    tail_latency,
    utilisation_by_gpus,
)
from yardmaster.report.suite.looks import looks_of
from yardmaster.report.suite.runs import Runs


def test_panels_are_intensities(clean: Runs, drift: Runs):
    """Regimes of several intensities are drawn apart, others together."""
    assert [name for name, _ in panels(clean)] == ["intensity: low", "intensity: high"]
    assert [name for name, _ in panels(drift)] == [""]


def test_schedulers_are_drawn_best_first(clean: Runs):
    """The words name every scheduler in the order of its mean."""
    sketch = levels(clean, looks_of(clean.schedulers), "mean_jct_s")
    assert sketch.alt.index("meta:x") < sketch.alt.index("best+skip") < sketch.alt.index("worst")
    svg = sketch.figure().svg
    for text in ("intensity: high", "bursty", "worst+easy"):
        assert text in svg


def test_a_wide_range_is_labelled_with_plain_numbers(drift: Runs):
    """A logarithmic axis is labelled with numbers, not with formulas."""
    numbers = {**drift.numbers, "mean_jct_s": drift.numbers["mean_jct_s"].copy()}
    numbers["mean_jct_s"][:, 0] *= 100
    svg = (
        levels(replace(drift, numbers=numbers), looks_of(drift.schedulers), "mean_jct_s")
        .figure()
        .svg
    )
    assert "mathdefault" not in svg


def test_curves_come_from_the_stored_quantiles(clean: Runs, experiment: Experiment):
    """The median told is that of all completion times of a scheduler's runs together."""
    assert experiment.jct_quantiles_s is not None
    sketch = completion_curves(clean, looks_of(clean.schedulers), experiment.jct_quantiles_s)
    pooled = experiment.jct_quantiles_s[clean.places[clean.row("mid+skip")]]
    assert f"mid+skip {np.median(pooled) / 60:.1f} min" in sketch.alt
    assert "jobs complete (%)" in sketch.figure().svg


def test_utilisation_needs_several_sizes(clean: Runs, drift: Runs):
    """Where all regimes have as many GPUs there is nothing to draw against them."""
    sketch = utilisation_by_gpus(clean, looks_of(clean.schedulers))
    assert sketch is not None
    assert "utilisation (%)" in sketch.figure().svg
    assert utilisation_by_gpus(drift, looks_of(drift.schedulers)) is None


def test_tails_are_ranked_by_their_own_number(clean: Runs):
    """The scheduler with the shortest tail stands on top, whatever its mean."""
    alt = tail_latency(clean, looks_of(clean.schedulers)).alt
    assert alt.index("worst+easy") < alt.index("best+skip")
