"""What is measured beyond the catalogue of metrics, against sums done by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from yardmaster.experiments.suite import measuring
from yardmaster.experiments.suite.measuring import JCT_SHARES, MEASURES, measured
from yardmaster.metrics.recovery import transition_recovery_s
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate


def schedule(**options):
    jobs = Workload.of(
        submit_s=[0, 0, 0], duration_s=[10, 20, 30], gpus=[1, 1, 1], deadline_s=[15, 15, 100]
    )
    return simulate(jobs, Cluster.pool(1), "fifo", **options)


def numbers(found) -> dict[str, float]:
    return dict(zip(MEASURES, measured(found).numbers.tolist(), strict=True))


def test_the_catalogue_comes_first():
    """All metrics are there, as `summarise` has them."""
    found, summary = numbers(schedule()), summarise(schedule())
    np.testing.assert_equal({name: found[name] for name in summary}, summary)
    assert list(found)[: len(summary)] == list(summary)


def test_fairness_and_deadlines_by_hand():
    """JCT 10, 30 and 60 s, slowdowns 1, 1.5 and 2, two of three deadlines met."""
    found = numbers(schedule())
    assert found["sla"] == pytest.approx(2 / 3)
    assert found["jain_jobs"] == pytest.approx(4.5**2 / (3 * (1 + 2.25 + 4)))
    assert found["jain_jct"] == pytest.approx(100**2 / (3 * (100 + 900 + 3600)))


def test_utilisation_varies_over_time():
    """Two GPUs, one of them busy for the second half of the time."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[10, 5])
    found = numbers(simulate(jobs, Cluster.pool(2), "fifo"))
    assert found["utilisation"] == pytest.approx(0.75)
    assert found["utilisation_sd"] == pytest.approx(0.25)
    assert found["thermal_sd_c"] == pytest.approx(10.0)


def test_quantiles_run_from_least_to_largest():
    """The distribution of completion times is kept at even shares of the jobs."""
    found = measured(schedule()).jct_quantiles_s
    assert found.dtype == np.float32
    assert len(found) == len(JCT_SHARES) == 201
    assert found[[0, 100, 200]].tolist() == [10, 30, 60]
    assert (np.diff(found) >= 0).all()


def test_nothing_finished_has_no_numbers():
    """A run cut at once has NaN, not zero, where nothing is known."""
    with np.errstate(all="ignore"):
        found = measured(schedule(until_s=5.0))
    assert np.isnan(found.jct_quantiles_s).all()
    assert np.isnan(found.numbers[MEASURES.index("jain_jobs")])


def test_choices_are_counted():
    """Entropy is 0 for one scheduler throughout and log 2 for two in equal parts."""
    assert measuring._choices(schedule()) == {
        "decisions": 0,
        "switches": 0,
        "choice_entropy": 0,
    }
    even = measuring._choices(SimpleNamespace(choices={"a": 3, "b": 3, "c": 0}, switches=4))
    assert even == {"decisions": 6, "switches": 4, "choice_entropy": pytest.approx(np.log(2))}
    assert measuring._choices(SimpleNamespace(choices={"a": 3}, switches=0))["choice_entropy"] == 0


def test_recovery_is_the_mean_over_changes():
    """Each change counts alike; without changes there is nothing to recover from."""
    found = schedule()
    expected = np.mean([transition_recovery_s(found, change) for change in (0.0, 5.0)])
    place = MEASURES.index("recovery_s")
    np.testing.assert_equal(measured(found, (0.0, 5.0)).numbers[place], expected)
    assert np.isnan(measured(found).numbers[place])
