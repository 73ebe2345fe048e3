"""Checking job tables: every mistake at once, each with its row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.columns import COLUMN_NAMES, LABEL_COLUMNS, Labels
from yardmaster.model.job_table import MISTAKES_SHOWN, checked

JOBS = 12


def jobs(**columns: Any) -> dict[str, Any]:
    """Return a correct table of a few jobs, with some columns replaced."""
    return {"submit_s": np.arange(JOBS) * 10.0, "duration_s": np.full(JOBS, 5.0)} | columns


def with_cell(row: int, value: object, rest: object) -> list[object]:
    """Return a column that is `rest` everywhere but in one row."""
    return [value if other == row else rest for other in range(JOBS)]


def message(columns: dict[str, Any]) -> str:
    """Return the message with which a table is refused."""
    with pytest.raises(InvalidWorkloadError) as caught:
        checked(columns, "mine")
    return str(caught.value)


def test_missing_columns_take_their_defaults():
    """Times alone make a table: one whole GPU each, no limits, nothing else known."""
    table = checked(jobs(), "mine")
    assert set(table) == set(COLUMN_NAMES)
    assert table["id"].tolist() == list(range(JOBS))
    assert set(table["gpus"].tolist()) == {1}
    assert set(table["milli_gpu"].tolist()) == {1000}
    assert set(table["max_gpus_per_node"].tolist()) == {0}
    assert set(table["priority"].tolist()) == {0.0}
    assert set(table["min_gpus"].tolist()) == set(table["max_gpus"].tolist()) == {0}
    for key in ("estimate_s", "gpu_memory_gib", "cpus", "memory_gib", "deadline_s"):
        assert np.isnan(table[key]).all(), key
    for key in LABEL_COLUMNS:
        assert table[key].values() == [None] * JOBS, key


BAD_CELLS = [
    ("submit_s", math.nan),
    ("submit_s", None),
    ("submit_s", math.inf),
    ("submit_s", -1.0),
    ("submit_s", 1e16),
    ("submit_s", "noon"),
    ("submit_s", [1.0]),
    ("duration_s", math.nan),
    ("duration_s", -0.5),
    ("duration_s", -math.inf),
    ("estimate_s", 0.0),
    ("estimate_s", -3.0),
    ("estimate_s", math.inf),
    ("gpus", 0),
    ("gpus", -2),
    ("gpus", 1.5),
    ("gpus", math.nan),
    ("gpus", "two"),
    ("gpus", 1e300),
    ("milli_gpu", 0),
    ("milli_gpu", 1001),
    ("max_gpus_per_node", -1),
    ("min_gpus", -1),
    ("min_gpus", 2),
    ("min_gpus", 0.5),
    ("max_gpus", -1),
    ("max_gpus", 2.5),
    ("gpu_memory_gib", -1.0),
    ("gpu_memory_gib", math.inf),
    ("cpus", -1.0),
    ("memory_gib", math.inf),
    ("priority", math.nan),
    ("priority", math.inf),
    ("deadline_s", math.inf),
    ("tenant", ["a"]),
    ("gpu_types", {"A100"}),
    ("id", None),
]
GOOD_CELLS = {"id": None, "tenant": "a", "gpu_types": "A100", "milli_gpu": 1000}


@pytest.mark.parametrize(("key", "bad"), BAD_CELLS)
@pytest.mark.parametrize("row", [0, JOBS - 1])
def test_one_bad_cell_is_one_mistake_with_its_row(key: str, bad: object, row: int):
    """A bad cell is reported once, naming the workload, the row and the column."""
    column = with_cell(row, bad, GOOD_CELLS.get(key, 1))
    if key == "id":
        column = [bad if other == row else f"job {other}" for other in range(JOBS)]
    text = message(jobs(**{key: column}))
    assert text.startswith("mine: 1 mistake\n"), text
    assert f"row {row}" in text
    assert key in text


@given(data=st.data())
def test_all_mistakes_are_reported_at_once(data: st.DataObject):
    """Whatever columns are bad, and wherever, no mistake hides another."""
    # What is wrong only beside a good number of GPUs has a test of its own.
    others = ("id", "tenant", "gpu_types", "min_gpus", "max_gpus")
    numeric = [(key, bad) for key, bad in BAD_CELLS if key not in others]
    chosen = data.draw(st.lists(st.sampled_from(numeric), min_size=1, unique_by=lambda c: c[0]))
    rows = {key: data.draw(st.integers(0, JOBS - 1)) for key, _ in chosen}
    columns = {key: with_cell(rows[key], bad, GOOD_CELLS.get(key, 1)) for key, bad in chosen}
    text = message(jobs(**columns))
    assert text.startswith(f"mine: {len(chosen)} mistake")
    for key, row in rows.items():
        assert any(f"row {row}" in line and key in line for line in text.splitlines()), text


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_elastic_jobs_ask_for_a_size_within_their_bounds(least: int, most: int, gpus: int):
    """What a job asks for lies between its fewest and most GPUs; 0 leaves a side open."""
    columns = jobs(gpus=[gpus] * JOBS, min_gpus=[least] * JOBS, max_gpus=[most] * JOBS)
    wrong = (least > gpus) + (0 < most < gpus)
    if wrong:
        text = message(columns)
        assert text.startswith(f"mine: {wrong * JOBS} mistakes")
        assert ("min_gpus must not be more than gpus" in text) is (least > gpus)
    else:
        table = checked(columns, "mine")
        assert (table["min_gpus"][0], table["max_gpus"][0]) == (least, most)


def test_fractions_are_for_single_gpus():
    """A fraction of a GPU cannot be asked for by a gang."""
    assert "milli_gpu below 1000 needs gpus = 1" in message(
        jobs(milli_gpu=[500] * JOBS, gpus=[2] * JOBS)
    )
    checked(jobs(milli_gpu=[500] * JOBS), "mine")


def test_equal_ids_are_reported_on_every_row_that_has_them():
    """All rows that share an id are named, by integer and by text ids."""
    for ids in (with_cell(0, 7, None), with_cell(0, "x", None)):
        same = [ids[0] if row in (0, 3) else row + 100 for row in range(JOBS)]
        text = message(jobs(id=same))
        assert "row 0" in text
        assert "row 3" in text
        assert "2 mistakes" in text


def test_an_empty_table_is_refused():
    """A workload without jobs cannot be simulated."""
    assert "it has no jobs" in message({"submit_s": [], "duration_s": []})


def test_required_and_unknown_columns_are_reported_together():
    """Missing columns and misspelt ones appear in one message, with a suggestion."""
    text = message({"submit": [1.0], "gpu": [1]})
    assert "column 'submit_s' is required" in text
    assert "column 'duration_s' is required" in text
    assert "unknown column 'gpu'. Did you mean 'gpus'" in text


@pytest.mark.parametrize(
    "column", [3, "abcdefghijkl", b"x", {"a": 1}, {1, 2}, np.float64(2), np.ones((JOBS, 2))]
)
@pytest.mark.parametrize("key", ["submit_s", "gpus", "tenant", "id"])
def test_what_is_no_column_is_refused(key: str, column: object):
    """Single values, text and tables in place of a column are mistakes, not crashes."""
    assert f"column '{key}' must be a list of values" in message(jobs(**{key: column}))


def test_columns_of_other_lengths_are_refused():
    """Every column whose length differs is named with its length."""
    text = message(jobs(gpus=[1], user=["a"] * 99))
    assert f"column 'gpus' has 1 rows, the workload has {JOBS} jobs" in text
    assert "column 'user' has 99 rows" in text


def test_many_mistakes_are_counted_not_all_shown():
    """A table wrong everywhere gives a readable message with the full count."""
    text = message({"submit_s": np.full(500, -1.0), "duration_s": np.ones(500)})
    assert "500 mistakes" in text
    assert f"and {500 - MISTAKES_SHOWN} more" in text
    assert len(text.splitlines()) == MISTAKES_SHOWN + 2


def test_labels_that_point_nowhere_are_refused():
    """Codes without a name are mistakes with their row."""
    broken = Labels(np.array([0] * (JOBS - 1) + [5], dtype=np.int32), ("a",))
    assert f"row {JOBS - 1}: user has code 5" in message(jobs(user=broken))


def test_numbers_may_come_as_text_or_as_other_types():
    """Digits in text, integers and NumPy scalars are numbers; None is a missing one."""
    table = checked(jobs(gpus=["2"] * JOBS, cpus=[None, *range(1, JOBS)]), "mine")
    assert table["gpus"].tolist() == [2] * JOBS
    assert math.isnan(table["cpus"][0])


def test_the_table_is_its_own_copy():
    """Changing an array after building the table does not change the table."""
    submit_s = np.arange(JOBS) * 10.0
    ids = np.array([f"job {row}" for row in range(JOBS)])
    table = checked(jobs(submit_s=submit_s, id=ids), "mine")
    submit_s[0], ids[0] = 99.0, "other"
    assert table["submit_s"][0] == 0.0
    assert table["id"][0] == "job 0"
