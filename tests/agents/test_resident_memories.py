"""Memories for environments on a GPU, here on the CPU: the same as `memories`, in tensors."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.agents.memories import BalancedMemory, Memory, NSteps, Transitions
from yardmaster.agents.resident_memories import (
    Columns,
    ResidentMemory,
    ResidentNSteps,
    random_legal,
)
from yardmaster.engine.picking.layout import Layout

CPU = torch.device("cpu")
LAYOUT = Layout(
    window=2,
    job_features=("a",),
    gpu_slots=0,
    global_features=("b",),
    jobs_at=0,
    gpus_at=2,
    globals_at=(2,),
)


def in_groups(first: int, groups: list[int]) -> Transitions:
    """Transitions of these kinds that carry their number in every column that can hold it."""
    new = Transitions.empty(len(groups), LAYOUT)
    numbers = np.arange(first, first + len(groups))
    for column in (new.observations, new.next_observations):
        column[:] = numbers[:, None]
    for column in (new.actions, new.returns, new.discounts):
        column[:] = numbers
    new.masks[:] = new.next_masks[:] = (numbers % 2 == 0)[:, None]
    new.terminated[:] = numbers % 3 == 0
    new.groups[:] = groups
    return new


def in_tensors(new: Transitions) -> Columns:
    """Return the same transitions as they are on a GPU."""
    return {one.name: torch.from_numpy(getattr(new, one.name)) for one in fields(Transitions)}


def pair(size: int, groups: int) -> tuple[Memory, ResidentMemory]:
    """Return an empty memory of either kind."""
    here = BalancedMemory(size, LAYOUT, groups) if groups > 1 else Memory(size, LAYOUT)
    return here, ResidentMemory(size, LAYOUT, groups, CPU)


def assert_same(here: Memory, there: ResidentMemory) -> None:
    """Compare everything that is remembered, row by row."""
    assert there.filled == here.filled
    assert there.size == here.size
    for name, column in there.state()["columns"].items():
        whole = column[: there.size].numpy()
        np.testing.assert_array_equal(whole, getattr(here._columns, name), err_msg=name)


# --- memories ------------------------------------------------------------------------------------

batches = st.lists(st.lists(st.integers(0, 2), max_size=12), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(groups=st.sampled_from([1, 3]), size=st.integers(1, 17), batches=batches)
def test_both_memories_hold_the_same(groups: int, size: int, batches: list[list[int]]):
    """After any additions every row is the same, also where more came than there is room for."""
    here, there = pair(size, groups)
    first = 0
    for kinds in batches:
        new = in_groups(first, kinds)
        here.add(new)
        there.add(in_tensors(new))
        first += len(kinds)
        assert_same(here, there)


def test_the_oldest_of_their_kind_make_room():
    """A memory that is full begins again at the first row of the kind, and at no other's."""
    _, there = pair(6, 3)
    there.add(in_tensors(in_groups(0, [0, 0, 1])))
    rows = there.add(in_tensors(in_groups(3, [0, 2, 0, 0])))
    # Of three of kind 0 there is room for two: the first goes to the row that nobody reads.
    assert rows.tolist() == [6, 4, 1, 0]
    kept = there.state()["columns"]["actions"][:6]
    assert kept.tolist() == [6, 5, 2, 0, 4, 0]
    assert there.filled == 4


def test_kinds_are_drawn_evenly():
    """Each kind as often as any other, each transition of a kind too, and nothing unknown."""
    _, there = pair(400, 4)
    there.add(in_tensors(in_groups(0, [0] * 90 + [1] * 9 + [3])))
    drawn = there.sample(30_000, torch.Generator().manual_seed(0))
    numbers = drawn.actions.numpy()
    counts = np.histogram(numbers, bins=[0, 90, 99, 100])[0]
    assert counts == pytest.approx([10_000] * 3, rel=0.04)
    rare = np.bincount(numbers[(numbers >= 90) & (numbers < 99)] - 90)
    assert rare == pytest.approx([10_000 / 9] * 9, rel=0.15)
    assert numbers.max() == 99
    assert drawn.weights.tolist() == [1.0] * 30_000


