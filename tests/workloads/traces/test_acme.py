"""Acme's logs: run times from the written times, whatever zone they are written in."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces import acme
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

SEREN = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,"
    "gpu_time"
)
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time"
)
# The two example rows of the publisher's description of each table, values as published.
SEREN_ROWS = (
    (
        "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
        "2023-03-01 00:20:51+08:00,117,32,936.0"
    ),
    (
        "5778469,u5907,1,8,128,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,"
        "2023-03-01 01:09:04+08:00,2693,13,21544.0"
    ),
)
KALOS_ROWS = (
    (
        "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
        "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,"
        "1152.0"
    ),
    (
        "dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Other,CANCELLED,2023-05-17 11:28:42+00:00,"
        "2023-05-17 11:28:54+00:00,2023-05-17 11:30:04+00:00,,2023-05-17 11:30:04+00:00,82,12.0,"
        "5248.0"
    ),
)


def imported(folder: Path, header: str, *rows: str, name="trace_seren.csv", **options):
    path = folder / name
    path.write_bytes("\n".join([header, *rows, ""]).encode())
    return import_trace([path], options=ImportOptions(**options))


def test_serens_published_rows(tmp_path):
    """Whole-number ids, Chinese local time, run times end − start."""
    trace = imported(tmp_path, SEREN, *SEREN_ROWS)
    assert trace.account.format == "acme"
    assert trace.account.time_zone.startswith("UTC+08:00")
    assert trace.account.begins == "2023-02-27T00:00:00"
    assert trace.account.missing_columns == ()
    first = trace.frame.row(0, named=True)
    assert (first["id"], first["duration_s"], first["recorded_wait_s"]) == (5778432, 117.0, 32.0)
    assert first["submit_s"] == 2 * 86_400 + 18 * 60 + 22  # Wednesday, 00:18:22 local
    assert (first["gpus"], first["cpus"], first["kind"]) == (8, 128.0, "Other")
    assert trace.frame["status"].to_list() == ["failed", "completed"]


def test_kalos_published_rows(tmp_path):
    """`duration` counts from the submission there, so it is not believed."""
    trace = imported(tmp_path, KALOS, *KALOS_ROWS, name="trace_kalos.csv")
    assert trace.frame["id"].to_list() == ["dlctk696s0jbvitv", "dlc1t2ypl09b8qtp"]
    assert trace.frame["duration_s"].to_list() == [8.0, 70.0]
    assert trace.frame["recorded_wait_s"].to_list() == [10.0, 12.0]
    assert trace.frame["memory_gib"].to_list() == [8000.0, 8000.0]
    assert trace.account.time_zone.startswith("UTC+00:00")
    assert len(trace.workload()) == 2


MOMENTS = st.integers(0, 100 * 86_400)
ZONES = st.sampled_from([0, 8, -3.5])


def in_zone(second: int, hours: float) -> str:
    zone = timezone(timedelta(hours=hours))
    return (
        (datetime(2023, 3, 1, tzinfo=UTC) + timedelta(seconds=second))
        .astimezone(zone)
        .isoformat(" ")
    )


@st.composite
def tables(draw):
    """Draw rows of Kalos's table whose zones change from cell to cell, and what they say."""
    rows, truth = [], []
    for number in range(draw(st.integers(1, 12))):
        submit, start, end = sorted(draw(st.lists(MOMENTS, min_size=3, max_size=3)))
        gpus = draw(st.sampled_from([0, 1, 8, 64]))
        started = draw(st.integers(0, 4)) > 0
        ended = started and draw(st.integers(0, 4)) > 0
        cells = [
            in_zone(submit, draw(ZONES)),
            in_zone(start, draw(ZONES)) if started else "",
            in_zone(end, draw(ZONES)) if ended else "",
        ]
        queue = float(start - submit) if started else ""
        rows.append(
            [f"dlc{number}", "uf7", 2, gpus, 96, 1000, 100.0, "Other", "FAILED", *cells, "", "",
             end - submit if ended else "", queue, ""]
        )  # fmt: skip
        truth.append((number, submit, start, end if ended else None, gpus, started))
    return rows, truth


@settings(max_examples=60, deadline=None)
@given(table=tables(), clock=ZONES)
def test_zones_may_change_from_cell_to_cell(tmp_path_factory, table, clock):
    """Run times and waits are true differences; submissions are on the clock written first."""
    rows, truth = table
    # The first row sets the clock; it is a job that surely stays.
    first = ["dlc-first", "uf7", 1, 1, 8, 10, 1.0, "Other", "COMPLETED",
             *(in_zone(second, clock) for second in (0, 5, 9)), "", "", 9, 5.0, ""]  # fmt: skip
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([KALOS.split(","), first, *rows])
    folder = tmp_path_factory.mktemp("acme")
    (folder / "trace_kalos.csv").write_text(stream.getvalue(), encoding="utf-8")
    trace = import_trace([folder / "trace_kalos.csv"])

    started = [entry for entry in truth if entry[5]]
    latest = max([9, *(max(entry[2], entry[3] or 0) for entry in started)])
    zero = datetime.fromisoformat(trace.account.begins).replace(tzinfo=UTC)
    shift = (datetime(2023, 3, 1, tzinfo=UTC) + timedelta(hours=clock) - zero).total_seconds()
    want = {
        f"dlc{number}": (
            submit + shift, (latest if end is None else end) - start, float(start - submit), gpus
        )
        for number, submit, start, end, gpus, _ in started
        if gpus
    } | {"dlc-first": (shift, 4.0, 5.0, 1)}  # fmt: skip
    got = {
        row["id"]: (row["submit_s"], row["duration_s"], row["recorded_wait_s"], row["gpus"])
        for row in trace.frame.iter_rows(named=True)
    }
    assert got == want
    assert 0 <= min(entry[0] for entry in want.values()) < 7 * 86_400
    table_stage, jobs = trace.account.stages
    assert (table_stage.read, jobs.kept) == (len(rows) + 1, len(want))
    running = sum(end is None and gpus > 0 for _, _, _, end, gpus, _ in started)
    assert sum(trace.account.censored.values()) == running


