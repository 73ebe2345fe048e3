"""A small experiment of the user's own, quick enough to be run again and again."""

from __future__ import annotations

import pytest

from yardmaster.experiments.suite.document import Suite, load_suite

DOCUMENT = """
name = "small"
schedulers = ["sjf+skip", "fifo+skip"]
seeds = 2

[[regimes]]
family = "rlmetadqn"
where = { shape = ["base", "bursty"], intensity = ["low"], gpus = [2] }
perturbations = ["arrival-noise", "capacity-dip"]
severities = { arrival-noise = [0.1], capacity-dip = [0.2] }

[[workloads]]
name = "gangs"
workload = "lognormal"
cluster = "2x V100:8"
jobs = 40
"""


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Return an experiment of 2 regimes × 3 disturbances + 1 workload, 2 seeds, 2 schedulers."""
    path = tmp_path_factory.mktemp("document") / "small.toml"
    path.write_text(DOCUMENT)
    return load_suite(path)
