"""Exports of the accounting database: MIT's published sample, and `mysql --batch`."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.draft import ImportedTrace
from yardmaster.workloads.traces.reading.options import ImportOptions

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
MIT = SHARED / "mit_supercloud" / "slurm-log-first1000.csv"
NEEDS_MIT = pytest.mark.skipif(not MIT.exists(), reason="needs ../shared/traces/mit_supercloud")
STATES = {"3": "completed", "4": "cancelled", "5": "failed", "6": "timeout", "7": "node failure"}
ROW = {
    "id_job": "16051200000000.0", "id_array_job": "0", "id_array_task": "4294967294",
    "id_user": "42770100000000.0", "nodelist": "['r1-n1', 'r1-n2']", "nodes_alloc": "2.0",
    "cpus_req": "20", "partition": "normal", "priority": "10239", "state": "3",
    "timelimit": "1440", "time_submit": "1609535912", "time_eligible": "1609535912",
    "time_start": "1609535922", "time_end": "1609536922", "time_suspended": "0",
    "tres_alloc": "1=20,2=170000,3=18446744073709551614,4=1,5=20,1002=2",
    "tres_req": "1=20,2=170000,4=1,5=20,1002=2", "job_type": "OTHER",
}  # fmt: skip


def read(
    folder: Path, *rows: dict[str, str], tabs: bool = False, **options: object
) -> ImportedTrace:
    path = folder / "jobs.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ROW | rows[0], delimiter="\t" if tabs else ",")
        writer.writeheader()
        writer.writerows(ROW | row for row in rows)
    return import_trace([path], options=ImportOptions(**options))


@NEEDS_MIT
def test_mit_supercloud_row_by_row():
    """All columns of the thousand published jobs, worked out here with plain Python."""
    with MIT.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    rows.sort(key=lambda row: int(row["time_eligible"]))  # all became eligible before they started
    trace = import_trace([MIT])
    zero = int(datetime.fromisoformat(trace.account.begins).replace(tzinfo=UTC).timestamp())
    expected = {
        "submit_s": [int(row["time_eligible"]) - zero for row in rows],
        "duration_s": [int(row["time_end"]) - int(row["time_start"]) for row in rows],
        "recorded_wait_s": [int(row["time_start"]) - int(row["time_eligible"]) for row in rows],
        "estimate_s": [
            None if row["timelimit"] == "4294967295" else 60 * int(row["timelimit"]) for row in rows
        ],
        "status": [STATES[row["state"]] for row in rows],
        "gpus": [int(row["tres_alloc"].split(",")[0].partition("=")[2]) for row in rows],
        "kind": [row["job_type"] for row in rows],
        "user": [str(int(float(row["id_user"]))) for row in rows],
        "priority": [float(row["priority"]) for row in rows],
    }
    for column, values in expected.items():
        assert trace.frame[column].to_list() == values, column
    assert trace.frame["id"].to_list() == list(range(1000))
    later = sum(row["time_eligible"] > row["time_submit"] for row in rows)
    assert sum(trace.account.changed.values()) == later
    remarks = " ".join(trace.account.remarks)
    assert "rounded" in remarks
    assert "no record names GPUs" in remarks


def test_numbers_from_1001_are_gpus_with_a_remark(tmp_path):
    """MIT's numbers: two GPUs, 20 cores, 170,000 MiB; ids are counted from 0."""
    trace = read(tmp_path, ROW, {"tres_alloc": "1=4,2=100", "tres_req": "1=4,2=100"})
    job = trace.frame.row(0, named=True)
    assert (job["id"], job["gpus"], job["cpus"], job["memory_gib"]) == (0, 2, 20.0, 170_000 / 1024)
    assert trace.account.jobs == 1
    assert any("1001 and above" in remark for remark in trace.account.remarks)


@pytest.mark.parametrize("nothing", ["", "\\N", "NULL", "0", "0.0"])
def test_nothing_is_written_in_many_ways(tmp_path, nothing):
    """A start that is null or 0 never came."""
    trace = read(tmp_path, ROW, {"time_start": nothing, "state": "4"})
    assert [(d.reason, d.count) for d in trace.account.stages[-1].dropped] == [("never started", 1)]


