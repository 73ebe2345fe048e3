"""Alibaba's list of high-priority and spot jobs."""

from pathlib import Path

import pytest

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

HEADER = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
    "job_type"
)
ROWS = [
    "239255,13,A10,20,1,1,0,2764799,HP",
    "253689,13,GPU-series-1,8,0.5,1,5,15897599,HP",
    "437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot",
    "437261,57,H800,15,0.5,3,9589663,71718,Spot",
    "437262,57,,4,0,2,9589664,10,Spot",
]


def written(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "job_info_df.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_gpus_are_those_of_all_workers(tmp_path: Path):
    """GPUs and cores are per worker; shares of one GPU stay shares, others are rounded up."""
    imported = import_trace([written(tmp_path, *ROWS)])
    jobs = imported.workload()
    assert imported.account.format == "alibaba-spot-2026"
    assert jobs.id.tolist() == ["239255", "253689", "437260", "437261"]
    assert jobs.gpus.tolist() == [1, 1, 16, 2]
    assert jobs.milli_gpu.tolist() == [1000, 500, 1000, 1000]
    assert jobs.cpus.tolist() == [20, 8, 240, 45]
    assert jobs.submit_s.tolist() == [0, 5, 9589663, 9589663]
    assert jobs.duration_s.tolist() == [2764799, 15897599, 41060, 71718]
    assert list(imported.account.changed.values()) == [1]
    (dropped,) = imported.account.stages[-1].dropped
    assert (dropped.count, imported.account.stages[0].read) == (1, 5)


def test_high_priority_jobs_go_first(tmp_path: Path):
    """HP is priority 1 and Spot 0; the GPU model is what was asked for; organisations pay."""
    jobs = import_trace([written(tmp_path, *ROWS)]).workload()
    assert jobs.priority.tolist() == [1, 1, 0, 0]
    assert jobs.kind.values() == ["HP", "HP", "Spot", "Spot"]
    assert jobs.gpu_types.values() == ["A10", "GPU-series-1", "A100-SXM4-80GB", "H800"]
    assert jobs.tenant.values() == ["13", "13", "57", "57"]
    assert jobs.begins == ""


def test_columns_are_read_by_name(tmp_path: Path):
    """Columns in another order, CRLF and a byte-order mark change nothing."""
    plain = import_trace([written(tmp_path, *ROWS)]).workload()
    shuffled = [row.split(",")[::-1] for row in [HEADER, *ROWS]]
    path = tmp_path / "other.csv"
    text = "\r\n".join(",".join(cells) for cells in shuffled) + "\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert import_trace([path]).workload().fingerprint() == plain.fingerprint()


def test_cores_may_be_slots(tmp_path: Path):
    """With a slot size, jobs without GPUs are gangs of slots."""
    options = ImportOptions(slot_cores=3.0)
    jobs = import_trace([written(tmp_path, *ROWS)], options=options).workload()
    assert dict(zip(jobs.id.tolist(), jobs.gpus.tolist(), strict=True))["437262"] == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,1,A10,1,1,1,-5,10,HP", "line 7: submit_time is '-5'"),
        ("1,1,A10,1,-1,1,0,10,HP", "line 7: gpu_request is '-1'"),
        ("1,1,A10,1,1,99999999999999999999,0,10,HP", "line 7: worker_num"),
        ("1,1,A10,1,1,1,0,,HP", "line 7: duration is empty"),
        ("1,1,A10,1,1,1,0", "line 7: 7 cells, but there are 9 columns"),
        ("1,1,A10,1,9000,9000,0,10,HP", "1: asked for more than 10,000,000 GPUs"),
    ],
)
def test_bad_rows_are_named_or_skipped(tmp_path: Path, row: str, message: str):
    """A damaged row stops the import with its place, or is dropped and counted on demand."""
    path = written(tmp_path, *ROWS, row)
    with pytest.raises(TraceFormatError) as caught:
        import_trace([path])
    assert message in str(caught.value)
    skipped = import_trace([path], options=ImportOptions(skip_bad_rows=True)).account
    assert skipped.jobs == 4
    assert skipped.stages[0].read == 6
    reasons = [entry.reason for stage in skipped.stages for entry in stage.dropped]
    assert any(reason.startswith("cannot be read") for reason in reasons)


def test_a_missing_column_is_named(tmp_path: Path):
    """Without the number of workers the file is refused by name, with a suggestion."""
    path = written(tmp_path, header=HEADER.replace("worker_num", "workers_num"))
    with pytest.raises(TraceFormatError, match=r"no column 'worker_num'.*workers_num"):
        import_trace([path], "alibaba-spot-2026")


def test_a_list_of_cpu_jobs_gives_no_workload(tmp_path: Path):
    """If nobody asks for a GPU, the message says so."""
    with pytest.raises(InvalidWorkloadError, match="1 asked for no GPU"):
        import_trace([written(tmp_path, ROWS[-1])])
