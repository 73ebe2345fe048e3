"""What sets schedules of the same jobs apart, as plain numbers for the components of a page.

Everything is bounded in size however many jobs there are: distributions are thinned to some hundred
quantiles, groups beyond the largest are gathered, and of the jobs that gained and lost only the
first few are listed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yardmaster.metrics.catalogue import metric
from yardmaster.metrics.groups import group_codes
from yardmaster.metrics.statistics import blocks, paired_difference
from yardmaster.model.workload import FloatArray, IntArray, Labels, Workload
from yardmaster.report.figures import priority_classes
from yardmaster.report.same_jobs import MEASURES, SameJobs, Side
from yardmaster.report.values import metric_title, metric_unit, plain, sentence

Record = dict[str, Any]
CURVE_POINTS = 240
BLOCKS = 20
"""Into how many blocks of jobs a single workload is cut, to have pairs."""
MOST_GROUPS = 10
"""Tenants with boxes of their own; all others share one."""
MOST_MOVERS = 12
"""Jobs listed that gained most, and that lost most."""
TITLES = {
    "jct_s": "job completion time",
    "wait_s": "waiting time",
    "bounded_slowdown": "bounded slowdown",
}
PAIRED = (
    "mean_jct_s", "p95_jct_s", "mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilisation",
    "max_queue", "energy_kwh",
)  # fmt: skip
"""Metrics whose differences are shown where there are several workloads."""
PAIRED_IN_BLOCKS = ("mean_jct_s", "mean_wait_s", "mean_bounded_slowdown")
"""Those that have intervals with one workload: means over jobs."""


def contrast(
    jobs: SameJobs,
    units: Mapping[str, FloatArray] | None = None,
    *,
    baseline: int = 0,
    whole: Sequence[bool] | None = None,
    points: int = CURVE_POINTS,
) -> Record:
    """Return all numbers of a contrast.

    Args:
        jobs: the jobs of one workload under every scheduler.
        units: metric → (schedulers, workloads) where there are several workloads; by default the
            pairs are blocks of this one.
        baseline: which scheduler all others are compared with.
        whole: which schedulers finished all jobs of all workloads; by default judged by this one.
        points: quantiles of a distribution to give at most.
    """
    return {
        "sides": [_side(side) for side in jobs.sides],
        "baseline": baseline,
        "jobs": len(jobs.workload),
        "measures": [{"name": name, "title": TITLES[name]} for name in MEASURES],
        "cdfs": {name: [cdf(side, name, points) for side in jobs.sides] for name in MEASURES},
        "boxes": [
            _boxes(jobs, name, groups) for name, groups in _groupings(jobs.workload) if groups
        ],
        "units": _unit_words(jobs, units),
        "differences": differences(jobs, units, baseline, whole),
        "movers": [
            movers(jobs, place, baseline) if place != baseline else None
            for place in range(len(jobs.sides))
        ],
    }


def _side(side: Side) -> Record:
    counted = int(np.count_nonzero(side.counts))
    return {"name": plain(side.name), "finished": side.finished, "jobs": counted}


def cdf(side: Side, measure: str, points: int = CURVE_POINTS) -> Record:
    """Return `x` and the share `y` of all jobs that count which have at most x, thinned.

    Unfinished jobs count among all but never as complete: their curve ends below 1. The thinning
    keeps the extremes and the tail: the last steps stand ever closer together.
    """
    values = side.columns[measure]
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return {"x": [], "y": []}
    last = len(values) - 1
    even = np.linspace(0, last, points)
    tail = last * (1.0 - np.logspace(0, -6, points // 4))
    picked = np.unique(values[np.concatenate([even, tail]).round().astype(np.int64)])
    share = np.searchsorted(values, picked, side="right") / np.count_nonzero(side.counts)
    return {"x": _short(picked), "y": _short(share)}


def box(values: FloatArray) -> Record | None:
    """Return the five numbers of a box, its mean and how many jobs it is of; None without jobs."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    low, q1, median, q3, high = np.percentile(known, (5, 25, 50, 75, 95)).tolist()
    return {
        "low": low, "q1": q1, "median": median, "q3": q3, "high": high,
        "mean": float(known.mean()), "jobs": len(known),
    }  # fmt: skip


def _boxes(jobs: SameJobs, name: str, groups: Sequence[tuple[str, IntArray]]) -> Record:
    return {
        "by": name,
        "groups": [{"name": plain(group), "jobs": len(rows)} for group, rows in groups],
        "boxes": {
            measure: [
                [box(side.columns[measure][rows]) for side in jobs.sides] for _, rows in groups
            ]
            for measure in MEASURES
        },
    }


def _groupings(workload: Workload) -> list[tuple[str, list[tuple[str, IntArray]]]]:
    """Return what jobs are grouped by and their groups; no groups where all jobs are alike."""
    priorities = priority_classes(workload.priority)
    return [
        ("tenant", _tenants(workload)),
        ("priority", priorities if len(priorities) > 1 else []),
    ]


