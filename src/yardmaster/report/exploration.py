"""The part of a comparison's report that can be explored: the same components as the dashboard's.

The page holds the numbers, and the schedules of the few schedulers that are highlighted, as packed
text beside one script. Without JavaScript the part stays hidden; tables and figures do not need it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from yardmaster.experiments.comparison import Comparison
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray
from yardmaster.report.contrast import PAIRED, contrast
from yardmaster.report.same_jobs import same_jobs
from yardmaster.report.schedule_blob import encode
from yardmaster.report.series import looks
from yardmaster.report.web_page import block, data_block, packed, script_of, styles_of

MAIN = "report_main.js"
STYLES = ("charts.css", "gantt.css")
CURVE_POINTS = 120
MOST_BARS = 40_000
"""Bars of one schedule that a page holds; with more, a mail would be too large."""
MOST_SCHEDULES = 3
"""The best, the next in colour, and the baseline: enough to see what makes the difference."""
STEPS_PER_S = 64.0
"""Times of the schedules a page holds are rounded: numbers that end in zeros pack much better."""


def exploration(comparison: Comparison) -> str:
    """Return the part's HTML; empty where there is nothing to compare."""
    schedules = comparison.schedules
    if len(schedules) < 2 or not len(schedules[0].workload):
        return ""
    drawn = looks(comparison)
    shown = [place for place, look in enumerate(drawn) if look.highlighted]
    names = [row.scheduler for row in comparison.rows]
    baseline = names.index(comparison.baseline)
    first = sorted({baseline, *[each for each in shown if each != baseline][: MOST_SCHEDULES - 1]})
    held = [place for place in first if len(schedules[place].gpu_ids) <= MOST_BARS]
    units, whole = _units(comparison)
    found = contrast(
        same_jobs(schedules),
        units,
        baseline=baseline,
        whole=whole,
        points=CURVE_POINTS,
    )
    found |= {"shown": shown, "held": held, "note": _note(comparison, held)}
    # A scheduler looks here as it does in the figures; those that are grey there get looks of
    # their own, since here they can be chosen.
    found["looks"] = [look.for_page() if look.highlighted else None for look in drawn]
    blocks = "".join(
        block(
            f"schedule-{place}", packed(encode(_rounded(schedules[place]), {}, with_strips=False))
        )
        for place in held
    )
    return (
        '<section id="explore" hidden>\n<h2>Explore</h2>\n'
        '<div id="explore-here" class="explored"></div>\n</section>\n'
        f"{data_block('contrast', found)}{blocks}"
    )


def exploration_script() -> str:
    """Return the script that brings the part to life."""
    return script_of(MAIN)


def exploration_styles() -> str:
    """Return the styles of the part."""
    return styles_of(*STYLES)


def _rounded(schedule: Schedule) -> Schedule:
    """Return the schedule with times to a sixty-fourth of a second; order and ties stay."""

    def near(times_s: FloatArray) -> FloatArray:
        return np.asarray(np.round(times_s * STEPS_PER_S) / STEPS_PER_S)

    jobs = schedule.workload
    return replace(
        schedule,
        workload=replace(jobs, submit_s=near(jobs.submit_s)),
        start_s=near(schedule.start_s),
        end_s=near(schedule.end_s),
        segment_start_s=near(schedule.segment_start_s),
        segment_end_s=near(schedule.segment_end_s),
    )


def _note(comparison: Comparison, held: list[int]) -> str:
    workload = comparison.schedules[0].workload
    several = comparison.runs and len(comparison.runs) > len(comparison.rows)
    first = "of the first workload" if several else "of the workload"
    text = f"Distributions, groups and jobs are those {first} ({len(workload):,} jobs)."
    if held:
        return text
    return f"{text} Its schedules are too large for this page; the dashboard shows them."


def _units(comparison: Comparison) -> tuple[dict[str, FloatArray] | None, list[bool] | None]:
    """Return metric → (schedulers, workloads); None where there is one workload only."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for run in comparison.runs:
        by_name.setdefault(run.scheduler, []).append(run.summary)
    runs = [by_name.get(row.scheduler, []) for row in comparison.rows]
    counts = {len(each) for each in runs}
    if len(counts) != 1 or counts.pop() < 2:
        return None, None
    units = {
        name: np.array([[summary[name] for summary in each] for each in runs]) for name in PAIRED
    }
    whole = [
        all(summary["unfinished"] + summary["failed"] == 0 for summary in each) for each in runs
    ]
    return units, whole
