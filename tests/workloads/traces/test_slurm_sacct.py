"""`sacct -P`: any columns, all the ways in which a cell can be written, and damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import TraceFormatError, YardmasterError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.draft import ImportedTrace
from yardmaster.workloads.traces.reading.options import ImportOptions

JOB = {
    "JobIDRaw": "7", "JobID": "7", "User": "ann", "Account": "lab", "Partition": "gpu",
    "Submit": "2024-03-04T10:00:00", "Eligible": "2024-03-04T10:00:00",
    "Start": "2024-03-04T10:05:00", "End": "2024-03-04T11:05:00", "ElapsedRaw": "3600",
    "TimelimitRaw": "120", "State": "COMPLETED", "NNodes": "1", "NCPUS": "4",
    "ReqTRES": "cpu=4,gres/gpu=2,mem=8G,node=1",
    "AllocTRES": "billing=4,cpu=4,gres/gpu=2,mem=8G,node=1", "Priority": "100",
    "NodeList": "n1",
}  # fmt: skip
MONDAY_10_S = 10 * 3600.0
"""2024-03-04 is a Monday."""


def table(*jobs: dict[str, str], drop: tuple[str, ...] = (), separator: str = "|") -> str:
    columns = [name for name in dict.fromkeys(k for job in jobs for k in job) if name not in drop]
    rows = [separator.join({**JOB, **job}.get(name, "") for name in columns) for job in jobs]
    return "\n".join([separator.join(columns), *rows]) + "\n"


def read(folder: Path, content: str | bytes, **options: object) -> ImportedTrace:
    path = folder / "sacct.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return import_trace([path], options=ImportOptions(**options))


def one(folder: Path, *, drop: tuple[str, ...] = (), **cells: str) -> dict[str, object]:
    """The job of a table with one row, whose other cells are those of `JOB`."""
    return read(folder, table(JOB | cells, drop=drop)).frame.row(0, named=True)


def dropped(trace: ImportedTrace) -> dict[str, int]:
    return {entry.reason: entry.count for stage in trace.account.stages for entry in stage.dropped}


def test_a_whole_row(tmp_path):
    """Every canonical column that sacct knows of, from one row."""
    assert one(tmp_path) == {
        "id": 7, "submit_s": MONDAY_10_S, "duration_s": 3600.0, "estimate_s": 7200.0, "gpus": 2,
        "milli_gpu": 1000, "cpus": 4.0, "memory_gib": 8.0, "tenant": "lab", "user": "ann",
        "priority": 100.0, "status": "completed", "recorded_wait_s": 300.0,
    }  # fmt: skip


@pytest.mark.parametrize("separator", ["|", "\t", ";"])
def test_columns_in_any_order_case_and_separator(tmp_path, separator):
    """What counts is the header; lines may end as on Windows and begin with a byte-order mark."""
    shuffled = dict(sorted(JOB.items(), reverse=True))
    text = table(
        {name.lower(): cell for name, cell in shuffled.items()} | JOB,
        drop=tuple(JOB),
        separator=separator,
    )
    content = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert read(tmp_path, content).frame.equals(read(tmp_path, table(JOB)).frame)


def test_a_trailing_bar_is_no_column(tmp_path):
    """`sacct -p` ends every line with a bar."""
    text = table(JOB).replace("\n", "|\n")
    assert read(tmp_path, text).frame.equals(read(tmp_path, table(JOB)).frame)


def test_comma_separated_with_quotes(tmp_path):
    """A table that went through a spreadsheet: cells with commas stand in quotes."""
    row = ",".join(f'"{cell}"' if "," in cell else cell for cell in JOB.values())
    text = ",".join(JOB) + "\n" + row + "\n"
    assert read(tmp_path, text).frame.equals(read(tmp_path, table(JOB)).frame)


def test_a_header_that_comes_again_is_no_row(tmp_path):
    """Two exports in one file, one after the other."""
    text = table(JOB) + table(JOB | {"JobID": "8", "JobIDRaw": "8"})
    trace = read(tmp_path, text)
    assert trace.frame["id"].to_list() == [7, 8]
    assert trace.account.stages[0].read == 2


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"State": "CANCELLED by 1000"}, {"status": "cancelled"}),
        ({"State": "CANCELLED+"}, {"status": "cancelled"}),
        ({"State": "OUT_OF_MEMORY"}, {"status": "out of memory"}),
        ({"State": "DEADLINE"}, {"status": "timeout"}),
        ({"State": "LAUNCH_FAILED"}, {"status": "LAUNCH_FAILED"}),
        ({"Account": ""}, {"tenant": "gpu"}),
        ({"JobID": "5_3"}, {"id": "5_3"}),
        ({"JobID": "5+1"}, {"id": "5+1"}),
        ({"ElapsedRaw": "0", "End": JOB["Start"]}, {"duration_s": 0.0}),
        ({"AllocTRES": "cpu=8,gres/gpu:h100=4,gres/gpu=4,mem=1.50T,node=1"},
         {"gpus": 4, "cpus": 8.0, "memory_gib": 1536.0}),
        ({"AllocTRES": "energy=532.71K,billing=9,cpu=8,gres/gpu=4,mem=2G,node=1"},
         {"gpus": 4, "cpus": 8.0}),
        ({"AllocTRES": "cpu=8,energy=5.3K,gres/gpu=4,mem=2G"}, {"gpus": 4, "cpus": 8.0}),
        ({"AllocTRES": "cpu=8,gres/gpu:h100=4,mem=2G,node=1"}, {"gpus": 4}),
        ({"AllocTRES": "cpu=8,gres/gpu:h100=4,gres/gpu:h200=2,mem=2G,node=2"}, {"gpus": 6}),
        ({"ReqTRES": "cpu=4,gres/gpu:h100=2,gres/gpu=2,node=1"}, {"gpu_types": "H100"}),
        ({"ReqTRES": "cpu=4,gres/gpu:volta=2,node=1"}, {"gpu_types": "volta"}),
        ({"TimelimitRaw": "", "Timelimit": "2-00:00:00"}, {"estimate_s": 172_800.0}),
    ],
)  # fmt: skip
def test_cells(tmp_path, cells, expected):
    """One unusual cell at a time."""
    found = one(tmp_path, **cells)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", ""])
def test_no_limit_is_no_estimate(tmp_path, limit):
    """The column goes where nobody has a limit."""
    assert "estimate_s" not in one(tmp_path, TimelimitRaw=limit)


def test_a_type_that_was_only_given_is_not_asked_for(tmp_path):
    """A job that asked for any GPU may run on any, whatever it ran on."""
    cells = {"AllocTRES": "cpu=4,gres/gpu:v100=2,gres/gpu=2,node=1"}
    assert "gpu_types" not in one(tmp_path, **cells)


def test_old_columns(tmp_path):
    """AllocGRES and ReqGRES, per node; memory per node and per core; elapsed as a clock."""
    old = {
        name: JOB[name] for name in ("JobID", "User", "Account", "Submit", "Start", "End", "State")
    }
    old |= {"Elapsed": "01:00:00", "Timelimit": "02:00:00", "NNodes": "2", "AllocCPUS": "8"}
    jobs = [
        old | {"JobID": "1", "ReqGRES": "gpu:v100:4", "ReqMem": "4Gn"},
        old | {"JobID": "2", "ReqGRES": "gpu:1", "AllocGRES": "gpu:3", "ReqMem": "2Gc"},
    ]
    text = "\n".join(
        ["|".join([*old, "ReqGRES", "AllocGRES", "ReqMem"])]
        + [
            "|".join(job.get(n, "") for n in [*old, "ReqGRES", "AllocGRES", "ReqMem"])
            for job in jobs
        ]
    )
    frame = read(tmp_path, text).frame
    assert frame["gpus"].to_list() == [8, 3]
    assert frame["gpu_types"].to_list() == ["V100", None]
    assert frame["memory_gib"].to_list() == [8.0, 16.0]
    assert frame["cpus"].to_list() == [8.0, 8.0]
    assert frame["duration_s"].to_list() == [3600.0, 3600.0]


def test_end_minus_start_where_nothing_else_is_known(tmp_path):
    """Without Elapsed, the span without the time of suspension."""
    cells = {"Suspended": "00:10:00"}
    assert one(tmp_path, drop=("ElapsedRaw",), **cells)["duration_s"] == 3000.0


def test_running_jobs_without_elapsed_last_until_the_last_second(tmp_path):
    """Censored at the latest time in the file, here the other job's end."""
    running = JOB | {"JobID": "8", "JobIDRaw": "8", "State": "RUNNING", "End": "Unknown"}
    trace = read(tmp_path, table(JOB, running, drop=("ElapsedRaw",)))
    job = trace.frame.row(1, named=True)
    assert (job["duration_s"], job["status"]) == (3600.0, "running")
    assert trace.account.censored == {"were still running when the log was written": 1}


