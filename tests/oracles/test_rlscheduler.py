"""RLScheduler's published table for Lublin-1, reproduced with its own rules of time."""

from dataclasses import dataclass

import numpy as np
import pytest

from yardmaster.metrics.per_job import bounded_slowdown
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.traces.swf import read_swf

STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
LENGTH = 1024
PROCESSORS = 256


@dataclass(frozen=True)
class Result:
    """What one order did on the ten sequences, averaged over them."""

    bounded_slowdown: float
    utilisation: float


@pytest.fixture(scope="module")
def sequences(shared):
    """Return the ten sequences of the published table."""
    trace = read_swf(shared / "traces" / "swf_lublin" / "lublin_256.swf")
    return [trace.select(np.arange(start, start + LENGTH)) for start in STARTS]


@pytest.fixture(scope="module")
def result(sequences):
    """Return a function that simulates one order on all sequences, once."""
    known = {}

    def simulated(order):
        if order not in known:
            runs = [_one_sequence(order, jobs) for jobs in sequences]
            known[order] = Result(*np.mean(runs, axis=0))
        return known[order]

    return simulated


def _one_sequence(order, jobs):
    schedule = simulate(
        jobs,
        Cluster.pool(PROCESSORS),
        f"{order}+commit",
        compatibility="rlscheduler",
        compile_core="always",
    )
    # RLScheduler stops its clock when the last job has been started, not when the last one ends.
    span_s = np.max(schedule.start_s) - jobs.submit_s[0]
    return np.mean(bounded_slowdown(schedule)), jobs.work_gpu_s / (PROCESSORS * span_s)


@pytest.mark.parametrize(
    ("order", "published"),
    [("fifo", 7273.77), ("sjf", 277.35), ("f1", 258.37), ("wfp3", 337.34), ("unicep", 381.71)],
)
def test_bounded_slowdown(result, order, published):
    """Mean bounded slowdown is the published one; WFP3 and UNICEP with their true waiting time."""
    assert round(result(order).bounded_slowdown, 2) == published


@pytest.mark.parametrize(("order", "published"), [("fifo", 0.657), ("sjf", 0.762), ("f1", 0.816)])
def test_utilisation(result, order, published):
    """Work over capacity from the first submission to the last start is the published value."""
    assert round(result(order).utilisation, 3) == published


def test_one_arrival_at_a_time():
    """With nobody waiting, only the first of two arrivals is seen before the choice is made."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[10, 1])
    theirs = simulate(jobs, Cluster.pool(1), "sjf+commit", compatibility="rlscheduler")
    ours = simulate(jobs, Cluster.pool(1), "sjf+commit")
    assert theirs.start_s.tolist() == [0, 10]
    assert ours.start_s.tolist() == [1, 0]


def test_arrival_before_completion():
    """A choice at the second of a completion sees the arrival, but not yet the free GPU."""
    # The second job arrives as the first ends: it is chosen at once, before the third, shorter one.
    jobs = Workload.of(submit_s=[0, 10, 10], duration_s=[10, 5, 1])
    theirs = simulate(jobs, Cluster.pool(1), "sjf+commit", compatibility="rlscheduler")
    ours = simulate(jobs, Cluster.pool(1), "sjf+commit")
    assert theirs.start_s.tolist() == [0, 10, 15]
    assert ours.start_s.tolist() == [0, 11, 10]
