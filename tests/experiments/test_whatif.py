"""Capacity questions: the same jobs, one change at a time, honest differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidClusterError, UnknownNameError, YardmasterError
from yardmaster.experiments.whatif import fewest, whatif
from yardmaster.experiments.whatif_changes import (
    adding,
    combined,
    reading_target,
    removing,
    resizing,
    scaling_load,
    sweeping,
)
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.reshape import add_nodes, parse_nodes
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("4x V100:4")


def sample(seed: int, jobs: int = 150) -> Workload:
    return simple(jobs=jobs, seed=seed, gpus=16, load=1.1, max_gpus=4)


@pytest.fixture(scope="module")
def samples() -> list[Workload]:
    return [sample(seed) for seed in range(5)]


@pytest.fixture(scope="module")
def found(samples):
    changes = [adding("2x V100:4"), removing("1x V100"), scaling_load(1.5)]
    return whatif(samples, CLUSTER, "fifo+skip", changes)


def test_the_cluster_as_it_is_stands_first(found):
    """The baseline differs from itself by nothing; every change has its own row."""
    assert [row.change for row in found.rows] == [
        "as it is", "add 2x V100:4", "remove 1x V100", "load × 1.5",
    ]  # fmt: skip
    assert found.rows[0].differences["mean_wait_s"].high == 0
    assert [row.gpus for row in found.rows] == [16, 24, 12, 16]


def test_rows_are_what_simulate_says(found, samples):
    """A change's mean is the mean over the same jobs simulated on the changed cluster."""
    larger = add_nodes(CLUSTER, "2x V100:4")
    waits = [summarise(simulate(jobs, larger, "fifo+skip"))["mean_wait_s"] for jobs in samples]
    today = [summarise(simulate(jobs, CLUSTER, "fifo+skip"))["mean_wait_s"] for jobs in samples]
    row = found.rows[1]
    assert row.metrics["mean_wait_s"].mean == pytest.approx(np.mean(waits))
    expected = np.mean(waits) / np.mean(today) - 1
    assert row.differences["mean_wait_s"].mean == pytest.approx(expected)
    assert row.differences["mean_wait_s"].high < 0


def test_more_load_waits_longer(found):
    """Submitting the same jobs faster makes them wait longer beyond doubt."""
    assert found.rows[3].differences["mean_wait_s"].low > 0
    assert found.rows[3].metrics["jobs"].mean == 150


def test_together_is_one_row(samples):
    """All changes at once are one change with all their effects."""
    both = combined([adding("1x V100:4"), scaling_load(2.0)])
    rows = whatif(samples[:2], CLUSTER, "fifo", [both]).rows
    assert rows[1].change == "add 1x V100:4; load × 2"
    assert (rows[1].gpus, rows[1].load) == (20, 2.0)


def test_unplaceable_jobs_are_left_out_of_both_sides():
    """Where a smaller cluster cannot hold some jobs, differences are over those it can."""
    jobs = sample(0).with_columns(gpus=np.where(np.arange(150) == 3, 16, sample(0).gpus))
    found = whatif(jobs, CLUSTER, "fifo+skip", [removing("1x V100")])
    row = found.rows[1]
    smaller = simulate(jobs, Cluster.of("3x V100:4"), "fifo+skip")
    today = simulate(jobs, CLUSTER, "fifo+skip")
    rest = np.arange(150) != 3
    ratio = (
        np.mean((smaller.end_s - jobs.submit_s)[rest])
        / np.mean((today.end_s - jobs.submit_s)[rest])
        - 1
    )
    assert row.metrics["unplaceable"].mean == 1
    assert row.differences["mean_jct_s"].mean == pytest.approx(ratio, rel=0.02)
    assert math.isfinite(row.differences["mean_jct_s"].low)
    assert math.isnan(row.differences["p95_wait_s"].low)
    assert any("either way" in note for note in found.notes)


def test_cut_jobs_leave_no_interval(samples):
    """Where jobs are unfinished, averages may flatter: there are no intervals."""
    found = whatif(samples, CLUSTER, "fifo", [adding("1x V100:4")], until_s=1500.0)
    assert math.isnan(found.rows[1].differences["mean_jct_s"].low)


def test_a_sweep_has_a_row_per_step(samples):
    """A curve over nodes passes through today's value and falls with more nodes."""
    found = whatif(samples, CLUSTER, "fifo", sweep=sweeping("nodes=-1..2", CLUSTER))
    swept = [row for row in found.rows if row.role == "sweep"]
    assert [row.amount for row in swept] == [-1, 0, 1, 2]
    assert [row.nodes for row in swept] == [3, 4, 5, 6]
    assert swept[1].metrics["mean_wait_s"] == found.rows[0].metrics["mean_wait_s"]
    waits = [row.metrics["mean_wait_s"].mean for row in swept]
    assert waits == sorted(waits, reverse=True)


def test_the_search_finds_the_fewest_nodes(samples):
    """The answer meets the target, and one node fewer does not."""
    target = reading_target("mean_wait_s<2min")
    found = whatif(samples, CLUSTER, "fifo", target=target, target_nodes=parse_nodes("V100:4"))
    (answer,) = [row for row in found.rows if row.is_answer]
    assert answer.metrics["mean_wait_s"].mean < 120
    fewer = whatif(samples, CLUSTER, "fifo", [resizing(int(answer.amount) - 1)]).rows[1]
    assert fewer.metrics["mean_wait_s"].mean >= 120
    assert f"needs {answer.amount:.0f} more" in found.answer


def test_targets_that_need_nothing_or_cannot_be_met(samples):
    """A target may be met already, or out of reach; the answer says so."""
    easy = whatif(samples, CLUSTER, "fifo", target=reading_target("utilisation>1%"))
    assert "as it is" in easy.answer
    hard = whatif(samples[:1], CLUSTER, "fifo", target=reading_target("mean_jct_s<1"))
    assert "not met even with 32 more" in hard.answer
    assert not any(row.is_answer for row in hard.rows)


@given(st.integers(0, 70), st.integers(1, 60))
def test_bisection_finds_the_threshold(threshold, most):
    """Whatever the threshold, the least number that meets it is found, or none."""
    asked: list[int] = []

    def meets(number: int) -> bool:
        asked.append(number)
        return number >= threshold

    assert fewest(meets, most) == (threshold if threshold <= most else None)
    assert max(asked) <= most
    assert len(asked) <= 2 * math.log2(most + 1) + 4


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, YardmasterError, "No change was named"),
        ({"changes": [removing("9x V100")]}, InvalidClusterError, "only 4 nodes"),
        ({"changes": [resizing(1)], "objective": "mean_wait"}, UnknownNameError, "mean_wait_s"),
    ],
)
def test_senseless_questions_are_refused(arguments, error, message):
    """Nothing asked, impossible changes and unknown metrics are named before anything runs."""
    with pytest.raises(error, match=message):
        whatif(sample(0), CLUSTER, "fifo", **arguments)


def test_progress_counts_every_simulation(samples):
    """Progress reaches its end."""
    seen: list[tuple[int, int]] = []
    whatif(
        samples[:2], CLUSTER, "fifo", [resizing(1)],
        progress=lambda _label, done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
