"""Curves in the browser: smoothing and bands, held against plain arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

DRAW = """async ([series, options]) => {
  const { curves } = await import("/web/curves.js");
  const host = document.createElement("div");
  document.querySelector("main").replaceChildren(host);
  const chart = curves(host, { series, ...options }, { title: "A curve", x: "steps" });
  host.querySelector("details").open = true;
  await new Promise((done) => setTimeout(done, 50));
  const rows = [...host.querySelectorAll("table tr")];
  const cells = rows.map((row) => [...row.children].map((cell) => cell.textContent));
  const label = host.querySelector("[role=img]").getAttribute("aria-label");
  chart.destroy();
  return { cells, label, left: document.querySelectorAll("canvas, .uplot").length };
}"""


def drawn(page: Any, series: list[dict[str, Any]], **options: Any) -> dict[str, list[float | None]]:
    """Draw, and return the columns of the table of numbers."""
    found = page.evaluate(DRAW, [series, options])
    assert found["left"] == 0
    head, *rows = found["cells"]
    return {
        name: [None if row[place] == "–" else float(row[place]) for row in rows]
        for place, name in enumerate(head)
    }


@pytest.fixture
def blank(page, dashboard):
    page.goto(dashboard.url + "#/runs")
    page.locator("h1").wait_for()
    return page


def test_smoothing_forgets_exponentially_without_a_false_start(blank):
    """Each value is the mean of all before, weighted by powers of the weight; gaps stay gaps."""
    dice = np.random.default_rng(3)
    for weight in (0.0, 0.3, 0.9):
        values = dice.normal(size=24)
        given: list[float | None] = values.tolist()
        given[5] = None
        series = [{"name": "a", "x": list(range(24)), "y": given}]
        found = drawn(blank, series, smoothing=weight)["a"]
        for place in range(24):
            if place == 5:
                assert found[place] is None
                continue
            known = [(n, values[n]) for n in range(place + 1) if n != 5]
            # A gap takes no time: the weight counts measurements.
            powers = [weight ** (len(known) - 1 - rank) for rank in range(len(known))]
            mean = sum(p * v for p, (_, v) in zip(powers, known, strict=True)) / sum(powers)
            assert found[place] == pytest.approx(mean, rel=1e-4, abs=1e-5)


def test_a_band_lies_between_the_lowest_and_the_highest(blank):
    """Runs measured at other steps are read between their measurements, never beyond them."""
    rows = [([0, 10, 20], [0.0, 10.0, 0.0]), ([5, 15], [4.0, 8.0]), ([0, 20], [2.0, 2.0])]
    series = [{"name": str(n), "x": x, "y": y} for n, (x, y) in enumerate(rows)]
    found = drawn(blank, series, band=True)
    assert found["steps"] == [0, 5, 10, 15, 20]
    for place, step in enumerate(found["steps"]):
        values = [np.interp(step, x, y) for x, y in rows if x[0] <= step <= x[-1]]
        assert found["lowest of 3"][place] == pytest.approx(min(values))
        assert found["highest of 3"][place] == pytest.approx(max(values))
        assert found["mean of 3"][place] == pytest.approx(np.mean(values), rel=1e-4)


def test_nothing_is_drawn_as_such(blank):
    """A curve without a point says so in words, and a single point is shown."""
    empty = blank.evaluate(DRAW, [[{"name": "a", "x": [], "y": []}], {}])
    assert empty["label"] == "A curve: nothing yet."
    one = blank.evaluate(DRAW, [[{"name": "a", "x": [7], "y": [1.5]}], {"smoothing": 0.5}])
    assert "a 1.50" in one["label"]


def test_a_curve_of_many_points_is_drawn_quickly(blank):
    """Twelve runs of 4,000 points, smoothed: an update takes less than a fifth of a second."""
    took = blank.evaluate(
        """async () => {
          const { curves } = await import("/web/curves.js");
          const host = document.querySelector("main");
          const x = Array.from({ length: 4000 }, (_, n) => n);
          const make = (shift) => Array.from({ length: 12 }, (_, n) => (
            { name: `run ${n}`, x, y: x.map((v) => Math.sin(v / 90 + n + shift)) }));
          const words = { title: "t", x: "steps" };
          const chart = curves(host, { series: make(0), smoothing: 0.6 }, words);
          const times = [];
          for (let k = 1; k <= 7; k += 1) {
            const data = { series: make(k), smoothing: 0.6 };
            const begun = performance.now();
            chart.update(data);
            await new Promise((done) => requestAnimationFrame(done));
            times.push(performance.now() - begun);
          }
          chart.destroy();
          return times.sort((a, b) => a - b)[3];
        }"""
    )
    assert took < 200, took
