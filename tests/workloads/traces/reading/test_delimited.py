"""Reading tables of text: the fast way and the slow way say the same."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading import delimited
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Layout, Reason, read_rows
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FIELDS = (
    Field("job", Kind.WHOLE),
    Field("gpus", Kind.COUNT),
    Field("when", Kind.TIME),
    Field("started", Kind.TIME, may_be_blank=True),
    Field("run", Kind.SECONDS, may_be_blank=True),
    Field("who", Kind.TEXT, needed=False),
)
REASONS = (
    Reason("asked for no GPU", pl.col("gpus") == 0),
    Reason("never started", pl.col("started").is_null()),
)
HEADER = "job,gpus,when,started,run,who"
GOOD = "7,2,2020-04-05 10:00:00,2020-04-05 11:00:00,60,ann"


def read(path: Path, text: str | bytes, **options: Any) -> tuple[pl.DataFrame, Ledger]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    ledger = Ledger("mine", [str(path)])
    file = TraceFile(path.name, path)
    return read_rows(
        file, FIELDS, ledger, ImportOptions(**options), reasons=REASONS
    ), ledger  # fmt: skip


def lines(*rows: str) -> str:
    return "\n".join((HEADER, *rows)) + "\n"


CELLS = st.tuples(
    st.sampled_from(["1", "23", "4.0", "x", "", "9" * 30]),
    st.sampled_from(["0", "1", "8", "-2", "8.5", "1e12", ""]),
    st.sampled_from(["2020-04-05 10:00:00", "2020-04-05T10:00:00", "2020-99-05 10:00:00", ""]),
    st.sampled_from(["2020-04-05 11:00:00", "Unknown", "None", "", "soon"]),
    st.sampled_from(["0", "60", "1.5", "-1", "inf", "nan", ""]),
    st.sampled_from(["ann", "", '"a,b"', '"a\nb"', "é", " bob "]),
)
SOUND = st.tuples(
    st.sampled_from(["1", "23", "400"]),
    st.sampled_from(["0", "1", "8"]),
    st.sampled_from(["2020-04-05 10:00:00", "2021-01-01 00:00:01"]),
    st.sampled_from(["2020-04-05 11:00:00", "Unknown", "None", ""]),
    st.sampled_from(["0", "60", "1.5", ""]),
    st.sampled_from(["ann", "", '"a,b"', '"a\nb"', "é", " bob "]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(SOUND, max_size=8))
def test_both_ways_read_sound_files_alike(tmp_path: Path, rows: list[tuple[str, ...]]):
    """What polars reads at once is what Python reads line by line, account and all."""
    text = lines(*(",".join(row) for row in rows))
    frame, ledger = read(tmp_path / "x.csv", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_read_fast", lambda _: None)
        slow, slow_ledger = read(tmp_path / "x.csv", text)
    assert frame.select(slow.columns).equals(slow)
    assert ledger.stages == slow_ledger.stages
    assert ledger.stages[0].read == len(rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(CELLS, max_size=8))
def test_every_row_is_kept_dropped_or_named(tmp_path: Path, rows: list[tuple[str, ...]]):
    """Whatever is in the cells, rows are accounted for, and mistakes are refused by default."""
    text = lines(*(",".join(row) for row in rows))
    frame, ledger = read(tmp_path / "x.csv", text, skip_bad_rows=True)
    (stage,) = ledger.stages
    assert stage.read == len(rows)
    assert stage.kept == len(frame)
    assert frame["when"].null_count() == 0
    assert (frame["gpus"] > 0).all()
    bad = [entry for entry in stage.dropped if entry.reason == "cannot be read"]
    if bad:
        with pytest.raises(TraceFormatError, match=f"{bad[0].count} row.* cannot be read"):
            read(tmp_path / "x.csv", text)
    else:
        assert read(tmp_path / "x.csv", text)[0].equals(frame)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("x,2,2020-04-05 10:00:00,,60,ann", "job is 'x', not a whole number"),
        ("7,-2,2020-04-05 10:00:00,,60,ann", "gpus is '-2', not a whole number from 0"),
        ("7,99999999999999999999,2020-04-05 10:00:00,,60,a", "gpus is '9999"),
        ("7,,2020-04-05 10:00:00,,60,ann", "gpus is empty"),
        ("7,2,yesterday,2020-04-05 11:00:00,60,ann", "when is 'yesterday', not a date and time"),
        ("7,2,0001-04-05 10:00:00,2020-04-05 11:00:00,60,ann", "when is '0001"),
        ("7,2,2020-04-05 10:00:00,2020-04-05 11:00:00,-1,ann", "run is '-1', not seconds from 0"),
        ("7,2,2020-04-05 10:00:00,2020-04-05 11:00:00,1e400,ann", "run is '1e400'"),
        ("7,2,2020-04-05 10:00:00,2020-04", "4 cells, but there are 6 columns"),
        (f"{GOOD},more", "7 cells, but there are 6 columns"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, row: str, complaint: str):
    """A message says which line is wrong, and what in it."""
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path / "x.csv", lines(GOOD, '8,1,2020-04-05 10:00:00,,1,"two\nlines"', row, GOOD))
    assert f"line 5: {complaint}" in str(caught.value)
    assert "1 row cannot be read" in str(caught.value)


def test_text_in_another_encoding_is_named(tmp_path: Path):
    """Bytes that are not UTF-8 are a mistake with a line."""
    content = lines(GOOD, GOOD.replace("ann", "?")).encode().replace(b"?", b"\xe4")
    with pytest.raises(TraceFormatError, match="line 3: not UTF-8 text"):
        read(tmp_path / "x.csv", content)


def test_many_mistakes_are_counted(tmp_path: Path):
    """The first twenty bad rows are named, and the rest counted."""
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path / "x.csv", lines(*["x,1,,,,"] * 250_000))
    message = str(caught.value)
    assert "250,000 rows cannot be read" in message
    assert message.count("  - line") == 20
    assert "… and 249,980 more" in message


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_marks_do_not_matter(tmp_path: Path, end: str, mark: bytes):
    """Files from any system read the same."""
    frame, _ = read(tmp_path / "x.csv", mark + lines(GOOD, GOOD).replace("\n", end).encode())
    assert frame["who"].to_list() == ["ann", "ann"]
    assert frame["job"].to_list() == [7, 7]


def test_order_and_case_of_columns_do_not_matter(tmp_path: Path):
    """Columns are found by name."""
    text = f"WHO,run, Started,when,extra,gpus,job\nann,60,2020-04-05 11:00:00,{GOOD[4:23]},,2,7\n"
    frame, _ = read(tmp_path / "x.csv", text)
    assert frame.select("job", "gpus", "who", "run").row(0) == (7, 2, "ann", 60.0)


def test_blank_last_cells_are_no_short_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows whose last cell is empty are read at once; a row that is too short is still found."""
    blank = GOOD.removesuffix("ann")
    monkeypatch.setattr(delimited, "_read_slowly", None)
    frame, _ = read(tmp_path / "x.csv", lines(GOOD, blank, GOOD))
    assert frame["who"].to_list() == ["ann", None, "ann"]
    monkeypatch.undo()
    with pytest.raises(TraceFormatError, match="line 3: 5 cells"):
        read(tmp_path / "x.csv", lines(GOOD, blank.removesuffix(","), GOOD))


