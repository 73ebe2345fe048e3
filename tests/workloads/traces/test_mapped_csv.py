"""Tables of one's own: units, dates, starts and ends, and maps that make no sense."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, TraceFormatError, UnknownNameError
from yardmaster.workloads.traces.column_map import GIB_IN, SECONDS_IN
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

MONDAY = datetime(2024, 3, 4, tzinfo=UTC)
HEADER = "job,gpu_num,when,hours"
MAP = {"id": "job", "gpus": "gpu_num", "submit_s": "when", "duration_s": "hours:h"}
quick = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def imported(path: Path, columns: dict[str, str] | None = None, **options):
    return import_trace([path], "csv", options=ImportOptions(columns=columns or MAP, **options))


@quick
@given(
    submit=st.lists(st.integers(0, 10**6), min_size=1, max_size=8),
    units=st.tuples(*[st.sampled_from(sorted(SECONDS_IN))] * 3),
    memory=st.sampled_from(sorted(GIB_IN)),
    separator=st.sampled_from(",;\t|"),
)
def test_units_are_converted(tmp_path, submit, units, memory, separator):
    """A second is a second whatever unit it is written in, and so is a GiB."""
    rows = [
        (
            at / SECONDS_IN[units[0]],
            120 / SECONDS_IN[units[1]],
            600 / SECONDS_IN[units[2]],
            16 / GIB_IN[memory],
        )
        for at in submit
    ]
    lines = [separator.join(("at", "ran", "limit", "mem"))]
    lines += [separator.join(map(repr, row)) for row in rows]
    columns = {
        "submit_s": f"at:{units[0]}", "duration_s": f"ran:{units[1]}",
        "estimate_s": f"limit:{units[2]}", "memory_gib": f"mem:{memory}",
    }  # fmt: skip
    path = table(tmp_path / "jobs.txt", *lines)
    jobs = imported(path, columns, separator=separator).workload()
    assert jobs.submit_s == pytest.approx(sorted(submit), abs=1e-3)
    assert jobs.duration_s == pytest.approx([120] * len(submit))
    assert jobs.estimate_s == pytest.approx([600] * len(submit))
    assert jobs.memory_gib == pytest.approx([16] * len(submit))
    assert (jobs.gpus == 1).all()


def written(moment: datetime, style: str) -> str:
    """Write an instant (UTC) as people write it; naive styles are on the clock of UTC+2."""
    local = moment.astimezone(timezone(timedelta(hours=2)))
    naive = local.replace(tzinfo=None)
    return {
        "naive": str(naive),
        "naive T": naive.isoformat(),
        "slashes": naive.strftime("%Y/%m/%d %H:%M:%S"),
        "offset": str(local),
        "offset T": local.isoformat(),
        "no colon": local.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "hours": local.strftime("%Y-%m-%d %H:%M:%S+02"),
        "Z": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "UTC": moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
    }[style]


STYLES = ["naive", "naive T", "slashes", "offset", "offset T", "no colon", "hours", "Z", "UTC"]


@pytest.mark.parametrize("style", STYLES)
@quick
@given(offsets=st.lists(st.integers(0, 10**7), min_size=1, max_size=6))
def test_dates_are_read_in_many_styles(tmp_path, style, offsets):
    """The clock begins on the Monday before the first submission; differences are true."""
    moments = [MONDAY + timedelta(seconds=offset) for offset in offsets]
    rows = [f"{n},1,{written(moment, style)},1" for n, moment in enumerate(moments)]
    jobs = imported(table(tmp_path / "own.csv", HEADER, *rows)).workload()
    begins = datetime.fromisoformat(jobs.begins)
    assert (begins.weekday(), begins.hour, begins.minute, begins.second) == (0, 0, 0, 0)
    ahead = timedelta(0) if style in {"Z", "UTC"} else timedelta(hours=2)
    expected = sorted((m + ahead).replace(tzinfo=None) for m in moments)
    found = [begins + timedelta(seconds=second) for second in jobs.submit_s.tolist()]
    assert found == expected
    assert jobs.submit_s[0] < 7 * 86_400


def test_offsets_may_change_with_daylight_saving(tmp_path):
    """All times are put on the clock of the first one, so that differences stay true."""
    path = table(
        tmp_path / "own.csv", HEADER,
        "1,1,2024-03-30 12:00:00+01:00,1", "2,1,2024-03-31 12:00:00+02:00,1",
    )  # fmt: skip
    found = imported(path)
    assert np.diff(found.workload().submit_s).tolist() == [23 * 3600]
    assert found.account.time_zone.startswith("UTC+01:00")


def test_a_time_zone_puts_zoned_dates_and_unix_time_on_its_clock(tmp_path):
    """The user's zone decides the hours of the day, on winter time all year."""
    instant = datetime(2024, 7, 1, 12, tzinfo=UTC)
    for when in (instant.isoformat(), str(int(instant.timestamp()))):
        path = table(tmp_path / "own.csv", HEADER, f"1,1,{when},1")
        found = imported(path, time_zone="Europe/Berlin")
        begins = datetime.fromisoformat(found.account.begins)
        local = begins + timedelta(seconds=float(found.frame["submit_s"][0]))
        assert local == datetime(2024, 7, 1, 13)  # noqa: DTZ001  (the workload's local clock)
        assert found.account.time_zone == "Europe/Berlin, on winter time all year"


