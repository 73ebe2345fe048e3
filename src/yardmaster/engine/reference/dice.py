"""The SimPy reference: the dice of random orders and placements.

They are written out again so that nothing here depends on whether the core is compiled.
"""

from __future__ import annotations


def dice(seed: int, first: int, second: int) -> int:
    """Throw the same dice as the core: 32 bits that depend only on the three numbers."""
    return _mixed(_mixed(_mixed(seed) ^ first) + second)


def _mixed(value: int) -> int:
    value &= 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        value = (value ^ value >> shift) * factor & 0xFFFFFFFF
    return value
