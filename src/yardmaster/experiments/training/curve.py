"""The training curve as a table: one row per evaluation, made from the run's journals alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from yardmaster.experiments.training.folder import RunFolder, read_lines, write_whole

SCALARS = ("episode_return", "loss", "entropy", "kl", "noop_share")
"""Of the learner's scalars, those that most learners have; means over the updates between."""


def curve_rows(
    folder: RunFolder, heuristics: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Return one row per evaluation, what is not known left out.

    Args:
        folder: the run's folder.
        heuristics: every heuristic's mean of every metric.
    """
    updates = read_lines(folder.progress)
    rows: list[dict[str, Any]] = []
    before = 0
    for record in read_lines(folder.evaluations):
        between = [one for one in updates if before < one["updates"] <= record["updates"]]
        before = record["updates"]
        row = {name: record[name] for name in ("steps", "updates", "seconds")}
        for name in SCALARS:
            values = [one[name] for one in between if one.get(name) is not None]
            row[name] = sum(values) / len(values) if values else None
        row |= {f"val_{name}": value for name, value in record["means"].items()}
        metric = record["metric"]
        row |= {f"{metric}_of_{name}": means[metric] for name, means in heuristics.items()}
        rows.append(row)
    return rows


def write_curve(folder: RunFolder, heuristics: Mapping[str, Mapping[str, float]]) -> None:
    """Write `curve.csv`."""
    rows = curve_rows(folder, heuristics)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder.curve, text.getvalue())
