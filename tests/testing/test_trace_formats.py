"""The suite for trace formats: it passes a good one, and every rule can be broken."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from yardmaster.errors import ConformanceError, InvalidWorkloadError
from yardmaster.testing import check_trace_format
from yardmaster.testing.trace_formats import FOREIGN, judge_trace_format
from yardmaster.workloads.traces.formats import TraceFormat, trace_formats
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FIELDS = (Field("who", Kind.TEXT), Field("at", Kind.SECONDS), Field("n", Kind.COUNT))


def recognises(file):
    return file.has_columns("who", "at", "n")


def draft_of(rows: pl.DataFrame, ledger) -> Draft:
    frame = rows.select(id="who", submit_s="at", duration_s=pl.lit(60.0), gpus="n")
    return Draft(frame, ledger, dated=False)


def read(files, options, ledger):
    rows = pl.concat([read_rows(one, FIELDS, ledger, options) for one in files])
    return draft_of(rows, ledger)


GOOD = TraceFormat("mine", "mine.csv", "a test", recognises, read)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text("who,at,n\na,0,1\nb,5,2\nc,9,4\n")
    return path


def plain_rows(files) -> list[list[str]]:
    return [line.split(",") for line in files[0].path.read_text().splitlines()[1:]]


def frame_of(rows: list[list[str]]) -> pl.DataFrame:
    numbers = [[r[0], float(r[1]), int(r[2])] for r in rows]
    return pl.DataFrame(numbers, schema=["who", "at", "n"], orient="row")


def loses_rows(files, options, ledger):
    """Book three rows and return fewer."""
    rows = pl.concat([read_rows(one, FIELDS, ledger, options) for one in files])
    draft = draft_of(rows.head(2), ledger)
    ledger.stage("jobs", 3, 3)
    return draft


def counting() -> Callable[..., Draft]:
    """Return a reader that moves submissions a little further with every call."""
    calls = iter(range(1000))

    def reader(files, options, ledger):
        rows = pl.concat([read_rows(one, FIELDS, ledger, options) for one in files])
        return draft_of(rows.with_columns(pl.col("n") + next(calls)), ledger)

    return reader


def forgives(files, _options, ledger):
    """Take what cannot be read for a job of one GPU."""
    rows = [r if r[1] != "?!" else ["x", "99", "1"] for r in plain_rows(files)]
    ledger.stage("rows", len(rows), len(rows))
    return draft_of(frame_of(rows), ledger)


def stumbles(files, _options, ledger):
    """Trip over bad rows without a word about the line."""
    rows = plain_rows(files)
    ledger.stage("rows", len(rows), len(rows))
    return draft_of(frame_of(rows), ledger)


def invents(files, options, ledger):
    """Return a job where there is none."""
    if len(files[0].path.read_text().splitlines()) > 1:
        return read(files, options, ledger)
    ledger.stage("rows", 1, 1)
    return draft_of(frame_of([["ghost", "0", "1"]]), ledger)


def negative(files, options, ledger):
    """Return jobs that take less than no time."""
    draft = read(files, options, ledger)
    return Draft(draft.frame.with_columns(duration_s=pl.lit(-5.0)), ledger, dated=False)


BROKEN = {
    "recognises its own file": {"recognises": lambda _: False},
    "does not recognise the files of others": {"recognises": lambda _: True},
    "reads its file into valid jobs": {"read": negative},
    "accounts for every row": {"read": loses_rows},
    "reads the same twice": {"read": counting()},
    "refuses a bad row and names its line": {"read": stumbles},
    "skips and counts bad rows if it may": {"read": forgives},
    "refuses a table without rows in words": {"read": invents},
}


def test_a_good_format_conforms(sample: Path):
    """One that reads with our own tools keeps every rule."""
    found = judge_trace_format(GOOD, [sample])
    assert [one.state for one in found.verdicts] == ["kept"] * len(BROKEN)
    check_trace_format(GOOD, [sample])


@pytest.mark.parametrize("rule", BROKEN)
def test_every_rule_can_be_broken(rule: str, sample: Path):
    """Each rule is broken by a format made for it, and the error names the rule."""
    bad = replace(GOOD, **BROKEN[rule])
    found = {one.rule: one for one in judge_trace_format(bad, [sample]).verdicts}
    assert found[rule].state == "broken"
    assert found[rule].reason
    with pytest.raises(ConformanceError, match="trace format 'mine' breaks a rule"):
        check_trace_format(bad, [sample])


def test_every_rule_is_listed(sample: Path):
    """No rule is without a format that breaks it."""
    found = judge_trace_format(GOOD, [sample])
    assert {one.rule for one in found.verdicts} == set(BROKEN)


def test_samples_are_needed(tmp_path: Path):
    """Without a sample there is nothing to judge by, and that is said."""
    with pytest.raises(InvalidWorkloadError, match="--sample FILE"):
        judge_trace_format(GOOD, [])
    with pytest.raises(InvalidWorkloadError, match=r"missing\.csv"):
        judge_trace_format(GOOD, [tmp_path / "missing.csv"])


def test_rules_on_lines_leave_other_files_untried(sample: Path):
    """A sample that is packed cannot be damaged line by line; all else is tried."""
    packed = sample.with_name("mine.csv.gz")
    packed.write_bytes(gzip.compress(sample.read_bytes()))
    states = [one.state for one in judge_trace_format(GOOD, [packed]).verdicts]
    assert states == ["kept"] * 5 + ["not tried"] * 3


@pytest.mark.parametrize("name", ["helios", "swf", "slurm"])
def test_files_of_others_are_real(name: str, tmp_path: Path):
    """What is held against a format as another's file is recognised by that other format."""
    file, content = FOREIGN[name]
    path = tmp_path / file
    path.write_bytes(content)
    assert trace_formats()[name].recognises(TraceFile(file, path))


@pytest.mark.parametrize("name", list(trace_formats()))
def test_formats_that_come_along_leave_other_files_alone(name: str, tmp_path: Path):
    """None of them takes a file of no format for its own."""
    entry = trace_formats()[name]
    for owner in ("", "nothing", "prose", "records", "bytes"):
        file, content = FOREIGN[owner]
        path = tmp_path / file
        path.write_bytes(content)
        assert not entry.recognises(TraceFile(file, path))
