"""Draw the README's picture: the same jobs under two schedulers, and what many are worth.

Above, two Gantt charts of a day and a half: a row is a GPU, a bar a job, its colour the job's size.
Below, the change in mean completion time against a baseline, paired over workloads, with intervals.
Written as plain SVG, so that the same code gives the same bytes wherever it runs.

python docs/pictures/make_picture.py      # or: make picture
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

import yardmaster as ym

PATH = Path(__file__).resolve().parent / "overview.svg"
WIDTH, LEFT, RIGHT = 1000.0, 170.0, 30.0
ROW, GAP = 5.0, 1.0
"""Height of a GPU's row, and of the space between nodes, in pixels."""
SHOWN_H = 36.0
INK, PAPER, FAINT = "#24292f", "#ffffff", "#d0d7de"
COLOURS = {1: "#56b4e9", 2: "#0072b2", 4: "#e69f00", 8: "#d55e00"}
"""By GPUs of the job; safe for colour-blind readers."""
SHOWN = ("fifo+strict", "sjf+easy")
COMPARED = (
    "fifo+easy", "fifo+skip", "qssf+skip", "sjf+easy~estimate", "sjf+easy", "saf+easy",
)  # fmt: skip
MARKS = {"clairvoyant": "◆", "estimate-based": "◇", "blind": ""}


def text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    """Return words at a place."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )


def bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    """Return a rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.4):.1f}" height="{height:.1f}"'
        f' fill="{colour}"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, colour: str = FAINT) -> str:
    """Return a straight line."""
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}"/>'


def gantt(schedule: ym.Schedule, top: float) -> Iterator[str]:
    """Yield one schedule's chart; neighbouring GPUs of a job are one bar."""
    cluster = schedule.cluster
    per_hour = (WIDTH - LEFT - RIGHT) / SHOWN_H
    heights = np.arange(cluster.gpus) * ROW + np.repeat(np.arange(cluster.nodes), 8) * GAP
    for segment, job in enumerate(schedule.segment_job.tolist()):
        start_h = schedule.segment_start_s[segment] / 3600
        end_h = min(schedule.segment_end_s[segment] / 3600, SHOWN_H)
        if start_h >= SHOWN_H:
            continue
        colour = COLOURS[int(schedule.workload.gpus[job])]
        for run in _runs(np.sort(schedule.gpus_of(segment)).tolist()):
            height = heights[run[-1]] - heights[run[0]] + ROW - 0.5
            left = LEFT + start_h * per_hour
            yield bar(
                left, top + heights[run[0]], (end_h - start_h) * per_hour - 0.5, height, colour
            )
    wait_h = ym.summarise(schedule)["mean_wait_s"] / 3600
    middle = top + heights[-1] / 2
    name = schedule.scheduler
    yield text(LEFT - 10, middle - 2, name, anchor="end", size=13)
    yield text(LEFT - 10, middle + 15, f"mean wait {wait_h:.1f} h", anchor="end", size=11)


def _runs(gpus: list[int]) -> Iterator[list[int]]:
    """Yield neighbouring numbers together, within nodes of eight."""
    run = gpus[:1]
    for gpu in gpus[1:]:
        if gpu == run[-1] + 1 and gpu % 8:
            run.append(gpu)
        else:
            yield run
            run = [gpu]
    yield run


def hours(top: float) -> Iterator[str]:
    """Yield the axis of time and the legend of sizes."""
    per_hour = (WIDTH - LEFT - RIGHT) / SHOWN_H
    for hour in range(0, int(SHOWN_H) + 1, 12):
        yield text(LEFT + hour * per_hour, top + 14, f"{hour} h", anchor="middle", size=11)
    for place, (gpus, colour) in enumerate(COLOURS.items()):
        x = LEFT + 30 + place * 80
        yield bar(x, top + 22, 12, 10, colour)
        yield text(x + 17, top + 31, f"{gpus} GPU{'s' * (gpus > 1)}", size=11)


def differences(comparison: ym.Comparison, top: float) -> Iterator[str]:
    """Yield a dot and an interval for every scheduler, against the baseline."""
    middle, per_percent = LEFT + 520, 5.6
    yield text(
        LEFT,
        top,
        f"mean completion time against {comparison.baseline}: change in %, 95 % interval,"
        f" paired over {comparison.units}",
    )
    yield line(middle, top + 10, middle, top + 14 + 22 * len(comparison.rows), INK)
    for place, row in enumerate(comparison.rows):
        y = top + 24 + 22 * place
        name = f"{'★ ' * row.is_winner}{row.scheduler} {MARKS[row.information]}"
        yield text(LEFT - 10, y + 4, name.strip(), anchor="end", size=13)
        if row.scheduler == comparison.baseline:
            yield text(middle + 8, y + 4, "baseline", size=11)
            continue
        low, mean, high = (
            100 * value for value in (row.difference.low, row.difference.mean, row.difference.high)
        )
        yield line(middle + low * per_percent, y, middle + high * per_percent, y, INK)
        dot = middle + mean * per_percent
        yield f'<circle cx="{dot:.1f}" cy="{y:.1f}" r="4.5" fill="{COLOURS[2]}"/>'
        words = f"{mean:+.0f} [{low:+.0f}, {high:+.0f}]".replace("-", "−")
        yield text(WIDTH - RIGHT, y + 4, words, anchor="end", size=12)
    yield text(
        LEFT,
        top + 44 + 22 * len(comparison.rows),
        "◆ reads true run times (nobody can deploy that) · ◇ reads estimates · no mark: neither",
        size=11,
    )


def picture() -> str:
    """Return the picture as SVG."""
    cluster = ym.Cluster.of("4x V100:8")
    workloads = [
        ym.load_workload("venus-like", jobs=500, load=0.9, gpus=cluster.gpus, seed=seed)
        for seed in range(8)
    ]
    comparison = ym.compare(workloads, cluster, COMPARED)
    day = ym.generate("lognormal", jobs=620, load=1.0, gpus=cluster.gpus, seed=6)
    parts: list[str] = []
    top, height = 34.0, 4 * 8 * ROW + 3 * GAP
    parts.append(
        text(LEFT, 20, "The same jobs on the same 32 GPUs: a row is a GPU, a bar is a job")
    )
    for place, scheduler in enumerate(SHOWN):
        parts += gantt(ym.simulate(day, cluster, scheduler), top + place * (height + 14))
    below = top + 2 * height + 14
    parts += hours(below)
    parts += differences(comparison, below + 66)
    total = below + 66 + 22 * len(COMPARED) + 60
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {total:.0f}"'
        f' font-family="system-ui, sans-serif" fill="{INK}">'
        "<title>Two schedules of the same jobs, and a comparison of schedulers</title>"
    )
    return "\n".join([head, bar(0, 0, WIDTH, total, PAPER), *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PATH.write_text(picture(), "utf-8")
    sys.stdout.write(f"{PATH.name}: {PATH.stat().st_size / 1000:.0f} kB\n")
