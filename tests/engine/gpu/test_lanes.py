"""Rows of many environments in tiles, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.engine.gpu.lanes import LANES, by_environment, in_tiles, simulated, tiles


def numbered(count: int, words: int) -> np.ndarray:
    return np.arange(count * LANES * words).reshape(count * LANES, words)


@given(st.integers(1, 5), st.integers(1, 9))
def test_tiles_and_rows_are_the_same_numbers(count: int, words: int):
    """There and back is where it began, and words of neighbours stand side by side."""
    rows = numbered(count, words)
    tiled = in_tiles(rows)
    assert tiled.shape == (count, words, LANES)
    assert tiled.flags.c_contiguous
    np.testing.assert_array_equal(by_environment(tiled), rows)
    np.testing.assert_array_equal(tiled[0, 0], rows[:LANES, 0])


@given(st.integers(1, 4), st.integers(1, 6), st.data())
def test_a_lane_is_the_row_of_one_environment(count: int, words: int, data: st.DataObject):
    """It reads and writes that environment's words and no others."""
    rows = numbered(count, words)
    tiled = in_tiles(rows)
    environment = data.draw(st.integers(0, count * LANES - 1))
    lane = simulated().lane(tiled, environment)
    assert list(lane) == rows[environment].tolist()
    lane[words - 1] = -1
    rows[environment, words - 1] = -1
    np.testing.assert_array_equal(by_environment(tiled), rows)


@pytest.mark.parametrize(("environments", "expected"), [(1, 1), (32, 1), (33, 2), (64, 2)])
def test_tiles_hold_all_environments(environments: int, expected: int):
    """The last tile may have room left."""
    assert tiles(environments) == expected
