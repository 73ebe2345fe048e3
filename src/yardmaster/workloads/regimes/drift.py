"""Regimes that change while they go on, so that the best rule of one phase is not that of the next.

The short ones are the drift scenarios of gomede/rlmetadqn-tpds: an hour of 1-GPU jobs in three
phases. The long ones last six to eight hours and have gangs; from phase to phase jobs become
longer, wider or more pressing, other things tell how long they are, or the load surges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from yardmaster.workloads.regimes.regime import Phase, Regime, Stream
from yardmaster.workloads.regimes.rlmetadqn import GPUS, preset
from yardmaster.workloads.regimes.streams import (
    FAIR,
    HIGHEST,
    LOWEST,
    MIXED,
    POOR,
    TIGHT,
    by_length,
    crowds,
    drawn_until,
    lognormal,
    sizes,
    stream,
    uniform,
)

LONG_GPUS = (8, 16)
USUAL_GPUS = 16
"""The rates of `MOODS` are for so many GPUs; others get jobs in proportion."""
LONG_PHASE_S = 7200.0


class ShortPhase(NamedTuple):
    """A phase of a short scenario: one of the regimes of RLMetaDQN."""

    shape: str
    intensity: str
    length_s: float


SHORT: Mapping[str, tuple[ShortPhase, ...]] = {
    "base-bursty-diurnal": (
        ShortPhase("base", "medium", 1200.0),
        ShortPhase("bursty", "medium", 1200.0),
        ShortPhase("diurnal", "medium", 1200.0),
    ),
    "diurnal-shifted-bursty": (
        ShortPhase("diurnal", "medium", 1200.0),
        ShortPhase("shifted", "medium", 1200.0),
        ShortPhase("bursty", "medium", 1200.0),
    ),
    "base-surge-diurnal": (
        ShortPhase("base", "medium", 1200.0),
        ShortPhase("bursty", "high", 600.0),
        ShortPhase("diurnal", "medium", 1800.0),
    ),
}
"""Short scenario → its phases."""

_SMALL = sizes({1: 3, 2: 2, 4: 1})
_MEDIUM = sizes({1: 4, 2: 2, 4: 1, 8: 1})

MOODS: Mapping[str, tuple[Stream, ...]] = {
    "short": (
        stream(
            120,
            sizes=_SMALL,
            durations=lognormal(200, 0.8),
            deadlines=MIXED,
            priorities=by_length("positive", 1200),
        ),
    ),
    "long": (
        stream(
            20,
            sizes=_SMALL,
            durations=lognormal(1500, 0.6, 7200),
            estimates=POOR,
            deadlines=MIXED,
            priorities=by_length("negative", 3600),
        ),
    ),
    "narrow": (stream(90, sizes=sizes({1: 1}), durations=lognormal(500, 0.8), deadlines=MIXED),),
    "wide": (
        stream(
            26,
            sizes=sizes({8: 1}),
            durations=uniform(150, 250),
            deadlines=MIXED,
            priorities=LOWEST,
        ),
        stream(
            60,
            sizes=sizes({1: 1}),
            durations=uniform(300, 400),
            deadlines=MIXED,
            priorities=HIGHEST,
        ),
    ),
    "tight": (
        stream(50, sizes=_SMALL, durations=lognormal(500, 0.8), estimates=FAIR, deadlines=TIGHT),
    ),
    "loose": (
        stream(
            50,
            sizes=_SMALL,
            durations=lognormal(500, 0.8),
            estimates=FAIR,
            deadlines="slack:low=4,high=30,follows=duration",
        ),
    ),
    "calm": (stream(38, sizes=_MEDIUM, durations=lognormal(250, 1), deadlines=MIXED),),
    "storm": (stream(90, sizes=_MEDIUM, durations=lognormal(250, 1), deadlines=MIXED),),
    "estimates": crowds("estimates"),
    "priorities": crowds("priorities"),
    "deadlines": crowds("deadlines"),
    "nothing": crowds("nothing"),
}
"""What jobs are like in a phase of a long scenario; the last four: what tells their lengths."""

LONG: Mapping[str, tuple[str, ...]] = {
    "short-long": ("short", "long", "short"),
    "narrow-wide": ("narrow", "wide", "narrow"),
    "tight-loose": ("tight", "loose", "tight"),
    "calm-storm": ("calm", "storm", "calm"),
    "estimates-priorities": ("estimates", "priorities", "estimates"),
    "estimates-deadlines": ("estimates", "deadlines", "estimates"),
    "deadlines-priorities": ("deadlines", "priorities", "deadlines"),
    "who-tells": ("estimates", "priorities", "deadlines", "nothing"),
}
"""Long scenario → the moods of its phases."""


def drift() -> tuple[Regime, ...]:
    """Return the short scenarios on 2, 4, 8 and 16 GPUs, then the long ones on 8 and 16."""
    return (
        *(_short(name, gpus) for name in SHORT for gpus in GPUS),
        *(_long(name, gpus) for name in LONG for gpus in LONG_GPUS),
    )


def _short(name: str, gpus: int) -> Regime:
    scenario = SHORT[name]
    lengths_s = [phase.length_s for phase in scenario]
    words = [f"{phase.shape} {phase.intensity} {phase.length_s:g} s" for phase in scenario]
    return Regime(
        name=f"drift-{name}-{gpus}",
        family="drift",
        phases=_following([(preset(each.shape, each.intensity),) for each in scenario], lengths_s),
        cluster=f"pool:{gpus}",
        labels={"shape": name, "intensity": "medium", "gpus": gpus},
        description=" → ".join(words),
    )


def _long(name: str, gpus: int) -> Regime:
    moods = LONG[name]
    faster = gpus / USUAL_GPUS
    streams = [
        tuple(drawn_until(each, LONG_PHASE_S * (place + 1), faster=faster) for each in MOODS[mood])
        for place, mood in enumerate(moods)
    ]
    return Regime(
        name=f"drift-{name}-{gpus}",
        family="drift",
        phases=_following(streams, [LONG_PHASE_S] * len(moods)),
        cluster=f"{gpus // 4}x V100:4",
        labels={"shape": name, "intensity": "high", "gpus": gpus},
        description=f"{' → '.join(moods)}, {LONG_PHASE_S:g} s each",
    )


def _following(
    streams: Sequence[tuple[Stream, ...]], lengths_s: Sequence[float]
) -> tuple[Phase, ...]:
    """Return phases of these lengths, one after the other from second 0 on."""
    phases, begin_s = [], 0.0
    for together, length_s in zip(streams, lengths_s, strict=True):
        phases.append(Phase(together, begin_s, begin_s + length_s))
        begin_s += length_s
    return tuple(phases)
