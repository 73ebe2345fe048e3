"""The table of an experiment: one row per run, for reports and for everybody's own questions.

Columns: `family`, `regime`, its labels (`shape`, `intensity`, `gpus`, …), `perturbation` (`none` on
the clean regime) and `severity` (0 there), `scheduler`, `information`, `seed`, all of
`measuring.MEASURES`, `oracle_gap_` of each objective, and `cell`: the key of the run in the store.

The oracle is the best fixed scheduler in hindsight: of the same jobs and machines, the least value
any scheduler of the experiment reached that neither was trained nor chooses among others. A gap of
0.1 is 10 % above it; below 0 is better than every fixed scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.cells import Cell
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.measuring import MEASURES, MIXED
from yardmaster.experiments.suite.store import Quantiles, Store, opened
from yardmaster.model.workload import FloatArray
from yardmaster.workloads.files import whole_file

if TYPE_CHECKING:
    import polars as pl

CLEAN = "none"
"""What the column `perturbation` says of undisturbed regimes."""
GAP = "oracle_gap_"
"""How columns of gaps begin; the objective follows."""
OWN_COLUMNS = (
    "family",
    "regime",
    "perturbation",
    "severity",
    "scheduler",
    "information",
    "seed",
    "variant",
    "training_seed",
    "cell",
)
"""Columns that say what a run is; see above, and `trainings.ablation` for the variants."""
NOT_FIXED = ("policy:", "meta:", "bandit:")
"""How the names of schedulers begin that learn or choose: they are no part of the oracle."""


def is_fixed(scheduler: str) -> bool:
    """Whether a scheduler goes by one rule throughout."""
    return not scheduler.startswith(NOT_FIXED)


def results_table(cells: Sequence[Cell], store: Store, objectives: Sequence[str]) -> pl.DataFrame:
    """Return the table of these cells, in their order; all must be in the store."""
    import polars as pl

    numbers = store.numbers([cell.key for cell in cells], MEASURES)
    columns: dict[str, Any] = {
        "family": pl.Series([cell.setting.family for cell in cells], dtype=pl.String),
        "regime": pl.Series([cell.setting.name for cell in cells], dtype=pl.String),
        **_labels(cells),
        "perturbation": pl.Series([_kind(cell) for cell in cells], dtype=pl.String),
        "severity": pl.Series([_severity(cell) for cell in cells], dtype=pl.Float64),
        "scheduler": pl.Series([cell.scheduler for cell in cells], dtype=pl.String),
        "information": pl.Series([cell.information for cell in cells], dtype=pl.String),
        "seed": pl.Series([cell.seed for cell in cells], dtype=pl.Int64),
    }
    columns |= {name: numbers[:, place] for place, name in enumerate(MEASURES)}
    same_jobs = _groups(cells)
    fixed = np.array([is_fixed(cell.scheduler) for cell in cells], dtype=np.bool_)
    if MIXED in objectives:
        columns[MIXED] = _mixed(columns, same_jobs, fixed)
    for objective in objectives:
        columns[GAP + objective] = oracle_gap(columns[objective], same_jobs, fixed)
    columns["cell"] = pl.Series([cell.key for cell in cells], dtype=pl.String)
    return pl.DataFrame(columns)


def _kind(cell: Cell) -> str:
    return cell.perturbation.kind if cell.perturbation else CLEAN


def _severity(cell: Cell) -> float:
    return cell.perturbation.severity if cell.perturbation else 0.0


def _labels(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return a column for every label that any setting has; null where one has none."""
    import polars as pl

    names = dict.fromkeys(label for cell in cells for label in cell.setting.labels)
    columns: dict[str, Any] = {}
    for name in names:
        values = [cell.setting.labels.get(name) for cell in cells]
        kinds = {type(value) for value in values if value is not None}
        kind = pl.Int64 if kinds == {int} else pl.Float64 if kinds <= {int, float} else pl.String
        if kind is pl.String:
            values = [None if value is None else str(value) for value in values]
        columns[f"label_{name}" if _is_taken(name) else name] = pl.Series(values, dtype=kind)
    return columns


def _is_taken(label: str) -> bool:
    """Whether another column has this name, whose place a label must not take."""
    return label in (*MEASURES, MIXED, *OWN_COLUMNS) or label.startswith(GAP)


def _groups(cells: Sequence[Cell]) -> FloatArray:
    """Return (cells,) a number for the jobs of each; equal for cells that share them."""
    found: dict[tuple[object, ...], int] = {}
    keys = [
        (cell.setting.family, cell.setting.name, cell.perturbation, cell.seed) for cell in cells
    ]
    return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)


def _mixed(columns: dict[str, Any], same_jobs: FloatArray, fixed: Any) -> FloatArray:
    """Return (runs,) the mixed cost of each; see `MIXED`."""
    mean = 1.0 + oracle_gap(columns["mean_jct_s"], same_jobs, fixed)
    tail = 1.0 + oracle_gap(columns["p95_jct_s"], same_jobs, fixed)
    misses = np.nan_to_num(columns["deadline_miss_rate"])
    return np.asarray(0.45 * mean + 0.45 * tail + 0.1 * misses)


def oracle_gap(values: FloatArray, same_jobs: FloatArray, fixed: Any) -> FloatArray:
    """Return (runs,) value / least value of fixed schedulers on the same jobs − 1.

    NaN where no fixed scheduler has a value.

    Args:
        values: the objective of each run, less is better.
        same_jobs: a number for the jobs of each run.
        fixed: which runs are of fixed schedulers.
    """
    jobs = same_jobs.astype(np.int64)
    best = np.full(int(jobs.max(initial=-1)) + 1, np.inf)
    counts = fixed & ~np.isnan(values)
    np.minimum.at(best, jobs[counts], values[counts])
    best[np.isinf(best)] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = values / best[jobs] - 1.0
    # Nothing is 0 times better than nothing: both waited for nobody.
    return np.where(values == best[jobs], 0.0, gap)


def write_results(table: pl.DataFrame, path: Path) -> None:
    """Write the table, whole or not at all; equal tables become equal bytes."""
    with whole_file(path, overwrite=True) as file:
        table.write_parquet(file, compression="zstd", statistics=False)


def read_results(folder: Path) -> pl.DataFrame:
    """Return the table of an experiment's folder.

    Raises:
        YardmasterError: if there is none, or it is damaged.
    """
    import polars as pl

    path = SuiteFolder(folder).results
    if not path.is_file():
        raise YardmasterError(f"There is no {path}; run the experiment first.")
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise YardmasterError(
            f"{path} is damaged; run the experiment again, which writes it anew."
        ) from None


def read_jct_quantiles_s(folder: Path, cells: Sequence[str]) -> Quantiles:
    """Return (cells, 201) completion times at `measuring.JCT_SHARES` of the finished jobs.

    Args:
        folder: the folder of an experiment.
        cells: keys of runs, as the column `cell` of the table has them.
    """
    with opened(SuiteFolder(folder).store, read_only=True) as store:
        return store.jct_quantiles_s(cells)