def test_start_before_submission_is_kept_without_a_wait(tmp_path):
    """Clocks differ; the job is real, its wait is not."""
    early = JOB | {"JobID": "8", "JobIDRaw": "8", "Start": "2024-03-04T09:59:58"}
    trace = read(tmp_path, table(JOB, early))
    assert trace.frame["recorded_wait_s"].to_list() == [300.0, None]
    assert trace.account.changed == {"started before they were submitted": 1}


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"State": "PENDING", "Start": "Unknown", "End": "Unknown", "AllocTRES": ""},
         "was waiting in the queue when the log was written"),
        ({"JobID": "9_[1-9%4]", "State": "PENDING", "Start": "Unknown", "End": "Unknown"},
         "was waiting in the queue when the log was written"),
        ({"State": "CANCELLED by 0", "Start": "None", "AllocTRES": "", "ElapsedRaw": "0"},
         "never started"),
        # Older versions give the second of cancellation as start and end.
        ({"State": "CANCELLED by 0", "End": JOB["Start"], "AllocTRES": "", "ElapsedRaw": "0",
          "NodeList": "None assigned"}, "never started"),
        ({"AllocTRES": "cpu=4,mem=2G,node=1", "ReqTRES": "cpu=4,mem=2G,node=1"},
         "asked for no GPU (CPU job)"),
        ({"AllocTRES": "cpu=4,gres/shard=2,node=1", "ReqTRES": "cpu=4,gres/shard=2,node=1"},
         "asked for shares of a GPU (shards, MPS), whose size the log does not tell"),
        ({"JobID": "9.batch", "JobIDRaw": "9.batch"},
         "a step of a job, which has a row of its own"),
        ({"JobID": "9+0.extern", "JobIDRaw": "9.extern"},
         "a step of a job, which has a row of its own"),
        ({"JobID": "9_2.0", "JobIDRaw": "9.0"}, "a step of a job, which has a row of its own"),
        ({"End": "Unknown", "ElapsedRaw": ""}, "ended at an unknown time"),
    ],
)  # fmt: skip
def test_rows_that_are_no_jobs(tmp_path, cells, reason):
    """Each is dropped for its own reason, and counted."""
    other = JOB | {"JobID": "8", "JobIDRaw": "8"} | cells
    trace = read(tmp_path, table(JOB, other))
    assert dropped(trace) == {reason: 1}
    assert trace.frame["id"].to_list() == [7]


