"""Philly's job log: attempts become one job each, and every job is accounted for."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces import philly
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FORM = "%Y-%m-%d %H:%M:%S"
NOTHING = (None, "", "None")


def attempt(start, end, *gpus: int):
    """Make one attempt that held so many GPUs on each machine."""
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{g}" for g in range(n)]} for i, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def job(number=1, *attempts, status="Pass", submitted="2017-10-01 10:00:00"):
    """Make one job as the publisher writes it."""
    return {
        "status": status,
        "vc": "ee9e8c",
        "jobid": f"application_1506638472019_{number}",
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": f"u{number}",
    }


def imported(folder: Path, jobs: list, **options):
    path = folder / "cluster_job_log"
    path.write_text(json.dumps(jobs, indent=1), encoding="utf-8")
    return import_trace([path], options=ImportOptions(**options))


def rows(trace):
    return {row["user"]: row for row in trace.frame.iter_rows(named=True)}


def test_one_job_of_two_attempts(tmp_path):
    """Run time goes from the first start to the last end, GPUs are those of the first attempt."""
    first = attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00", 4, 2)
    second = attempt("2017-10-01 11:00:00", "2017-10-01 12:00:30", 8)
    trace = imported(tmp_path, [job(7, first, second, status="Killed")])
    assert trace.account.format == "philly"
    (row,) = trace.frame.iter_rows(named=True)
    assert row["id"] == "application_1506638472019_7"
    assert (row["duration_s"], row["recorded_wait_s"], row["gpus"]) == (7200.0, 30.0, 6)
    assert (row["tenant"], row["user"], row["status"]) == ("ee9e8c", "u7", "cancelled")
    # 2017-10-01 is a Sunday: the clock begins on the Monday before.
    assert trace.account.begins == "2017-09-25T00:00:00"
    assert row["submit_s"] == 6 * 86_400 + 10 * 3600
    assert trace.workload().gpus.tolist() == [6]


def moments():
    """Draw a time within a month, to the second."""
    seconds = st.integers(0, 30 * 86_400)
    return seconds.map(
        lambda s: (datetime(2017, 8, 10, tzinfo=UTC) + timedelta(0, s)).strftime(FORM)
    )


@st.composite
def logs(draw):
    """Draw jobs as the publisher writes them, in every shape that occurs."""
    made = []
    for number in range(draw(st.integers(1, 8))):
        times = sorted(draw(st.lists(moments(), min_size=7, max_size=7)))
        attempts = [
            attempt(
                times[1 + 2 * i], times[2 + 2 * i], *draw(st.lists(st.integers(0, 8), max_size=3))
            )
            for i in range(draw(st.integers(0, 3)))
        ]
        if attempts and draw(st.booleans()):
            attempts[-1]["end_time"] = draw(st.sampled_from(NOTHING))
        if len(attempts) == 1 and draw(st.booleans()):
            attempts[0]["start_time"] = draw(st.sampled_from(NOTHING))
        submitted = draw(st.sampled_from([times[0], times[0], times[0], *NOTHING]))
        made.append(job(number, *attempts, submitted=submitted))
    # One job that surely stays, so that the import is not empty.
    made.append(job(99, attempt("2017-08-11 00:00:00", "2017-08-11 00:00:09", 1)))
    return made


def seconds(text: str | None) -> float | None:
    if text in NOTHING:
        return None
    return datetime.strptime(text, FORM).replace(tzinfo=UTC).timestamp()


def expected(made: list) -> dict[str, tuple[float, float | None, int, bool]]:
    """Recompute run time, wait, GPUs and censoring of the jobs that stay, from the definitions."""
    every = [seconds(j["submitted_time"]) for j in made]
    every += [
        seconds(a[key]) for j in made for a in j["attempts"] for key in ("start_time", "end_time")
    ]
    latest = max(t for t in every if t is not None)
    found = {}
    for entry in made:
        started = [a for a in entry["attempts"] if seconds(a["start_time"]) is not None]
        gpus = sum(len(d["gpus"]) for d in started[0]["detail"]) if started else 0
        if not gpus:
            continue
        start, end = seconds(started[0]["start_time"]), seconds(started[-1]["end_time"])
        submitted = seconds(entry["submitted_time"])
        run = (latest if end is None else end) - start
        wait = None if submitted is None or submitted > start else start - submitted
        found[entry["user"]] = (run, wait, gpus, end is None)
    return found


@settings(max_examples=60, deadline=None)
@given(made=logs())
def test_any_log_is_read_as_defined(tmp_path_factory, made):
    """Whatever is missing in a job, it comes out as the definitions say, and all is booked."""
    trace = imported(tmp_path_factory.mktemp("philly"), made)
    want = expected(made)
    got = {
        user: (row["duration_s"], row["recorded_wait_s"], row["gpus"], row["status"] == "running")
        for user, row in rows(trace).items()
    }
    assert got == want
    records, jobs = trace.account.stages
    assert (records.read, jobs.kept) == (len(made), len(want))
    assert sum(trace.account.censored.values()) == sum(entry[3] for entry in want.values())


def test_jobs_that_never_ran_are_dropped_with_their_reasons(tmp_path):
    """No attempt, no start and no GPU are told apart."""
    whole = attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00", 1)
    made = [
        job(1, whole),
        job(2),
        job(3, attempt("None", "None", 2)),
        job(4, attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00")),
        job(5, attempt("2017-10-01 10:10:00", "2017-10-01 10:00:30", 1)),
    ]
    account = imported(tmp_path, made).account
    assert {entry.reason: entry.count for entry in account.stages[-1].dropped} == {
        "never started": 2,
        "no GPU is recorded for the first attempt": 1,
        "ended before it started (clocks go back in November)": 1,
    }


def test_the_night_the_clocks_go_back(tmp_path):
    """As written a run over that night is an hour short; with the time zone it is true."""
    over = attempt("2017-11-05 00:30:00", "2017-11-05 03:30:00", 1)
    made = [job(1, over, submitted="2017-11-05 00:00:00")]
    assert imported(tmp_path, made).frame["duration_s"].to_list() == [3 * 3600.0]
    zoned = imported(tmp_path, made, time_zone="America/Los_Angeles")
    assert zoned.frame["duration_s"].to_list() == [4 * 3600.0]


def test_odd_submissions_are_counted(tmp_path):
    """Without a submission the start is taken; a start before the submission has no wait."""
    made = [
        job(1, attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00", 1), submitted=None),
        job(2, attempt("2017-10-01 09:00:00", "2017-10-01 10:10:00", 1)),
    ]
    trace = imported(tmp_path, made)
    assert trace.account.changed == {
        "have no submission time; their start is taken": 1,
        "started before they were submitted": 1,
    }
    assert rows(trace)["u1"]["recorded_wait_s"] is None
    assert rows(trace)["u1"]["submit_s"] == rows(trace)["u2"]["submit_s"] + 30
    assert rows(trace)["u2"]["recorded_wait_s"] is None


BROKEN = {
    "attempts is missing": {"attempts": None},
    "attempts is missing or no list": {"attempts": "none"},
    "jobid is missing": {"jobid": None},
    "submitted_time is '5', not text": {"submitted_time": 5},
    "submitted_time is 'yesterday', not a date": {"submitted_time": "yesterday"},
    "submitted_time is '1017-10-01 10:00:00', not a date": {
        "submitted_time": "1017-10-01 10:00:00"
    },
    "start_time of the first attempt is 'x'": {"attempts": [attempt("x", None, 1)]},
    "end_time of the last attempt is '24'": {"attempts": [attempt("2017-10-01 10:00:30", "24", 1)]},
    "detail of an attempt is no list": {
        "attempts": [{"start_time": "2017-10-01 10:00:30", "end_time": None, "detail": 4}]
    },
    "user is .*, not a name": {"user": {"name": "me"}},
    "vc is no text": {"vc": "\ud800"},
}


@pytest.mark.parametrize("message", BROKEN)
def test_unreadable_jobs_are_named_or_skipped(tmp_path, message):
    """A key that makes no sense is named with its record; if allowed, the job is dropped."""
    whole = attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00", 1)
    made = [job(1, whole), job(2, whole) | BROKEN[message], job(3, whole)]
    with pytest.raises(TraceFormatError, match=f"record 2: .*{message}"):
        imported(tmp_path, made)
    account = imported(tmp_path, made, skip_bad_rows=True).account
    assert (account.stages[0].read, account.jobs) == (3, 2)
    (dropped,) = account.stages[0].dropped
    lines = json.dumps(made, indent=1).split("\n")
    line = [i for i, text in enumerate(lines, start=1) if text == " {"][1]
    assert (dropped.reason, dropped.count, dropped.examples) == (
        "cannot be read",
        1,
        (f"line {line}",),
    )


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.99])
def test_a_truncated_log_is_refused(tmp_path, keep):
    """A download that broke off names the record in which it ends."""
    whole = attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00", 1)
    text = json.dumps([job(n, whole) for n in range(50)], indent=1)
    path = tmp_path / "cluster_job_log"
    path.write_text(text[: int(len(text) * keep)], encoding="utf-8")
    with pytest.raises(TraceFormatError, match=r"record \d+"):
        import_trace([path])


def test_the_log_is_found_in_the_publishers_archive(tmp_path):
    """The tar holds machine lists and usage besides; only the job log is read."""
    made = json.dumps([job(1, attempt("2017-10-01 10:00:30", "2017-10-01 10:10:00", 2))])
    members = {
        "cluster_machine_list": "machineId, number of GPUs, single GPU mem\nm31,8, 24GB\n",
        "cluster_job_log": made,
        "cluster_gpu_util": "time,machineId,gpu0_util,\n2017-10-03 00:08:00 PDT,m1,3.0,\n",
    }
    path = tmp_path / "trace-data.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(f"trace-data/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    trace = import_trace([path])
    assert trace.account.format == "philly"
    assert trace.frame["gpus"].to_list() == [2]
    packed = tmp_path / "cluster_job_log.gz"
    packed.write_bytes(gzip.compress(made.encode()))
    assert import_trace([packed]).frame.equals(trace.frame)


@pytest.mark.parametrize(
    "text",
    [
        '{"jobs": [{"job_id": 1}]}',
        '[{"time": "0", "type": "3", "collection_id": "1"}]',
        "job_id,user,vc\n1,u,v\n",
        "",
    ],
)
def test_other_files_are_not_taken_for_it(tmp_path, text):
    """Other JSON and other tables are left to their own formats."""
    path = tmp_path / "other"
    path.write_text(text, encoding="utf-8")
    assert not philly.recognises(TraceFile(str(path), path))
