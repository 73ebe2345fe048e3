"""What came of the study of lookahead: a table and a figure, from its table of results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.contest import gap
from yardmaster.experiments.seeds import mean_over_seeds
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.experiments.training.folder import write_whole
from yardmaster.experiments.trainings.lookahead import RESULTS
from yardmaster.metrics.statistics import Interval
from yardmaster.model.workload import FloatArray
from yardmaster.report.evaluation import TITLES, unit_of
from yardmaster.report.renderers import to_csv, to_latex, to_markdown
from yardmaster.report.suite.columns import (
    Part,
    estimate_column,
    estimate_text,
    number_column,
    record_of,
    table,
    text_column,
)
from yardmaster.report.suite.looks import ink
from yardmaster.report.suite.sketches import Sketch
from yardmaster.report.suite.words import counted
from yardmaster.report.tables import Cell, Column, Record, Table
from yardmaster.report.values import PERCENT, Unit, decimals, duration_unit
from yardmaster.workloads.files import whole_file

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure as Canvas

NAME = "lookahead"
WITHOUT = "off"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_MARKERS = "os^D"


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The scores of every combination.

    Attributes:
        task: what was learned.
        metric: what counts.
        architectures: networks, in the order of the study.
        modes: what is seen of GPUs to come, in the order of the study.
        steps: environment steps of a training.
        scores: (architecture, mode) → metric → (trainings, episodes).
    """

    task: str
    metric: str
    architectures: tuple[str, ...]
    modes: tuple[str, ...]
    steps: int
    scores: Mapping[tuple[str, str], Mapping[str, FloatArray]]

    def mean(self, arch: str, mode: str, metric: str | None = None) -> Interval:
        """Return the mean over trainings and episodes, with its interval for new ones of both."""
        return mean_over_seeds(self.scores[arch, mode][metric or self.metric])

    def difference(self, arch: str, mode: str) -> Interval | None:
        """Return how much more of the metric the network has than without lookahead, paired."""
        without = self.scores.get((arch, WITHOUT))
        if without is None or mode == WITHOUT:
            return None
        mine, other = self.scores[arch, mode][self.metric], without[self.metric]
        seeds = min(len(mine), len(other))
        return mean_over_seeds(gap(mine[:seeds], other[:seeds]))

    @property
    def trainings(self) -> int:
        """Trainings of a combination, of the one that has fewest."""
        return min(len(found[self.metric]) for found in self.scores.values())


def read_lookahead(folder: Path) -> Lookahead:
    """Read the results of a study.

    Raises:
        YardmasterError: if there are none, or they are damaged.
    """
    import polars as pl

    path = folder / RESULTS
    if not path.is_file():
        raise YardmasterError(f"There is no {path}; run `yardmaster experiment lookahead` first.")
    try:
        found = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise YardmasterError(
            f"{path} is damaged; run `yardmaster experiment lookahead` again."
        ) from None
    architectures = tuple(found["architecture"].unique(maintain_order=True))
    modes = tuple(found["lookahead"].unique(maintain_order=True))
    scores = {}
    for arch in architectures:
        for mode in modes:
            rows = found.filter((pl.col("architecture") == arch) & (pl.col("lookahead") == mode))
            if len(rows):
                scores[arch, mode] = _blocks(rows)
    return Lookahead(
        str(found["task"][0]),
        str(found["metric"][0]),
        architectures,
        modes,
        int(found["steps"][0]),
        scores,
    )


def _blocks(rows: pl.DataFrame) -> dict[str, FloatArray]:
    """Return (trainings, episodes) of every metric."""
    rows = rows.sort("training_seed", "episode")
    shape = (rows["training_seed"].n_unique(), -1)
    return {name: rows[name].to_numpy().reshape(shape) for name in HIGHER_IS_BETTER}