def test_numbers_after_1990_are_unix_time(tmp_path):
    """Milliseconds since 1970 become dates; small numbers stay seconds from the trace's start."""
    path = table(tmp_path / "own.csv", HEADER, "1,1,1700000000000,1")
    found = imported(path, {**MAP, "submit_s": "when:ms"})
    assert found.account.begins == "2023-11-13T00:00:00"  # 1.7e9 s is Tuesday 2023-11-14 22:13:20
    assert found.workload().submit_s.tolist() == [86_400 + 22 * 3600 + 13 * 60 + 20]
    assert any("Unix time" in remark for remark in found.account.remarks)
    small = imported(table(path, HEADER, "1,1,17,1"))
    assert (small.account.begins, small.workload().submit_s.tolist()) == ("", [17])


OWN = "job,gpus,submit,start,end,status"


def test_run_times_and_waits_come_from_starts_and_ends(tmp_path):
    """Jobs that never started are dropped, those without an end ran until the log's last moment."""
    path = table(
        tmp_path / "own.csv", OWN,
        "a,1,2024-03-04 00:00:00,2024-03-04 00:01:00,2024-03-04 01:00:00,COMPLETED",
        "b,1,2024-03-04 00:00:00,2024-03-04 00:30:00,,RUNNING",
        "c,1,2024-03-04 00:00:00,None,None,CANCELLED",
        "d,1,2024-03-04 00:10:00,2024-03-04 00:00:00,2024-03-04 00:20:00,FAILED",
        "e,1,2024-03-04 00:00:00,,,PENDING",
    )  # fmt: skip
    found = imported(path, {"id": "job"})
    jobs = found.workload()
    assert jobs.id.tolist() == ["a", "b", "d"]
    assert jobs.duration_s.tolist() == [59 * 60, 30 * 60, 20 * 60]
    np.testing.assert_array_equal(jobs.recorded_wait_s, [60, 1800, np.nan])
    assert jobs.status.values() == ["completed", "running", "failed"]
    rows, kept = found.account.stages
    assert [(entry.reason, entry.count) for entry in rows.dropped] == [
        ("had not started when the log was written", 1)
    ]
    assert [(entry.reason, entry.count) for entry in kept.dropped] == [("never started", 1)]
    assert list(found.account.censored.values()) == [1]
    assert found.account.changed == {"started before they were submitted: their wait is unknown": 1}


@pytest.mark.parametrize(
    "moments", [("2024-03-04 00:00:00", "2024-03-04 02:00:00", "2024-03-04 01:00:00"), (0, 20, 10)]
)
def test_an_end_before_the_start_is_a_mistake(tmp_path, moments):
    """The line is named; with --skip-bad-rows it is dropped and counted."""
    submit, start, end = moments
    path = table(
        tmp_path / "own.csv", OWN,
        f"a,1,{submit},{submit},{start},FAILED", f"b,1,{submit},{start},{end},FAILED",
    )  # fmt: skip
    with pytest.raises(TraceFormatError, match=r"1 row cannot be read.*\n.*line 3: end is"):
        imported(path, {"id": "job"})
    found = imported(path, {"id": "job"}, skip_bad_rows=True)
    assert found.workload().id.tolist() == ["a"]
    assert found.account.stages[0].dropped[0].examples == ("line 3",)


def test_gpus_may_be_fractions(tmp_path):
    """Part of one GPU is a share of it, other fractions are rounded up, 0 is dropped."""
    rows = [f"{n},{gpus},{n},1" for n, gpus in enumerate([1, 0.5, 1.5, 0, 8, 0.0004])]
    found = imported(table(tmp_path / "own.csv", HEADER, *rows))
    jobs = found.workload()
    assert jobs.gpus.tolist() == [1, 1, 2, 8, 1]
    assert jobs.milli_gpu.tolist() == [1000, 500, 1000, 1000, 1]
    assert list(found.account.changed.values()) == [1]
    assert [entry.count for entry in found.account.stages[0].dropped] == [1]


