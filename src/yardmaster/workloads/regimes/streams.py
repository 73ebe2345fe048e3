"""Streams of jobs for the hard and the drifting regimes, and the words they are written in.

Deadlines follow run times and not estimates, so that they are as hard to meet whatever people say.
"""

from __future__ import annotations

from typing import Literal

from yardmaster.workloads.regimes.regime import Stream

GOOD = "noisy:sigma=0.3"
"""Estimates that are wrong by a third."""
FAIR = "noisy:sigma=1"
POOR = "noisy:sigma=2"
"""Estimates that are wrong by a factor of seven."""
TIGHT = "slack:low=1.2,high=2,follows=duration"
MIXED = "slack:low=1.2,high=8,follows=duration"
LOOSE = "slack:low=2,high=20,follows=duration"
ANY_PRIORITY = "uniform:low=0,high=3"
LOWEST, HIGHEST = "fixed:value=0", "fixed:value=3"
"""One priority for all jobs of a stream."""

Informant = Literal["estimates", "priorities", "deadlines", "nothing"]
"""What tells short jobs from long ones; everything else says the opposite."""


def stream(rate_per_h: float, **parts: str) -> Stream:
    """Return a stream; by default with good estimates, any priority and much time to spare.

    Args:
        rate_per_h: mean rate of submissions, jobs/h.
        parts: processes of the recipe in one line each.
    """
    usual = {"estimates": GOOD, "deadlines": LOOSE, "priorities": ANY_PRIORITY}
    return {"rate_per_h": float(rate_per_h), **usual, **parts}


def drawn_until(stream: Stream, until_s: float, *, faster: float = 1.0) -> Stream:
    """Return the stream as it can be drawn: until a second, perhaps at a multiple of its rate."""
    return {**stream, "rate_per_h": stream["rate_per_h"] * faster, "until_s": until_s}


def lognormal(median_s: float, sigma: float, longest_s: float = 36_000.0) -> str:
    """Return log-normal run times from 20 s on."""
    return f"lognormal:median={median_s:g},sigma={sigma:g},low=20,high={longest_s:g}"


def uniform(low_s: float, high_s: float) -> str:
    """Return run times that are all equally likely between two limits."""
    return f"uniform:low={low_s:g},high={high_s:g}"


def sizes(shares: dict[int, int]) -> str:
    """Return sizes with weights: `{1: 3, 8: 1}` is three 1-GPU jobs to one of 8 GPUs."""
    weights = "/".join(str(weight) for weight in shares.values())
    return f"choice:values={'/'.join(map(str, shares))},weights={weights}"


def by_length(correlation: Literal["negative", "positive"], longest_s: float) -> str:
    """Return priorities 1…10 that follow run times: short jobs urgent (negative), or long ones."""
    return f"follows-duration:correlation={correlation},longest_s={longest_s:g},weight=0.9"


def in_bursts(every_s: float) -> str:
    """Return arrivals that come nearly all in every second stretch of so many seconds."""
    return f"alternating:busy=10,quiet=0.1,every_s={every_s:g}"


def crowds(informant: Informant) -> tuple[Stream, Stream]:
    """Return short jobs and long ones, which only one of the things people say tells apart.

    Half of the work is in each. Where estimates mislead, short jobs ask for twenty times their run
    time and long ones for a tenth; where deadlines mislead, long jobs are in a hurry and short ones
    are not; where priorities mislead, long jobs have the highest.
    """
    estimates = (
        (GOOD, GOOD) if informant == "estimates" else (f"{GOOD},bias=20", f"{GOOD},bias=0.1")
    )
    priorities = (HIGHEST, LOWEST) if informant == "priorities" else (LOWEST, HIGHEST)
    unhurried = "slack:low=30,high=80,follows=duration"
    deadlines = (TIGHT, TIGHT) if informant == "deadlines" else (unhurried, TIGHT)
    return (
        stream(
            68,
            sizes=sizes({1: 3, 2: 1}),
            durations=lognormal(360, 0.5),
            estimates=estimates[0],
            priorities=priorities[0],
            deadlines=deadlines[0],
        ),
        stream(
            7.5,
            sizes=sizes({1: 1, 2: 1}),
            durations=lognormal(3000, 0.5),
            estimates=estimates[1],
            priorities=priorities[1],
            deadlines=deadlines[1],
        ),
    )
