"""Predicted starts as tables and pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from yardmaster.experiments.eta import Forecast
from yardmaster.report.eta import definitions, eta_figures, eta_table, headline
from yardmaster.report.renderers import to_dict


def forecast(jobs: int = 1, *, never: float = 0.0) -> Forecast:
    waits = np.tile(np.linspace(600.0, 20_000.0, 101), (jobs, 1)) * np.arange(1, jobs + 1)[:, None]
    waits[:, int(101 * (1 - never)) :] = np.inf
    names = tuple(f"job{number}" for number in range(jobs))
    return Forecast(50.0, names, np.arange(1, jobs + 1), np.full(jobs, 90.0), waits, ("a note",))


def test_the_table_has_points_and_probabilities():
    """p10, p50, p90 and the chance to start within an hour, four, and a day."""
    table = eta_table(forecast(2), title="a queue")
    record = to_dict(table)["rows"][0]
    assert record["p10_s"] == pytest.approx(600 + 0.1 * 19_400, rel=0.02)
    assert record["p50_s"] == pytest.approx(10_300)
    assert record["within_1h"] == pytest.approx(np.mean(forecast().wait_s <= 3600))
    assert record["within_24h"] == 1.0
    assert [row[0].text for row in table.rows] == ["job0", "job1"]
    assert table.notes == ("a note",)
    assert "p10, p50, p90" in dict(definitions())


def test_starts_beyond_the_horizon():
    """Where most simulations see no start there is no number, and the text says so."""
    late = forecast(never=0.6)
    assert to_dict(eta_table(late, title=""))["rows"][0]["p90_s"] is None
    assert "more than four weeks" in headline(late)
    assert eta_figures(late)


def test_a_job_that_fits_starts_at_once():
    """Nobody is told of an interval of no length."""
    now = Forecast(0.0, ("x",), np.array([1]), np.zeros(1), np.zeros((1, 5)))
    assert headline(now) == "Job x starts at once."
    assert eta_figures(now)


@pytest.mark.parametrize(("jobs", "name"), [(1, "start"), (3, "starts"), (60, "starts")])
def test_figures_are_well_formed(jobs, name):
    """One job is a distribution, several are intervals; both are described in words."""
    (figure,) = eta_figures(forecast(jobs))
    root = ET.fromstring(figure.svg)  # noqa: S314 - our own text
    assert figure.name == name
    assert root.find("{http://www.w3.org/2000/svg}desc").text == figure.alt
    assert "job0" in figure.alt
    assert ("first 30 of 60" in figure.caption) == (jobs == 60)
