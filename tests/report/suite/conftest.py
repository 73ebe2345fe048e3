"""An experiment whose answers are known: numbers made by formulas, kept as experiments keep them.

`mid` is always 10 % above `best`, `worst` always 50 %; `meta:runs/x/policy.npz` is 5 % below. On
p95 the tables are turned: `worst` is the best. Perturbations cost what `EFFECTS` says.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.measuring import JCT_SHARES, MEASURES
from yardmaster.experiments.suite.results import GAP, is_fixed, oracle_gap, write_results
from yardmaster.experiments.suite.store import Kept, opened
from yardmaster.report.suite.experiment import Experiment, read_experiment
from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.runs import Runs

META = "meta:runs/x/policy.npz"
FACTORS = {"best+skip": 1.0, "mid+skip": 1.1, "worst+easy": 1.5, META: 0.95}
P95 = {"best+skip": 2.0, "mid+skip": 1.5, "worst+easy": 1.0, META: 1.0}
SEEDS = 5
EFFECTS = {
    ("arrival-noise", 0.1): 0.0,
    ("arrival-noise", 0.2): 0.02,
    ("capacity-dip", 0.1): 0.25,
    ("capacity-dip", 0.2): 0.5,
    ("phase-shift", 0.25): -0.1,
    ("phase-shift", 0.5): -0.1,
}


def regimes() -> list[dict[str, object]]:
    clean = [
        {"family": "plain", "regime": f"{shape}-{gpus}", "shape": shape, "intensity": level,
         "gpus": gpus, "perturbation": "none", "severity": 0.0}
        for shape in ("base", "bursty")
        for gpus, level in ((2, "low"), (4, "high"))
    ]  # fmt: skip
    disturbed = [
        one | {"perturbation": kind, "severity": severity}
        for one in clean
        for kind, severity in EFFECTS
    ]
    drift = [
        {"family": "drift", "regime": f"drift-{place}", "shape": None, "intensity": None,
         "gpus": 8, "perturbation": "none", "severity": 0.0}
        for place in range(2)
    ]  # fmt: skip
    return [*clean, *disturbed, *drift]


def level(regime: str, seed: int) -> float:
    """The completion time of the best scheduler: of the regime, and chance."""
    size = 1000.0 * (1 + sum(map(ord, regime)) % 7)
    return size * (1 + 0.1 * np.random.default_rng([seed, len(regime)]).random())


def results() -> pl.DataFrame:
    """Return the table of the experiment."""
    rows = []
    for one in regimes():
        change = EFFECTS.get((one["perturbation"], one["severity"]), 0.0)
        for seed in range(SEEDS):
            for name, factor in FACTORS.items():
                base = level(str(one["regime"]), seed) * (1 + change)
                numbers = dict.fromkeys(MEASURES, 1.0)
                numbers |= {
                    "mean_jct_s": base * factor,
                    "p50_jct_s": base * factor / 2,
                    "p95_jct_s": base * P95[name],
                    "p99_jct_s": base * P95[name] * 1.2,
                    "mean_bounded_slowdown": base * factor / 100,
                    "utilisation": 0.9 - 0.01 * seed,
                    "queue_exploded": float(one["perturbation"] == "capacity-dip"),
                    "recovery_s": float("nan"),
                }
                if one["family"] == "drift":
                    never = name == "worst+easy" and seed == 0
                    numbers["recovery_s"] = float("nan") if never else 100.0 * factor
                about = {"scheduler": name, "information": "blind", "seed": seed}
                rows.append(one | about | numbers)
    table = pl.DataFrame(rows, infer_schema_length=None)
    keys = table.select("family", "regime", "perturbation", "severity", "seed")
    jobs = np.unique(np.array([str(row) for row in keys.iter_rows()]), return_inverse=True)[1]
    fixed = np.array([is_fixed(name) for name in table["scheduler"]])
    gaps = {GAP + name: oracle_gap(table[name].to_numpy(), jobs, fixed) for name in OBJECTIVES}
    cells = [f"{place:064x}" for place in range(len(table))]
    return table.with_columns(
        **{name: pl.Series(values) for name, values in gaps.items()}
    ).with_columns(cell=pl.Series(cells))


def write_folder(folder: Path, table: pl.DataFrame) -> Path:
    """Write a table as an experiment does, with completion times evenly between 0 and 2 × mean."""
    folder.mkdir(parents=True, exist_ok=True)
    write_results(table, SuiteFolder(folder).results)
    kept = [
        Kept(cell, np.zeros(len(MEASURES)), (2 * mean * JCT_SHARES).astype(np.float32), 0.1)
        for cell, mean in zip(table["cell"], table["mean_jct_s"], strict=True)
    ]
    with opened(SuiteFolder(folder).store) as store:
        store.add(MEASURES, kept)
    return folder


@pytest.fixture(scope="session")
def table() -> pl.DataFrame:
    return results()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, table: pl.DataFrame) -> Path:
    return write_folder(tmp_path_factory.mktemp("experiment"), table)


@pytest.fixture(scope="session")
def experiment(folder: Path) -> Experiment:
    return read_experiment(folder)


@pytest.fixture(scope="session")
def plain_family(experiment: Experiment) -> Runs:
    return next(runs for runs in experiment.families if runs.family == "plain")


@pytest.fixture(scope="session")
def clean(plain_family: Runs) -> Runs:
    return plain_family.clean()


@pytest.fixture(scope="session")
def drift(experiment: Experiment) -> Runs:
    return next(runs for runs in experiment.families if runs.family == "drift")
