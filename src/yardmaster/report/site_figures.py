"""Pictures of what only real clusters have: work that was lost, and tenants with guarantees."""

from __future__ import annotations

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
    """Draw the GPU-hours each scheduler lost to stopping jobs and to failing nodes."""
    rows = comparison.rows
    estimates = [row.metrics["wasted_gpu_h"] for row in rows]
    places = decimals([each.mean for each in estimates])
    shown = [(name, what) for name, what in STOPS if _stops(comparison, name)]
    texts = [
        f"{number(each.mean, places)}"
        + "".join(f", {row.metrics[name].mean:,.0f}× {what}" for name, what in shown)
        for each, row in zip(estimates, rows, strict=True)
    ]
    names = [series_name(comparison, row) for row in rows]
    zeroed = [Estimate(each.mean, max(each.low, 0.0), each.high) for each in estimates]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        draw_bars(axes, looks(comparison), zeroed, texts, size=1.0)
        # The words beside the longest bar need room.
        axes.set_xlim(right=max(axes.get_xlim()[1], 1e-3) * (1.35 + 0.25 * len(shown)))
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("GPU-hours held without progress")

    return draw(
        "lost-work",
        title="Work lost to stops and failures",
        caption="Restoring jobs that were stopped, and work done again since their last"
        f" checkpoint; means over {comparison.units}.",
        alt=f"Wasted GPU-hours and stops. {told(comparison, texts)}",
        height_in=max(0.9 + 0.28 * len(names), 2.2),
        paint=paint,
    )


def tenants_while_waiting(comparison: Comparison) -> Figure:
    """Draw what tenants held while they had jobs waiting, against what they are guaranteed."""
    quotas = _guaranteed(comparison.schedules[0])[:MOST_TENANTS]
    drawn = [
        (look, [gpus_while_waiting(schedule, quota.tenant) for quota in quotas])
        for look, schedule in zip(looks(comparison), comparison.schedules, strict=True)
    ]
    names = [shortened(plain(quota.tenant), LONGEST_TENANT) for quota in quotas]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        _draw_guarantees(axes, quotas)
        _draw_holdings(axes, [each for each in drawn if each[0].highlighted])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.margins(x=0.06)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("GPUs held while own jobs waited")
        add_legend(canvas, comparison, with_rest=False)

    facts = [
        ", ".join(f"{name} {number(gpus, 1)}" for name, gpus in zip(names, held, strict=True))
        for _, held in drawn
    ]
    promised = ", ".join(f"{quota.tenant} {quota.guaranteed_gpus}" for quota in quotas)
    return draw(
        "tenants",
        title="Tenants against their guarantees",
        caption="Mean GPUs that a tenant held over the time in which a job of its waited. The bar"
        f" is what it is guaranteed, the stroke its limit.{drawn_from(comparison)}",
        alt=f"Guaranteed: {plain(promised)} GPUs. {told(comparison, facts)}",
        height_in=1.6 + 0.42 * len(quotas),
        paint=paint,
    )


def gpus_while_waiting(schedule: Schedule, tenant: str) -> float:
    """Return the mean GPUs a tenant held while a job of its waited; NaN if none ever did."""
    labels = schedule.workload.tenant
    if tenant not in labels.names:
        return float("nan")
    is_own = labels.codes == labels.names.index(tenant)
    queue, mine = queue_intervals(schedule), is_own[schedule.segment_job]
    waits = is_own[queue.job] & (queue.begin_s < queue.end_s)
    held = stacked(
        schedule,
        schedule.segment_start_s[mine],
        schedule.segment_end_s[mine],
        np.diff(schedule.segment_gpu_offset)[mine],
    )
    waiting = stacked(
        schedule, queue.begin_s[waits], queue.end_s[waits], np.ones(waits.sum(), dtype=np.int64)
    )
    edges = np.union1d(held.edges_s, waiting.edges_s)
    span_s = np.diff(edges) * (_from_each(edges, waiting) > 0)
    total_s = float(span_s.sum())
    return float(_from_each(edges, held) @ span_s) / total_s if total_s > 0 else float("nan")


def _from_each(edges: FloatArray, steps: StepFunction) -> FloatArray:
    """Return the value of a step function from each edge up to the next."""
    place = np.searchsorted(steps.edges_s, edges[:-1], side="right") - 1
    return np.asarray(steps.values[np.clip(place, 0, len(steps.values) - 1)], dtype=np.float64)


def _stops(comparison: Comparison, name: str) -> bool:
    return any(row.metrics[name].mean > 0 for row in comparison.rows)


def _guaranteed(schedule: Schedule) -> list[Quota]:
    """Return the quotas of tenants that submit jobs, the largest guarantee first."""
    names = set(schedule.workload.tenant.names)
    quotas = [quota for quota in schedule.cluster.site.quotas if quota.tenant in names]
    return sorted(quotas, key=lambda quota: -quota.guaranteed_gpus)


def _draw_guarantees(axes: Axes, quotas: list[Quota]) -> None:
    """Draw guarantees as pale bars, and limits as strokes."""
    rows = np.arange(len(quotas))
    guaranteed = [quota.guaranteed_gpus for quota in quotas]
    axes.barh(rows, guaranteed, color=INK, height=0.8, alpha=0.22, linewidth=0)
    for row, quota in enumerate(quotas):
        if quota.limit_gpus is not None:
            axes.plot([quota.limit_gpus] * 2, [row - 0.4, row + 0.4], color=INK, linewidth=1.6)


def _draw_holdings(axes: Axes, drawn: list[tuple[Look, list[float]]]) -> None:
    """Draw one mark per scheduler and tenant, those of one tenant below each other."""
    offsets = (np.arange(len(drawn)) - (len(drawn) - 1) / 2) * (0.7 / max(len(drawn), 1))
    for (look, held), offset in zip(drawn, offsets, strict=True):
        rows = np.arange(len(held)) + offset
        axes.plot(held, rows, color=look.colour, marker=look.marker, markersize=5.5, linestyle="")
