"""Workloads: order, selection, clock and fingerprint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import COLUMN_NAMES, LABEL_COLUMNS, Workload

SECONDS = st.integers(0, 5).map(float)
"""Few distinct times, so that ties are common."""


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Draw correct job tables with every column present."""
    jobs = draw(st.integers(1, 12))

    def column(cells: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(cells, min_size=jobs, max_size=jobs))

    names = st.sampled_from([None, "a", "b", "c"])
    gpus = column(st.integers(1, 16))
    return {
        "id": [f"job {number}" for number in draw(st.permutations(range(jobs)))],
        "submit_s": column(SECONDS),
        "duration_s": column(st.floats(0, 1e6)),
        "estimate_s": column(st.one_of(st.just(math.nan), st.floats(1, 1e6))),
        "gpus": gpus,
        "milli_gpu": [1000 if wanted > 1 else draw(st.integers(1, 1000)) for wanted in gpus],
        "gpu_types": column(st.sampled_from([None, "A100", "A100|V100"])),
        "max_gpus_per_node": column(st.integers(0, 8)),
        "min_gpus": [draw(st.integers(0, wanted)) for wanted in gpus],
        "max_gpus": [draw(st.one_of(st.just(0), st.integers(wanted, 64))) for wanted in gpus],
        "gpu_memory_gib": column(st.one_of(st.just(math.nan), st.floats(0, 99))),
        "recorded_wait_s": column(st.one_of(st.just(math.nan), st.floats(0, 1e9))),
        "cpus": column(st.one_of(st.just(math.nan), st.floats(0, 99))),
        "memory_gib": column(st.one_of(st.just(math.nan), st.floats(0, 99))),
        "tenant": column(names),
        "user": column(names),
        "priority": column(st.floats(-5, 5)),
        "deadline_s": column(st.one_of(st.just(math.nan), st.floats(0, 1e6))),
        "kind": column(names),
        "status": column(names),
    }


def rows_of(workload: Workload) -> list[tuple[Any, ...]]:
    """Return the jobs as tuples in which missing numbers compare equal."""
    columns = []
    for key in COLUMN_NAMES:
        value = getattr(workload, key)
        cells = value.values() if key in LABEL_COLUMNS else value.tolist()
        columns.append([None if cell != cell else cell for cell in cells])  # noqa: PLR0124 NaN
    return list(zip(*columns, strict=True))


@settings(max_examples=50)
@given(tables())
def test_jobs_are_sorted_by_submission_and_ties_keep_their_order(table: dict[str, list[Any]]):
    """Rows come out as Python's stable sort by submit time puts them, with every column."""
    given_rows = rows_of(Workload.of(**(table | {"submit_s": [0.0] * len(table["id"])})))
    order = sorted(range(len(table["id"])), key=lambda row: table["submit_s"][row])
    expected = [(given_rows[row][0], table["submit_s"][row], *given_rows[row][2:]) for row in order]
    assert rows_of(Workload.of(**table)) == expected


@settings(max_examples=50)
@given(tables())
def test_columns_come_back_as_given(table: dict[str, list[Any]]):
    """No value changes on the way in: the jobs out are the jobs in."""
    expected = {
        row[0]: tuple(None if cell != cell else cell for cell in row)  # noqa: PLR0124 NaN
        for row in zip(*(table[key] for key in COLUMN_NAMES), strict=True)
    }
    for row in rows_of(Workload.of(**table)):
        assert row == expected[row[0]]


@settings(max_examples=50)
@given(tables(), st.data())
def test_selecting_rows_keeps_exactly_those_jobs(table: dict[str, list[Any]], data: st.DataObject):
    """Indices in any order and masks select the same jobs, still sorted, on the same clock."""
    workload = Workload.of(**table)
    rows = data.draw(
        st.lists(st.sampled_from(range(len(workload))), min_size=1, unique=True), label="rows"
    )
    mask = np.isin(np.arange(len(workload)), rows)
    all_rows = rows_of(workload)
    by_mask = workload.select(mask, name="part")
    assert rows_of(by_mask) == [all_rows[row] for row in sorted(rows)]
    assert by_mask.name == "part"
    by_index = workload.select(np.array(rows))
    assert sorted(map(str, rows_of(by_index))) == sorted(map(str, rows_of(by_mask)))
    assert np.all(np.diff(by_index.submit_s) >= 0)


def test_selecting_nothing_is_refused():
    """A selection without jobs is an error, since a workload has at least one."""
    with pytest.raises(InvalidWorkloadError, match="no jobs"):
        Workload.of(submit_s=[0.0], duration_s=[1.0]).select(np.array([False]))


@settings(max_examples=50)
@given(tables(), st.integers(0, 3))
def test_moving_the_clock_moves_submissions_and_deadlines(table: dict[str, list[Any]], shift: int):
    """Everything on the clock moves by the same amount, everything else stays."""
    workload = Workload.of(**(table | {"submit_s": [s + shift for s in table["submit_s"]]}))
    moved = workload.starting_at(shift)
    np.testing.assert_array_equal(moved.submit_s, workload.submit_s - shift)
    np.testing.assert_array_equal(moved.deadline_s, workload.deadline_s - shift)
    np.testing.assert_array_equal(moved.duration_s, workload.duration_s)
    np.testing.assert_array_equal(moved.estimate_s, workload.estimate_s)
    assert moved.id.tolist() == workload.id.tolist()


