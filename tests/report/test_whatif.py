"""Answers to capacity questions as tables and pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from yardmaster.experiments.whatif import whatif
from yardmaster.experiments.whatif_changes import adding, reading_target, removing, sweeping
from yardmaster.model.cluster import Cluster
from yardmaster.report.renderers import to_csv, to_dict, to_terminal
from yardmaster.report.whatif import definitions, headline, whatif_table
from yardmaster.report.whatif_figures import whatif_figures
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("4x V100:4")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def found():
    samples = [simple(jobs=120, seed=seed, gpus=16, load=1.1, max_gpus=4) for seed in range(5)]
    return whatif(
        samples,
        CLUSTER,
        "fifo+skip",
        [adding("2x V100:4"), removing("1x V100")],
        sweep=sweeping("nodes=-1..2", CLUSTER),
        target=reading_target("mean_wait_s<2min"),
        objective="mean_wait_s",
    )


def test_the_table_has_what_users_ask_for(found):
    """GPUs, waits, completion times, utilisation, energy, and differences to today."""
    table = whatif_table(found)
    titles = [column.title for column in table.columns]
    for title in ("GPUs", "mean wait", "p95 wait", "mean JCT", "utilisation", "energy cost"):
        assert title in titles
    assert table.rows[0][0].text == "as it is"
    place = titles.index("Δ mean wait")
    assert table.rows[0][place].text == "today"
    assert table.rows[1][place].tone == "better"
    assert table.rows[2][place].tone == "worse"
    assert "★" in to_terminal(table, width=200)


def test_records_are_unrounded(found):
    """Programs get every metric and difference with its ends."""
    record = to_dict(whatif_table(found))["rows"][1]
    expected = found.rows[1].differences["mean_wait_s"]
    assert record["difference_mean_wait_s"] == expected.mean
    assert record["difference_mean_wait_s_low"] == expected.low
    assert record["gpus"] == 24
    assert "difference_mean_wait_s_high" in to_csv(whatif_table(found))


def test_the_headline_is_the_answer(found):
    """With a target the answer is told; definitions explain the columns."""
    assert headline(found) == found.answer
    assert "Δ" in dict(definitions(found))


def test_without_a_target_the_best_change_is_told():
    """The best change for the objective is named with its difference."""
    jobs = simple(jobs=120, seed=0, gpus=16, load=1.1, max_gpus=4)
    found = whatif(jobs, CLUSTER, "fifo", [removing("1x V100"), adding("4x V100:4")])
    assert "“add 4x V100:4”: −" in headline(found)
    assert any("[low, high]" in line for line in whatif_table(found).legend)


def test_without_intervals_none_are_explained():
    """Where differences have no intervals, neither sentence nor legend speaks of them."""
    jobs = simple(jobs=120, seed=0, gpus=16, load=1.1, max_gpus=4)
    found = whatif(jobs, CLUSTER, "fifo", [adding("4x V100:4")], objective="p95_wait_s")
    assert headline(found).endswith("without an interval.")
    assert not any("[low, high]" in line for line in whatif_table(found).legend)


def test_changes_that_change_nothing():
    """Where nobody waits either way, the sentence says so."""
    jobs = simple(jobs=20, seed=0, gpus=16, load=0.01, max_gpus=1)
    found = whatif(jobs, CLUSTER, "fifo", [adding("4x V100:4")], objective="mean_jct_s")
    assert headline(found).endswith("None of these changes makes a difference to it.")


def test_figures_show_changes_sweep_and_search(found):
    """Bars for changes, a curve for the sweep, one with the target for the search."""
    drawn = {figure.name: figure for figure in whatif_figures(found)}
    assert list(drawn) == ["changes", "sweep", "search"]
    texts = {
        name: "".join(ET.fromstring(figure.svg).itertext())  # noqa: S314 - our own text
        for name, figure in drawn.items()
    }
    assert "remove 1x V100" in texts["changes"]
    assert "today" in texts["sweep"]
    assert "target" in texts["search"]
    assert all(figure.alt and figure.caption for figure in drawn.values())
    assert whatif_figures(found) == tuple(drawn.values())
