"""Alibaba PAI: tables without headers, joined."""

import io
import math
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.account import Account
from yardmaster.workloads.traces.reading.options import ImportOptions

OURS = {"Terminated": "completed", "Failed": "failed", "Running": "running"}
JOBS = [
    "j1,i1,u1,Terminated,494553.0,496149.0",
    "j2,i2,u1,Failed,500000.0,500900.0",
    "j3,i3,u2,Running,600000.0,",
    "j4,i4,u2,Waiting,600001.0,",
    "j5,i5,u3,Terminated,600002.0,600100.0",
]
TASKS = [
    "j1,ps,1.0,Terminated,494600.0,496000.0,600.0,29.296875,,CPU",
    "j1,worker,2.0,Terminated,494700.0,496149.0,400.0,10.0,50.0,MISC",
    "j2,tensorflow,1.0,Failed,500100.0,500900.0,600.0,29.0,25.0,T4",
    "j3,worker,4.0,Running,600300.0,,600.0,29.0,100.0,V100",
    "j5,ps,1.0,Terminated,600002.0,600100.0,600.0,29.0,,",
]
TAGS = ["i1,u1,V100M32,g1,nmt", "i2,u1,,g2,", "i3,u2,T4,g3,"]


def written(folder: Path, **tables: list[str]) -> list[Path]:
    paths = []
    for name, rows in tables.items():
        path = folder / f"pai_{name}.csv"
        path.write_text("".join(f"{row}\n" for row in rows))
        paths.append(path)
    return paths


def reasons(account: Account) -> dict[str, int]:
    return {entry.reason: entry.count for entry in account.stages[-1].dropped}


def test_tables_are_joined(tmp_path: Path):
    """A job asks for what its tasks ask for and runs from their first start to their last end."""
    paths = written(tmp_path, job_table=JOBS, task_table=TASKS, group_tag_table=TAGS)
    imported = import_trace(paths)
    jobs = imported.workload()
    assert imported.account.format == "alibaba-pai-2020"
    assert jobs.id.tolist() == ["j1", "j2", "j3"]
    assert jobs.gpus.tolist() == [1, 1, 4]
    assert jobs.milli_gpu.tolist() == [1000, 250, 1000]
    assert jobs.cpus.tolist() == [14, 6, 24]
    assert jobs.memory_gib.tolist() == pytest.approx([49.296875, 29, 116])
    assert jobs.duration_s.tolist() == [1549, 800, 600300 - 600300]
    assert jobs.recorded_wait_s.tolist() == [47, 100, 300]
    assert jobs.status.values() == ["completed", "failed", "running"]
    assert jobs.gpu_types.values() == ["V100M32", None, "T4"]
    assert jobs.kind.values() == ["nmt", None, None]
    assert jobs.user.values() == ["u1", "u1", "u2"]
    assert reasons(imported.account) == {
        "were still waiting when the trace ended": 1,
        "asked for no GPU (CPU job)": 1,
    }
    assert list(imported.account.censored.values()) == [1]


def test_hours_and_weekdays_are_those_of_china(tmp_path: Path):
    """Times are Unix time read in UTC+8; the account says that the dates are shifted."""
    imported = import_trace(written(tmp_path, job_table=JOBS, task_table=TASKS))
    begins = datetime.fromisoformat(imported.account.begins)
    assert (begins.weekday(), begins.hour) == (0, 0)
    first = begins + timedelta(seconds=float(imported.workload().submit_s[0]))
    china = datetime.fromtimestamp(494553.0, UTC).replace(tzinfo=None) + timedelta(hours=8)
    assert first == china
    assert "shifted" in imported.account.time_zone


def test_tables_come_as_archives_beside_their_headers(tmp_path: Path):
    """The publisher's .tar.gz are read as they are; .header files are no data."""
    for name, rows in {"job_table": JOBS, "task_table": TASKS}.items():
        with tarfile.open(tmp_path / f"pai_{name}.tar.gz", "w:gz") as archive:
            content = "".join(f"{row}\n" for row in rows).encode()
            member = tarfile.TarInfo(f"pai_{name}.csv")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        (tmp_path / f"pai_{name}.header").write_text("job_name,inst_id\n")
    imported = import_trace([tmp_path])
    assert imported.account.jobs == 3
    assert not any("header" in name for name in imported.account.files)
    assert "gpu_type_spec" in imported.account.missing_columns


def test_renamed_tables_are_told_by_their_cells(tmp_path: Path):
    """Tables under other names, or with the header on top, are found by what they hold."""
    tags = [row.replace("i", "0123456789abcdef" * 3, 1) for row in TAGS]
    (tmp_path / "a.csv").write_text("".join(f"{row}\n" for row in JOBS))
    (tmp_path / "b.csv").write_text("".join(f"{row}\n" for row in TASKS))
    (tmp_path / "c.csv").write_text("".join(f"{row}\n" for row in tags))
    plain = import_trace([tmp_path])
    assert plain.account.format == "alibaba-pai-2020"
    assert len(plain.account.files) == 3
    head = "job_name,inst_id,user,status,start_time,end_time\n"
    (tmp_path / "a.csv").write_text(head + "".join(f"{row}\n" for row in JOBS))
    assert import_trace([tmp_path]).workload().fingerprint() == plain.workload().fingerprint()


