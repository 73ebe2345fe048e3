"""Numbers on which independently written simulators agree, to the printed digit."""

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.tables import read_table

NODES = Cluster.of("64x V100:8")
POOL = Cluster.pool(512)
SMALL_POOL = Cluster.pool(64)


@pytest.fixture(scope="module")
def workload(shared):
    """Return a function that reads one of the consensus workloads."""
    tables = {}

    def read(name):
        if name not in tables:
            tables[name] = read_table(shared / "oracles" / f"{name}.csv")
        return tables[name]

    return read


def waits(workload, cluster, scheduler):
    """Simulate and return every job's wait in seconds."""
    schedule = simulate(workload, cluster, scheduler)
    return schedule.start_s - workload.submit_s


@pytest.mark.parametrize(
    ("name", "cluster", "scheduler", "mean_wait_s"),
    [
        ("w10000_l90", NODES, "fifo+strict@pack", 39.6491),
        ("w10000_l90", NODES, "sjf+strict@pack", 16.7841),
        ("w10000_l130", NODES, "fifo+strict@pack", 14025.8551),
        ("w10000_l130", NODES, "sjf+strict@pack", 1256.819),
        ("w10000_l90", NODES, "fifo+skip@pack", 7.9592),
        ("w10000_l90", NODES, "sjf+skip@pack", 4.9988),
        ("w10000_l130", NODES, "fifo+skip@pack", 5204.1497),
        ("w10000_l130", NODES, "sjf+skip@pack", 867.2221),
        ("w10000_l90", POOL, "fifo+strict", 7.1988),
        ("w10000_l130", POOL, "fifo+strict", 9261.252),
        ("w10000_l90", POOL, "sjf+strict", 4.3689),
        ("w10000_l130", POOL, "sjf+strict", 822.3189),
        ("w10000_l90", POOL, "sjf+commit", 5.2447),
        ("w10000_l130", POOL, "sjf+commit", 846.5412),
        ("w1000_l110_n8", SMALL_POOL, "fifo+strict", 3975.926),
        ("w1000_l110_n8", SMALL_POOL, "fifo+easy", 2612.896),
        ("w1000_l110_n8", SMALL_POOL, "fifo+conservative", 2473.606),
    ],
)
def test_mean_wait(workload, name, cluster, scheduler, mean_wait_s):
    """The mean wait over all jobs is the published one."""
    # Integer seconds over 1,000 or 10,000 jobs: the printed digits are all the digits there are.
    wait_s = waits(workload(name), cluster, scheduler)
    assert round(float(wait_s.mean()), 10) == mean_wait_s


@pytest.mark.parametrize(
    ("scheduler", "mean_wait_s"),
    [("fifo+easy", 2604.5945945945946), ("fifo+conservative", 2465.1001001001)],
)
def test_mean_wait_without_the_last_job(workload, scheduler, mean_wait_s):
    """Two programs agree on the first 999 jobs to the last bit of the mean."""
    wait_s = waits(workload("w1000_l110_n8"), SMALL_POOL, scheduler)
    assert float(wait_s[:999].mean()) == pytest.approx(mean_wait_s, abs=1e-9)


@pytest.mark.parametrize(
    ("scheduler", "max_wait_s"), [("fifo+strict@pack", 1179), ("sjf+strict@pack", 3812)]
)
def test_longest_wait_and_makespan(workload, scheduler, max_wait_s):
    """The longest wait and the makespan are the published ones too."""
    jobs = workload("w10000_l90")
    schedule = simulate(jobs, NODES, scheduler)
    assert np.max(schedule.start_s - jobs.submit_s) == max_wait_s
    assert np.max(schedule.end_s) - jobs.submit_s[0] == 306_463


def test_backfilling_without_protection_is_skip(workload):
    """A published simulator that protects no reservation gives exactly our `skip`, not `easy`."""
    wait_s = waits(workload("w1000_l110_n8"), SMALL_POOL, "fifo+skip")
    assert round(float(wait_s.mean()), 2) == 2294.07
