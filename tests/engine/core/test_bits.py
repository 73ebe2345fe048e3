"""Sets of bits against Python's sets, and dice against what dice should be."""

import numpy as np
import pytest

from yardmaster.engine.core import bits


def as_words(members, length):
    """Return a set of small integers as words of 32 bits, with something else around them."""
    words = [0xDEADBEEF] + [0] * length + [0xDEADBEEF]
    for member in members:
        words[1 + member // 32] |= 1 << member % 32
    return words


@pytest.mark.parametrize("bit", range(32))
def test_lowest_bit(bit):
    """The lowest set bit is found at every position, whatever lies above it."""
    for above in (0, 0xFFFFFFFF, 0xA5A5A5A5):
        assert bits.lowest_bit(1 << bit | (above << bit + 1 & 0xFFFFFFFF)) == bit


def test_next_and_highest_bit():
    """Members are found from every start, across words, and never beyond the set."""
    dice = np.random.default_rng(0)
    for _ in range(60):
        length = int(dice.integers(1, 5))
        members = set(dice.integers(0, 32 * length, int(dice.integers(0, 6))).tolist())
        words = as_words(members, length)
        assert bits.highest_bit(words, 1, length) == max(members, default=-1)
        for start in range(32 * length + 2):
            following = min((member for member in members if member >= start), default=-1)
            assert bits.next_bit(words, 1, length, start) == following


def test_dice_are_fair():
    """Every bit is set half of the time, along each of the three numbers."""
    throws = {
        "seed": [bits.dice(number, 3, 5) for number in range(2000)],
        "first": [bits.dice(1, number, 5) for number in range(2000)],
        "second": [bits.dice(1, 3, number) for number in range(2000)],
    }
    for values in throws.values():
        numbers = np.array(values)
        assert ((numbers >= 0) & (numbers < 2**32)).all()
        share = ((numbers[:, None] >> np.arange(32)) & 1).mean(axis=0)
        # Four standard deviations for the worst of 32 bits.
        assert np.abs(share - 0.5).max() < 4 * 0.5 / np.sqrt(2000)


def test_mixing_loses_nothing():
    """Different inputs give different outputs: the scramble can be undone."""
    mix = bits.mix
    assert len({mix(number) for number in range(20_000)}) == 20_000
    assert mix(2**32 + 7) == mix(7)