def test_cores_become_slots_on_request(tmp_path):
    """Jobs without GPUs take one slot per so many cores; those without cores are dropped."""
    path = table(tmp_path / "own.csv", "submit,duration,gpus,cpus", "0,5,2,8", "1,5,0,9", "2,5,0,0")
    assert imported(path, {"id": "cpus"}).workload().gpus.tolist() == [2]
    found = imported(path, {"cpus": "cpus"}, slot_cores=4)
    assert found.workload().gpus.tolist() == [2, 3]
    assert found.account.stages[-1].dropped[0].count == 1
    without = table(tmp_path / "less.csv", "submit,duration,gpus", "0,5,2")
    with pytest.raises(InvalidWorkloadError, match="no column has cores"):
        imported(without, {"submit_s": "submit"}, slot_cores=4)


def test_every_canonical_column_is_read_without_a_map(tmp_path):
    """Columns with our names need no map, blanks take the defaults, and the rest is named."""
    path = table(
        tmp_path / "own.csv",
        "id,submit_s,duration_s,estimate_s,gpus,milli_gpu,gpu_types,max_gpus_per_node,min_gpus,"
        "max_gpus,gpu_memory_gib,cpus,memory_gib,tenant,user,priority,deadline_s,kind,status,"
        "recorded_wait_s,mood",
        "7,5,60,90,1,250,A100|V100,1,1,2,40,3,64,vc,ann,2.5,99,bert,Killed,4,gay",
        "9,6,60,0,4,,,,,,,,,,,,,,,,sad",
    )
    found = import_trace([path])
    assert found.account.format == "csv"
    jobs = found.workload()
    assert (jobs.id.tolist(), jobs.gpus.tolist()) == ([7, 9], [1, 4])
    assert jobs.milli_gpu.tolist() == [250, 1000]
    np.testing.assert_array_equal(jobs.estimate_s, [90, np.nan])
    assert jobs.gpu_types.values() == ["A100|V100", None]
    assert (jobs.max_gpus_per_node[0], jobs.min_gpus[0], jobs.max_gpus[0]) == (1, 1, 2)
    assert (jobs.gpu_memory_gib[0], jobs.cpus[0], jobs.memory_gib[0]) == (40, 3, 64)
    assert (jobs.tenant.values()[0], jobs.user.values()[0]) == ("vc", "ann")
    assert jobs.priority.tolist() == [2.5, 0]
    assert (jobs.deadline_s[0], jobs.kind.values()[0]) == (99, "bert")
    assert (jobs.status.values()[0], jobs.recorded_wait_s[0]) == ("cancelled", 4)
    assert "columns not used: mood" in found.account.remarks


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"gpu": "gpu_num"}, UnknownNameError, "'gpu'. Did you mean 'gpus'"),
        ({"gpus": "gpu_nums"}, TraceFormatError, "no column 'gpu_nums'. Did you mean 'gpu_num'"),
        ({"duration_s": "hours:hours"}, InvalidWorkloadError, "no unit 'hours'.*Units: s, ms"),
        ({"gpus": "gpu_num:gib"}, InvalidWorkloadError, "no unit 'gib' here. gpus has no unit"),
        ({"memory_gib": "job:h"}, InvalidWorkloadError, "no unit 'h'.*Units: gib"),
        ({"submit_s": "when"}, TraceFormatError, "no column for duration_s"),
        ({"gpus": "gpu_num"}, TraceFormatError, "no column for submit_s and duration_s"),
        ({**MAP, "user": "job"}, InvalidWorkloadError, "mapped more than once: job"),
        ({**MAP, "end_s": "hours", "start_s": "job"}, InvalidWorkloadError, "more than once"),
    ],
)
def test_maps_that_make_no_sense_are_refused(tmp_path, columns, error, message):
    """The message names what is wrong and what there is instead."""
    path = table(tmp_path / "own.csv", HEADER, "1,1,5,1")
    with pytest.raises(error, match=message):
        imported(path, columns)


def test_jobs_without_a_name_are_numbered(tmp_path):
    """A blank id does not stop an import: all jobs are numbered instead, which is said."""
    found = imported(table(tmp_path / "own.csv", HEADER, "a,1,5,1", " ,1,6,1", "a,1,7,1"))
    assert found.workload().id.tolist() == [0, 1, 2]
    assert any("numbered from 0" in remark for remark in found.account.remarks)


