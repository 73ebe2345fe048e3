"""Remembering transitions, and drawing them again."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.agents.advantages import step_discounts
from yardmaster.agents.memories import (
    BalancedMemory,
    Memory,
    NSteps,
    PrioritisedMemory,
    SumTree,
    Transitions,
)
from yardmaster.engine.picking.layout import Layout

LAYOUT = Layout(
    window=2,
    job_features=("a",),
    gpu_slots=0,
    global_features=("b",),
    jobs_at=0,
    gpus_at=2,
    globals_at=(2,),
)


def numbered(first: int, count: int) -> Transitions:
    """Transitions that carry their number in every column that can hold it."""
    new = Transitions.empty(count, LAYOUT)
    numbers = np.arange(first, first + count)
    for column in (new.observations, new.next_observations):
        column[:] = numbers[:, None]
    for column in (new.actions, new.returns, new.discounts):
        column[:] = numbers
    return new


# --- the sum tree --------------------------------------------------------------------------------

changes = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=30)


@given(size=st.integers(1, 13), changes=changes, batches=st.integers(1, 4))
def test_the_sum_tree_agrees_with_plain_sums(size, changes, batches):
    """Totals, numbers and the rows found are those of a plain array and its running sum."""
    tree, plain = SumTree(size), np.zeros(size)
    for part in np.array_split(np.array(changes, dtype=np.int64).reshape(-1, 2), batches):
        if not len(part):
            continue
        unique = {int(row) % size: float(value) for row, value in part}
        rows = np.array(list(unique), dtype=np.int64)
        tree[rows] = np.array(list(unique.values()))
        plain[rows] = list(unique.values())
        assert tree.total == plain.sum()
        assert np.array_equal(tree[np.arange(size)], plain)
        sums = np.arange(0.0, plain.sum(), 0.5)
        expected = np.searchsorted(np.cumsum(plain), sums, side="right")
        assert np.array_equal(tree.find(sums), expected)


def test_the_sum_tree_never_finds_a_row_without_weight():
    """Even when rounding asks for the total or more, the row found has a weight."""
    tree = SumTree(8)
    rows = np.array([1, 2, 5])
    tree[rows] = np.array([0.1, 0.2, 0.3])
    found = tree.find(np.array([tree.total, tree.total * 1.001, 0.0, np.nextafter(0.6, 1.0)]))
    assert found.tolist() == [5, 5, 1, 5]


# --- memories ------------------------------------------------------------------------------------


@given(size=st.integers(1, 9), chunks=st.lists(st.integers(0, 12), max_size=6))
def test_a_memory_keeps_the_newest(size, chunks):
    """After any additions the last `size` transitions are there, each in all its columns."""
    memory, added = Memory(size, LAYOUT), 0
    for chunk in chunks:
        rows = memory.add(numbered(added, chunk))
        added += chunk
        kept = list(range(max(added - chunk, added - size), added))
        assert memory._columns.actions[rows].tolist() == kept
    assert memory.filled == min(size, added)
    expected = set(range(max(0, added - size), added))
    kept = memory._columns
    assert set(kept.actions[: memory.filled].tolist()) == expected
    for column in (kept.observations[:, 0], kept.next_observations[:, 0], kept.returns):
        assert np.array_equal(column, kept.actions.astype(np.float32))


def test_a_plain_memory_draws_all_alike():
    """Every remembered transition, and nothing else, is drawn about equally often."""
    memory = Memory(10, LAYOUT)
    memory.add(numbered(100, 5))
    drawn = memory.sample(50_000, np.random.default_rng(0))
    numbers, counts = np.unique(drawn.actions.numpy(), return_counts=True)
    assert numbers.tolist() == [100, 101, 102, 103, 104]
    assert np.abs(counts / 50_000 - 0.2).max() < 0.01  # 5 standard deviations
    assert drawn.weights.tolist() == [1.0] * 50_000


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_priorities_are_the_frequencies(alpha):
    """Transitions are drawn in proportion to their error to the power alpha."""
    memory = PrioritisedMemory(8, LAYOUT, alpha)
    memory.add(numbered(0, 6))
    errors = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    memory.reprioritise(np.arange(6), errors)
    dice = np.random.default_rng(0)
    counts = sum(np.bincount(memory.sample(16, dice).rows, minlength=6) for _ in range(4_000))
    expected = (errors + memory.FLOOR) ** alpha
    assert counts / counts.sum() == pytest.approx(expected / expected.sum(), abs=0.006)


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_weights_undo_the_preference(beta):
    """A weight is (rows × probability)^−beta, the greatest of a draw being 1."""
    memory = PrioritisedMemory(4, LAYOUT, alpha=1.0)
    memory.add(numbered(0, 4))
    memory.reprioritise(np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]))
    drawn = memory.sample(32, np.random.default_rng(0), beta)
    probabilities = np.array([1.0, 2.0, 3.0, 4.0])[drawn.rows] / 10.0
    expected = (4 * probabilities) ** -beta
    assert drawn.weights.numpy() == pytest.approx(expected / expected.max(), rel=1e-5)


def test_new_transitions_are_as_urgent_as_the_most_surprising():
    """What was never looked at has the greatest priority seen so far."""
    memory = PrioritisedMemory(4, LAYOUT, alpha=0.5)
    memory.add(numbered(0, 2))
    memory.reprioritise(np.array([0]), np.array([9.0]))
    memory.add(numbered(2, 1))
    assert memory.tree[np.arange(4)] == pytest.approx([3.0, 1.0, 3.0, 0.0], rel=1e-6)


@pytest.mark.parametrize("kind", ["plain", "prioritised"])
def test_a_loaded_memory_draws_the_same(kind):
    """A memory loaded over another, fuller one draws exactly what the saved one draws."""

    def fresh(count: int) -> Memory:
        made = Memory(7, LAYOUT) if kind == "plain" else PrioritisedMemory(7, LAYOUT, 0.6)
        made.add(numbered(10 * count, count))
        return made

    memory, other = fresh(5), fresh(7)
    memory.reprioritise(np.array([1, 3]), np.array([0.1, 7.0]))
    state = memory.state()
    other.load(state)
    for _ in range(3):
        ours = memory.sample(20, np.random.default_rng(3), 0.5)
        theirs = other.sample(20, np.random.default_rng(3), 0.5)
        assert torch.equal(ours.observations, theirs.observations)
        assert torch.equal(ours.weights, theirs.weights)
        memory.reprioritise(ours.rows[:1], np.array([2.0]))
        other.reprioritise(theirs.rows[:1], np.array([2.0]))
        memory.add(numbered(100, 3))
        other.add(numbered(100, 3))


def test_only_a_terminated_episode_has_no_future():
    """The next state's value counts by its discount, and not at all after a terminal step."""
    new = numbered(1, 2)
    new.discounts[:] = 0.5
    new.terminated[0] = True
    memory = Memory(2, LAYOUT)
    memory.add(new)
    drawn = memory.sample(50, np.random.default_rng(0))
    assert set(zip(drawn.actions.tolist(), drawn.bootstrap.tolist(), strict=True)) == {
        (1, 0.0),
        (2, 0.5),
    }


