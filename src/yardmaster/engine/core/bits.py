"""Sets of small integers as bits, and dice that need no memory.

Words hold 32 bits in 64-bit signed integers: no operation can overflow, so the same source gives
the same result as plain Python, compiled, and on a GPU.
"""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.state import (
    Ints,
)

WORD_BITS = 32
_LOW = 0xFFFFFFFF
# A de Bruijn sequence sends each power of two to its own index: the position of a single bit
# without a loop.
_DE_BRUIJN = 0x077CB531
_BIT_OF = tuple(
    bit for _, bit in sorted((((1 << bit) * _DE_BRUIJN & _LOW) >> 27, bit) for bit in range(32))
)


@hot_kernel
def lowest_bit(word: int) -> int:
    """Return the index of the lowest set bit of a non-zero word."""
    return _BIT_OF[((word & -word) * _DE_BRUIJN & _LOW) >> 27]


@hot_kernel
def next_bit(words: Ints, first: int, length: int, start: int) -> int:
    """Return the lowest member ≥ `start` of the set in words[first:first + length], or −1."""
    index = start >> 5
    if index >= length:
        return -1
    word = (words[first + index] >> (start & 31)) << (start & 31)
    while word == 0:
        index += 1
        if index >= length:
            return -1
        word = words[first + index]
    return (index << 5) + lowest_bit(word)


@kernel
def highest_bit(words: Ints, first: int, length: int) -> int:
    """Return the highest member of the set in words[first:first + length], or −1."""
    index = length - 1
    while index >= 0:
        word = words[first + index]
        if word != 0:
            bit = 31
            while (word >> bit) & 1 == 0:
                bit -= 1
            return (index << 5) + bit
        index -= 1
    return -1


@kernel
def mix(value: int) -> int:
    """Scramble 32 bits so that neighbouring inputs give unrelated outputs."""
    value &= _LOW
    value ^= value >> 16
    value = value * 0x7FEB352D & _LOW
    value ^= value >> 15
    value = value * 0x846CA68B & _LOW
    return value ^ (value >> 16)


@kernel
def dice(seed: int, first: int, second: int) -> int:
    """Return 32 random bits that depend only on the three numbers."""
    return mix(mix(mix(seed) ^ first) + second)
