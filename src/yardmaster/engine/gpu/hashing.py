"""Which episode comes next, by the same numbers as on the CPU (`envs.rows`)."""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel

_HALF = 1 << 63
_GOLDEN = 0x9E3779B97F4A7C15 - 2 * _HALF
_FIRST = 0xBF58476D1CE4E5B9 - 2 * _HALF
_SECOND = 0x94D049BB133111EB - 2 * _HALF


def low64(value: int) -> int:
    """Return the lowest 64 bits as a signed number; compiled numbers have no others."""
    return (value + _HALF) % (2 * _HALF) - _HALF


@hot_kernel
def _shifted(value: int, by: int) -> int:
    """Shift 64 bits to the right, zeros coming in."""
    return (value >> by) & ((1 << (64 - by)) - 1)


@kernel
def next_number(seed: int, begun: int, episodes: int) -> int:
    """Return the episode that an environment with this seed begins after so many others."""
    mixed = low64(seed * _GOLDEN) ^ low64((begun + 1) * _FIRST)
    mixed = low64((mixed ^ _shifted(mixed, 30)) * _FIRST)
    mixed = low64((mixed ^ _shifted(mixed, 27)) * _SECOND)
    mixed ^= _shifted(mixed, 31)
    # The remainder of 64 bits without a sign, in arithmetic that has one.
    return (_shifted(mixed, 1) % episodes * 2 + (mixed & 1)) % episodes
