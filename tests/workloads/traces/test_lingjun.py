"""Alibaba Lingjun: jobs and their workers."""

import csv
import io
import json
import math
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.account import Account
from yardmaster.workloads.traces.reading.options import ImportOptions

JOB_COLUMNS = (
    "id", "uid", "job_name", "kind", "namespace", "model", "status", "reason", "tenant_id",
    "user_id", "is_deleted", "gmt_job_submitted", "gmt_job_running", "gmt_job_stopped",
    "gmt_job_finished", "gmt_created", "job_max_running_time_minutes", "workspace_id", "priority",
    "", "",
)  # fmt: skip
WORKER_COLUMNS = (
    "id", "job_name", "worker_name", "replica_type", "host_ip", "gmt_created", "gmt_pod_running",
    "gmt_pod_finished", "RES",
)  # fmt: skip
OURS = {"Succeeded": "completed", "Failed": "failed", "Stopped": "cancelled", "Running": "running"}
Cells = dict[str, str]


def table(columns: tuple[str, ...], rows: list[Cells]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows([row.get(name, "") for name in columns] for row in rows)
    return stream.getvalue()


def written(folder: Path, jobs: list[Cells], workers: list[Cells]) -> Path:
    (folder / "job.csv").write_text(table(JOB_COLUMNS, jobs))
    (folder / "worker.csv").write_text(table(WORKER_COLUMNS, workers))
    (folder / "topo.csv").write_text("ip,DSW,PSW,ASW\n1.2.3.4,d,p,a\n")
    return folder


def job(name: str, status: str, submitted: str, running: str, finished: str, **more: str) -> Cells:
    times = {
        "gmt_job_submitted": submitted, "gmt_job_running": running, "gmt_job_finished": finished,
    }  # fmt: skip
    reason = 'it said "no",\nand left'
    return {"job_name": name, "status": status, "reason": reason} | times | more


def worker(job_name: str, name: str, gpus: int | str | None, memory: str = "800Gi") -> Cells:
    res = {"cpu": "88", "memory": memory, "koordinator.sh/rdma": "100"}
    if gpus is not None:
        res |= {"nvidia.com/gpu": str(gpus)}
    return {"job_name": job_name, "worker_name": name, "RES": json.dumps(res)}


JOBS = [
    job("dlc8169", "Stopped", "2023/7/17 02:53", "2023/7/5 15:18", "2023/7/17 02:57",
        gmt_job_stopped="2023/7/17 02:57", job_max_running_time_minutes="14400.0"),
    job("dlc1", "Failed", "2023/7/15 00:47", "", "2023/7/15 00:49"),
    job("dlc2", "Succeeded", "2023/7/15 01:57", "2023/7/15 01:59", "2023/7/15 03:59",
        model="llama_30b", tenant_id="t1", user_id="u1", priority="9.0",
        job_max_running_time_minutes="0.0"),
    job("dlc3", "Running", "2023/7/16 10:00", "2023/7/16 10:01", "", model="unknown"),
    job("dlc4", "Stopped", "2023/7/16 11:00", "2023/7/16 11:30", "",
        gmt_job_stopped="2023/7/16 12:30"),
    job("dlc5", "Failed", "2023/7/16 11:00", "2023/7/16 11:30", ""),
    job("dlc6", "Failed", "", "", ""),
    job("dlc7", "Succeeded", "2023/7/16 11:00", "2023/7/16 11:30", "2023/7/16 11:31"),
    job("dlc9", "Succeeded", "2023/7/16 11:00", "2023/7/16 11:30", "2023/7/16 11:31"),
]  # fmt: skip
WORKERS = [
    worker("dlc8169", "w0", 8),
    worker("dlc2", "master", 8),
    worker("dlc2", "w1", "8"),
    worker("dlc2", "w1", "8"),
    worker("dlc3", "w0", 1, memory="524288Mi"),
    worker("dlc4", "w0", 4),
    worker("dlc5", "w0", 4),
    {"job_name": "dlc7", "worker_name": "w0", "RES": ""},
    worker("dlc1", "w0", None),
    worker("elsewhere", "w0", 8),
]


def reasons(account: Account, stage: int = -1) -> dict[str, int]:
    return {entry.reason: entry.count for entry in account.stages[stage].dropped}


def test_gpus_are_those_of_the_workers(tmp_path: Path):
    """A job's GPUs, cores and memory are the sums over its workers, each counted once."""
    jobs = import_trace([written(tmp_path, JOBS, WORKERS)]).workload()
    found = dict(zip(jobs.id.tolist(), jobs.gpus.tolist(), strict=True))
    assert found == {"dlc2": 16, "dlc3": 1, "dlc4": 4, "dlc8169": 8}
    second = jobs.id.tolist().index("dlc2")
    assert (jobs.cpus[second], jobs.memory_gib[second]) == (176, 1600)
    assert jobs.memory_gib[jobs.id.tolist().index("dlc3")] == 512


def test_every_row_is_accounted_for(tmp_path: Path):
    """Jobs that never ran, have no end, no workers or no GPU are counted under their reasons."""
    account = import_trace([written(tmp_path, JOBS, WORKERS)]).account
    assert account.format == "lingjun-2023"
    assert reasons(account) == {
        "never submitted": 1,
        "never ran": 1,
        "no end recorded": 1,
        "have no worker in worker.csv": 1,
        "asked for no GPU (CPU job)": 1,
    }
    assert reasons(account, -2) == {
        "belong to no job of job.csv": 1,
        "a further row of the same worker": 1,
    }
    assert list(account.censored.values()) == [1]
    assert list(account.changed.values()) == [1]
    assert any("topo.csv" in remark for remark in account.remarks)


def test_times_are_local_minutes(tmp_path: Path):
    """Waits and run times come from the dates; what stopped has its end; what runs is cut off."""
    jobs = import_trace([written(tmp_path, JOBS, WORKERS)]).workload()
    rows = {name: row for row, name in enumerate(jobs.id.tolist())}
    assert jobs.begins == "2023-07-10T00:00:00"
    second = rows["dlc2"]
    assert jobs.submit_s[second] == 5 * 86400 + 117 * 60
    assert (jobs.duration_s[second], jobs.recorded_wait_s[second]) == (7200, 120)
    assert jobs.duration_s[rows["dlc4"]] == 3600
    cut = datetime(2023, 7, 17, 2, 57) - datetime(2023, 7, 16, 10, 1)  # noqa: DTZ001
    assert jobs.duration_s[rows["dlc3"]] == cut.total_seconds()
    assert math.isnan(jobs.recorded_wait_s[rows["dlc8169"]])
    statuses = jobs.status.values()
    assert [statuses[rows[name]] for name in ("dlc2", "dlc3", "dlc4")] == [
        "completed", "running", "cancelled",
    ]  # fmt: skip


def test_what_is_known_about_a_job_comes_along(tmp_path: Path):
    """Model, tenant, user, priority and time limit are kept; 'unknown' and 0 mean nothing."""
    jobs = import_trace([written(tmp_path, JOBS, WORKERS)]).workload()
    rows = {name: row for row, name in enumerate(jobs.id.tolist())}
    second, third = rows["dlc2"], rows["dlc3"]
    kinds = jobs.kind.values()
    assert (kinds[second], kinds[third]) == ("llama_30b", None)
    assert (jobs.tenant.values()[second], jobs.user.values()[second]) == ("t1", "u1")
    assert (jobs.priority[second], jobs.priority[third]) == (9, 0)
    assert jobs.estimate_s[rows["dlc8169"]] == 14400 * 60
    assert math.isnan(jobs.estimate_s[second])


def test_jobs_need_their_workers(tmp_path: Path):
    """One of the two tables alone is refused, and the message names the other."""
    written(tmp_path, JOBS, WORKERS)
    with pytest.raises(TraceFormatError, match=r"worker\.csv are both needed"):
        import_trace([tmp_path / "job.csv"])


@pytest.mark.parametrize(
    "cell",
    ["{", "[8]", "8", '{"nvidia.com/gpu": "many"}', '{"nvidia.com/gpu": -1}', '{"memory": "8 Zi"}',
     '{"nvidia.com/gpu": [1]}', '{"cpu": "1e999"}', "[" * 5000],
)  # fmt: skip
def test_resources_that_cannot_be_read_are_named_or_skipped(tmp_path: Path, cell: str):
    """A worker with broken JSON or an impossible amount stops the import, or is dropped."""
    bad = {"job_name": "dlc2", "worker_name": "broken", "RES": cell}
    folder = written(tmp_path, JOBS, [*WORKERS, bad])
    with pytest.raises(TraceFormatError, match="broken: RES is not JSON of quantities"):
        import_trace([folder])
    account = import_trace([folder], options=ImportOptions(skip_bad_rows=True)).account
    assert account.jobs == 4


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (job("x", "Failed", "2023/7/15 00:47", "2023/7/15 00:50", "2023/7/15 00:49"),
         "x: ended before it ran"),
        (job("x", "Failed", "yesterday", "2023/7/15 00:50", "2023/7/15 00:51"),
         "gmt_job_submitted is 'yesterday'"),
        (job("x", "Failed", "2023/13/15 00:47", "2023/7/15 00:50", "2023/7/15 00:51"),
         "gmt_job_submitted is '2023/13/15 00:47'"),
    ],
)  # fmt: skip
def test_damaged_jobs_are_named_or_skipped(tmp_path: Path, bad: Cells, message: str):
    """A damaged row stops the import with its place, or is dropped and counted on demand."""
    folder = written(tmp_path, [*JOBS, bad], [*WORKERS, worker("x", "w", 8)])
    with pytest.raises(TraceFormatError) as caught:
        import_trace([folder])
    assert message in str(caught.value)
    assert import_trace([folder], options=ImportOptions(skip_bad_rows=True)).account.jobs == 4


