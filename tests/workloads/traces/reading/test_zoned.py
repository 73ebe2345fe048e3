"""Times with zones: whatever the zone, the moment is the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.workloads.traces.reading.cells import Kind
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.reading.zoned import ZonedField, first_offset_s, offset_in_words

QUARTERS = st.integers(-48, 56).map(lambda quarters: quarters * 900)


def seconds(text: str, *, clock_s: float, all_formats: bool) -> float | None:
    field = ZonedField("when", Kind.TIME, clock_s=clock_s)
    frame = pl.DataFrame({"when": [text]})
    return frame.select(field.times(ImportOptions(), all_formats=all_formats)).item()


@given(
    moment=st.integers(10**15, 4 * 10**15),
    zone_s=QUARTERS,
    clock_s=QUARTERS,
)
def test_the_moment_counts_not_the_zone(moment, zone_s, clock_s):
    """A time in any zone, with or without parts of a second, is put on the clock."""
    aware = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)
    local = aware.astimezone(timezone(timedelta(seconds=zone_s)))
    want = aware.timestamp() + clock_s
    for text in (local.isoformat(" "), local.isoformat("T")):
        assert seconds(text, clock_s=clock_s, all_formats=True) == pytest.approx(want, abs=1e-5)
    whole = local.replace(microsecond=0)
    usual = seconds(whole.isoformat(" "), clock_s=clock_s, all_formats=False)
    assert usual == whole.timestamp() + clock_s


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1970-01-02T00:00:00Z", 86_400.0 + 3600.0),
        ("1970-01-02 00:00:00", 86_400.0),
        ("1970-01-02 00:00:00 sharp", None),
        ("3970-01-02 00:00:00+00:00", None),
        ("", None),
    ],
)
def test_odd_ways_to_write_a_time(text, want):
    """`Z` is a zone, a time without one is on the clock already, and nonsense is not a time."""
    assert seconds(text, clock_s=3600.0, all_formats=True) == want


@given(offset_s=QUARTERS)
def test_the_first_offset_of_a_file_is_found(tmp_path_factory, offset_s):
    """The clock is that of the first time in the file, and its name reads like it."""
    moment = datetime(2023, 3, 1, tzinfo=timezone(timedelta(seconds=offset_s)))
    path = tmp_path_factory.mktemp("zoned") / "table.csv"
    later = moment.replace(tzinfo=timezone(timedelta(hours=1)))
    path.write_text(f"id,when-there\n1-2,{moment}\n3,{later}\n", encoding="utf-8")
    assert first_offset_s(TraceFile("table.csv", path)) == offset_s
    assert moment.isoformat().endswith(offset_in_words(offset_s))


def test_a_file_without_zones_has_no_offset(tmp_path):
    """Dates and times alone do not look like zones."""
    path = tmp_path / "table.csv"
    path.write_text("id,when\n1,2023-03-01 10:00:00\n", encoding="utf-8")
    assert first_offset_s(TraceFile("table.csv", path)) is None