def _tenants(workload: Workload) -> list[tuple[str, IntArray]]:
    """Return the tenants with most jobs, largest first, and one group of all the others."""
    names, codes = group_codes(workload.tenant)
    counts = np.bincount(codes, minlength=len(names))
    used = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    if len(used) < 2:
        return []
    shown = used if len(used) <= MOST_GROUPS + 1 else used[:MOST_GROUPS]
    groups = [(names[code], np.flatnonzero(codes == code)) for code in shown.tolist()]
    rest = np.setdiff1d(used, shown)
    if len(rest):
        groups.append((f"{len(rest):,} others", np.flatnonzero(np.isin(codes, rest))))
    return groups


def differences(
    jobs: SameJobs,
    units: Mapping[str, FloatArray] | None,
    baseline: int,
    whole: Sequence[bool] | None = None,
) -> list[Record]:
    """Return every metric's value and paired relative difference to the baseline.

    Where jobs did not finish there is no interval: averages over those that did may flatter whoever
    let the long ones wait. Neither is there one where fewer than two units are.
    """
    finished = [side.is_whole for side in jobs.sides] if whole is None else whole
    columns = _blocks(jobs) if units is None else units
    found = []
    for name, values in columns.items():
        means = _wholes(jobs, name) if units is None else values.mean(axis=1)
        if np.isnan(means).all():
            continue
        unit = metric_unit(name)
        found.append({
            "metric": name,
            "title": sentence(metric_title(name)),
            "unit": unit.symbol,
            "size": unit.size,
            "better": metric(name).better,
            "values": [_number(mean) for mean in means.tolist()],
            "sides": [
                None if place == baseline
                else _difference(
                    values[[place, baseline]], means[[place, baseline]],
                    has_interval=finished[place] and finished[baseline],
                )
                for place in range(len(jobs.sides))
            ],
        })  # fmt: skip
    return found


def _difference(units: FloatArray, means: FloatArray, *, has_interval: bool) -> Record:
    """Return how far the first of two rows lies from the second, relative to the second."""
    whole = float(means[0] / means[1] - 1.0) if means[1] else math.nan
    low, high = math.nan, math.nan
    if has_interval:
        _, low, high = paired_difference(*units).relative
    return {"mean": _number(whole), "low": _number(low), "high": _number(high)}


def _blocks(jobs: SameJobs) -> dict[str, FloatArray]:
    """Return metric → (sides, blocks) the mean over the finished jobs of every block."""
    cut = blocks(jobs.workload.submit_s, min(BLOCKS, len(jobs.workload)))
    return {
        name: np.array(
            [[_mean(side.columns[_measure(name)][part]) for part in cut] for side in jobs.sides]
        )
        for name in PAIRED_IN_BLOCKS
    }


def _wholes(jobs: SameJobs, name: str) -> FloatArray:
    return np.array([_mean(side.columns[_measure(name)]) for side in jobs.sides])


def _measure(name: str) -> str:
    return name.removeprefix("mean_")


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _unit_words(jobs: SameJobs, units: Mapping[str, FloatArray] | None) -> str:
    if units is None:
        count = min(BLOCKS, len(jobs.workload))
        return f"{count} consecutive blocks of one workload's jobs"
    return f"{next(iter(units.values())).shape[1]} workloads"


def movers(jobs: SameJobs, side: int, baseline: int, most: int = MOST_MOVERS) -> Record:
    """Return the jobs whose completion changed most against the baseline, and how many did."""
    ours, theirs = jobs.sides[side].columns, jobs.sides[baseline].columns
    change = ours["jct_s"] - theirs["jct_s"]
    known = np.flatnonzero(~np.isnan(change))
    order = known[np.argsort(change[known], kind="stable")]
    gained = [row for row in order[:most].tolist() if change[row] < 0]
    lost = [row for row in order[::-1][:most].tolist() if change[row] > 0]
    return {
        "gained": [_mover(jobs, row, ours, theirs) for row in gained],
        "lost": [_mover(jobs, row, ours, theirs) for row in lost],
        "sooner": int(np.count_nonzero(change < 0)),
        "later": int(np.count_nonzero(change > 0)),
        "same": int(np.count_nonzero(change == 0)),
        "unknown": len(change) - len(known),
    }


def _mover(
    jobs: SameJobs, row: int, ours: Mapping[str, FloatArray], theirs: Mapping[str, FloatArray]
) -> Record:
    workload = jobs.workload
    return {
        "row": row,
        "id": plain(workload.id[row]),
        "tenant": plain(_label(workload.tenant, row)),
        "gpus": int(workload.gpus[row]),
        "submit_s": float(workload.submit_s[row]),
        "duration_s": float(workload.duration_s[row]),
        "jct_s": float(ours["jct_s"][row]),
        "before_s": float(theirs["jct_s"][row]),
        "wait_s": float(ours["wait_s"][row]),
        "waited_s": float(theirs["wait_s"][row]),
    }


def _label(column: Labels, row: int) -> str:
    code = int(column.codes[row])
    return column.names[code] if code >= 0 else ""


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _short(values: FloatArray) -> list[float]:
    """Return numbers with six digits: more than a figure shows, and a third of the bytes."""
    return [float(f"{value:.6g}") for value in values.tolist()]