@pytest.mark.parametrize("groups", [1, 3])
def test_what_is_drawn_is_what_was_added(groups: int):
    """All columns of a drawn transition are of the same one; unfilled rows are never drawn."""
    _, there = pair(12, groups)
    there.add(in_tensors(in_groups(1, [0, 2, 0, 2, 1])))
    drawn = there.sample(200, torch.Generator().manual_seed(1))
    numbers = drawn.actions
    assert set(numbers.tolist()) == {1, 2, 3, 4, 5}
    for column in (drawn.observations[:, 0], drawn.next_observations[:, 2], drawn.returns):
        assert torch.equal(column, numbers.float())
    assert torch.equal(drawn.terminated, numbers % 3 == 0)
    assert torch.equal(drawn.masks[:, 1], numbers % 2 == 0)


@pytest.mark.parametrize("groups", [1, 3])
def test_a_loaded_memory_goes_on_as_the_saved_one(groups: int):
    """Loaded over a fuller one, the same is replaced next and the same is drawn."""
    memories = [ResidentMemory(7, LAYOUT, groups, CPU) for _ in range(2)]
    memories[0].add(in_tensors(in_groups(0, [0, 1, 0, 2, 0])))
    memories[1].add(in_tensors(in_groups(50, [2, 1, 0, 2, 0, 1, 1, 0])))
    memories[1].load(memories[0].state())
    for memory in memories:
        memory.add(in_tensors(in_groups(100, [0, 2, 2])))
    one, other = (memory.sample(60, torch.Generator().manual_seed(2)) for memory in memories)
    assert torch.equal(one.actions, other.actions)
    assert torch.equal(one.observations, other.observations)


# --- several steps -------------------------------------------------------------------------------


class Shown:
    """What environments show at one moment, for both kinds of memory."""

    can_cut = True

    def __init__(self, dice: np.random.Generator, size: int) -> None:
        self.observations = dice.random((size, LAYOUT.length), dtype=np.float32)
        self.final_observations = dice.random((size, LAYOUT.length), dtype=np.float32)
        self.masks = np.ones((size, LAYOUT.actions), dtype=np.bool_)  # as where one chooses
        self.final_masks = self.masks
        self.groups = dice.integers(0, 3, size)
        self.rewards = dice.normal(size=size)
        fate = dice.random(size)
        self.terminated, self.truncated = fate < 0.15, fate > 0.85

    def in_tensors(self) -> Any:
        """Return the same in tensors, as copies: what is noted must not change later."""
        other = Shown.__new__(Shown)
        for name, value in vars(self).items():
            setattr(other, name, torch.from_numpy(value.copy()))
        return other


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 5),
    size=st.integers(1, 4),
    interrupted=st.booleans(),
)
def test_several_steps_join_as_on_the_cpu(seed, n, size, interrupted):
    """The same transitions are complete after every step, with the same sums and discounts."""
    dice = np.random.default_rng(seed)
    here, there = NSteps(n, size, LAYOUT), ResidentNSteps(n, size, LAYOUT, CPU)
    for step in range(12):
        before, after = Shown(dice, size), Shown(dice, size)
        actions, discounts = dice.integers(0, 3, size), dice.uniform(0.5, 1.0, size)
        here.begin(before, actions)
        there.begin(before.in_tensors(), torch.from_numpy(actions))
        expected = here.finish(after, discounts)
        found = there.finish(after.in_tensors(), torch.from_numpy(discounts))
        for column in fields(Transitions):
            np.testing.assert_allclose(
                found[column.name].numpy(),
                getattr(expected, column.name),
                rtol=1e-5,
                atol=1e-6,
                err_msg=column.name,
            )
        if interrupted and step == 6:
            state = there.state()
            there.begin(before.in_tensors(), torch.from_numpy(actions))  # does not count
            there = ResidentNSteps(n, size, LAYOUT, CPU)
            there.load(state)


# --- dice ----------------------------------------------------------------------------------------


def test_random_actions_are_legal_and_alike():
    """Every legal action is drawn about equally often, and no other."""
    masks = torch.tensor([[True, False, True]]).repeat(20_000, 1)
    drawn = random_legal(masks, torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn, minlength=3).tolist()
    assert counts[1] == 0
    assert counts[0] == pytest.approx(10_000, rel=0.04)
