"""Why a simulation differs from the record: each cause looked for, with its numbers.

A cause counts as found only where the record shows what the simulation does not: held against its
own simulation, a record that a simulator made is without any. What a cause may explain is counted
directly: seconds that jobs waited longer in the record than in the simulation, while the cause was
at work. What these delays do to later jobs is not counted, and one second may have two causes.
"""

from __future__ import annotations

import math

import numpy as np

from yardmaster.experiments.fidelity.caps import caps
from yardmaster.experiments.fidelity.evidence import Cause, Evidence
from yardmaster.experiments.fidelity.occupancy import ROUNDING
from yardmaster.experiments.fidelity.queue_order import held, order, passing
from yardmaster.model.workload import BoolArray, FloatArray

NOTABLE_SHARE = 0.01
"""Of the recorded waiting: what makes up less is not worth a finding."""
NOTABLE_ROOM = 0.05
"""The same, for waiting that a stricter queue could explain as well."""
NOTABLE_TIME = 0.001
"""Of the time, that recorded use exceeds the cluster."""
SHORTEST_ABOVE_S = 120.0
"""For less than this, uses overlap because starts and ends are rounded or reported late."""
HIGHEST_SHARE = 0.999
"""Use that is exceeded for less than a thousandth of the time is not the size of a machine."""
FULL = 0.95
"""Share of what the simulation uses at most, below which the record looks like fewer GPUs."""
NEARLY_NOTHING = 0.05
"""Share of the highest use, up to which a machine counts as drained."""
SHORTEST_DRAIN_S = 1_800.0
BRIDGED_S = 600.0
"""Drains with less than this in between are one."""
FEWEST_PROMPT_JOBS = 20
LONGEST_LATENCY_S = 900.0
"""A quarter of an hour to start a job on a machine with room is no latency, but a limit."""
UNUSUAL = 2.0
"""Times its share of the jobs that the warm-up must hold of the differences."""


def find_causes(evidence: Evidence) -> tuple[Cause, ...]:
    """Look for every cause, and return all of them, found or not."""
    late = latency(evidence)
    # Some starts take longer than most: what nearly all stay below is not worth another cause.
    latency_s = min(late.numbers["p95_s"], LONGEST_LATENCY_S) if late.is_found else 0.0
    recorded, simulated = passing(evidence, "recorded"), passing(evidence, "simulated")
    return (
        room(evidence, latency_s),
        caps(evidence, latency_s),
        drains(evidence),
        order(recorded, simulated),
        held(recorded, simulated),
        late,
        size(evidence),
        warm_up(evidence),
    )


def room(evidence: Evidence, latency_s: float) -> Cause:
    """Look for jobs that waited although the record left enough GPUs free for them."""
    counts, record, replay = evidence.counts, evidence.record, evidence.replay
    with_room_s, would_s = evidence.with_room_s, evidence.simulated_with_room_s
    spare_s = record.waited_during_s(record.has_room_for_all)
    would_spare_s = replay.waited_during_s(replay.has_room_for_all)
    extra_s = evidence.extra_with_room_s(latency_s)
    extra_spare_s = np.where(counts, np.maximum(spare_s - would_spare_s - latency_s, 0.0), 0.0)
    waited_s, simulated_s = evidence.waited_s, float(evidence.simulated_s[counts].sum())
    spare_share = _ratio(float(extra_spare_s.sum()), waited_s)
    return Cause(
        "room",
        is_found=spare_share >= NOTABLE_SHARE
        or _ratio(float(extra_s.sum()), waited_s) >= NOTABLE_ROOM,
        share=evidence.share(extra_s),
        numbers={
            "jobs": float(np.count_nonzero(extra_s > 60.0)),
            "waited_s": float(with_room_s[counts].sum()),
            "waited_share": _ratio(float(with_room_s[counts].sum()), waited_s),
            "simulated_waited_share": _ratio(float(would_s[counts].sum()), simulated_s),
            "room_for_all_share": _ratio(float(spare_s[counts].sum()), waited_s),
            "simulated_room_for_all_share": _ratio(float(would_spare_s[counts].sum()), simulated_s),
            "extra_room_for_all_share": spare_share,
            "explained_by_room_for_all": evidence.share(extra_spare_s),
        },
    )


