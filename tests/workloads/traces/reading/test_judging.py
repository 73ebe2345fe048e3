"""Rows whose cells make sense one by one, but not together."""

import polars as pl
import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.delimited import Reason
from yardmaster.workloads.traces.reading.judging import judged
from yardmaster.workloads.traces.reading.options import ImportOptions

BACKWARDS = Reason("ended before it started", pl.col("end") < pl.col("start"))
UNSTARTED = Reason("never started", pl.col("start").is_null())


def judge(frame: pl.DataFrame, ledger: Ledger, *, skip: bool = False) -> pl.DataFrame:
    return judged(
        frame,
        "jobs",
        mistakes=[BACKWARDS],
        reasons=[UNSTARTED],
        named_by="name",
        options=ImportOptions(skip_bad_rows=skip),
        ledger=ledger,
    )


def jobs(*rows: tuple[str, float | None, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["name", "start", "end"], orient="row")


def test_sound_rows_pass_and_explained_rows_are_dropped():
    """Without mistakes only the format's own reasons drop rows, and the stage adds up."""
    ledger = Ledger("x", ["a.csv"])
    kept = judge(jobs(("a", 1.0, 2.0), ("b", None, 3.0), ("c", 5.0, 5.0)), ledger)
    assert kept["name"].to_list() == ["a", "c"]
    (stage,) = ledger.stages
    assert (stage.read, stage.kept) == (3, 2)
    assert [(entry.reason, entry.count) for entry in stage.dropped] == [("never started", 1)]


def test_mistakes_are_refused_by_name():
    """The message names the file, the rows and what is wrong with them; nothing is booked."""
    ledger = Ledger("x", ["a.csv"])
    with pytest.raises(TraceFormatError, match=r"a\.csv: 1 of the jobs .*\n  - b: ended before"):
        judge(jobs(("a", 1.0, 2.0), ("b", 9.0, 3.0)), ledger)
    assert not ledger.stages


def test_only_the_first_mistakes_are_named():
    """A thousand mistakes give twenty names and a count."""
    many = jobs(*((f"job{number}", 2.0, 1.0) for number in range(1000)))
    with pytest.raises(TraceFormatError) as caught:
        judge(many, Ledger("x", ["a.csv"]))
    lines = str(caught.value).splitlines()
    assert len(lines) == 22
    assert lines[-1].strip() == "… and 980 more"


def test_mistakes_that_may_be_skipped_are_counted():
    """With leave to skip, bad rows are dropped, and a row counts once."""
    ledger = Ledger("x", ["a.csv"])
    kept = judge(jobs(("a", 1.0, 2.0), ("b", 9.0, 3.0), ("c", None, 1.0)), ledger, skip=True)
    assert kept["name"].to_list() == ["a"]
    (stage,) = ledger.stages
    assert [(entry.reason, entry.count) for entry in stage.dropped] == [
        ("cannot be read: ended before it started", 1),
        ("never started", 1),
    ]