def test_jobs_that_are_no_gpu_jobs_or_never_started(tmp_path):
    """Each is dropped for its own reason; cores become slots if the user says how many."""
    cpu = SEREN_ROWS[0].replace("5778432,u5907,1,8,", "2,u5907,1,0,")
    waiting = SEREN_ROWS[0].replace("5778432", "3").replace("2023-03-01 00:18:54+08:00", "")
    backwards = SEREN_ROWS[0].replace("5778432", "4").replace("00:20:51", "00:18:50")
    rows = (*SEREN_ROWS, cpu, waiting, backwards)
    account = imported(tmp_path, SEREN, *rows).account
    dropped = {entry.reason: entry.count for stage in account.stages for entry in stage.dropped}
    assert dropped == {
        "never started": 1,
        "asked for no GPU (CPU job)": 1,
        "ended before it started": 1,
    }
    slots = imported(tmp_path, SEREN, *rows, slot_cores=30)
    assert {row["id"]: row["gpus"] for row in slots.frame.iter_rows(named=True)}[2] == 5


def test_the_users_zone_is_the_clock(tmp_path):
    """Kalos writes UTC; with Shanghai's zone, hours of the day are local ones."""
    trace = imported(tmp_path, KALOS, *KALOS_ROWS, time_zone="Asia/Shanghai")
    assert trace.frame["submit_s"][0] % 86_400 == (11 + 8) * 3600 + 58
    assert trace.frame["duration_s"].to_list() == [8.0, 70.0]


def test_times_without_a_zone_are_local(tmp_path):
    """Some copies have lost their zones; their clock is taken as it is."""
    bare = [row.replace("+08:00", "") for row in SEREN_ROWS]
    trace = imported(tmp_path, SEREN, *bare)
    assert trace.frame.equals(imported(tmp_path, SEREN, *SEREN_ROWS).frame)
    assert "no zone" in trace.account.time_zone


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",8,128,", ",-8,128,", r"gpu_num is '-8'"),
        (",8,128,", ",8,lots,", r"cpu_num is 'lots'"),
        (",8,128,", ",99999999999999999999,128,", r"gpu_num is '9999"),
        ("2023-03-01 00:18:22+08:00", "2023-03-01", r"submit_time is '2023-03-01'"),
        ("2023-03-01 00:18:22+08:00", "", r"submit_time is empty"),
        ("2023-03-01 00:18:54+08:00", "1023-03-01 00:18:54+08:00", r"start_time is '1023"),
        ("2023-03-01 00:20:51+08:00", "soon", r"end_time is 'soon'"),
        (",117,32,936.0", ",117", r"11 cells"),
        (",117,32,936.0", ",117,32,936.0,1,2", r"15 cells"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, old, new, message):
    """Nonsense in the second row is line 3 of the file; if allowed, only that row is lost."""
    bad = SEREN_ROWS[0].replace("5778432", "9").replace(old, new)
    rows = (SEREN_ROWS[0], bad, SEREN_ROWS[1])
    with pytest.raises(TraceFormatError, match=f"line 3: .*{message}"):
        imported(tmp_path, SEREN, *rows)
    account = imported(tmp_path, SEREN, *rows, skip_bad_rows=True).account
    assert (account.stages[0].read, account.jobs) == (3, 2)


def test_layout_does_not_matter(tmp_path):
    """Byte-order mark, CRLF and columns in another order give the same jobs."""
    want = imported(tmp_path, SEREN, *SEREN_ROWS).frame
    cells = [line.split(",") for line in (SEREN, *SEREN_ROWS)]
    turned = "\r\n".join(",".join(reversed(row)) for row in cells) + "\r\n"
    path = tmp_path / "turned.csv"
    path.write_bytes(b"\xef\xbb\xbf" + turned.encode())
    assert import_trace([path]).frame.equals(want)


def test_both_clusters_share_one_clock(tmp_path):
    """Two files given together are one workload on the first file's clock, in true order."""
    seren, kalos = tmp_path / "trace_seren.csv", tmp_path / "trace_kalos.csv"
    seren.write_text("\n".join([SEREN, *SEREN_ROWS]), encoding="utf-8")
    kalos.write_text("\n".join([KALOS, *KALOS_ROWS]), encoding="utf-8")
    trace = import_trace([seren, kalos])
    apart = datetime(2023, 5, 17, 11, 0, 58, tzinfo=UTC) - datetime(
        2023, 2, 28, 16, 18, 22, tzinfo=UTC
    )
    submits = trace.frame["submit_s"].to_list()
    assert submits[2] - submits[0] == apart.total_seconds()


def test_only_acmes_tables_are_taken(tmp_path):
    """Helios's log has most of the same columns, but virtual clusters and no types."""
    for header, known in (
        (SEREN, True),
        (KALOS, True),
        (HELIOS, False),
        ("job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user", False),
    ):
        path = tmp_path / "table.csv"
        path.write_text(header + "\n", encoding="utf-8")
        assert acme.recognises(TraceFile(str(path), path)) is known