# --- the same by plain Python ---------------------------------------------------------------------

EPOCH = datetime(2023, 7, 15)  # noqa: DTZ001
MINUTES = st.one_of(st.none(), st.integers(0, 20_000))
RANDOM_JOBS = st.lists(
    st.tuples(st.sampled_from(list(OURS)), MINUTES, MINUTES, MINUTES, MINUTES), max_size=6
)
RANDOM_WORKERS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from([None, 0, 1, 8])), max_size=10
)


def moment(minute: int | None) -> str:
    if minute is None:
        return ""
    date = EPOCH + timedelta(minutes=minute)
    return f"{date.year}/{date.month}/{date.day} {date:%H:%M}"


def expected(
    jobs: list[tuple[str, int | None, int | None, int | None, int | None]],
    workers: list[tuple[int, int | None]],
) -> dict[str, tuple[object, ...]]:
    last = max((minute for job in jobs for minute in job[1:] if minute is not None), default=0)
    found: dict[str, tuple[object, ...]] = {}
    for place, (status, submitted, running, stopped, finished) in enumerate(jobs):
        gpus = sum(count or 0 for owner, count in workers if owner == place)
        end = stopped if finished is None else finished
        if end is None and status == "Running":
            end = last
        if submitted is None or running is None or end is None or not gpus or end < running:
            continue
        wait = None if running < submitted else (running - submitted) * 60.0
        found[f"job{place}"] = (gpus, (end - running) * 60.0, wait, OURS[status])
    return found


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)
@given(RANDOM_JOBS, RANDOM_WORKERS)
def test_any_tables_are_joined_as_a_plain_loop_would(
    tmp_path: Path,
    jobs: list[tuple[str, int | None, int | None, int | None, int | None]],
    workers: list[tuple[int, int | None]],
):
    """Random tables give exactly the jobs that a plain loop over them gives."""
    job_rows = [
        job(f"job{place}", status, moment(submitted), moment(running), moment(finished),
            gmt_job_stopped=moment(stopped))
        for place, (status, submitted, running, stopped, finished) in enumerate(jobs)
    ]  # fmt: skip
    worker_rows = [
        worker(f"job{owner}", f"w{place}", gpus) for place, (owner, gpus) in enumerate(workers)
    ]
    folder = written(tmp_path, job_rows, worker_rows)
    options = ImportOptions(skip_bad_rows=True)
    wanted = expected(jobs, workers)
    if not wanted:
        with pytest.raises(InvalidWorkloadError, match="no job is left"):
            import_trace([folder], options=options)
        return
    imported = import_trace([folder], options=options)
    result = imported.workload()
    waits = [None if math.isnan(wait) else wait for wait in result.recorded_wait_s]
    rows = zip(result.gpus, result.duration_s, waits, result.status.values(), strict=True)
    assert dict(zip(result.id.tolist(), rows, strict=True)) == wanted
    assert imported.account.stages[-1].read == len(jobs)