def test_one_table_is_not_enough(tmp_path: Path):
    """Jobs without tasks cannot be imported; the message says what is missing."""
    (path,) = written(tmp_path, job_table=JOBS)
    with pytest.raises(TraceFormatError, match="pai_task_table are both needed"):
        import_trace([path])


@pytest.mark.parametrize(
    ("job", "task", "reason"),
    [
        ("x,i,u,Terminated,,5.0", "x,w,1,Terminated,1,5,,,100,", "no submission time"),
        ("x,i,u,Terminated,0,5.0", "x,w,1,Terminated,1,5,,,100,", "no submission time"),
        ("x,i,u,Failed,1,5", "x,w,1,Failed,,,,,100,", "never started"),
        ("x,i,u,Failed,1,5", "x,w,1,Failed,0,0,,,100,", "never started"),
        ("x,i,u,Failed,1,", "x,w,1,Failed,3,,,,100,", "no end recorded"),
        ("x,i,u,Failed,1,", "x,w,1,Failed,3,2,,,100,", "ended before they started"),
        ("x,i,u,Failed,1,5", "y,w,1,Failed,3,5,,,100,", "have no task in the task table"),
        ("j1,i1,u1,Failed,1,5", "x,w,1,Failed,3,5,,,100,", "a further row of the same job"),
    ],
)
def test_jobs_that_tell_too_little_are_dropped(tmp_path: Path, job: str, task: str, reason: str):
    """Blank and zero times, missing tasks and repeated rows are counted under their own reason."""
    paths = written(tmp_path, job_table=[*JOBS, job], task_table=[*TASKS, task])
    account = import_trace(paths).account
    assert reasons(account)[reason] == 1
    assert account.jobs == 3
    orphans = sum(entry.count for entry in account.stages[-2].dropped)
    assert orphans == (task[0] not in f"j{job[0]}")


def test_a_start_before_the_submission_leaves_the_wait_unknown(tmp_path: Path):
    """Such jobs stay and are counted as altered."""
    paths = written(
        tmp_path, job_table=["a,i,u,Terminated,9,20"], task_table=["a,w,1,Terminated,5,20,,,100,"]
    )
    imported = import_trace(paths)
    assert np.isnan(imported.workload().recorded_wait_s).all()
    assert list(imported.account.changed.values()) == [1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,w,1.0,Terminated,1,2,600,1,fifty,T4", "line 6: plan_gpu is 'fifty'"),
        ("x,w,-1.0,Terminated,1,2,600,1,50,T4", "line 6: inst_num is '-1.0'"),
        ("x,w,1.0,Terminated,-1,2,600,1,50,T4", "line 6: start_time is '-1'"),
        ("x,w,1.0,Terminated,1,2,600,1", "line 6: 8 cells, but there are 10 columns"),
        ("x,w,1.0,Terminated,1,1e300,600,1,50,T4", "line 6: end_time is '1e300'"),
        (",w,1.0,Terminated,1,2,600,1,50,T4", "line 6: job_name is empty"),
    ],
)
def test_damaged_rows_are_named_or_skipped(tmp_path: Path, row: str, message: str):
    """A damaged row stops the import with its place, or is dropped and counted on demand."""
    paths = written(tmp_path, job_table=JOBS, task_table=[*TASKS, row])
    with pytest.raises(TraceFormatError) as caught:
        import_trace(paths)
    assert "pai_task_table" in str(caught.value)
    assert message in str(caught.value)
    account = import_trace(paths, options=ImportOptions(skip_bad_rows=True)).account
    assert account.jobs == 3
    assert account.stages[1].dropped[0].count == 1


# --- the same by plain Python ---------------------------------------------------------------------

STATUSES = st.sampled_from(["Terminated", "Terminated", "Failed", "Running", "Waiting"])
TIMES = st.sampled_from(["", "0.0", *(f"{second}.0" for second in range(100, 1000, 90))])
AMOUNTS = st.sampled_from(["", "0.0", "10.0", "25.0", "50.0", "100.0", "200.0"])
NAMES = st.sampled_from([f"job{number}" for number in range(6)])
JOB_ROWS = st.lists(
    st.tuples(NAMES, st.sampled_from(["", "ia", "ib"]), STATUSES, TIMES, TIMES), max_size=8
)
TASK_ROWS = st.lists(
    st.tuples(NAMES, st.sampled_from(["", "1.0", "3.0"]), TIMES, TIMES, AMOUNTS, AMOUNTS),
    max_size=12,
)


def number(cell: str) -> float | None:
    return float(cell) if cell and float(cell) else None


