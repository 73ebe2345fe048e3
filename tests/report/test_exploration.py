"""The part of the report that can be explored: what the page holds for it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.experiments.comparison import Run
from yardmaster.metrics.summary import summarise
from yardmaster.report import exploration
from yardmaster.report.exploration import exploration_styles
from yardmaster.report.series import looks


def unpacked(text: str, name: str) -> bytes:
    """Return the bytes of a data block."""
    inside = re.search(rf'id="{name}">([^<]*)</script>', text)
    assert inside is not None
    return gzip.decompress(base64.b64decode(inside[1]))


def header(blob: bytes) -> dict:
    (length,) = struct.unpack("<I", blob[8:12])
    return json.loads(blob[12 : 12 + length])


@pytest.fixture(scope="module")
def text(comparison):
    """Return the part of a comparison of twelve schedulers."""
    return exploration.exploration(comparison)


def test_the_page_holds_the_best_schedules_and_the_baseline(comparison, text):
    """Three schedules, with every start to a sixty-fourth of a second."""
    found = json.loads(unpacked(text, "contrast"))
    baseline = [row.scheduler for row in comparison.rows].index("fifo")
    assert found["baseline"] == baseline
    assert found["held"] == [0, 1, baseline]
    assert set(found["held"]) <= set(found["shown"])
    for place in found["held"]:
        blob = unpacked(text, f"schedule-{place}")
        about = header(blob)
        assert about["scheduler"] == comparison.rows[place].scheduler
        column = about["columns"]["job_start"]
        begin = 12 + struct.unpack("<I", blob[8:12])[0] + column["offset"]
        starts = np.frombuffer(blob, "<f8", column["length"], begin)
        assert np.abs(starts - comparison.schedules[place].start_s).max() <= 1 / 128


def test_schedulers_look_as_in_the_figures(comparison, text):
    """Colours are those of the figures; a scheduler that is grey there has none given."""
    given = json.loads(unpacked(text, "contrast"))["looks"]
    drawn = looks(comparison)
    assert len(given) == len(drawn) == len(comparison.rows)
    for page, figure in zip(given, drawn, strict=True):
        assert (page is None) == (not figure.highlighted)
        assert page is None or page["colour"] == figure.colour
    assert len({one["marker"] for one in given if one}) == sum(one is not None for one in given)


def test_differences_are_over_all_workloads_where_there_are_several(comparison):
    """With every run's metrics at hand, the pairs are the workloads."""
    runs = tuple(
        Run(one.scheduler, f"w{number}", summarise(one) | {"mean_jct_s": 100.0 + number}, "")
        for one in comparison.schedules
        for number in range(4)
    )
    text = exploration.exploration(replace(comparison, runs=runs))
    found = json.loads(unpacked(text, "contrast"))
    assert found["units"] == "4 workloads"
    assert "first workload" in found["note"]
    jct = next(one for one in found["differences"] if one["metric"] == "mean_jct_s")
    assert jct["values"] == [101.5] * 12
    assert jct["sides"][0] == {"mean": 0.0, "low": 0.0, "high": 0.0}


def test_large_schedules_are_left_out_and_the_page_says_so(comparison, monkeypatch):
    """Numbers stay; pictures of every bar would not fit into a mail."""
    monkeypatch.setattr(exploration, "MOST_BARS", 10)
    text = exploration.exploration(comparison)
    found = json.loads(unpacked(text, "contrast"))
    assert found["held"] == []
    assert "too large for this page" in found["note"]
    assert "schedule-" not in text


def test_one_schedule_alone_is_nothing_to_explore(comparison):
    """A report without a second schedule has no such part."""
    alone = replace(comparison, rows=comparison.rows[:1], schedules=comparison.schedules[:1])
    assert exploration.exploration(alone) == ""


def test_styles_only_use_colours_that_the_report_has():
    """Every variable of the components is one that the report's own styles define."""
    from importlib import resources

    own = resources.files("yardmaster.report").joinpath("report.css").read_text("utf-8")
    used = set(re.findall(r"var\((--[\w-]+)", exploration_styles()))
    defined = set(re.findall(r"(--[\w-]+):", own + exploration_styles()))
    assert used <= defined
