"""The index of free nodes against plain counting."""

import numpy as np
import pytest

from yardmaster.engine import state as at
from yardmaster.engine.core import nodes as index
from yardmaster.engine.core.placement import plan_placement
from yardmaster.engine.core.room import fits
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.setup import lay_out
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

CLUSTERS = [
    Cluster.of("3x V100:4", "2x T4:8", "1x A100:40"),
    Cluster.of("40x V100:2", "35x T4:1"),
    Cluster.pool(70),
]
JOBS = 40


class Yard:
    """A cluster within the arrays of a simulation, and a plain set of free GPUs beside it."""

    def __init__(self, cluster, seed):
        dice = np.random.default_rng(seed)
        self.jobs = Workload.of(
            submit_s=np.zeros(JOBS),
            duration_s=np.ones(JOBS),
            gpus=dice.choice([1, 2, 3, 4, 8, 12, 33], JOBS),
            max_gpus_per_node=dice.choice([0, 0, 1, 3], JOBS),
            gpu_types=dice.choice(["", "", "V100", "T4|V100"], JOBS),
        )
        self.shapes = shapes_of(self.jobs, cluster)
        options = Options(Discipline.STRICT, Placement.PACK, None)
        keys = OrderKeys.fixed(np.zeros(JOBS))
        simulation = lay_out(self.jobs, cluster, self.shapes, keys, options)
        self.cluster = cluster
        self.ints, self.reals = simulation.ints.data, simulation.reals.data
        self.simulation = simulation
        self.free = cluster.node_gpus.copy()
        self.held = {}

    def room_for(self, shape):
        """Return by counting whether a shape fits now."""
        allowed = (self.shapes.types[shape] >> self.cluster.node_type) & 1 == 1
        if self.shapes.single[shape]:
            return bool((self.free[allowed] >= self.shapes.gpus[shape]).any())
        usable = np.minimum(self.free[allowed], self.shapes.cap[shape])
        return usable.sum() >= self.shapes.gpus[shape]

    def hold(self, job):
        """Start a job where `pack` puts it."""
        assert plan_placement(self.ints, self.reals, job)
        planned = self.simulation.int_table(at.PLAN_NODE, int(self.ints[at.PLAN])).copy()
        counts = self.simulation.int_table(at.PLAN_GPUS, int(self.ints[at.PLAN])).copy()
        index.hold(self.ints, job)
        assert len(set(planned.tolist())) == len(planned)
        assert counts.sum() == self.jobs.gpus[job]
        self.held[job] = (planned, counts)
        self.free[planned] -= counts
        assert (self.free >= 0).all()

    def release(self, job):
        """End a job."""
        index.release(self.ints, job)
        planned, counts = self.held.pop(job)
        self.free[planned] += counts

    def check(self):
        """Compare every count the index keeps with plain counting."""
        nodes = self.cluster.nodes
        assert np.array_equal(self.simulation.int_table(at.NODE_FREE, nodes), self.free)
        assert self.ints[at.FREE_GPUS] == self.free.sum()
        levels, types = int(self.ints[at.LEVELS]), int(self.ints[at.TYPES])
        counts = np.zeros((types, levels), dtype=int)
        np.add.at(counts, (self.cluster.node_type, self.free), 1)
        listed = self.simulation.int_table(at.LEVEL_COUNT, types * levels)
        assert np.array_equal(listed, counts.ravel())
        words = int(self.ints[at.LEVEL_WORDS])
        mask = self.simulation.int_table(at.LEVEL_MASK, types * words).reshape(types, words)
        for kind, level in np.ndindex(types, levels):
            is_set = bool(mask[kind, level >> 5] >> (level & 31) & 1)
            assert is_set == (counts[kind, level] > 0)
        for shape in range(len(self.shapes.gpus)):
            assert fits(self.ints, shape) == self.room_for(shape)


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
@pytest.mark.parametrize("seed", range(2))
def test_index_follows_every_start_and_end(cluster, seed):
    """Whatever starts and ends, the index says how many nodes have how much free, and what fits."""
    yard = Yard(cluster, seed)
    yard.ints[at.RECORDS_GPUS] = 0  # jobs start again and again here; there is room for once each
    dice = np.random.default_rng(seed + 10)
    placeable = [job for job in range(JOBS) if yard.shapes.of_job[job] >= 0]
    for _ in range(80):
        outside = [
            job
            for job in placeable
            if job not in yard.held and yard.room_for(yard.shapes.of_job[job])
        ]
        if outside and (not yard.held or dice.random() < 0.6):
            yard.hold(int(dice.choice(outside)))
        elif yard.held:
            yard.release(int(dice.choice(sorted(yard.held))))
        yard.check()
    for job in sorted(yard.held):
        yard.release(job)
    yard.check()
    assert yard.free.sum() == cluster.gpus