def test_missing_columns(tmp_path: Path):
    """A column that is needed must be there; one that is not is booked as missing."""
    rows = lines(GOOD).replace(",who", "").replace(",ann", "")
    frame, ledger = read(tmp_path / "x.csv", rows)
    assert ledger.missing_columns == ["who"]
    assert frame["who"].to_list() == [None]
    with pytest.raises(TraceFormatError, match=r"no column 'gpus'.*Did you mean 'gpu_s'"):
        read(tmp_path / "x.csv", lines(GOOD).replace("gpus", "gpu_s"))


def test_tables_without_a_header(tmp_path: Path):
    """Names given in order stand for the header that is not there."""
    path = tmp_path / "x.csv"
    path.write_text("5|3\n6|4\n")
    ledger = Ledger("mine", ["x"])
    frame = read_rows(
        TraceFile("x", path),
        (Field("b", Kind.COUNT),),
        ledger,
        ImportOptions(),
        layout=Layout("|", ("a", "b")),
    )
    assert frame["b"].to_list() == [3, 4]


def test_times_in_a_zone_lose_daylight_saving(tmp_path: Path):
    """An hour that the clocks skip is not an hour that passed."""
    night = "7,2,2017-11-05 00:30:00,2017-11-05 03:30:00,60,ann"  # clocks go back at 2:00
    plain, _ = read(tmp_path / "x.csv", lines(night))
    zoned, _ = read(tmp_path / "x.csv", lines(night), time_zone="America/Los_Angeles")
    assert plain["started"][0] - plain["when"][0] == 3 * 3600
    assert zoned["started"][0] - zoned["when"][0] == 4 * 3600
    assert zoned["started"][0] == plain["started"][0]  # winter: as written