def test_earlier_attempts_give_way_to_the_last(tmp_path):
    """A requeued job counts once, with its new submission; rows may come in any order."""
    first = JOB | {"State": "REQUEUED"}
    again = JOB | {"Submit": "2024-03-04T12:00:00", "Eligible": "2024-03-04T12:02:00",
                   "Start": "2024-03-04T13:00:00", "End": "2024-03-04T14:00:00"}  # fmt: skip
    trace = read(tmp_path, table(again, first))
    assert trace.frame["submit_s"].to_list() == [MONDAY_10_S + 2 * 3600 + 120]
    assert dropped(trace) == {"its job has a later record (requeued, or exported twice)": 1}


def test_numbers_that_begin_again_are_other_jobs(tmp_path):
    """An ended job is not replaced by another that got its number years later."""
    later = JOB | {"Submit": "2026-03-04T10:00:00", "Eligible": "2026-03-04T10:00:00",
                   "Start": "2026-03-04T10:05:00", "End": "2026-03-04T11:05:00"}  # fmt: skip
    trace = read(tmp_path, table(JOB, later))
    assert trace.account.jobs == 2
    assert any("not unique" in remark for remark in trace.account.remarks)


def test_the_same_number_on_two_clusters(tmp_path):
    """`sacct -L` tells of several clusters; their numbers have nothing to do with each other."""
    here, there = (JOB | {"Cluster": name} for name in ("a", "b"))
    assert read(tmp_path, table(here, there)).account.jobs == 2


