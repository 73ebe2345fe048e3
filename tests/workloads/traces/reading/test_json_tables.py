"""JSON read as a table: the quick and the careful way agree."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason
from yardmaster.workloads.traces.reading.json_tables import read_json_rows
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FIELDS = (
    Field("number", Kind.WHOLE),
    Field("share.cpus", Kind.AMOUNT, needed=False, may_be_blank=True),
    Field("name", Kind.TEXT, needed=False),
)
ODD = (Reason("is odd", pl.col("number") % 2 == 1),)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=6
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"number": st.integers(-(2**62), 2**62) | st.integers(0, 99).map(str)},
        optional={
            "share": st.fixed_dictionaries(
                {}, optional={"cpus": st.none() | st.floats(0, 1e6), "more": st.just([1])}
            ),
            "name": st.none() | NAMES,
            "other": st.just({"deep": [1, {"er": None}]}),
        },
    ),
    min_size=1,
    max_size=8,
)


def read(folder: Path, text: str, **options) -> tuple[pl.DataFrame, Ledger]:
    path = folder / "some.json"
    path.write_text(text, encoding="utf-8")
    ledger = Ledger("test", [])
    file = TraceFile(str(path), path)
    return read_json_rows(file, FIELDS, ledger, ImportOptions(**options), reasons=ODD), ledger


@settings(max_examples=60, deadline=None)
@given(made=RECORDS)
def test_lines_and_arrays_give_the_same_rows(tmp_path_factory, made):
    """Sound lines go the quick way, arrays the careful one; both give what the records say."""
    folder = tmp_path_factory.mktemp("json")
    by_line, booked = read(folder, "".join(json.dumps(record) + "\n" for record in made))
    by_record, booked_too = read(folder, json.dumps(made))
    want = [
        (
            int(record["number"]),
            record.get("share", {}).get("cpus"),
            " ".join((record.get("name") or "").split()) or None,
        )
        for record in made
        if int(record["number"]) % 2 == 0
    ]
    for frame in (by_line, by_record):
        got = [
            (number, cpus, " ".join(name.split()) if name else None)
            for number, cpus, name in frame.select("number", "share.cpus", "name").iter_rows()
        ]
        assert [(n, name) for n, _, name in got] == [(n, name) for n, _, name in want]
        assert [c for _, c, _ in got] == pytest.approx([c for _, c, _ in want], nan_ok=True)
    assert booked.stages[0].read == booked_too.stages[0].read == len(made)


def test_a_key_that_no_record_has_is_missing(tmp_path):
    """The account names optional keys that are nowhere in the file."""
    _, ledger = read(tmp_path, '{"number": 2, "name": "x"}\n')
    assert ledger.missing_columns == ["share.cpus"]


def test_nothing_readable_is_refused(tmp_path):
    """If every line is damaged, skipping them leaves nothing to read."""
    with pytest.raises(TraceFormatError, match="no record that can be read"):
        read(tmp_path, "{x\n{y\n", skip_bad_rows=True)


@pytest.mark.parametrize("form", ["%s\n", "[%s]"])
def test_half_a_letter_does_no_harm(tmp_path, form):
    """JSON can write half a letter; the record is read all the same, either way."""
    frame, _ = read(tmp_path, form % '{"number": 4, "name": "a\\ud800"}')
    assert frame["number"].to_list() == [4]
    assert frame["name"][0].startswith("a")