# --- the balanced memory --------------------------------------------------------------------------


def in_groups(first: int, groups: list[int]) -> Transitions:
    """Numbered transitions of these kinds."""
    new = numbered(first, len(groups))
    new.groups[:] = groups
    return new


@settings(max_examples=60, deadline=None)
@given(
    room=st.integers(1, 5),
    batches=st.lists(st.lists(st.integers(0, 2), max_size=12), min_size=1, max_size=6),
)
def test_every_kind_keeps_its_newest(room, batches):
    """Of each kind the newest are remembered, as many as it has room for, whatever others do."""
    memory = BalancedMemory(3 * room + 2, LAYOUT, 3)
    kept: dict[int, list[int]] = {0: [], 1: [], 2: []}
    first = 0
    for groups in batches:
        rows = memory.add(in_groups(first, groups))
        assert len(rows) == len(groups)
        for number, group in enumerate(groups, first):
            kept[group] = [*kept[group], number][-room:]
        first += len(groups)
    assert memory.filled == sum(map(len, kept.values()))
    if memory.filled:
        drawn = memory.sample(400, np.random.default_rng(0))
        assert set(drawn.actions.tolist()) <= {one for some in kept.values() for one in some}


def test_kinds_are_drawn_evenly():
    """A kind of which much is remembered is drawn as often as one of which little is."""
    memory = BalancedMemory(3_000, LAYOUT, 3)
    memory.add(in_groups(0, [0] * 900 + [1] * 90 + [2] * 9))
    drawn = memory.sample(30_000, np.random.default_rng(0)).actions.numpy()
    counts = np.histogram(drawn, bins=[0, 900, 990, 999])[0]
    assert counts == pytest.approx([10_000] * 3, rel=0.04)
    rare = np.bincount(drawn[drawn >= 990] - 990)
    assert rare == pytest.approx([10_000 / 9] * 9, rel=0.15)
    # A kind that was never met is not drawn.
    memory = BalancedMemory(30, LAYOUT, 3)
    memory.add(in_groups(7, [1, 1]))
    assert set(memory.sample(50, np.random.default_rng(0)).actions.tolist()) == {7, 8}


def test_a_balanced_memory_can_be_saved():
    """Loaded into another, the same is drawn and the same is replaced next."""
    one, other = (BalancedMemory(12, LAYOUT, 3) for _ in range(2))
    one.add(in_groups(0, [0, 1, 0, 0, 0, 0, 2]))
    other.load(one.state())
    for memory in (one, other):
        memory.add(in_groups(100, [0, 2]))
    ours, theirs = (memory.sample(60, np.random.default_rng(1)) for memory in (one, other))
    assert torch.equal(ours.actions, theirs.actions)
    assert other.filled == one.filled == 7


# --- several steps -------------------------------------------------------------------------------


