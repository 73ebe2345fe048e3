"""What a training run and a sweep look like: the curve as a picture, the trials as a table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yardmaster.experiments.training.evaluation import ANY_HIGHER_IS_BETTER
from yardmaster.experiments.training.folder import RunFolder, read_json
from yardmaster.experiments.training.tuning import Trial, TuneResult
from yardmaster.report.drawing import INK, WIDTH_IN
from yardmaster.report.tables import Cell, Column, Record, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT_IN = 3.4
DOTS_PER_INCH = 150
_COLOUR = "#0072B2"
_DASHES: tuple[tuple[float, ...], ...] = ((5, 2), (2, 2), (6, 2, 1, 2), (1, 1.5))
"""Of the heuristics' lines, which differ by dash and label and not by colour."""

_TITLES = {
    "returns": "mean return",
    "jct_s": "mean completion time (s)",
    "wait_s": "mean wait (s)",
    "bounded_slowdown": "mean bounded slowdown",
    "slowdown": "mean slowdown",
    "utilisation": "utilisation",
    "makespan_s": "makespan (s)",
    "unfinished": "unfinished jobs",
    "jct_gap": "completion time / the best of the menu − 1",
    "p95_gap": "95th percentile / the best of the menu − 1",
    "mixed_gap": "mixed cost / the best of the menu − 1",
    "p95_jct_s": "95th percentile of completion times (s)",
    "late": "share of jobs that are late",
}


def write_picture(path: Path) -> Path:
    """Draw the curve of a training run from its `curve.csv` as `curve.png`; return that file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    folder = RunFolder(path)
    metric = str(read_json(folder.about)["metric"])
    with folder.curve.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    colours = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
    style: dict[Any, Any] = dict.fromkeys(colours, INK) | {"text.parse_math": False}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(style)
        canvas = Canvas(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
        _paint(canvas.add_subplot(), rows, metric)
        canvas.savefig(folder.picture, dpi=DOTS_PER_INCH, metadata={"Software": None})
    return folder.picture


def _paint(axes: Axes, rows: Sequence[dict[str, str]], metric: str) -> None:
    steps = [float(row["steps"]) for row in rows]
    scores = [float(row[f"val_{metric}"] or "nan") for row in rows]
    axes.plot(steps, scores, color=_COLOUR, marker="o", markersize=3, label="policy", zorder=3)
    prefix = f"{metric}_of_"
    heuristics = [name for name in (rows[0] if rows else ()) if name.startswith(prefix)]
    for number, name in enumerate(heuristics):
        dash = (0, _DASHES[number % len(_DASHES)])
        level = float(rows[0][name] or "nan")
        axes.axhline(level, color=INK, linestyle=dash, label=name.removeprefix(prefix))
    axes.set_xlabel("environment steps")
    better = "higher" if ANY_HIGHER_IS_BETTER[metric] else "lower"
    axes.set_ylabel(f"{_TITLES[metric]}, {better} is better")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def trials_table(result: TuneResult) -> Table:
    """Return the trials of a sweep, best first."""
    names = list(dict.fromkeys(name for trial in result.trials for name in trial.values))
    sign = -1.0 if ANY_HIGHER_IS_BETTER[result.metric] else 1.0
    ranked = sorted(
        result.trials,
        key=lambda trial: (trial.score is None, sign * (trial.score or 0.0), trial.number),
    )
    columns = [
        Column("", align="left"),
        Column("trial"),
        Column("state", align="left"),
        Column(result.metric),
        Column("steps", importance=1),
        Column("time", "s", importance=2),
        *(Column(name, importance=3 + place) for place, name in enumerate(names)),
    ]
    return Table(
        title=f"Trials in {result.folder}",
        columns=tuple(columns),
        rows=tuple(_row(trial, names, is_best=trial == result.best) for trial in ranked),
        legend=("★ the best trial that was trained to its end; pruned: given up early.",),
        notes=(),
        facts={"folder": str(result.folder), "metric": result.metric},
        records=tuple(_record(trial) for trial in ranked),
    )


def _row(trial: Trial, names: Sequence[str], *, is_best: bool) -> tuple[Cell, ...]:
    texts = [
        "★" if is_best else "",
        str(trial.number),
        trial.state,
        "–" if trial.score is None else f"{trial.score:.5g}",
        f"{trial.steps:,}",
        f"{trial.seconds:.0f}",
        *(_value(trial.values.get(name)) for name in names),
    ]
    return tuple(Cell(text, "strong" if is_best else "") for text in texts)


def _value(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _record(trial: Trial) -> Record:
    record: Record = {
        "trial": trial.number,
        "state": trial.state,
        "score": trial.score,
        "steps": trial.steps,
        "seconds": trial.seconds,
    }
    return record | dict(trial.values)
