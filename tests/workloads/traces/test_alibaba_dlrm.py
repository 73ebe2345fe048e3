"""Alibaba's instances that serve recommendation models."""

import csv
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

TRACE = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces" / "alibaba_dlrm2025"
HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,"
    "scheduled_time,deletion_time"
)


def row(name: str, gpus: str, created: str, scheduled: str, deleted: str) -> str:
    role = "CN" if gpus == "0" else "HN"
    resources = f"12,12,{gpus},{gpus},25,25,120.0,120.0,1,1,8"
    return f"{name},{role},app_1,{resources},{created},{scheduled},{deleted}"


def written(folder: Path, *rows: str) -> Path:
    path = folder / "disaggregated_DLRM_trace.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


SAMPLE = [
    row("before", "1", "", "", "50.0"),
    row("always", "1", "", "", ""),
    row("within", "1", "10.0", "25.0", "75.0"),
    row("after", "1", "20.0", "20.0", ""),
    row("pending", "1", "30.0", "", ""),
    row("cpu", "0", "40.0", "40.0", "100.0"),
]


def test_what_is_cut_off_is_said_to_be(tmp_path: Path):
    """Instances from before the trace start at 0, those that outlive it end at its last second."""
    imported = import_trace([written(tmp_path, *SAMPLE)])
    jobs = imported.workload()
    assert imported.account.format == "alibaba-dlrm-2025"
    assert jobs.id.tolist() == ["before", "always", "within", "after"]
    assert jobs.submit_s.tolist() == [0, 0, 10, 20]
    assert jobs.duration_s.tolist() == [50, 100, 50, 80]
    assert jobs.status.values() == ["censored", "running", "completed", "running"]
    waits = jobs.recorded_wait_s
    assert np.isnan(waits[:2]).all()
    assert waits[2:].tolist() == [15, 0]
    assert sum(imported.account.censored.values()) == 3
    reasons = {entry.reason: entry.count for entry in imported.account.stages[-1].dropped}
    assert reasons == {"asked for no GPU (CPU job)": 1, "never scheduled": 1}


def test_resources_are_those_of_the_instance(tmp_path: Path):
    """Cores, memory, app and role come along."""
    jobs = import_trace([written(tmp_path, *SAMPLE)]).workload()
    assert (jobs.cpus[0], jobs.memory_gib[0], jobs.gpus[0]) == (12, 120, 1)
    assert (jobs.tenant.values()[0], jobs.kind.values()[0]) == ("app_1", "HN")


@pytest.mark.parametrize("blank", ["", "NaN", "nan"])
def test_nothing_may_be_written_as_nan(tmp_path: Path, blank: str):
    """A blank time and one written NaN mean the same."""
    rows = [row("a", "1", blank, blank, "5"), row("b", "1", "1", "2", blank)]
    jobs = import_trace([written(tmp_path, *rows)]).workload()
    assert jobs.duration_s.tolist() == [5, 3]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row("bad", "1", "1", "9", "5"), "bad: deleted before it was scheduled"),
        (row("bad", "1", "9", "", "5"), "bad: deleted before it was created"),
        (row("bad", "1", "-9", "1", "5"), "line 8: creation_time is '-9'"),
        (row("bad", "x", "1", "1", "5"), "line 8: gpu_request is 'x'"),
    ],
)
def test_rows_that_make_no_sense_are_named_or_skipped(tmp_path: Path, bad: str, message: str):
    """A damaged row stops the import with its place, or is dropped and counted on demand."""
    path = written(tmp_path, *SAMPLE, bad)
    with pytest.raises(TraceFormatError) as caught:
        import_trace([path])
    assert message in str(caught.value)
    assert import_trace([path], options=ImportOptions(skip_bad_rows=True)).account.jobs == 4


@pytest.mark.skipif(not TRACE.is_dir(), reason="needs ../shared/traces")
def test_the_published_trace():
    """Every GPU instance of the real trace is there, with the run time that can be known."""
    path = TRACE / "disaggregated_DLRM_trace.csv"
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    times = ("creation_time", "scheduled_time", "deletion_time")
    last = max(float(cells[name]) for cells in rows for name in times if cells[name])
    wanted = {
        cells["instance_sn"]: float(cells["deletion_time"] or last)
        - float(cells["scheduled_time"] or 0.0)
        for cells in rows
        if cells["gpu_request"] != "0"
    }
    imported = import_trace([path])
    jobs = imported.workload()
    assert dict(zip(jobs.id.tolist(), jobs.duration_s.tolist(), strict=True)) == pytest.approx(
        wanted
    )
    cut = [
        c
        for c in rows
        if c["gpu_request"] != "0" and not (c["creation_time"] and c["deletion_time"])
    ]
    assert sum(imported.account.censored.values()) == len(cut)
    assert imported.account.stages[0].read == len(rows)
