"""Comparisons are paired, honest about their intervals, and know their baseline."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.compare import compare
from yardmaster.metrics.catalogue import METRIC_NAMES
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.policies import random_policy
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("2x V100:4")


def sample(seed: int, jobs: int = 120, load: float = 1.1):
    return simple(jobs=jobs, seed=seed, gpus=8, load=load, max_gpus=4)


@pytest.fixture(scope="module")
def comparison():
    return compare([sample(seed) for seed in range(6)], CLUSTER, ["fifo", "ljf", "sjf+easy"])


def test_rows_are_ranked_by_the_objective(comparison):
    """The best scheduler stands first and every metric has a value per row."""
    means = [row.metrics["mean_jct_s"].mean for row in comparison.rows]
    assert means == sorted(means)
    assert all(set(row.metrics) == set(METRIC_NAMES) for row in comparison.rows)


def test_means_are_those_of_the_simulations(comparison):
    """A row's mean is the mean of what `simulate` and `summarise` say one by one."""
    for row in comparison.rows:
        values = [
            summarise(simulate(sample(seed), CLUSTER, row.scheduler))["mean_jct_s"]
            for seed in range(6)
        ]
        assert row.metrics["mean_jct_s"].mean == pytest.approx(np.mean(values), rel=1e-12)


def test_differences_refer_to_the_baseline(comparison):
    """The baseline differs from itself by exactly nothing; others by the ratio of means."""
    rows = {row.scheduler: row for row in comparison.rows}
    base = rows["fifo+strict"]
    assert comparison.baseline == "fifo+strict"
    assert (base.difference.mean, base.difference.low, base.difference.high) == (0, 0, 0)
    for row in comparison.rows:
        ratio = row.metrics["mean_jct_s"].mean / base.metrics["mean_jct_s"].mean - 1
        assert row.difference.mean == pytest.approx(ratio)


def test_clear_winner_is_marked(comparison):
    """Clairvoyant shortest-first beats first and longest first beyond doubt, and says so."""
    assert [row.is_winner for row in comparison.rows] == [True, False, False]
    assert comparison.rows[0].scheduler == "sjf+easy"
    assert comparison.rows[0].information == "clairvoyant"


def test_equal_schedulers_have_no_winner():
    """Two names for the same thing differ by nothing, so neither wins."""
    result = compare([sample(seed) for seed in range(4)], CLUSTER, ["fifo", "static-equal"])
    assert not any(row.is_winner for row in result.rows)


def test_hindsight_gap_of_the_best_of_each_workload_is_zero(comparison):
    """Somebody is best on every workload: the least gap over schedulers is the winner's."""
    assert comparison.rows[0].hindsight_gap == pytest.approx(0.0)
    assert all(row.hindsight_gap >= 0 for row in comparison.rows)


def test_nobody_beats_the_bound(comparison):
    """The bound gap is never negative, whatever the scheduler."""
    assert all(row.bound_gap >= 0 for row in comparison.rows)


def test_higher_is_better_objectives_rank_the_other_way():
    """With utilisation as objective the largest value stands first."""
    result = compare(
        [sample(seed) for seed in range(3)], CLUSTER, ["fifo", "fifo+skip"], objective="utilisation"
    )
    values = [row.metrics["utilisation"].mean for row in result.rows]
    assert values == sorted(values, reverse=True)
    assert all(math.isnan(row.bound_gap) for row in result.rows)


def test_one_workload_is_cut_into_blocks():
    """A single workload gives intervals for means over jobs, and none for the rest."""
    result = compare(sample(0, jobs=400), CLUSTER, ["fifo", "sjf"])
    row = result.rows[0]
    assert result.units == "20 blocks of one workload"
    assert row.metrics["mean_jct_s"].low < row.metrics["mean_jct_s"].mean
    assert math.isnan(row.metrics["makespan_s"].low)


def test_a_tiny_workload_still_compares():
    """One job gives a table without intervals rather than an error."""
    result = compare(sample(0, jobs=1), CLUSTER, ["fifo", "sjf"])
    assert math.isnan(result.rows[0].difference.low)
    assert not result.rows[0].is_winner


def test_progress_counts_every_simulation():
    """Progress is told before each simulation and once at the end."""
    seen: list[tuple[int, int]] = []
    compare(
        [sample(0), sample(1)],
        CLUSTER,
        ["fifo", "sjf"],
        progress=lambda _label, done, total: seen.append((done, total)),
    )
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"objective": "mean_jtc_s"}, UnknownNameError, "mean_jct_s"),
        ({"objective": "jobs"}, YardmasterError, "same under every scheduler"),
        ({"baseline": "saf"}, YardmasterError, "not among the schedulers"),
        ({"schedulers": []}, YardmasterError, "at least one scheduler"),
        ({"schedulers": ["sjff"]}, UnknownNameError, "Did you mean 'sjf'"),
        ({"workloads": []}, YardmasterError, "at least one workload"),
    ],
)
def test_bad_arguments_are_explained(options, error, message):
    """Every mistake names what is wrong and what would be right."""
    arguments = {"workloads": sample(0), "schedulers": ["fifo"]} | options
    with pytest.raises(error, match=message):
        compare(arguments.pop("workloads"), CLUSTER, arguments.pop("schedulers"), **arguments)


def test_a_cut_comparison_marks_no_winner():
    """Where jobs did not finish, averages may flatter: no interval, no winner, and a note."""
    samples = [sample(seed, load=2.0) for seed in range(4)]
    result = compare(samples, CLUSTER, ["fifo+skip", "lifo+skip", "ljf"], until_s=3000.0)
    assert any(row.metrics["unfinished"].mean > 0 for row in result.rows)
    assert not any(row.is_winner for row in result.rows)
    assert all(math.isnan(row.difference.low) for row in result.rows)
    assert any("unfinished" in note for note in result.notes)


def test_failed_jobs_mark_no_winner():
    """Jobs given up after failures are missing from the averages as unfinished ones are."""
    outages = tuple(Outage(0, 100.0 * n + 50, 100.0 * n + 60) for n in range(200))
    site = Site(failures=Failures(outages=outages, retries=0))
    samples = [sample(seed, jobs=60) for seed in range(4)]
    result = compare(samples, CLUSTER.under(site), ["fifo+skip", "sjf+easy", "ljf"])
    assert any(row.metrics["failed"].mean > 0 for row in result.rows)
    assert all(row.metrics["unfinished"].mean == 0 for row in result.rows)
    assert not any(row.is_winner for row in result.rows)
    assert all(math.isnan(row.difference.low) for row in result.rows)
    assert any("failed for good" in note for note in result.notes)


def test_one_scheduler_may_be_given_as_text():
    """A single name is one scheduler, not its letters."""
    result = compare(sample(0), CLUSTER, "fifo")
    assert [row.scheduler for row in result.rows] == ["fifo+strict"]


def test_policies_that_serve_another_objective_are_named(tmp_path):
    """A note says so where a table ranks them by something else, and only there."""
    path = tmp_path / "mine.npz"
    write_policy(path, random_policy(Sight(window=4, gpu_slots=4), 0, objective="slowdown"))
    for objective, is_noted in (("mean_jct_s", True), ("mean_bounded_slowdown", False)):
        result = compare(sample(0), CLUSTER, ["fifo", f"policy:{path}"], objective=objective)
        assert any("was trained for" in note for note in result.notes) == is_noted
