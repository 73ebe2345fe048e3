"""`jobcomp/filetxt`: a real log, and what its lines can hold."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.draft import ImportedTrace
from yardmaster.workloads.traces.reading.options import ImportOptions

LOG = (
    Path(__file__).resolve().parents[3]
    / ".."
    / "shared"
    / "traces"
    / "slurm_jobcomp"
    / "jobcomp.log"
)
NEEDS_LOG = pytest.mark.skipif(not LOG.exists(), reason="needs ../shared/traces/slurm_jobcomp")
LINE = (
    "JobId=7 UserId=ann(1000) GroupId=ann(1000) Name=run JobState=COMPLETED Partition=gpu"
    " TimeLimit=60 StartTime=2024-03-04T10:05:00 EndTime=2024-03-04T11:05:00 NodeList=n1 NodeCnt=1"
    " ProcCnt=4 WorkDir=/home/ann ReservationName= Tres=cpu=4,mem=8G,node=1,billing=4,gres/gpu=2"
    " Account=lab QOS= WcKey= Cluster=c SubmitTime=2024-03-04T10:00:00"
    " EligibleTime=2024-03-04T10:00:00 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def read(folder: Path, text: str, **options: bool) -> ImportedTrace:
    (folder / "jobcomp.log").write_text(text)
    return import_trace([folder / "jobcomp.log"], options=ImportOptions(**options))


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@NEEDS_LOG
def test_the_real_log_job_by_job():
    """Times, cores, limits and ends of all jobs, worked out here with plain Python."""
    told = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in LOG.read_text().splitlines()]
    last = {job["JobId"]: job for job in told}  # lines are in the order of the ends of attempts
    expected = {int(number): job for number, job in last.items() if job["NodeCnt"] != "0"}
    trace = import_trace([LOG])
    found = {job["id"]: job for job in trace.frame.iter_rows(named=True)}
    assert set(found) == set(expected)
    zero = seconds(trace.account.begins)
    for number, job in expected.items():
        start, end, ready = (seconds(job[f"{key}Time"]) for key in ("Start", "End", "Eligible"))
        assert found[number]["submit_s"] == ready - zero
        assert found[number]["recorded_wait_s"] == start - ready
        assert found[number]["duration_s"] == end - start
        assert found[number]["estimate_s"] == 60 * int(job["TimeLimit"])
        assert found[number]["gpus"] == found[number]["cpus"] == int(job["ProcCnt"])
        assert found[number]["user"] == "cc"
    states = Counter(
        job["JobState"].lower().replace("node_fail", "node failure") for job in expected.values()
    )
    assert Counter(trace.frame["status"].to_list()) == states
    dropped = {entry.reason: entry.count for entry in trace.account.stages[-1].dropped}
    assert dropped == {
        "its job has a later record (requeued, or exported twice)": len(told) - len(last),
        "never started": len(last) - len(expected),
    }


def test_names_with_blanks_and_keys(tmp_path):
    """A name may look like anything; the keys after it count."""
    odd = LINE.replace("Name=run", "Name=my StartTime=never Tres=x run")
    assert read(tmp_path, odd).frame.equals(read(tmp_path, LINE).frame)


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit"])
def test_no_limit(tmp_path, limit):
    """Words for no limit are no estimate."""
    frame = read(tmp_path, LINE.replace("TimeLimit=60", f"TimeLimit={limit}")).frame
    assert "estimate_s" not in frame.columns


def test_old_logs_know_no_submission(tmp_path):
    """Before SubmitTime was logged: jobs come when they start, and no wait is recorded."""
    old = LINE.partition(" ReservationName")[0] + " Gres=gpu:2 \n"
    trace = read(tmp_path, old)
    job = trace.frame.row(0, named=True)
    assert (job["submit_s"], job["gpus"]) == (10 * 3600 + 300, 2)
    assert "recorded_wait_s" not in trace.frame.columns
    assert trace.account.changed == {"have no submission time; their start is taken": 1}
    assert "Submit" in trace.account.missing_columns


def test_parts_of_arrays_and_groups_have_their_names(tmp_path):
    """ArrayJobId and HetJobId name a job as sacct does."""
    task = LINE.replace(" DerivedExitCode", " ArrayJobId=5 ArrayTaskId=3 DerivedExitCode")
    part = LINE.replace("JobId=7", "JobId=8", 1).replace(
        " DerivedExitCode", " HetJobId=8 HetJobOffset=0 DerivedExitCode"
    )
    assert read(tmp_path, task + part).frame["id"].to_list() == ["5_3", "8+0"]


@pytest.mark.parametrize(
    ("damaged", "complaint"),
    [
        (LINE[:60] + "\n", "no line of a job"),
        ("garbage\n", "no line of a job"),
        (LINE.replace("2024-03-04T11", "2024-03-04T09"), "EndTime is before StartTime"),
        (LINE.replace("gres/gpu=2", "gres/gpu=-2"), "Tres is"),
        (LINE.replace("StartTime=2024", "StartTime=20x4"), "StartTime is"),
        (LINE.replace("JobId=7", "JobId=seven"), "JobId is 'seven'"),
    ],
)
def test_damaged_lines_are_named(tmp_path, damaged, complaint):
    """The message names the line and the log's own key."""
    text = LINE + damaged
    with pytest.raises(TraceFormatError, match=f"line 2: {complaint}"):
        read(tmp_path, text)
    trace = read(tmp_path, text, skip_bad_rows=True)
    assert [(d.reason, d.count) for d in trace.account.stages[0].dropped] == [("cannot be read", 1)]