def expected(
    jobs: list[tuple[str, ...]], tasks: list[tuple[str, ...]]
) -> dict[str, tuple[object, ...]]:
    """Join as described: GPUs × 1000, cores, submission, duration, wait and status of each job."""
    known = [task for task in tasks if task[0] in {job[0] for job in jobs}]
    moments = [number(cell) for job in jobs for cell in job[3:5]]
    moments += [number(cell) for task in known for cell in task[2:4]]
    last = max((moment for moment in moments if moment), default=0.0)
    found: dict[str, tuple[object, ...]] = {}
    seen = set()
    for name, _, status, submitted, ended in jobs:
        if name in seen:
            continue
        seen.add(name)
        mine = [task for task in tasks if task[0] == name]
        instances = [float(task[1] or 1) for task in mine]
        gpus = sum(n * float(task[5] or 0) for n, task in zip(instances, mine, strict=True)) / 100
        cores = sum(n * float(task[4] or 0) for n, task in zip(instances, mine, strict=True)) / 100
        starts = [s for task in mine if (s := number(task[2]))]
        ends = [e for task in mine if (e := number(task[3]))]
        end = last if status == "Running" else (max(ends) if ends else number(ended))
        submit = number(submitted)
        if status == "Waiting" or not submit or not gpus or not starts or not end:
            continue
        start = min(starts)
        if end < start:
            continue
        size = round(gpus * 1000) if gpus <= 1 else math.ceil(round(gpus, 6)) * 1000
        wait = start - submit if start >= submit else None
        found[name] = (size, round(cores, 6) or None, submit, end - start, wait, OURS[status])
    return found


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100
)
@given(JOB_ROWS, TASK_ROWS)
def test_any_tables_are_joined_as_the_publisher_describes(
    tmp_path: Path, jobs: list[tuple[str, ...]], tasks: list[tuple[str, ...]]
):
    """Random tables give exactly the jobs that a plain loop over them gives."""
    job_rows = [f"{name},{inst},u,{state},{s},{e}" for name, inst, state, s, e in jobs]
    task_rows = [
        f"{name},w,{n},Terminated,{s},{e},{cpu},,{gpu},T4" for name, n, s, e, cpu, gpu in tasks
    ]
    wanted = expected(jobs, tasks) if jobs and tasks else {}
    if not wanted:
        with pytest.raises((InvalidWorkloadError, TraceFormatError), match=r"no job is left|empty"):
            import_trace(written(tmp_path, job_table=job_rows, task_table=task_rows))
        return
    imported = import_trace(written(tmp_path, job_table=job_rows, task_table=task_rows))
    result = imported.workload()
    zero = (datetime.fromisoformat(imported.account.begins) - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001
    found = {
        result.id[row]: (
            int(result.gpus[row] * result.milli_gpu[row]),
            None if math.isnan(result.cpus[row]) else round(float(result.cpus[row]), 6),
            result.submit_s[row] + zero - 8 * 3600,
            result.duration_s[row],
            None if math.isnan(result.recorded_wait_s[row]) else result.recorded_wait_s[row],
            result.status.values()[row],
        )
        for row in range(len(result))
    }
    assert found == wanted
    assert imported.account.stages[-1].read == len(jobs)


# --- the simulator's sample -----------------------------------------------------------------------

SAMPLE = "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user"
SAMPLE_ROWS = [
    "0,1,0,6.0,0.25,T4,1200,ae8ed1",
    "1,4,10,6.0,0.5,MISC,0,ae8ed1",
    "2,2,20,6.0,1.0,V100,300,0b1",
    "3,1,30,6.0,,CPU,300,0b1",
]


def test_the_simulators_sample(tmp_path: Path):
    """Requests are per instance in GPUs; durations of 0 stay; no type was asked for."""
    path = tmp_path / "pai_job_no_estimate_100K.csv"
    path.write_text("\n".join([SAMPLE, *SAMPLE_ROWS]) + "\n")
    imported = import_trace([path])
    jobs = imported.workload()
    assert imported.account.format == "alibaba-pai-simulator"
    assert jobs.gpus.tolist() == [1, 2, 2]
    assert jobs.milli_gpu.tolist() == [250, 1000, 1000]
    assert jobs.cpus.tolist() == [6, 24, 12]
    assert jobs.duration_s.tolist() == [1200, 0, 300]
    assert jobs.submit_s.tolist() == [0, 10, 20]
    assert jobs.gpu_types.values() == [None] * 3
    assert not jobs.has_estimates
    assert reasons(imported.account) == {"asked for no GPU (CPU job)": 1}


def test_the_simulators_estimates(tmp_path: Path):
    """The guess from the job's group counts, then that from its user; columns go by name."""
    header = "wait_time,user_dur,user_gpu_dur,group_dur,group_gpu_dur," + SAMPLE
    extra = ["5,100,1,200,1", "-3,100,1,,1", ",,,,", "1,1,1,1,1"]
    rows = [f"{more},{row}" for more, row in zip(extra, SAMPLE_ROWS, strict=True)]
    path = tmp_path / "pai_job_duration_estimate_100K.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    imported = import_trace([path])
    jobs = imported.workload()
    assert jobs.estimate_s[:2].tolist() == [200, 100]
    assert math.isnan(jobs.estimate_s[2])
    assert jobs.recorded_wait_s[0] == 5
    assert np.isnan(jobs.recorded_wait_s[1:]).all()
    assert any("group_dur" in remark for remark in imported.account.remarks)