def test_columns_may_have_odd_names(tmp_path):
    """Names may hold colons, blanks and capitals; a unit is what follows the last colon."""
    path = table(tmp_path / "own.csv", "t:ms,Run Time,n", "5000,60,2")
    jobs = imported(path, {"submit_s": "t:ms:ms", "duration_s": "run time", "gpus": "N"}).workload()
    assert (jobs.submit_s[0], jobs.duration_s[0], jobs.gpus[0]) == (5, 60, 2)
    jobs = imported(path, {"submit_s": "T:ms", "duration_s": "Run Time", "gpus": "n"}).workload()
    assert jobs.submit_s[0] == 5000


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("9,1,-5,1", "line 3: when is '-5'"),
        ("9,-1,5,1", "line 3: gpu_num is '-1'"),
        ("9,1,5,1e400", "line 3: hours is '1e400'"),
        ("9,1,5,many", "line 3: hours is 'many'"),
        ("9,,5,1", "line 3: gpu_num is empty"),
        ("9,1,,1", "line 3: when is empty"),
        ("9,1,2024-01-01 00:00:00,1", "line 3: when is '2024-01-01 00:00:00'"),
        ("9,1,5", "line 3: 3 cells, but there are 4 columns"),
        ('"9\n9",1,x,1', "line 3: when is 'x'"),
        ("9,99999999999999999999,5,1", "line 3: gpu_num is"),
        ("9,1,1e13,1", "line 3: when is '1e13'"),
    ],
)
def test_bad_rows_are_named_or_skipped(tmp_path, row, message):
    """Nonsense is refused with its line; with --skip-bad-rows it is dropped and counted."""
    path = table(tmp_path / "own.csv", HEADER, "1,1,5,1", row, "2,1,6,1", "3,1,7,1")
    with pytest.raises(TraceFormatError, match=message):
        imported(path)
    found = imported(path, skip_bad_rows=True)
    stage = found.account.stages[0]
    assert (stage.read, stage.kept, found.account.jobs) == (4, 3, 3)


def test_rows_that_contradict_themselves_are_mistakes(tmp_path):
    """Shares of several GPUs and elastic bounds on the wrong side are refused."""
    header = "submit,duration,gpus,milli_gpu,min_gpus,max_gpus"
    good = ["0,1,1,500,,", "0,1,4,1000,2,8", "0,1,4,,0,0"]
    for bad in ("0,1,2,500,,", "0,1,4,,5,", "0,1,4,,,3", "0,1,1,1500,,", "0,1,1,0,,"):
        path = table(tmp_path / "own.csv", header, *good, bad)
        with pytest.raises(TraceFormatError, match="line 5"):
            import_trace([path], "csv")
        assert (
            len(import_trace([path], "csv", options=ImportOptions(skip_bad_rows=True)).workload())
            == 3
        )


def test_two_kinds_of_clock_are_refused(tmp_path):
    """Submissions in seconds and starts as dates cannot be put together."""
    path = table(tmp_path / "own.csv", OWN, "a,1,5,2024-03-04 00:00:00,2024-03-04 00:00:10,FAILED")
    with pytest.raises(TraceFormatError, match="submit has numbers, start has dates"):
        imported(path, {"id": "job"})


def test_dates_have_no_unit(tmp_path):
    """Milliseconds of a date make no sense."""
    path = table(tmp_path / "own.csv", HEADER, "1,1,2024-01-01 00:00:00,1")
    with pytest.raises(TraceFormatError, match="when has dates, which are not in ms"):
        imported(path, {**MAP, "submit_s": "when:ms"})


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"just words\n", b"\n\n"])
def test_files_that_are_no_tables_are_refused(tmp_path, content):
    """Empty and foreign files give a clear message, whatever the map says."""
    path = tmp_path / "own.csv"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=r"own\.csv"):
        imported(path)


def test_marks_line_ends_and_comments_of_any_system(tmp_path):
    """A byte-order mark, CRLF and comment lines above the header make no difference."""
    path = tmp_path / "own.csv"
    path.write_bytes(b"\xef\xbb\xbf# made by hand\r\n" + HEADER.encode() + b"\r\n1,2,5,1\r\n")
    jobs = imported(path).workload()
    assert (jobs.submit_s[0], jobs.gpus[0], jobs.duration_s[0]) == (5, 2, 3600)


def test_several_files_are_parts_of_one_table(tmp_path):
    """Parts on one clock are put together, each with its stage; clocks that differ are refused."""
    one = table(tmp_path / "one.csv", HEADER, "1,1,50,1")
    two = table(tmp_path / "two.csv", HEADER, "2,1,5,1")
    options = ImportOptions(columns=MAP)
    found = import_trace([one, two], "csv", options=options)
    assert found.workload().id.tolist() == [2, 1]
    assert [stage.kept for stage in found.account.stages] == [1, 1]
    table(two, HEADER, "2,1,2024-01-01 00:00:00,1")
    with pytest.raises(InvalidWorkloadError, match="clocks differ"):
        import_trace([one, two], "csv", options=options)