def size(evidence: Evidence) -> Cause:
    """Look for signs that the machine was larger or smaller than the cluster simulated."""
    record, replay = evidence.record, evidence.replay
    now, then = evidence.after_warm_up(record), evidence.after_warm_up(replay)
    is_above = now & (record.used > record.gpus + ROUNDING)
    above_s = sum(
        end_s - begin_s
        for begin_s, end_s in _spans_s(is_above, record.moments_s)
        if end_s - begin_s >= SHORTEST_ABOVE_S
    )
    above_share = _ratio(above_s, float(record.lasts_s[now].sum()))
    highest = record.highest_use(now & (record.waiting > 0), HIGHEST_SHARE)
    waits_enough = record.share_of_time(now & (record.waiting > 0)) >= NOTABLE_SHARE
    usual = float(replay.gpus)
    if replay.share_of_time(then & (replay.waiting > 0)) >= NOTABLE_SHARE:
        usual = replay.highest_use(then & (replay.waiting > 0), HIGHEST_SHARE)
    is_too_small = above_share >= NOTABLE_TIME
    is_too_large = waits_enough and not is_too_small and highest < FULL * usual
    too_large_jobs = int(np.count_nonzero(record.wants > record.gpus))
    return Cause(
        "size",
        is_found=is_too_small or is_too_large or too_large_jobs > 0,
        numbers={
            "gpus": float(record.gpus),
            "peak_gpus": float(record.used[now].max(initial=0.0)),
            "above_s": above_s,
            "above_share": above_share,
            "highest_while_waiting_gpus": highest,
            "simulated_highest_while_waiting_gpus": usual,
            "is_too_small": float(is_too_small),
            "is_too_large": float(is_too_large),
            "too_large_jobs": float(too_large_jobs),
        },
    )


def latency(evidence: Evidence) -> Cause:
    """Look for a delay of every start, in jobs that came to a machine with room and no queue."""
    waits = evidence.recorded_s[evidence.found_room_and_nobody()]
    points = np.percentile(waits, (25, 50, 75, 95)) if len(waits) else np.full(4, math.nan)
    low, middle, high, highest = (float(point) for point in points)
    is_found = len(waits) >= FEWEST_PROMPT_JOBS and low >= 1.0 and middle <= LONGEST_LATENCY_S
    explained_s = np.full(len(evidence.recorded_s), middle if is_found else 0.0)
    return Cause(
        "latency",
        is_found=is_found,
        share=evidence.share(explained_s),
        numbers={
            "jobs": float(len(waits)),
            "median_s": middle,
            "p25_s": low,
            "p75_s": high,
            "p95_s": highest,
        },
    )


def drains(evidence: Evidence) -> Cause:
    """Look for times when the machine stood (nearly) empty although jobs that fit were waiting."""
    record, now = evidence.record, evidence.after_warm_up(evidence.record)
    highest = min(record.highest_use(now & (record.waiting > 0), HIGHEST_SHARE), record.gpus)
    is_idle = record.used <= NEARLY_NOTHING * highest
    is_drained = now & record.has_room_for_all & is_idle
    periods_s = [
        (begin_s, end_s)
        for begin_s, end_s in _spans_s(is_drained, record.moments_s, bridged_s=BRIDGED_S)
        if end_s - begin_s >= SHORTEST_DRAIN_S
    ]
    borders = np.searchsorted(record.moments_s, np.ravel(periods_s))
    in_periods = np.searchsorted(borders, np.arange(len(is_drained)), side="right") % 2 == 1
    waited_s = record.waited_during_s(in_periods)
    drained_s = sum(end_s - begin_s for begin_s, end_s in periods_s)
    return Cause(
        "drains",
        is_found=bool(periods_s),
        share=evidence.share(waited_s),
        numbers={
            "periods": float(len(periods_s)),
            "drained_s": drained_s,
            "drained_share": _ratio(drained_s, float(record.lasts_s.sum())),
            "waited_share": _ratio(float(waited_s[evidence.counts].sum()), evidence.waited_s),
        },
        periods_s=tuple(periods_s),
    )


def _spans_s(
    is_true: BoolArray, moments_s: FloatArray, *, bridged_s: float = 0.0
) -> list[tuple[float, float]]:
    """Return begin and end of every span in which a value is true, short gaps bridged."""
    change = np.flatnonzero(np.diff(is_true.astype(np.int8), prepend=0, append=0))
    times_s = moments_s[np.minimum(change, len(moments_s) - 1)].tolist()
    spans: list[tuple[float, float]] = []
    for begin_s, end_s in zip(times_s[::2], times_s[1::2], strict=True):
        if spans and begin_s - spans[-1][1] < bridged_s:
            spans[-1] = (spans[-1][0], end_s)
        else:
            spans.append((begin_s, end_s))
    return spans


def warm_up(evidence: Evidence) -> Cause:
    """Look for differences of the first days, when the simulated machine was still empty."""
    compared, counts = evidence.is_compared, evidence.counts
    early = compared & ~counts
    difference_s = evidence.simulated_s - evidence.recorded_s
    share = _ratio(float(np.abs(difference_s[early]).sum()),
                   float(np.abs(difference_s[compared]).sum()))  # fmt: skip
    jobs_share = float(early.sum()) / max(int(compared.sum()), 1)
    return Cause(
        "warm-up",
        is_found=share >= NOTABLE_SHARE and share >= UNUSUAL * jobs_share,
        share=share,
        numbers={
            "jobs": float(early.sum()),
            "jobs_share": jobs_share,
            "mean_difference_s": _mean(difference_s[early]),
            "later_mean_difference_s": _mean(difference_s[counts]),
            "warm_up_ends_s": evidence.warm_up_ends_s,
        },
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
