"""Running jobs are put back where they are."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.experiments.eta import _Future
from yardmaster.experiments.layout import FILLER, layout_of
from yardmaster.experiments.snapshot import snapshot_of, typical_moment
from yardmaster.model.cluster import Cluster
from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTERS = [
    Cluster.of("6x V100:8"),
    Cluster.of("2x V100:8", "3x T4:4", "2x V100:4", "1x A100:8"),
]


def moment_of(cluster: Cluster, scheduler: str, seed: int):
    sizes = {1: 4, 2: 3, 3: 2, 5: 2, 8: 2, 12: 1}
    jobs = simple(jobs=200, seed=seed, gpus=cluster.gpus, load=1.2, sizes=sizes, max_gpus=12)
    schedule = simulate(jobs, cluster, scheduler)
    return snapshot_of(schedule, typical_moment(schedule))


@pytest.mark.parametrize("cluster", CLUSTERS, ids=["equal nodes", "mixed nodes"])
@pytest.mark.parametrize("scheduler", ["fifo+skip", "fifo+easy@first", "sjf+strict~estimate"])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_job_is_on_its_own_nodes(cluster, scheduler, seed):
    """Simulating the layout holds the same GPUs of every node as the snapshot does."""
    moment = moment_of(cluster, scheduler, seed)
    layout = layout_of(moment, parse_scheduler(scheduler))
    assert layout.is_exact
    future = _Future.of(moment, 1, seed=0)
    jobs, _ = future._jobs(0, 3600.0)
    replayed = simulate(jobs, future.cluster, moment.scheduler, until_s=moment.now_s - 0.3)
    here = np.zeros((len(moment.jobs), cluster.nodes), dtype=np.int64)
    for segment, part in enumerate(replayed.segment_job):
        assert replayed.start_s[part] == layout.at_s[part]
        nodes = cluster.gpu_node[replayed.gpus_of(segment)]
        if layout.row[part] != FILLER:
            np.add.at(here[layout.row[part]], nodes, 1)
    expected = np.zeros_like(here)
    row, node, gpus = moment.holdings.T
    expected[row, node] = gpus
    np.testing.assert_array_equal(here, expected)
    assert len(replayed.gpu_ids) == cluster.gpus  # no room for anybody before now


def test_what_fills_up_nodes_is_nobodys():
    """Fillers belong to no tenant and need no memory; parts of jobs keep their tenant."""
    moment = moment_of(CLUSTERS[0], "fifo+skip", 1)
    future = _Future.of(moment, 1, seed=0)
    jobs, _ = future._jobs(0, 3600.0)
    parts = future.layout
    filler = parts.row == FILLER
    assert filler.any()
    tenants = np.array(jobs.tenant.values()[: len(parts)], dtype=object)
    assert set(tenants[filler]) == {None}
    own = np.array(moment.jobs.tenant.values(), dtype=object)[parts.row[~filler]]
    np.testing.assert_array_equal(tenants[~filler], own)
    assert np.isnan(jobs.gpu_memory_gib[: len(parts)][filler]).all()
    assert moment.jobs.tenant.codes[-1] >= 0  # the row that fillers are copied from


def test_elsewhere_jobs_are_put_back_by_size():
    """A placement that spreads cannot be told where: whole jobs, the largest first."""
    moment = moment_of(CLUSTERS[0], "fifo+skip", 0)
    layout = layout_of(moment, parse_scheduler("fifo+skip@spread"))
    assert not layout.is_exact
    assert sorted(layout.row) == moment.running.tolist()
    assert (np.diff(layout.gpus) <= 0).all()
