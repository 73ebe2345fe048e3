"""The state is two arrays of any stride: many simulations can stand side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yardmaster.engine import compilation
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.setup import Options, Simulation, lay_out
from yardmaster.engine.state import NOW, STOPS_AT_PASSES, Discipline, Placement, Status
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

CLUSTER = Cluster.of("3x V100:4")


def small_simulation(seed: int, discipline: Discipline) -> Simulation:
    dice = np.random.default_rng(seed)
    workload = Workload.of(
        submit_s=np.sort(dice.integers(0, 60, 24)),
        duration_s=dice.integers(1, 40, 24),
        gpus=np.resize([1, 2, 4, 8, 1, 3], 24),
    )
    options = Options(discipline, Placement.PACK, None)
    keys = OrderKeys.fixed(workload.duration_s)
    return lay_out(workload, CLUSTER, shapes_of(workload, CLUSTER), keys, options)


@pytest.mark.parametrize("discipline", [Discipline.SKIP, Discipline.EASY])
def test_simulations_side_by_side_equal_simulations_alone(discipline: Discipline):
    """Stepping columns of one large array, turn by turn, gives every state bit for bit."""
    from yardmaster.engine.core import events

    alone = [small_simulation(seed, discipline) for seed in range(8)]
    ints = np.stack([simulation.ints for simulation in alone], axis=1)
    reals = np.stack([simulation.reals for simulation in alone], axis=1)
    ints[STOPS_AT_PASSES] = 1
    views = [(ints[:, k], reals[:, k]) for k in range(8)]
    if not compilation.is_compiled():
        views = [(i.data, r.data) for i, r in views]
    running = set(range(8))
    while running:
        for k in sorted(running):
            if events.replay(*views[k], math.inf) == Status.DONE:
                running.discard(k)
    for k, simulation in enumerate(alone):
        if compilation.is_compiled():
            events.replay(simulation.ints, simulation.reals, math.inf)
        else:
            events.replay(simulation.ints.data, simulation.reals.data, math.inf)
        ints[STOPS_AT_PASSES, k] = 0
        np.testing.assert_array_equal(ints[:, k], simulation.ints)
        np.testing.assert_array_equal(reals[:, k], simulation.reals)
        assert simulation.reals[NOW] > 0


def test_a_simulation_can_be_forked():
    """A copy taken in the middle goes on to the same end as the original."""
    from yardmaster.engine.core import events

    original = small_simulation(3, Discipline.EASY)
    plain = compilation.is_compiled()
    events.replay(*_arrays(original, plain=plain), 20.0)
    fork = Simulation(original.ints.copy(), original.reals.copy())
    for simulation in (original, fork):
        events.replay(*_arrays(simulation, plain=plain), math.inf)
    np.testing.assert_array_equal(original.ints, fork.ints)


def _arrays(simulation: Simulation, *, plain: bool):
    if plain:
        return simulation.ints, simulation.reals
    return simulation.ints.data, simulation.reals.data
