"""Runs as blocks of numbers: one for every scheduler, scenario and seed.

A *scenario* is a regime, undisturbed or under one perturbation of one severity. Schedulers are
compared on the same jobs, so a scenario counts only if every scheduler and every seed has a run:
where some failed, the whole scenario is left out, for all, and said to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yardmaster.experiments.suite.results import CLEAN
from yardmaster.model.workload import FloatArray

if TYPE_CHECKING:
    import polars as pl

Label = str | int | float
PLACE = "row of the table"
"""A column for numbering the rows; no label of a user is called so."""


class Scenario(NamedTuple):
    """What schedulers were tried in."""

    regime: str
    perturbation: str
    severity: float

    @property
    def is_clean(self) -> bool:
        """Whether nothing was disturbed."""
        return self.perturbation == CLEAN


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one family of regimes.

    Attributes:
        family: name of the family.
        schedulers: names, in the order of the first axis of all numbers.
        scenarios: in the order of the second axis.
        seeds: in the order of the third.
        information: scheduler → what it knows of run times.
        labels: what tells each scenario's regime apart from others (shape, intensity, gpus, …).
        numbers: name → (schedulers, scenarios, seeds).
        places: (schedulers, scenarios, seeds) rows of the table that the runs come from.
        left_out: scenarios, or schedulers, that do not count because runs are missing.
    """

    family: str
    schedulers: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    seeds: tuple[int, ...]
    information: Mapping[str, str]
    labels: tuple[Mapping[str, Label], ...]
    numbers: Mapping[str, FloatArray]
    places: np.typing.NDArray[np.int64]
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.places.size

    def only(self, wanted: Callable[[Scenario, Mapping[str, Label]], bool]) -> Runs:
        """Return the runs of the scenarios that are wanted."""
        kept = [
            place
            for place, (scenario, labels) in enumerate(
                zip(self.scenarios, self.labels, strict=True)
            )
            if wanted(scenario, labels)
        ]
        return Runs(
            self.family,
            self.schedulers,
            tuple(self.scenarios[place] for place in kept),
            self.seeds,
            self.information,
            tuple(self.labels[place] for place in kept),
            {name: values[:, kept] for name, values in self.numbers.items()},
            self.places[:, kept],
            self.left_out,
        )

    def clean(self) -> Runs:
        """Return the undisturbed runs."""
        return self.only(lambda scenario, _: scenario.is_clean)

    def having(self, label: str, value: Label) -> Runs:
        """Return the runs of regimes with this value of a label."""
        return self.only(lambda _, labels: labels.get(label) == value)

    def values_of(self, label: str) -> list[Label]:
        """Return the values of a label, in their natural order; empty if a regime has none."""
        found = [labels.get(label) for labels in self.labels]
        known = [value for value in found if value is not None]
        if len(known) < len(found):
            return []
        return sorted(set(known), key=_rank)

    def row(self, scheduler: str) -> int:
        """Return where a scheduler stands."""
        return self.schedulers.index(scheduler)


_IN_ORDER = ("low", "medium", "high", "super-high", "base", "bursty", "diurnal", "shifted")


def _rank(value: Label) -> tuple[int, float, str]:
    """Order numbers by size and words as people expect them, others by the alphabet."""
    if isinstance(value, str):
        return (_IN_ORDER.index(value) if value in _IN_ORDER else len(_IN_ORDER), 0.0, value)
    return (-1, float(value), "")


def runs_by_family(table: pl.DataFrame, labels: Sequence[str]) -> tuple[Runs, ...]:
    """Return the runs of every family in a table of results.

    A file has one workload whatever the seed: where a family has others with several seeds, it
    stands in a family of its own, since schedulers cannot be averaged over seeds it does not have.

    Args:
        table: one row per run.
        labels: which of its columns tell regimes apart.
    """
    numbered = _apart(table.with_row_index(PLACE))
    families = numbered.get_column("family").unique(maintain_order=True).to_list()
    return tuple(
        _runs(name, numbered.filter(numbered.get_column("family") == name), labels)
        for name in families
    )


ONE_SEED = "-one-seed"
"""What is added to the name of a family for those of its regimes that have one seed only."""


def _apart(table: pl.DataFrame) -> pl.DataFrame:
    """Give regimes of one seed a family of their own where others of theirs have several."""
    import polars as pl

    own = pl.col("seed").n_unique().over("family", "regime")
    most = pl.col("seed").n_unique().over("family")
    name = pl.when((own == 1) & (most > 1)).then(pl.col("family") + ONE_SEED)
    return table.with_columns(family=name.otherwise(pl.col("family")))


def _runs(family: str, table: pl.DataFrame, labels: Sequence[str]) -> Runs:
    keys = list(zip(*(table.get_column(name).to_list() for name in _SCENARIO), strict=True))
    found = [Scenario(str(regime), str(kind), float(degree)) for regime, kind, degree in keys]
    scenarios = list(dict.fromkeys(found))
    schedulers = table.get_column("scheduler").unique(maintain_order=True).to_list()
    seeds = sorted(table.get_column("seed").unique().to_list())
    where = (
        np.array([schedulers.index(name) for name in table.get_column("scheduler")]),
        np.array([scenarios.index(scenario) for scenario in found]),
        np.array([seeds.index(seed) for seed in table.get_column("seed")]),
    )
    places = np.full((len(schedulers), len(scenarios), len(seeds)), -1, dtype=np.int64)
    places[where] = np.arange(len(table))
    rows, columns = _complete(places >= 0)
    missing = _missing(schedulers, scenarios, rows, columns)
    kept = places[np.ix_(rows, columns)]
    firsts = [found.index(scenarios[column]) for column in columns]
    return Runs(
        family=family,
        schedulers=tuple(schedulers[row] for row in rows),
        scenarios=tuple(scenarios[column] for column in columns),
        seeds=tuple(seeds),
        information=dict(zip(table["scheduler"], table["information"], strict=True)),
        labels=tuple(_labels(table.row(first, named=True), labels) for first in firsts),
        numbers={
            name: table.get_column(name).to_numpy()[kept] for name in _number_columns(table, labels)
        },
        places=table.get_column(PLACE).to_numpy().astype(np.int64)[kept],
        left_out=missing,
    )


_SCENARIO = ("regime", "perturbation", "severity")
_NOT_NUMBERS = (PLACE, "seed", "severity")


def _number_columns(table: pl.DataFrame, labels: Sequence[str]) -> list[str]:
    left_out = (*_NOT_NUMBERS, *labels)
    return [
        name for name, kind in table.schema.items() if name not in left_out and kind.is_numeric()
    ]


def _labels(row: Mapping[str, Label | None], labels: Sequence[str]) -> dict[str, Label]:
    return {name: value for name in labels if (value := row[name]) is not None}


def _complete(there: np.typing.NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    """Return the schedulers and the scenarios of which no run is missing.

    A scheduler that completed nothing is left out first: it must not take all others with it.
    """
    whole: np.typing.NDArray[np.bool_] = np.asarray(there.all(axis=2))
    rows = np.flatnonzero(whole.any(axis=1))
    return rows.tolist(), np.flatnonzero(whole[rows].all(axis=0)).tolist()


def _missing(
    schedulers: Sequence[str],
    scenarios: Sequence[Scenario],
    rows: Sequence[int],
    columns: Sequence[int],
) -> tuple[str, ...]:
    lost = [name for row, name in enumerate(schedulers) if row not in rows]
    regimes = dict.fromkeys(
        scenario.regime for place, scenario in enumerate(scenarios) if place not in columns
    )
    return (*lost, *regimes)
