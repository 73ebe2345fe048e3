"""Regimes in which no single heuristic wins: what is known of a job, and what it asks for, differ.

In one regime estimates tell how long jobs run, in the next only the priorities do, or the
deadlines; small jobs are short here and long there; gangs are starved by who skips them, or block
everybody who waits for them. Every theme comes busy and overloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from yardmaster.workloads.regimes.regime import Phase, Regime, Stream
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
    in_bursts,
    lognormal,
    sizes,
    stream,
    uniform,
)

LOADS: Mapping[str, float] = {"busy": 0.9, "overloaded": 1.4}
"""Intensity → offered load, exactly."""
SPAN_S = 21_600.0
"""How long a stream is drawn for, before it is stretched to the load."""

QUOTAS: Mapping[str, Any] = {
    "name": "quotas-32",
    "nodes": [{"count": 4, "gpu_type": "V100", "gpus": 8}],
    "tenants": [
        {"name": "team-0", "guaranteed_gpus": 12},
        {"name": "team-1", "guaranteed_gpus": 8, "limit_gpus": 24},
        {"name": "team-2", "guaranteed_gpus": 8, "limit_gpus": 16},
        {"name": "team-3", "guaranteed_gpus": 4, "limit_gpus": 16},
    ],
}
"""Four teams that are guaranteed all of 32 GPUs."""


class Theme(NamedTuple):
    """What makes a situation hard: jobs of all streams at once on these machines."""

    description: str
    cluster: str | Mapping[str, Any]
    streams: tuple[Stream, ...]


_GANGS: Mapping[str, Theme] = {
    "gangs": Theme(
        "gangs of 1 to 16 GPUs, log-normal run times",
        "4x V100:8",
        (
            stream(
                50,
                sizes=sizes({1: 8, 2: 4, 4: 4, 8: 3, 16: 1}),
                durations=lognormal(600, 1.2),
            ),
        ),
    ),
    "wide-short": Theme(
        "wide jobs are short, narrow ones long and in a hurry",
        "4x V100:8",
        (
            stream(40, sizes=sizes({8: 3, 16: 1}), durations=uniform(60, 300)),
            stream(25, sizes=sizes({1: 1}), durations=lognormal(1500, 0.7), deadlines=TIGHT),
        ),
    ),
    "wide-long": Theme(
        "wide jobs are long and in a hurry, narrow ones short",
        "8x V100:4",
        (
            stream(4, sizes=sizes({8: 3, 16: 1}), durations=uniform(1800, 5400), deadlines=TIGHT),
            stream(60, sizes=sizes({1: 3, 2: 1}), durations=lognormal(240, 1)),
        ),
    ),
    "narrow-first": Theme(
        "bursts of wide jobs that are shorter but cost more; priorities favour narrow ones",
        "2x V100:8",
        (
            stream(
                16,
                arrivals=in_bursts(5400),
                sizes=sizes({8: 1}),
                durations=uniform(150, 250),
                deadlines=MIXED,
                priorities=LOWEST,
            ),
            stream(
                70,
                sizes=sizes({1: 1}),
                durations=uniform(300, 400),
                deadlines=MIXED,
                priorities=HIGHEST,
            ),
        ),
    ),
    "tight-narrow": Theme(
        "bursts of urgent wide jobs with time to spare, among narrow ones in a hurry",
        "8x V100:4",
        (
            stream(
                24,
                arrivals=in_bursts(5400),
                sizes=sizes({4: 1}),
                durations=uniform(400, 600),
                deadlines="slack:low=10,high=40,follows=duration",
                priorities=HIGHEST,
            ),
            stream(
                65,
                sizes=sizes({1: 1}),
                durations=uniform(800, 1000),
                deadlines=TIGHT,
                priorities=LOWEST,
            ),
        ),
    ),
    "gang-bursts": Theme(
        "hours with many urgent gangs, among small jobs of poor estimates",
        "4x V100:8",
        (
            stream(
                60,
                sizes=sizes({1: 3, 2: 1}),
                durations=lognormal(700, 0.8),
                estimates=POOR,
                deadlines=TIGHT,
            ),
            stream(
                12,
                arrivals=in_bursts(3600),
                sizes=sizes({8: 4, 16: 2, 32: 1}),
                durations=lognormal(400, 0.6),
                deadlines=TIGHT,
                priorities=HIGHEST,
            ),
        ),
    ),
}
"""Size and length of jobs are at odds."""

_SMALL = sizes({1: 3, 2: 2, 4: 1})
_MEDIUM = sizes({1: 6, 2: 3, 4: 2, 8: 1})

_LENGTHS: Mapping[str, Theme] = {
    "heavy-tail": Theme(
        "Pareto run times from a minute to eight hours",
        "4x V100:4",
        (
            stream(
                60,
                sizes=sizes({1: 6, 2: 2, 4: 1}),
                durations="pareto:alpha=0.9,low=60,high=30000",
                estimates=FAIR,
            ),
        ),
    ),
    "alike": Theme(
        "all jobs run for about ten minutes",
        "4x V100:4",
        (stream(70, sizes=sizes({1: 2, 2: 1}), durations=uniform(500, 700), deadlines=MIXED),),
    ),
    "wild-estimates": Theme(
        "estimates wrong by a factor of seven; tight deadlines",
        "2x V100:8",
        (stream(50, sizes=_SMALL, durations=lognormal(500, 1), estimates=POOR, deadlines=TIGHT),),
    ),
    "urgent-short": Theme(
        "short jobs are urgent; estimates are poor",
        "2x V100:8",
        (
            stream(
                50,
                sizes=_SMALL,
                durations=lognormal(500, 1.2, 7200),
                estimates=POOR,
                priorities=by_length("negative", 3600),
            ),
        ),
    ),
    "urgent-long": Theme(
        "long jobs are urgent; estimates are good",
        "2x V100:8",
        (
            stream(
                50,
                sizes=_SMALL,
                durations=lognormal(500, 1.2, 7200),
                priorities=by_length("positive", 3600),
            ),
        ),
    ),
    "estimates-tell": Theme(
        "only estimates tell short jobs from long ones; deadlines and priorities mislead",
        "4x V100:4",
        crowds("estimates"),
    ),
    "priorities-tell": Theme(
        "only priorities tell short jobs from long ones; estimates and deadlines mislead",
        "4x V100:4",
        crowds("priorities"),
    ),
    "deadlines-tell": Theme(
        "only deadlines tell short jobs from long ones; estimates and priorities mislead",
        "4x V100:4",
        crowds("deadlines"),
    ),
    "nothing-tells": Theme(
        "estimates, deadlines and priorities all mislead",
        "4x V100:4",
        crowds("nothing"),
    ),
}
"""What is known of run times differs."""

_MACHINES: Mapping[str, Theme] = {
    "types-two": Theme(
        "8 fast GPUs and 24 slower ones; speeds as measured",
        "1x A100:8, 6x V100:4",
        (stream(50, sizes=_MEDIUM, durations=lognormal(900, 1), demands="kinds=measured"),),
    ),
    "types-three": Theme(
        "three generations of GPUs, poor estimates; speeds as measured",
        "1x A100:8, 4x V100:8, 4x T4:4",
        (
            stream(
                80,
                sizes=_MEDIUM,
                durations=lognormal(900, 1),
                estimates=POOR,
                deadlines=MIXED,
                demands="kinds=measured",
            ),
        ),
    ),
    "quotas": Theme(
        "four teams with guaranteed GPUs; poor estimates",
        QUOTAS,
        (
            stream(
                70,
                sizes=_MEDIUM,
                durations=lognormal(500, 1),
                estimates=POOR,
                deadlines=MIXED,
                tenants="teams:tenants=4,users_per_tenant=4",
            ),
        ),
    ),
}
"""GPUs differ, or who may use them."""

THEMES: Mapping[str, Theme] = {**_GANGS, **_LENGTHS, **_MACHINES}


def hard() -> tuple[Regime, ...]:
    """Return every theme at every load."""
    return tuple(
        _regime(name, theme, intensity) for name, theme in THEMES.items() for intensity in LOADS
    )


def _regime(name: str, theme: Theme, intensity: str) -> Regime:
    regime = Regime(
        name=f"{name}-{intensity}",
        family="hard",
        phases=(Phase(tuple(drawn_until(each, SPAN_S) for each in theme.streams)),),
        cluster=theme.cluster,
        load=LOADS[intensity],
        description=theme.description,
    )
    gpus = regime.machines().gpus
    return replace(regime, labels={"shape": name, "intensity": intensity, "gpus": gpus})