def test_numbers_written_as_reals(tmp_path):
    """Tables that went through other tools: 1609535912.0, 3.0, 1440.0."""
    wanted = (
        "time_submit",
        "time_eligible",
        "time_start",
        "time_end",
        "state",
        "timelimit",
        "priority",
    )
    reals = {name: f"{ROW[name]}.0" for name in wanted}
    assert read(tmp_path, reals).frame.equals(read(tmp_path, ROW).frame)


def test_true_numbers_name_jobs_and_their_attempts(tmp_path):
    """Numbers that are not rounded: arrays, requeues (state 1024), deleted rows."""
    true = {"id_job": "70", "deleted": "0"}
    trace = read(
        tmp_path,
        true | {"state": "1024"},
        true | {"time_submit": "1609536922", "time_eligible": "1609536922",
                "time_start": "1609536932", "time_end": "1609536942"},
        true | {"id_job": "71", "id_array_job": "70", "id_array_task": "4"},
        true | {"id_job": "72", "deleted": "1"},
        tabs=True,
    )  # fmt: skip
    assert trace.frame["id"].to_list() == ["70_4", "70"]
    assert {d.reason: d.count for s in trace.account.stages for d in s.dropped} == {
        "marked as deleted in the database": 1,
        "its job has a later record (requeued, or exported twice)": 1,
    }


def test_columns_that_are_not_needed_may_be_missing(tmp_path):
    """A table of times, states and resources alone is a workload too."""
    needed = ("id_job", "state", "time_submit", "time_start", "time_end", "tres_alloc")
    quoted = ",".join(f'"{ROW[name]}"' for name in needed)
    (tmp_path / "few.csv").write_text(f"{','.join(needed)}\n{quoted}\n")
    trace = import_trace([tmp_path / "few.csv"])
    assert trace.frame["gpus"].to_list() == [2]
    assert {"User", "Account", "Timelimit"} <= set(trace.account.missing_columns)


def test_suspended_time_is_not_run(tmp_path):
    """Seconds of suspension are taken off; the second at which it began is not."""
    frame = read(
        tmp_path,
        {"time_suspended": "400"},
        {"time_suspended": "1609535930", "state": "2", "time_end": "0"},
    ).frame
    assert frame["duration_s"].to_list() == [600.0, 1000.0]
    assert frame["status"].to_list() == ["completed", "running"]


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"time_start": "late"}, "time_start is 'late', not a date and time"),
        ({"time_end": "1609535000"}, "time_end is before time_start"),
        ({"state": "77"}, "state is '77', not a state"),
        ({"tres_alloc": "1=x"}, "tres_alloc is '1=x'"),
        ({"timelimit": "-5"}, "timelimit is '-5'"),
        ({"time_submit": "9" * 40}, "time_submit is"),
        ({"id_job": "x7"}, "id_job is 'x7'"),
    ],
)
def test_senseless_cells_are_named(tmp_path, cells, complaint):
    """The message names the line and the table's own column, after a cell of two lines too."""
    rows = ({"nodelist": "['a',\n 'b']"}, cells)
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path, *rows)
    assert f"line 4: {complaint}" in str(caught.value)
    assert read(tmp_path, *rows, skip_bad_rows=True).account.jobs == 1


@pytest.mark.parametrize("tabs", [False, True])
def test_rows_of_the_wrong_width(tmp_path, tabs):
    """Too few cells are a mistake of their line."""
    read(tmp_path, ROW, tabs=tabs)
    path = tmp_path / "jobs.csv"
    path.write_text(path.read_text() + ("a\tb\n" if tabs else "a,b\n"))
    with pytest.raises(
        TraceFormatError, match=f"line 3: 2 cells, but there are {len(ROW)} columns"
    ):
        import_trace([path])


def test_dumps_in_sql_are_refused_with_the_command_to_run(tmp_path):
    """`mysqldump` writes a program; the message says how to get a table."""
    (tmp_path / "dump.sql").write_text("-- MariaDB dump 10.19\nCREATE TABLE x;\n")
    with pytest.raises(TraceFormatError, match="mysql --batch"):
        import_trace([tmp_path / "dump.sql"])


@NEEDS_MIT
def test_mit_simulates_on_as_many_slots():
    """The sample is a workload like any other: its states are counted and it can be described."""
    jobs = import_trace([MIT]).workload()
    counts = Counter(jobs.status.values())
    assert counts["completed"] == 495
    assert counts["node failure"] == 12
