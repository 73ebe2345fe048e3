"""Which episode comes next is the same on a GPU as on the CPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.engine.gpu.hashing import low64, next_number
from yardmaster.envs.rows import RowBatch


class Everything:
    """So many episodes, each of which is its own number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        return numbers


@given(
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20),
    begun=st.integers(0, 2**31),
    episodes=st.integers(1, 2**31),
)
def test_episodes_are_drawn_as_on_the_cpu(seeds: list[int], begun: int, episodes: int):
    """For any seed, any number of episodes before and any number to draw from."""
    rows = np.arange(len(seeds))
    batch = SimpleNamespace(
        _seeds=np.array(seeds, dtype=np.uint64),
        _counts=np.full(len(seeds), begun, dtype=np.uint64),
        _numbers=Everything(episodes),
    )
    expected = RowBatch._by_seed(batch, rows)
    found = [next_number(seed, begun, episodes) for seed in seeds]
    assert found == expected.tolist()


@given(st.integers(-(2**130), 2**130))
def test_the_lowest_bits_are_those_of_a_compiled_number(value: int):
    """Python's long numbers are cut as 64 bits with a sign would be."""
    assert -(2**63) <= low64(value) < 2**63
    assert (low64(value) - value) % 2**64 == 0