@pytest.mark.parametrize("origin_s", [10.5, math.nan, math.inf])
def test_the_clock_cannot_start_after_the_first_job(origin_s: float):
    """No job may end up before second 0 without anyone noticing."""
    workload = Workload.of(submit_s=[10.0, 20.0], duration_s=[1.0, 1.0], name="mine")
    with pytest.raises(InvalidWorkloadError, match=r"mine.*\n.*first job is submitted at 10"):
        workload.starting_at(origin_s)


def test_replacing_columns_checks_again():
    """Replaced columns are validated like new ones, and None restores the default."""
    workload = Workload.of(submit_s=[0.0, 1.0], duration_s=[1.0, 1.0], estimate_s=[2.0, 2.0])
    assert workload.has_estimates
    assert not workload.with_columns(estimate_s=None).has_estimates
    assert workload.with_columns(gpus=[4, 8]).gpus.tolist() == [4, 8]
    with pytest.raises(InvalidWorkloadError, match="row 1"):
        workload.with_columns(gpus=[4, 0])


@settings(max_examples=50)
@given(tables())
def test_equal_jobs_have_equal_fingerprints(table: dict[str, list[Any]]):
    """The fingerprint depends on the jobs only: not on name, notes or how they were cut out."""
    workload = Workload.of(**table)
    again = Workload.of(**table, name="other", notes=["hello"])
    assert again.fingerprint() == workload.fingerprint()
    extra = {key: [*column, column[0]] for key, column in table.items()}
    extra |= {"id": [*table["id"], "x"], "submit_s": [*table["submit_s"], 0.0]}
    extra |= {"tenant": [*table["tenant"], "only here"]}
    larger = Workload.of(**extra)
    assert larger.select(larger.id != "x").fingerprint() == workload.fingerprint()


OTHER_CELLS = {
    "id": "another",
    "gpu_types": "T4",
    "tenant": "z",
    "user": "z",
    "kind": "z",
    "status": "z",
    "milli_gpu": 77,
    "gpus": 23,
    "min_gpus": 9,
    "max_gpus": 77,
}


@pytest.mark.parametrize("key", COLUMN_NAMES)
@settings(max_examples=20)
@given(table=tables(), data=st.data())
def test_changing_any_cell_changes_the_fingerprint(
    key: str, table: dict[str, list[Any]], data: st.DataObject
):
    """No column is left out of the fingerprint, and no cell of it."""
    jobs = len(table["id"])
    table = table | {"gpus": [1] * jobs, "milli_gpu": [500] * jobs}
    table |= {"min_gpus": [0] * jobs, "max_gpus": [0] * jobs}
    if key in {"gpus", "min_gpus"}:
        table |= {"gpus": [16] * jobs, "milli_gpu": [1000] * jobs}
    row = data.draw(st.integers(0, len(table["id"]) - 1))
    cells = list(table[key])
    cells[row] = OTHER_CELLS.get(key, 12345.0)
    changed = Workload.of(**(table | {key: cells}))
    assert changed.fingerprint() != Workload.of(**table).fingerprint()


def test_fingerprints_tell_where_one_name_ends():
    """Names that run together do not make two different workloads look equal."""

    def two(first: str, second: str) -> str:
        times = {"submit_s": [0.0, 0.0], "duration_s": [1.0, 1.0]}
        return Workload.of(**times, user=[first, second]).fingerprint()

    assert len({two("ab", "c"), two("a", "bc"), two("a\0b", "c"), two("a", "b\0c")}) == 4


def test_integer_width_of_ids_does_not_matter():
    """The same ids from narrow and wide arrays give the same workload."""
    prints = {
        Workload.of(submit_s=[0.0], duration_s=[1.0], id=np.array([7], dtype=kind)).fingerprint()
        for kind in (np.int16, np.int32, np.int64)
    }
    assert len(prints) == 1


def test_work_counts_fractions_and_load_is_work_over_capacity():
    """Work is GPU-seconds; load relates it to what the GPUs could do while jobs arrive."""
    workload = Workload.of(
        submit_s=[0.0, 50.0, 100.0], duration_s=[10.0, 20.0, 40.0], gpus=[4, 1, 1],
        milli_gpu=[1000, 500, 1000],
    )  # fmt: skip
    assert workload.work_gpu_s == pytest.approx(40 + 10 + 40)
    assert workload.load(gpus=2) == pytest.approx(90 / 200)
    assert Workload.of(submit_s=[3.0], duration_s=[1.0]).load(gpus=1) == math.inf


def test_renaming_keeps_jobs_and_appends_notes():
    """A new name and further notes leave the jobs alone."""
    workload = Workload.of(submit_s=[0.0], duration_s=[1.0], notes=["first"])
    renamed = workload.renamed("mine", "second")
    assert renamed.name == "mine"
    assert renamed.notes == ("first", "second")
    assert renamed.fingerprint() == workload.fingerprint()
