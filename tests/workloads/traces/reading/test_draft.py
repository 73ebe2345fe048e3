"""From a publisher's rows to a job table."""

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.tables import read_table
from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.draft import Draft, ImportedTrace, dropped_where, finished


def draft(submit_s: list[float], *, dated: bool = True, **columns: list[object]) -> Draft:
    ledger = Ledger("mine", ["a.csv"])
    ledger.stage("rows of a.csv", len(submit_s), len(submit_s))
    frame = pl.DataFrame({"submit_s": submit_s, "duration_s": [1.0] * len(submit_s)} | columns)
    return Draft(frame, ledger, dated=dated)


@given(st.lists(st.integers(0, 4 * 10**9), min_size=1, max_size=20))
def test_the_clock_begins_on_the_monday_before_the_first_job(submitted: list[int]):
    """Second 0 is a Monday midnight at most a week before the first submission."""
    imported = finished(draft([float(second) for second in submitted]), "mine")
    begins = datetime.fromisoformat(imported.account.begins)
    assert begins.weekday() == 0
    assert (begins.hour, begins.minute, begins.second) == (0, 0, 0)
    moments = imported.frame["submit_s"].to_list()
    assert 0 <= moments[0] < 7 * 86_400
    zero = (begins - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001  (local clocks)
    assert [zero + moment for moment in moments] == sorted(submitted)


def test_other_clocks_stay():
    """A trace without dates keeps its seconds."""
    imported = finished(draft([50.0, 7.0], dated=False), "mine")
    assert imported.frame["submit_s"].to_list() == [7.0, 50.0]
    assert imported.account.begins == ""


def test_repeated_ids_are_replaced():
    """Ids that are not unique cannot name jobs: jobs are numbered, and the account says so."""
    imported = finished(draft([1.0, 2.0, 3.0], id=["a", "b", "a"]), "mine")
    assert imported.frame["id"].to_list() == [0, 1, 2]
    assert "ids are not unique (1 repeated)" in imported.account.remarks[0]
    kept = finished(draft([1.0, 2.0, 3.0], id=["c", "b", "a"]), "mine")
    assert kept.frame["id"].to_list() == ["c", "b", "a"]


def test_a_trace_without_jobs_is_an_error_that_says_why():
    """If every row is dropped, the reasons are the message."""
    ledger = Ledger("mine", ["a.csv"])
    ledger.stage("rows of a.csv", 4, 0, [Dropped("asked for no GPU", 4)])
    empty = pl.DataFrame({"submit_s": [], "duration_s": []})
    with pytest.raises(InvalidWorkloadError, match=r"a\.csv: no job is left: 4 asked for no GPU"):
        finished(Draft(empty, ledger), "mine")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_is_written_is_what_is_read(tmp_path: Path, ending: str):
    """The job table on disk gives the same jobs, notes and clock as the import itself."""
    imported = finished(
        draft([90_000.0, 100.0], id=[5, 6], user=["ann", None], gpus=[2, 8], cpus=[1.5, None]),
        "mine",
    )
    path = tmp_path / f"x.{ending}"
    imported.write(path, overwrite=False)
    workload, again = imported.workload(), read_table(path)
    assert again.fingerprint() == workload.fingerprint()
    if ending == "parquet":
        assert (again.name, again.notes, again.begins) == (
            workload.name, workload.notes, workload.begins,
        )  # fmt: skip
    with pytest.raises(InvalidWorkloadError, match="--overwrite"):
        imported.write(path, overwrite=False)
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name]


def test_the_first_reason_counts():
    """A row that two reasons explain is counted once, under the first."""
    ledger = Ledger("mine", [])
    frame = pl.DataFrame({"a": [1, 2, 3, None]})
    kept = dropped_where(
        frame, "jobs", [("small", pl.col("a") < 3), ("one", pl.col("a") == 1)], ledger
    )
    assert kept["a"].to_list() == [3, None]
    assert ledger.stages[0].dropped == (Dropped("small", 2),)


def test_an_imported_trace_is_a_workload():
    """Missing columns take their defaults."""
    imported = ImportedTrace(
        "mine", pl.DataFrame({"submit_s": [0.0], "duration_s": [5.0]}),
        finished(draft([0.0]), "mine").account,
    )  # fmt: skip
    assert imported.workload().gpus.tolist() == [1]