class Script:
    """A batch that plays back what it is given; observations say (environment, step, last?)."""

    def __init__(self, seed: int, size: int, steps: int) -> None:
        dice = np.random.default_rng(seed)
        shape = (steps, size)
        self.size = size
        self.groups = np.arange(size) % 2
        self.all_rewards = dice.normal(size=shape)
        self.all_elapsed = dice.integers(0, 4, shape).astype(np.float64)
        fate = dice.random(shape)
        self.all_terminated = fate < 0.15
        self.all_truncated = (fate > 0.1) & (fate < 0.3)  # now and then both at once
        self.all_masks = dice.random((steps + 1, size, 3)) < 0.5
        self.all_final_masks = dice.random((steps + 1, size, 3)) < 0.5
        self.all_actions = dice.integers(0, 3, shape)
        self.show(0)

    def show(self, step: int) -> None:
        """Be as after that many steps."""
        self.observations = np.array([[env, step, 0] for env in range(self.size)], np.float32)
        self.final_observations = self.observations + np.array([0, 0, 1], np.float32)
        self.masks = self.all_masks[step]
        self.final_masks = self.all_final_masks[step]
        if step:
            self.rewards = self.all_rewards[step - 1]
            self.elapsed_s = self.all_elapsed[step - 1]
            self.terminated = self.all_terminated[step - 1]
            self.truncated = self.all_truncated[step - 1]


def by_definition(script: Script, n: int, discounts: np.ndarray) -> dict[tuple[int, int], tuple]:
    """What every decision's transition must be, from the words alone; open ones are absent."""
    steps = len(discounts)
    expected = {}
    for env in range(script.size):
        for begin in range(steps):
            total, product = 0.0, 1.0
            for step in range(begin, min(begin + n, steps)):
                total += product * script.all_rewards[step, env]
                product *= discounts[step, env]
                terminated = bool(script.all_terminated[step, env])
                over = terminated or bool(script.all_truncated[step, env])
                if over or step == begin + n - 1:
                    masks = script.all_final_masks if over else script.all_masks
                    expected[env, begin] = (
                        script.all_masks[begin, env].tolist(),
                        int(script.all_actions[begin, env]),
                        pytest.approx(total, rel=1e-4, abs=1e-5),
                        pytest.approx(product, rel=1e-5),
                        [env, step + 1, int(over)],
                        masks[step + 1, env].tolist(),
                        terminated,
                    )
                    break
    return expected


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 5),
    size=st.integers(1, 4),
    per_s=st.sampled_from([None, 2.0]),
    interrupted=st.booleans(),
)
def test_several_steps_join_as_defined(seed, n, size, per_s, interrupted):
    """Returns, discounts and next states over n steps are those of the definition.

    Whatever ends episodes, with discounts per decision or per second, and even if the joining is
    saved and taken up by another halfway.
    """
    steps = 14
    script = Script(seed, size, steps)
    discounts = step_discounts(script.all_elapsed, 0.9, per_s)
    joining, got = NSteps(n, size, LAYOUT), {}
    for step in range(steps):
        joining.begin(script, script.all_actions[step])
        script.show(step + 1)
        new = joining.finish(script, discounts[step])
        for row in range(len(new)):
            env, begin, _ = new.observations[row].astype(int).tolist()
            assert (env, begin) not in got
            assert new.groups[row] == script.groups[env]
            got[env, begin] = (
                new.masks[row].tolist(),
                int(new.actions[row]),
                float(new.returns[row]),
                float(new.discounts[row]),
                new.next_observations[row].astype(int).tolist(),
                new.next_masks[row].tolist(),
                bool(new.terminated[row]),
            )
        if interrupted and step == steps // 2:
            state = joining.state()
            joining.begin(script, script.all_actions[step])  # what comes after does not count
            joining = NSteps(n, size, LAYOUT)
            joining.load(state)
    assert got == by_definition(script, n, discounts)


def test_observations_are_copied_before_the_step():
    """What is remembered does not change when the environments write over their arrays."""
    batch = SimpleNamespace(
        groups=np.zeros(1, np.int64),
        observations=np.ones((1, 3), np.float32),
        masks=np.ones((1, 3), np.bool_),
        rewards=np.ones(1),
        terminated=np.zeros(1, np.bool_),
        truncated=np.zeros(1, np.bool_),
        final_observations=np.zeros((1, 3), np.float32),
        final_masks=np.zeros((1, 3), np.bool_),
    )
    joining, memory = NSteps(1, 1, LAYOUT), Memory(4, LAYOUT)
    joining.begin(batch, np.array([1]))
    batch.observations[:] = 2.0
    memory.add(joining.finish(batch, np.array([0.9])))
    batch.observations[:] = 3.0
    batch.masks[:] = False
    drawn = memory.sample(1, np.random.default_rng(0))
    assert drawn.observations.tolist() == [[1.0, 1.0, 1.0]]
    assert drawn.next_observations.tolist() == [[2.0, 2.0, 2.0]]
    assert bool(drawn.next_masks.all())
