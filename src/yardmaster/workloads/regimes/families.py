"""The families of regimes, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from yardmaster.names import Registry, unknown
from yardmaster.workloads.regimes.drift import drift
from yardmaster.workloads.regimes.hard import hard
from yardmaster.workloads.regimes.regime import Regime
from yardmaster.workloads.regimes.rlmetadqn import matrix, super_high


@dataclass(frozen=True, slots=True)
class Family:
    """Regimes that belong together.

    Attributes:
        name: what users write.
        description: what they have in common, in one line.
        build: makes them, always in the same order.
    """

    name: str
    description: str
    build: Callable[[], tuple[Regime, ...]]


FAMILIES: Registry[Family] = Registry("family of regimes")
"""Every family, by name."""

for _family in (
    Family(
        "rlmetadqn",
        "one hour of 1-GPU jobs: 4 shapes × 3 intensities × 2, 4, 8 and 16 GPUs",
        matrix,
    ),
    Family(
        "rlmetadqn-super-high",
        "the same at 1.5 times the high intensity on 4 and 16 GPUs",
        super_high,
    ),
    Family(
        "hard",
        "gangs, heavy tails, GPU types, wrong estimates, deadlines: no single order wins",
        hard,
    ),
    Family("drift", "regimes that change while they go on", drift),
):
    FAMILIES.add(_family.name, _family)


@cache
def regimes(family: str) -> tuple[Regime, ...]:
    """Return the regimes of a family, always in the same order.

    Raises:
        UnknownNameError: if there is no such family.
    """
    return FAMILIES[family].build()


def find_regime(name: str) -> Regime:
    """Return the regime of this name, of whatever family.

    Raises:
        UnknownNameError: if no family has such a regime.
    """
    known = {regime.name: regime for family in FAMILIES for regime in regimes(family)}
    if name not in known:
        raise unknown("regime", name, known)
    return known[name]
