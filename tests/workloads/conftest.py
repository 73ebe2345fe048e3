"""Random workloads in which everything collides: times, sizes, owners, endings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from yardmaster.model.workload import Workload

MakeJobs = Callable[..., Workload]


def _column(dice: np.random.Generator, jobs: int, values: list[object]) -> list[object]:
    return [values[place] for place in dice.integers(0, len(values), jobs)]


@pytest.fixture(scope="session")
def random_jobs() -> MakeJobs:
    """Return a function (seed, jobs, days, …) → workload."""

    def make(
        seed: int,
        jobs: int = 60,
        days: float = 20.0,
        begins: str = "2020-04-08T07:30:00",
        name: str = "random",
    ) -> Workload:
        dice = np.random.default_rng(seed)
        submit_s = np.sort(dice.integers(0, int(days * 24) + 1, jobs)) * 3600.0
        gpus = dice.choice([1, 1, 1, 2, 3, 4, 8, 12, 24, 40], jobs)
        parts = np.where(dice.random(jobs) < 0.3, dice.choice([250, 500], jobs), 1000)
        estimate_s = np.where(dice.random(jobs) < 0.8, dice.integers(1, 5000, jobs), np.nan)
        duration_s = dice.integers(0, 200_000, jobs) * (dice.random(jobs) < 0.9)
        duration_s[0] += 600  # so that there is work to share out
        return Workload.of(
            name=name,
            begins=begins,
            submit_s=submit_s + np.sort(dice.integers(0, 3, jobs)),
            duration_s=duration_s,
            gpus=gpus,
            milli_gpu=np.where(gpus == 1, parts, 1000),
            estimate_s=estimate_s,
            deadline_s=np.where(dice.random(jobs) < 0.5, submit_s + 7200.0, np.nan),
            tenant=_column(dice, jobs, ["a", "b", "c", None]),
            user=_column(dice, jobs, ["u1", "u2", "u3", "u4", "u5", None]),
            status=_column(dice, jobs, ["completed", "failed", "running", "censored", None]),
            recorded_wait_s=np.where(dice.random(jobs) < 0.7, dice.integers(0, 900, jobs), np.nan),
        )

    return make