def test_clocks_that_go_back(tmp_path):
    """An end before the start is forgiven within the hour of autumn if Elapsed is known."""
    night = {"Submit": "2024-10-27T02:50:00", "Eligible": "", "Start": "2024-10-27T02:55:00",
             "End": "2024-10-27T02:05:00", "ElapsedRaw": "600"}  # fmt: skip
    assert one(tmp_path, **night)["duration_s"] == 600.0
    with pytest.raises(TraceFormatError, match="line 2: End is before Start"):
        one(tmp_path, drop=("ElapsedRaw",), **night)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"Submit": "yesterday"}, "Submit is 'yesterday', not a date and time"),
        ({"Start": "2024-13-04T10:05:00"}, "Start is '2024-13-04T10:05:00', not a date"),
        ({"Submit": "1901-01-01T00:00:00"}, "Submit is"),
        ({"End": "2024-03-03T11:05:00"}, "End is before Start"),
        ({"ElapsedRaw": "-5"}, "ElapsedRaw is '-5', not seconds from 0"),
        ({"TimelimitRaw": "9" * 30}, "not a time limit"),
        ({"AllocTRES": "gres/gpu=two"}, "AllocTRES is 'gres/gpu=two', not a list such as"),
        ({"ReqTRES": "gres/gpu=99999999999"}, "ReqTRES is"),
        ({"NCPUS": "-1"}, "NCPUS is '-1', not a whole number from 0"),
        ({"State": "???"}, "State is '???', not a state"),
        ({"JobID": "abc"}, "JobID is 'abc', not the number of a job"),
        ({"JobID": "", "JobIDRaw": ""}, "the job has no number"),
        ({"User": "a|b"}, "19 cells, but there are 18 columns"),
    ],
)
def test_senseless_cells_are_named(tmp_path, cells, complaint):
    """The message names the line and the cell; skipping counts it and keeps the others."""
    text = table(JOB, JOB | {"JobID": "8", "JobIDRaw": "8"} | cells)
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path, text)
    assert "line 3: " in str(caught.value)
    assert complaint in str(caught.value)
    trace = read(tmp_path, text, skip_bad_rows=True)
    assert trace.frame["id"].to_list() == [7]
    assert dropped(trace) == {"cannot be read": 1}
    assert trace.account.stages[0].dropped[0].examples == ("line 3",)


def test_bytes_that_are_no_text(tmp_path):
    """Latin-1 in a name is a mistake of its line, not of the file."""
    text = table(JOB, JOB | {"JobID": "8", "JobIDRaw": "8", "User": "ZOE"}).encode()
    with pytest.raises(TraceFormatError, match="line 3: not UTF-8"):
        read(tmp_path, text.replace(b"ZOE", b"Zo\xeb"))


