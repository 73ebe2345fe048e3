"""The state is two arrays of any stride: many simulations can stand side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yardmaster.engine.conditions import conditions_of
from yardmaster.engine.core import events
from yardmaster.engine.layout import Simulation
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.setup import lay_out
from yardmaster.engine.state import NOW, STOPS_AT_PASSES, Discipline, Placement, Status
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Outage, Site
from yardmaster.model.workload import Workload

PLAIN = Cluster.of("3x V100:4")
REAL = Cluster.of("2x V100:4", "A100:4").under(
    Site(
        checkpoints=Checkpoints(every_s=5.0, save_s=0.5, restore_s=1.0),
        failures=Failures(outages=(Outage(0, 10.0, 20.0), Outage(2, 30.0, 35.0))),
        quantum_s=3.0,
    )
)
CASES = [
    (PLAIN, Discipline.SKIP),
    (PLAIN, Discipline.EASY),
    (REAL, Discipline.EASY),
    (REAL, Discipline.PREEMPTIVE),
]


def small_simulation(seed: int, cluster: Cluster, discipline: Discipline) -> Simulation:
    dice = np.random.default_rng(seed)
    workload = Workload.of(
        submit_s=np.sort(dice.integers(0, 60, 24)),
        duration_s=dice.integers(1, 40, 24),
        gpus=np.resize([1, 2, 4, 8, 1, 3], 24),
    )
    shapes = shapes_of(workload, cluster)
    conditions = conditions_of(workload, cluster, shapes)
    options = Options(discipline, Placement.PACK, None, conditions=conditions)
    simulation = lay_out(workload, cluster, shapes, OrderKeys.fixed(workload.duration_s), options)
    if conditions is not None:  # room for all that happens, so that layouts stay equal
        for _ in range(3):
            simulation.make_room()
    return simulation


@pytest.mark.parametrize(("cluster", "discipline"), CASES)
def test_simulations_side_by_side_equal_simulations_alone(cluster, discipline):
    """Stepping columns of one large array, turn by turn, gives every state bit for bit."""
    alone = [small_simulation(seed, cluster, discipline) for seed in range(8)]
    ints = np.stack([simulation.ints for simulation in alone], axis=1)
    reals = np.stack([simulation.reals for simulation in alone], axis=1)
    ints[STOPS_AT_PASSES] = 1
    running = set(range(8))
    while running:
        for k in sorted(running):
            status = events.replay(ints[:, k].data, reals[:, k].data, math.inf)
            assert status != Status.NEEDS_ROOM
            if status == Status.DONE:
                running.discard(k)
    for k, simulation in enumerate(alone):
        events.replay(simulation.ints.data, simulation.reals.data, math.inf)
        ints[STOPS_AT_PASSES, k] = 0
        np.testing.assert_array_equal(ints[:, k], simulation.ints)
        np.testing.assert_array_equal(reals[:, k], simulation.reals)
        assert simulation.reals[NOW] > 0


@pytest.mark.parametrize(("cluster", "discipline"), CASES)
def test_a_simulation_can_be_forked(cluster, discipline):
    """A copy taken in the middle goes on to the same end as the original."""
    original = small_simulation(3, cluster, discipline)
    events.replay(original.ints.data, original.reals.data, 20.0)
    fork = Simulation(original.ints.copy(), original.reals.copy())
    half_way = original.reals[NOW]
    for simulation in (original, fork):
        assert events.replay(simulation.ints.data, simulation.reals.data, math.inf) == Status.DONE
    np.testing.assert_array_equal(original.ints, fork.ints)
    np.testing.assert_array_equal(original.reals, fork.reals)
    assert fork.reals[NOW] > half_way
