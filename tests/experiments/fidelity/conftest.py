"""Jobs on a busy machine, and records that a simulator made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

GPUS = 64
EASY = "fifo+easy~estimate"

Record = Callable[..., Workload]


def make_jobs(jobs: int = 900, seed: int = 0, load: float = 0.9) -> Workload:
    """Log-normal jobs of 1 to 32 GPUs, with users and estimates up to four times too long."""
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1, 2, 4, 8, 16, 32], jobs, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05])
    duration_s = np.ceil(np.exp(rng.normal(np.log(7200), 1.2, jobs)))
    span_s = float((gpus * duration_s).sum()) / (GPUS * load)
    return Workload.of(
        name="made",
        submit_s=np.sort(np.floor(rng.random(jobs) * span_s)),
        duration_s=duration_s,
        gpus=gpus,
        estimate_s=np.ceil(duration_s * rng.uniform(1, 4, jobs)),
        user=[f"u{number}" for number in rng.integers(0, 10, jobs)],
        priority=rng.integers(0, 3, jobs).astype(float),
    )


@pytest.fixture(scope="session")
def jobs() -> Workload:
    return make_jobs()


@pytest.fixture(scope="session")
def pool() -> Cluster:
    return Cluster.pool(GPUS)


@pytest.fixture(scope="session")
def record() -> Record:
    """Return jobs with the waits that a scheduler gives them on a cluster as recorded waits."""

    def make(jobs: Workload, cluster: Cluster, scheduler: str = EASY) -> Workload:
        schedule = simulate(jobs, cluster, scheduler)
        return replace(jobs, recorded_wait_s=schedule.start_s - jobs.submit_s)

    return make