def test_alias_columns_are_called_by_their_own_names(tmp_path):
    """A complaint speaks of the column that is in the file."""
    cells = {name: cell for name, cell in JOB.items() if name != "NCPUS"} | {"AllocCPUS": "many"}
    text = "|".join(cells) + "\n" + "|".join(cells.values()) + "\n"
    with pytest.raises(TraceFormatError, match=r"(?i)alloccpus is 'many'"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("drop", "named"),
    [
        (("Submit",), "Submit"), (("Start",), "Start"), (("ElapsedRaw", "End"), "ElapsedRaw or"),
        (("AllocTRES", "ReqTRES"), "AllocTRES or ReqTRES or AllocGRES or ReqGRES"),
    ],
)  # fmt: skip
def test_missing_columns_come_with_the_command_to_run(tmp_path, drop, named):
    """A user can ask sacct again; the message says how."""
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path, table(JOB, drop=drop))
    assert f"no column {named}" in str(caught.value)
    assert "sacct -a -X -P" in str(caught.value)


def test_without_gpu_columns_cores_will_do_on_request(tmp_path):
    """--slot-cores makes resources columns unnecessary where cores are known."""
    frame = read(tmp_path, table(JOB, drop=("AllocTRES", "ReqTRES")), slot_cores=2).frame
    assert frame["gpus"].to_list() == [2]


def test_a_log_that_knows_no_gpus_counts_cores(tmp_path):
    """A CPU cluster: one slot per core, and the account says so."""
    cells = {"AllocTRES": "cpu=4,node=1", "ReqTRES": "cpu=4,node=1"}
    trace = read(tmp_path, table(JOB | cells))
    assert trace.frame["gpus"].to_list() == [4]
    assert any("AccountingStorageTRES" in remark for remark in trace.account.remarks)


def test_missing_knowledge_is_listed(tmp_path):
    """Optional columns that are not there, or empty throughout, are named in the account."""
    trace = read(tmp_path, table(JOB | {"Account": ""}, drop=("Priority", "TimelimitRaw")))
    assert trace.account.missing_columns == ("Timelimit", "Account", "Priority")


def test_local_times_with_a_zone_lose_daylight_saving(tmp_path):
    """A job over the night of the clock change runs for its true time."""
    cells = {"Submit": "2024-10-26T23:00:00", "Eligible": "", "Start": "2024-10-27T00:00:00",
             "End": "2024-10-27T06:00:00"}  # fmt: skip
    text = table(JOB | cells, drop=("ElapsedRaw",))
    assert read(tmp_path, text).frame["duration_s"].item() == 6 * 3600
    zoned = read(tmp_path, text, time_zone="Europe/Berlin")
    assert zoned.frame["duration_s"].item() == 7 * 3600
    assert zoned.account.time_zone.startswith("Europe/Berlin")


def test_many_bad_rows_are_counted_and_twenty_named(tmp_path):
    """A file of garbage is refused quickly, with the first lines."""
    text = table(JOB) + "x|y\n" * 200_000
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path, text)
    assert "200,000 records cannot be read" in str(caught.value)
    assert str(caught.value).count("line ") == 20


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_tables_give_jobs_or_a_clear_error(tmp_path, data):
    """Cut, doubled and overwritten anywhere: never a crash, and accounts add up by themselves."""
    good = table(*(JOB | {"JobID": str(n), "JobIDRaw": str(n)} for n in range(5))).encode()
    place = data.draw(st.integers(0, len(good)))
    junk = data.draw(
        st.sampled_from([b"", b"|", b"\n", b"\xff", b'"', b"-1", b"9" * 30, b"=,", b"\x00"])
    )
    cut = data.draw(st.integers(0, 40))
    try:
        trace = read(
            tmp_path,
            good[:place] + junk + good[place + cut :],
            skip_bad_rows=data.draw(st.booleans()),
        )
    except YardmasterError:
        return
    assert trace.account.jobs == len(trace.frame) == len(trace.workload()) > 0
