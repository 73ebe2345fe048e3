"""What is played back as CUDA graphs; without a GPU it is simply called."""

from __future__ import annotations

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.agents.graphs import Replays, room_for


@pytest.mark.parametrize(("count", "room"), [(0, 64), (1, 64), (65, 128), (1_000, 1_024)])
def test_room_comes_in_few_sizes(count, room):
    """Enough for all, in steps."""
    assert room_for(count, 10**9) == room


def test_room_is_enough_and_hardly_too_much():
    """At most a quarter more than needed, never more than there can be."""
    rooms = [room_for(count, 10**9) for count in range(256, 5_000)]
    assert all(
        count <= room <= 1.25 * count for count, room in zip(range(256, 5_000), rooms, strict=True)
    )
    assert len(set(rooms)) <= 20
    assert room_for(900, 910) == 910


@given(count=st.integers(0, 10**7), more=st.integers(0, 200))
def test_room_is_a_multiple_of_64_or_all_there_can_be(count, more):
    """Enough for all; below 256 the next multiple of 64, beyond it at most a quarter more."""
    room = room_for(count, 10**9)
    assert count <= room
    assert room % 64 == 0
    assert room <= (max(count + 63, 64) if count < 256 else 1.25 * count)
    assert room_for(count, count + more) == min(room, count + more)


def test_numbers_are_held_where_the_first_were():
    """Later ones are copied there; what is there already stays as it is."""
    replays = Replays(torch.device("cpu"))
    first = torch.tensor([1.0, 2.0])
    held = replays.hold("numbers", first)
    assert replays.hold("numbers", torch.tensor([3.0, 4.0])) is held
    assert first.tolist() == [3.0, 4.0]
    assert replays.hold("numbers", first) is held
    replays.forget()
    other = torch.tensor([5.0, 6.0])
    assert replays.hold("numbers", other) is other


def test_without_a_gpu_functions_are_called():
    """Each time, with what they are given."""
    replays = Replays(torch.device("cpu"))
    calls: list[int] = []
    for _ in range(2):
        replays.run("key", lambda: calls.append(1))
    assert len(calls) == 2
    assert replays.call("sum", torch.add, torch.tensor(1.0), torch.tensor(2.0)).item() == 3.0


@pytest.mark.skipif(torch.cuda.is_available(), reason="a capture fails only where there is no GPU")
def test_a_capture_that_fails_is_told_once_and_done_without():
    """One remark, and everything is done all the same."""
    replays = Replays(torch.device("cuda"))
    calls: list[int] = []
    with pytest.warns(RuntimeWarning, match="goes on without them"):
        replays.run("key", lambda: calls.append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replays.run("other", lambda: calls.append(1))
    assert len(calls) == 2
    assert not replays.is_capturing
