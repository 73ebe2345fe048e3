"""Boosted trees that learn, from jobs that have ended, where `history` is wrong and by how much.

The trees predict the logarithm of run time / prediction of `history`, so that they have nothing to
learn where history repeats itself. They are trained again and again as jobs end; a job is predicted
by the latest trees whose teachers had all ended before its submission. They minimise the absolute
error: run times scatter over orders of magnitude, and means would follow the outliers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray, IntArray, Labels
from yardmaster.names import unknown
from yardmaster.workloads.prediction.features import features
from yardmaster.workloads.prediction.history import Prediction, history, within_request
from yardmaster.workloads.prediction.past import Past

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and how many there are."""

FIRST_TRAINING = 500
"""Jobs that must have ended before there is a model at all; until then, `history` predicts."""

TEACHERS = 20_000
"""The latest so many jobs that ended are learnt from: habits change."""

TREES, LEAVES, LEAST_IN_LEAF, RATE = 50, 15, 200, 0.1
"""Few, small and slow trees. Larger and more of them did worse on the earlier halves of the traces:
they learn last week by heart, and this week is another."""

SEED = 0
TRACE = 1e-6


def boosted(
    past: Past, progress: Progress | None = None, *, library: str | None = None
) -> Prediction:
    """Predict every job by the latest model whose teachers had ended at its submission.

    Args:
        past: what was known when.
        progress: told how many of the models have been trained.
        library: `scikit-learn` or `lightgbm`; by default the first of these that is installed.

    Raises:
        YardmasterError: if neither library is installed.
    """
    fitted = LIBRARIES[chosen_library(library)]
    before = history(past)
    log_before = np.log(before.run_s)
    table = np.column_stack([features(past), log_before])
    missed_by = np.log(past.run_s) - log_before
    run_s = before.run_s.copy()
    basis = np.ones(len(past), dtype=np.int32)
    turns = list(training_turns(past.known))
    for turn, (ended, pupils) in enumerate(turns):
        if progress is not None:
            progress("boosted trees", turn, len(turns))
        teachers = past.by_end[max(0, ended - TEACHERS) : ended]
        correction = _correction(fitted, table, missed_by, teachers, pupils)
        # Whole seconds: what is the same but for rounding must not look shorter or longer.
        run_s[pupils] = np.round(np.exp(log_before[pupils] + correction))
        basis[pupils] = 0
    names = ("boosted trees", "history, before the first training")
    return Prediction(within_request(past, run_s), Labels(basis, names), names[:1])


def training_turns(known: IntArray) -> Iterator[tuple[int, slice]]:
    """Yield each training: how many jobs have ended by then, and the jobs it predicts.

    Trained again whenever a tenth more jobs have ended, but not before 100 and at the latest after
    2,000. Trainings whose model nobody would use are left out.
    """
    ended = FIRST_TRAINING
    while ended <= known[-1]:
        following = ended + min(max(100, ended // 10), 2000)
        begin, end = np.searchsorted(known, (ended, following), side="left")
        if begin < end:
            yield ended, slice(int(begin), int(end))
        ended = following


def _correction(
    fitted: Fit, table: FloatArray, missed_by: FloatArray, teachers: IntArray, pupils: slice
) -> FloatArray:
    lessons = table[teachers]
    told = np.flatnonzero(~np.isnan(lessons).all(axis=0))  # what no teacher has teaches nothing
    return fitted(lessons[:, told], missed_by[teachers])(table[pupils][:, told])


Fit = Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]]
"""Learns values from rows of numbers and returns what predicts them from other rows.

One thread each: sums in a fixed order give the same trees on every machine, and on so few rows
several threads gain little.
"""


def _with_scikit_learn(rows: FloatArray, values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    # Imported by name: an optional library without types.
    ensemble: Any = import_module("sklearn.ensemble")
    one_thread: Any = import_module("threadpoolctl").threadpool_limits
    model = ensemble.HistGradientBoostingRegressor(
        loss="absolute_error",
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAST_IN_LEAF,
        learning_rate=RATE,
        early_stopping=False,
        random_state=SEED,
    )
    # Here a value that is met exactly counts as too small, as all of history's direct hits would.
    # A trace of noise lets half of them count as too large: they pull nowhere.
    noise = np.random.default_rng(SEED).uniform(-TRACE, TRACE, len(values))
    with one_thread(limits=1):
        model.fit(rows, values + noise)

    def predicted(others: FloatArray) -> FloatArray:
        with one_thread(limits=1):
            return np.asarray(model.predict(others), dtype=np.float64)

    return predicted


def _with_lightgbm(rows: FloatArray, values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    lightgbm: Any = import_module("lightgbm")
    options = {
        "objective": "regression_l1",
        "num_leaves": LEAVES,
        "min_data_in_leaf": LEAST_IN_LEAF,
        "learning_rate": RATE,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "seed": SEED,
        "verbosity": -1,
    }
    model = lightgbm.train(options, lightgbm.Dataset(rows, values), num_boost_round=TREES)
    return lambda others: np.asarray(model.predict(others), dtype=np.float64)


LIBRARIES: dict[str, Fit] = {"scikit-learn": _with_scikit_learn, "lightgbm": _with_lightgbm}
_MODULES = {"scikit-learn": "sklearn", "lightgbm": "lightgbm"}


def chosen_library(wanted: str | None = None) -> str:
    """Return the library that trains the trees: the one wanted, or the first that is installed.

    Raises:
        UnknownNameError: if the library wanted is neither of the two.
        YardmasterError: if it is not installed, or none is.
    """
    if wanted is not None and wanted not in LIBRARIES:
        raise unknown("library", wanted, LIBRARIES)
    for name in [wanted] if wanted else LIBRARIES:
        if find_spec(_MODULES[name]) is not None:
            return name
    missing = wanted or "scikit-learn or LightGBM"
    raise YardmasterError(
        f"The method 'boosted' needs {missing}, not installed here:"
        f" pip install {wanted or 'scikit-learn'}"
    )
