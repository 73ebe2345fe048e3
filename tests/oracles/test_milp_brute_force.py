"""The integer program against every possible placement of a few jobs on a few nodes.

The oracle shares no code with the placement: it walks through all plans of all jobs, keeps those
that start the first jobs in order, and among them the cheapest by the documented objective.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from yardmaster.engine.decisions import Situation
from yardmaster.engine.requests import Shapes
from yardmaster.schedulers.milp import MilpDecider
from yardmaster.schedulers.milp_model import Weights

CASES = 200


def random_case(seed):
    """Return up to 4 jobs on up to 4 nodes; some nodes suit only some jobs, or only partly."""
    dice = np.random.default_rng(seed)
    nodes, jobs, kinds = (int(number) for number in dice.integers((2, 2, 1), (5, 5, 4)))
    node_gpus = dice.choice([2, 3, 4, 4, 4], nodes)
    free = np.minimum(dice.integers(0, 7, nodes), node_gpus)
    gpus = dice.choice([1, 1, 2, 2, 3, 4, 5, 6], kinds)
    cap = np.minimum(dice.choice([1, 2, 4, 4], kinds), node_gpus.max())
    usable = np.repeat(free[None, :], kinds, axis=0)
    if dice.random() < 0.5:  # GPU types that some jobs do not accept
        usable = np.where(dice.random(usable.shape) < 0.8, usable, 0)
    if dice.random() < 0.3:  # cores or memory run out before GPUs do
        usable = np.minimum(usable, dice.integers(1, 5, usable.shape))
    shapes = Shapes(
        of_job=dice.integers(0, kinds, jobs),
        gpus=gpus,
        cap=cap,
        types=np.ones(kinds, dtype=np.int64),
        single=(gpus <= cap).astype(np.int64),
        example=np.zeros(kinds, dtype=np.int64),
    )
    rows = dice.permutation(jobs)
    return Situation(0.0, rows, shapes, node_gpus, free, usable.__getitem__)


def charge(situation, shape, node, gpus):
    """GPUs a node loses if the job takes so many: more if the job exhausts its cores earlier."""
    usable = int(situation.usable(shape)[node])
    return math.ceil(Fraction(gpus * int(situation.free[node]), usable)) if gpus else 0


def plans_on(situation, shape, left):
    """Yield what every way to place a job of this shape leaves, and the nodes a gang is on."""
    shapes, usable = situation.shapes, situation.usable(shape)
    need, cap = int(shapes.gpus[shape]), int(shapes.cap[shape])
    shares = [
        [
            gpus
            for gpus in range(min(cap, int(most)) + 1)
            if not shapes.single[shape] or gpus in {0, need}
        ]
        for most in usable
    ]
    for plan in itertools.product(*shares):
        if sum(plan) == need:
            after = [
                room - charge(situation, shape, node, gpus)
                for node, (room, gpus) in enumerate(zip(left, plan, strict=True))
            ]
            if min(after) >= 0:
                used = () if shapes.single[shape] else np.flatnonzero(plan).tolist()
                yield tuple(after), frozenset(used)


def cost(situation, placed, left, of_gangs, weights):
    """The documented objective, term by term."""
    nodes = range(len(left))
    whole = situation.node_gpus.tolist()
    partial = sum(0 < left[node] < whole[node] for node in nodes)
    fractions = [Fraction(left[node], whole[node]) for node in nodes]
    holding = 0
    for shape in placed:
        need = min(int(situation.shapes.gpus[shape]), int(situation.shapes.cap[shape]))
        usable = situation.usable(shape)
        holding += sum(
            int(usable[node]) >= need and charge(situation, shape, node, need) <= left[node]
            for node in nodes
        )
    return (
        weights.fragmentation * partial
        + weights.balance * float(max(fractions) - min(fractions))
        + weights.scatter * len(of_gangs)
        - weights.room * (holding / len(placed) if placed else 0.0)
    )


def best(situation, weights):
    """Return who starts (in the order of the pass) and the least cost of starting them."""
    order = [int(situation.shapes.of_job[row]) for row in situation.rows]
    found = {}

    def extend(position, started, left, of_gangs):
        if position == len(order):
            placed = [shape for shape, is_started in zip(order, started, strict=True) if is_started]
            price = cost(situation, placed, left, of_gangs, weights)
            found[started] = min(price, found.get(started, math.inf))
            return
        extend(position + 1, (*started, False), left, of_gangs)
        for after, used in set(plans_on(situation, order[position], left)):
            extend(position + 1, (*started, True), after, of_gangs | used)

    extend(0, (), tuple(situation.free.tolist()), frozenset())
    first = max(found)
    return first, found[first]


def outcome(situation, chosen, weights):
    """Return who starts and what it costs; fails if a plan is not one of the job's own."""
    left = situation.free.tolist()
    placed, of_gangs = [], set()
    for row, plan in chosen:
        shape = int(situation.shapes.of_job[row])
        for node, gpus in plan.items():
            left[node] -= charge(situation, shape, node, gpus)
        shares = [plan.get(node, 0) for node in range(len(left))]
        assert sum(shares) == situation.shapes.gpus[shape]
        assert max(shares) <= situation.shapes.cap[shape]
        assert all(shares <= situation.usable(shape))
        assert len(plan) == 1 or not situation.shapes.single[shape]
        assert all(gpus > 0 for gpus in plan.values())
        placed.append(shape)
        of_gangs |= set() if situation.shapes.single[shape] else plan.keys()
    assert min(left) >= 0
    started = {row for row, _ in chosen}
    in_order = tuple(row in started for row in situation.rows.tolist())
    return in_order, cost(situation, placed, left, of_gangs, weights)


@pytest.mark.parametrize(
    "weights",
    [
        Weights(),
        Weights(fragmentation=0.0, balance=1.0, scatter=0.0, room=0.0),
        Weights(fragmentation=0.0, balance=0.0, scatter=0.2, room=1.0),
        Weights(fragmentation=0.2, balance=2.0, scatter=0.7, room=1.1),
    ],
    ids=["default", "balance", "room", "mixed"],
)
def test_the_choice_is_the_best_of_all(weights):
    """Nobody could start more of the first jobs, and none of these placements costs less."""
    decisions = 0
    for seed in range(CASES):
        situation = random_case(seed)
        chosen = MilpDecider(time_limit_s=60.0, weights=weights)(situation)
        started, price = outcome(situation, chosen, weights)
        best_started, best_price = best(situation, weights)
        assert started == best_started, seed
        assert price == pytest.approx(best_price, abs=1e-6), seed
        decisions += len(chosen)
    assert decisions > CASES  # the cases are not trivially empty