def lookahead_table(found: Lookahead) -> Table:
    """Return one row per combination."""
    rows = list(found.scores)
    means = [found.mean(*row) for row in rows]
    unit = unit_of(found.metric, means)
    changes = [found.difference(*row) or Interval(np.nan, np.nan, np.nan) for row in rows]
    waits = [float(found.scores[row]["wait_s"].mean()) for row in rows]
    busy = [float(found.scores[row]["utilisation"].mean()) for row in rows]
    title = TITLES[found.metric]
    parts = [
        text_column("network", [arch for arch, _ in rows]),
        text_column("lookahead", [mode for _, mode in rows]),
        estimate_column(title, means, unit),
        _changes(f"Δ against {WITHOUT}", changes, unit),
        number_column("wait", waits, duration_unit(waits), importance=2),
        number_column("utilisation", busy, PERCENT, importance=1),
    ]
    records: list[Record] = [
        {
            "architecture": arch,
            "lookahead": mode,
            "trainings": len(found.scores[arch, mode][found.metric]),
            **record_of({found.metric: mean, f"difference_to_{WITHOUT}": change}),
            **record_of({"wait_s": wait, "utilisation": used}),
        }
        for (arch, mode), mean, change, wait, used in zip(
            rows, means, changes, waits, busy, strict=True
        )
    ]
    better = "more" if HIGHER_IS_BETTER[found.metric] else "less"
    episodes = next(iter(found.scores.values()))[found.metric].shape[1]
    return table(
        f"Lookahead and architecture on {found.task}: {counted(found.trainings, 'training')} each,"
        f" {found.steps:,} steps, {counted(episodes, 'REPORT episode')}",
        parts,
        records,
        legend=(
            (
                f"{title}: {better} is better. [low, high]: 95 % interval for a new training on new"
                " episodes. Δ: paired with the same network without lookahead."
            ),
        ),
    )


def _changes(title: str, changes: Sequence[Interval], unit: Unit) -> Part:
    places = decimals((end for each in changes for end in (each.mean, each.low)), unit)
    cells = [Cell(estimate_text(each, places, unit, signed=True)) for each in changes]
    return Column(title, unit.symbol), cells


def lookahead_sketch(found: Lookahead) -> Sketch:
    """Draw the metric by mode, one line of marks per network."""
    unit = unit_of(found.metric, [found.mean(*row) for row in found.scores])

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        count = len(found.architectures)
        for place, arch in enumerate(found.architectures):
            modes = [mode for mode in found.modes if (arch, mode) in found.scores]
            shift = 0.16 * (place - (count - 1) / 2)
            x = [found.modes.index(mode) + shift for mode in modes]
            means = [found.mean(arch, mode) for mode in modes]
            middle = np.array([each.mean for each in means]) / unit.size
            ends = np.array([(each.low, each.high) for each in means]) / unit.size
            errors = np.nan_to_num(np.abs(ends - middle[:, None]))
            axes.errorbar(
                x, middle, yerr=errors.T, color=_COLOURS[place % len(_COLOURS)], linestyle="none",
                marker=_MARKERS[place % len(_MARKERS)], capsize=3, label=arch,
            )  # fmt: skip
        axes.set_xticks(range(len(found.modes)), found.modes)
        axes.set_xlim(-0.5, len(found.modes) - 0.5)
        axes.set_xlabel("lookahead", color=ink())
        symbol = f" ({unit.symbol})" if unit.symbol else ""
        axes.set_ylabel(f"{TITLES[found.metric]}{symbol}")
        axes.grid(visible=False, axis="x")
        canvas.legend(loc="outside lower center", ncols=count)

    told = ", ".join(
        f"{arch} with {mode} {found.mean(arch, mode).mean:.3g}" for arch, mode in found.scores
    )
    return Sketch(
        name=NAME,
        title="Lookahead by architecture",
        caption=f"Marks are means over {counted(found.trainings, 'training')} and all REPORT"
        " episodes, lines their 95 % intervals for a new training on new episodes.",
        alt=f"{TITLES[found.metric]} on {found.task}: {told}.",
        height_in=3.8,
        paint=paint,
    )


def write_lookahead_report(folder: Path, out: Path | None = None) -> Path:
    """Write the table (Markdown, LaTeX, CSV) and the figure (PNG, PDF, SVG); return their folder.

    Raises:
        YardmasterError: if there are no results, or they cannot be written.
    """
    found = read_lookahead(folder)
    target = folder / "report" if out is None else out
    try:
        target.mkdir(parents=True, exist_ok=True)
        made = lookahead_table(found)
        for ending, written in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
            write_whole(target / f"{NAME}.{ending}", written(made))
        sketch = lookahead_sketch(found)
        write_whole(target / f"{NAME}.svg", sketch.figure().svg)
        for ending, content in sketch.pictures().items():
            with whole_file(target / f"{NAME}.{ending}", overwrite=True) as file:
                file.write_bytes(content)
    except OSError as error:
        raise YardmasterError(f"Cannot write to {target}: {error.strerror}.") from None
    return target
