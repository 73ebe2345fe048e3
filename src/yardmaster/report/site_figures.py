"""Pictures of what only real clusters have: work that was lost, and tenants with guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.comparison import Comparison, Estimate
from yardmaster.metrics.timeline import StepFunction, queue_intervals, stacked
from yardmaster.model.schedule import Schedule
from yardmaster.model.site import Quota
from yardmaster.model.workload import FloatArray
from yardmaster.report.drawing import INK, Figure, draw
from yardmaster.report.series import Look, add_legend, draw_bars, looks, series_name
from yardmaster.report.timelines import drawn_from, told
from yardmaster.report.values import decimals, number, plain, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

STOPS = (
    ("preemptions", "preempted"),
    ("migrations", "moved"),
    ("resizes", "resized"),
    ("restarts", "restarted"),
)
"""Metrics that count stops, and what is said of them."""
_STOP_COLOURS = {
    "preemptions": "#0072B2",
    "migrations": "#009E73",
    "resizes": "#CC79A7",
    "restarts": "#D55E00",
}
MOST_TENANTS = 12
LONGEST_TENANT = 20


def site_figures(comparison: Comparison) -> list[Figure]:
    """Return the pictures that this comparison has something to say in."""
    figures = []
    if any(_stops(comparison, name) for name, _ in STOPS):
        figures.append(lost_work(comparison))
    if _guaranteed(comparison.schedules[0]):
        figures.append(tenants_while_waiting(comparison))
    return figures


def lost_work(comparison: Comparison) -> Figure:
    """Draw the GPU-hours each scheduler lost, and how often jobs were stopped under it."""
    rows = comparison.rows
    wasted = [row.metrics["wasted_gpu_h"].mean for row in rows]
    places = decimals(wasted)
    names = [series_name(comparison, row) for row in rows]
    kinds = [(name, what) for name, what in STOPS if _stops(comparison, name)]

    def paint(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharey=True)
        without = [Estimate(mean, float("nan"), float("nan")) for mean in wasted]
        texts = [number(mean, places) for mean in wasted]
        draw_bars(left, looks(comparison), without, texts, size=1.0)
        left.margins(x=0.3)
        left.set_yticks(range(len(names)), names)
        left.set_xlabel("GPU-hours without progress")
        _draw_stops(right, comparison, kinds)
        right.set_xlabel("stops")
        canvas.legend(loc="outside lower right", ncols=len(kinds), handlelength=1.2)

    facts = [
        f"{number(mean, places)} GPU-hours"
        + "".join(f", {row.metrics[name].mean:,.0f} {what}" for name, what in kinds)
        for mean, row in zip(wasted, rows, strict=True)
    ]
    return draw(
        "lost-work",
        title="Work lost to stops and failures",
        caption="Left: GPU-hours spent restoring jobs, or on work done again since their last"
        f" checkpoint. Right: how often jobs were stopped. Means over {comparison.units}.",
        alt=f"Wasted GPU-hours and stops. {told(comparison, facts)}",
        height_in=max(1.5 + 0.28 * len(names), 2.6),
        paint=paint,
    )


def _draw_stops(axes: Axes, comparison: Comparison, kinds: Sequence[tuple[str, str]]) -> None:
    """Draw stops by reason as bars below each other, with their numbers."""
    height = 0.62 / len(kinds)
    for place, (name, what) in enumerate(kinds):
        counts = [row.metrics[name].mean for row in comparison.rows]
        at = np.arange(len(counts)) + (place - (len(kinds) - 1) / 2) * height
        bars = axes.barh(
            at, counts, height, color=_STOP_COLOURS[name], alpha=0.85, label=what, linewidth=0
        )
        labels = [f"{count:,.0f}" if count else "" for count in counts]
        axes.bar_label(bars, labels, padding=4, fontsize=9 if len(kinds) == 1 else 7.5)
    axes.margins(x=0.3)
    axes.set_xlim(left=0)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def tenants_while_waiting(comparison: Comparison) -> Figure:
    """Draw what tenants held while they had jobs waiting, against what they were entitled to."""
    quotas = _guaranteed(comparison.schedules[0])[:MOST_TENANTS]
    drawn = [
        (look, [100.0 * share_while_waiting(schedule, quota) for quota in quotas])
        for look, schedule in zip(looks(comparison), comparison.schedules, strict=True)
    ]
    names = [
        f"{shortened(plain(quota.tenant), LONGEST_TENANT)} ({quota.guaranteed_gpus})"
        for quota in quotas
    ]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.axvline(100.0, color=INK, linewidth=1.4)
        _draw_holdings(axes, [each for each in drawn if each[0].highlighted])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.margins(x=0.06)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("held while own jobs waited (% of entitlement)")
        axes.set_ylabel("tenant (guaranteed GPUs)")
        add_legend(canvas, comparison, with_rest=False)

    facts = [
        ", ".join(f"{name} {number(share, 0)} %" for name, share in zip(names, held, strict=True))
        for _, held in drawn
    ]
    return draw(
        "tenants",
        title="Tenants against their guarantees",
        caption="GPUs that a tenant held while a job of its waited, in percent of those it was"
        " entitled to: all it asked for, up to its guarantee. Beyond the line it borrowed; a tenant"
        f" that never waited has no mark.{drawn_from(comparison)}",
        alt=f"Held while own jobs waited. {told(comparison, facts)}",
        height_in=1.9 + 0.42 * len(quotas),
        paint=paint,
    )


def share_while_waiting(schedule: Schedule, quota: Quota) -> float:
    """Return GPU time a tenant held while a job of its waited / that it was entitled to then.

    It is entitled to what it holds and asks for, up to its guarantee. NaN if it never waited, or
    is guaranteed nothing.
    """
    labels = schedule.workload.tenant
    is_own = labels.codes == labels.names.index(quota.tenant)
    queue, mine = queue_intervals(schedule), is_own[schedule.segment_job]
    waits = is_own[queue.job] & (queue.begin_s < queue.end_s)
    held = stacked(
        schedule,
        schedule.segment_start_s[mine],
        schedule.segment_end_s[mine],
        np.diff(schedule.segment_gpu_offset)[mine],
    )
    asked = stacked(
        schedule,
        queue.begin_s[waits],
        queue.end_s[waits],
        schedule.workload.gpus[queue.job[waits]],
    )
    edges = np.union1d(held.edges_s, asked.edges_s)
    held_gpus, asked_gpus = _from_each(edges, held), _from_each(edges, asked)
    span_s = np.diff(edges) * (asked_gpus > 0)
    entitled_s = float(np.minimum(held_gpus + asked_gpus, quota.guaranteed_gpus) @ span_s)
    return float(held_gpus @ span_s) / entitled_s if entitled_s > 0 else float("nan")


def _from_each(edges: FloatArray, steps: StepFunction) -> FloatArray:
    """Return the value of a step function from each edge up to the next."""
    place = np.searchsorted(steps.edges_s, edges[:-1], side="right") - 1
    return np.asarray(steps.values[np.clip(place, 0, len(steps.values) - 1)], dtype=np.float64)


def _stops(comparison: Comparison, name: str) -> bool:
    return any(row.metrics[name].mean > 0 for row in comparison.rows)


def _guaranteed(schedule: Schedule) -> list[Quota]:
    """Return the guarantees of tenants that submit jobs, the largest first."""
    names = set(schedule.workload.tenant.names)
    quotas = [
        quota
        for quota in schedule.cluster.site.quotas
        if quota.tenant in names and quota.guaranteed_gpus > 0
    ]
    return sorted(quotas, key=lambda quota: -quota.guaranteed_gpus)


def _draw_holdings(axes: Axes, drawn: list[tuple[Look, list[float]]]) -> None:
    """Draw one mark per scheduler and tenant, those of one tenant below each other."""
    offsets = (np.arange(len(drawn)) - (len(drawn) - 1) / 2) * (0.7 / max(len(drawn), 1))
    for (look, held), offset in zip(drawn, offsets, strict=True):
        rows = np.arange(len(held)) + offset
        axes.plot(held, rows, color=look.colour, marker=look.marker, markersize=5.5, linestyle="")
