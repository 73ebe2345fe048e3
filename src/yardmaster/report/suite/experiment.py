"""What a report is made from: the folder of an experiment, read once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.cells import cells_of
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.results import (
    GAP,
    read_jct_quantiles_s,
    read_results,
    results_table,
)
from yardmaster.experiments.suite.store import Quantiles, opened
from yardmaster.names import did_you_mean
from yardmaster.report.suite.ablation import WHOLE, Ablation, ablation
from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.runs import Runs, runs_by_family

if TYPE_CHECKING:
    import polars as pl

NEEDED = ("family", "regime", "perturbation", "severity", "scheduler", "information", "seed")


@dataclass(frozen=True, slots=True)
class Experiment:
    """The runs of an experiment, and what is known about it.

    Attributes:
        name: its name.
        description: what it is about, in its author's words; may be empty.
        families: the runs of each family of regimes.
        objectives: what schedulers are judged by.
        jct_quantiles_s: (rows of the table, quantiles) completion times; None if the store is gone.
        ablation: variants of one scheduler, if it is about them.
        rows: runs in the table.
        failures: runs that could not be made, and why.
        digest: SHA-256 of the table of results; empty while there is none.
    """

    name: str
    description: str
    families: tuple[Runs, ...]
    objectives: tuple[str, ...]
    jct_quantiles_s: Quantiles | None
    ablation: Ablation | None
    rows: int
    failures: tuple[str, ...]
    digest: str

    @property
    def schedulers(self) -> tuple[str, ...]:
        """All schedulers, in the order of the table."""
        return tuple(dict.fromkeys(name for runs in self.families for name in runs.schedulers))


def read_experiment(folder: Path) -> Experiment:
    """Read the folder of an experiment.

    Raises:
        YardmasterError: if it holds no results, or none that can be reported on.
    """
    place = SuiteFolder(folder)
    if not folder.is_dir():
        near = [one.name for one in folder.parent.glob("*") if one.is_dir()]
        raise YardmasterError(f"There is no folder {folder}.{did_you_mean(folder.name, near)}")
    table = read_results(folder)
    missing = [name for name in NEEDED if name not in table.columns]
    if missing or not len(table):
        what = f"no column {', '.join(missing)}" if missing else "no runs"
        raise YardmasterError(f"{place.results} has {what}; run the experiment again.")
    return _experiment(place, table, hashlib.sha256(place.results.read_bytes()).hexdigest())


def experiment_so_far(folder: Path) -> Experiment:
    """Read an experiment under way: the runs that its store holds already.

    Raises:
        YardmasterError: if there are none yet.
    """
    place = SuiteFolder(folder)
    suite = place.suite()
    if not place.store.is_file():
        raise YardmasterError(f"{folder.name} has no runs yet.")
    with opened(place.store, read_only=True) as store:
        known = store.keys()
        cells = [cell for cell in cells_of(suite) if cell.key in known]
        if not cells:
            raise YardmasterError(f"{folder.name} has no runs yet.")
        table = results_table(cells, store, suite.objectives)
    return _experiment(place, table, "")


def _experiment(place: SuiteFolder, table: pl.DataFrame, digest: str) -> Experiment:
    found = ablation(table)
    usual = _whole_only(table)
    suite = place.suite() if place.document.is_file() else None
    return Experiment(
        name=suite.name if suite else "experiment",
        description=suite.description if suite else "",
        families=runs_by_family(usual, _labels(usual)),
        objectives=_objectives(usual),
        jct_quantiles_s=_quantiles(place, usual),
        ablation=found,
        rows=len(table),
        failures=_failures(place.failures),
        digest=digest,
    )


def _whole_only(table: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of schedulers that lack nothing: variants are for the ablation alone."""
    if "variant" not in table.columns:
        return table
    return table.filter(table["variant"].is_null() | (table["variant"] == WHOLE))


def _labels(table: pl.DataFrame) -> list[str]:
    """Return the columns between the regime and its perturbation: what tells regimes apart."""
    names = table.columns
    return names[names.index("regime") + 1 : names.index("perturbation")]


def _objectives(table: pl.DataFrame) -> tuple[str, ...]:
    """Return what the experiment says schedulers are judged by, by the columns of gaps."""
    named = [name.removeprefix(GAP) for name in table.columns if name.startswith(GAP)]
    return tuple(named) or OBJECTIVES


def _quantiles(place: SuiteFolder, table: pl.DataFrame) -> Quantiles | None:
    if "cell" not in table.columns or not place.store.is_file():
        return None
    return read_jct_quantiles_s(place.path, table["cell"].to_list())


def _failures(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    try:
        lost = json.loads(path.read_text(encoding="utf-8"))
        return tuple(f"{one['run']}: {one['reason']}" for one in lost)
    except (ValueError, KeyError, TypeError):
        raise YardmasterError(f"{path} is damaged; run the experiment again.") from None
