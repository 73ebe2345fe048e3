"""Alibaba's pods that share GPUs."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
TRACE = SHARED / "alibaba_openb2023"
NEEDS_TRACE = pytest.mark.skipif(not TRACE.is_dir(), reason="needs ../shared/traces")
HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time"
)
ROWS = [
    "openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,0,1000,10",
    "openb-pod-0022,4000,15258,1,220,,BE,Running,100,400,100",
    "openb-pod-0035,16000,32768,1,1000,V100M16|V100M32|V100M32,LS,Running,200,2000,260",
    "openb-pod-0036,16000,32768,2,1000,,LS,Failed,300,500,300",
    "openb-pod-0037,16000,32768,1,500,,LS,Pending,300,900,",
    "openb-pod-0038,16000,32768,0,0,,LS,Running,300,900,301",
]


def written(folder: Path, *rows: str, header: str = HEADER, name: str = "pods.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_pods_are_jobs(tmp_path: Path):
    """GPU pods that were scheduled are jobs; shares, types and classes come along."""
    imported = import_trace([written(tmp_path, *ROWS)])
    jobs = imported.workload()
    assert imported.account.format == "alibaba-openb-2023"
    assert jobs.gpus.tolist() == [8, 1, 1, 2]
    assert jobs.milli_gpu.tolist() == [1000, 220, 1000, 1000]
    assert jobs.submit_s.tolist() == [0, 100, 200, 300]
    assert jobs.duration_s.tolist() == [990, 300, 1740, 200]
    assert jobs.recorded_wait_s.tolist() == [10, 0, 60, 0]
    assert jobs.gpu_types.values() == [None, None, "V100M16|V100M32", None]
    assert jobs.tenant.values() == ["Burstable", "BE", "LS", "LS"]
    assert jobs.priority.tolist() == [1, 0, 1, 1]
    assert (jobs.cpus[0], jobs.memory_gib[0]) == (88, 320)
    reasons = {entry.reason: entry.count for entry in imported.account.stages[-1].dropped}
    assert reasons == {"asked for no GPU (CPU job)": 1, "never scheduled": 1}


def test_running_pods_were_stopped_except_at_the_end(tmp_path: Path):
    """A pod deleted while it ran was cancelled; one that runs in the last second is cut off."""
    imported = import_trace([written(tmp_path, *ROWS)])
    statuses = imported.workload().status.values()
    assert statuses == ["completed", "cancelled", "running", "failed"]
    assert list(imported.account.censored.values()) == [1]


def test_a_list_without_times_says_that_its_times_are_invented(tmp_path: Path):
    """A mixture of requests becomes jobs a second apart, and the account says so loudly."""
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
    rows = ["a,1000,1024,1,500", "b,1000,1024,0,0", "c,1000,1024,4,1000"]
    imported = import_trace([written(tmp_path, *rows, header=header)])
    jobs = imported.workload()
    assert jobs.submit_s.tolist() == [0, 1]
    assert jobs.duration_s.tolist() == [3600, 3600]
    assert np.isnan(jobs.recorded_wait_s).all()
    ((what, count),) = imported.account.changed.items()
    assert "INVENTED" in what
    assert count == 2
    assert any("INVENTED" in note for note in jobs.notes)
    assert "creation_time" in imported.account.missing_columns


def test_some_times_are_not_enough(tmp_path: Path):
    """A list with a part of the times is damaged, and not a mixture."""
    header = HEADER.replace("deletion_time", "removal_time")
    with pytest.raises(TraceFormatError, match="no column 'deletion_time'"):
        import_trace([written(tmp_path, *ROWS, header=header)])


def test_an_empty_list_gives_no_workload(tmp_path: Path):
    """A header without pods is refused, and not with a traceback."""
    with pytest.raises(InvalidWorkloadError, match="no job is left"):
        import_trace([written(tmp_path)])


def test_several_lists_are_several_traces(tmp_path: Path):
    """Lists are never put together: one of them must be chosen."""
    written(tmp_path, *ROWS, name="one.csv")
    written(tmp_path, *ROWS[:2], name="two.csv")
    with pytest.raises(InvalidWorkloadError, match="--only"):
        import_trace([tmp_path])
    assert import_trace([tmp_path], only="two").account.jobs == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("bad,1,1,1,1000,,LS,Failed,5,9,12", "bad: deleted before it was scheduled"),
        ("bad,1,1,1,1500,,LS,Failed,5,9,6", "bad: gpu_milli is above 1000"),
        ("bad,1,1,1.5,1000,,LS,Failed,5,9,6", "line 8: num_gpu is '1.5'"),
        ("bad,1,1,1,1000,,LS,Failed,,9,6", "line 8: creation_time is empty"),
        ('bad,1,1,1,1000,"x\ny",LS,Failed,zero,9,6', "line 8: creation_time is 'zero'"),
    ],
)
def test_rows_that_make_no_sense_are_named_or_skipped(tmp_path: Path, bad: str, message: str):
    """A damaged row stops the import with its place, or is dropped and counted on demand."""
    path = written(tmp_path, *ROWS, bad)
    with pytest.raises(TraceFormatError) as caught:
        import_trace([path])
    assert message in str(caught.value)
    assert import_trace([path], options=ImportOptions(skip_bad_rows=True)).account.jobs == 4


def wanted(path: Path) -> dict[str, tuple[float, float, float]]:
    """Return submission, duration and GPUs of every pod that used a GPU, with plain Python."""
    with path.open(newline="") as stream:
        return {
            row["name"]: (
                float(row["creation_time"]),
                float(row["deletion_time"]) - float(row["scheduled_time"]),
                int(row["num_gpu"]) * int(row["gpu_milli"]) / 1000,
            )
            for row in csv.DictReader(stream)
            if row["num_gpu"] != "0" and row["scheduled_time"]
        }


@NEEDS_TRACE
@pytest.mark.parametrize("name", ["default", "gpuspec33"])
def test_the_published_lists(name: str):
    """All pods that used a GPU are there, as many as the published statistics count."""
    path = TRACE / f"openb_pod_list_{name}.csv"
    imported = import_trace([path])
    jobs = imported.workload()
    found = zip(jobs.submit_s, jobs.duration_s, jobs.gpus * jobs.milli_gpu / 1000, strict=True)
    assert dict(zip(jobs.id.tolist(), found, strict=True)) == wanted(path)
    statistics = json.loads((SHARED / "generator_stats.json").read_text())["openb_2023"]
    assert len(jobs) == statistics["jobs"]
    reasons = {entry.reason: entry.count for entry in imported.account.stages[-1].dropped}
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    cpu_only = sum(row["num_gpu"] == "0" for row in rows)
    unscheduled = sum(row["num_gpu"] != "0" and not row["scheduled_time"] for row in rows)
    assert reasons == {"asked for no GPU (CPU job)": cpu_only, "never scheduled": unscheduled}


@NEEDS_TRACE
def test_the_published_type_constraints():
    """A third of the GPU pods name types; every name is kept once."""
    path = TRACE / "openb_pod_list_gpuspec33.csv"
    jobs = import_trace([path]).workload()
    with path.open(newline="") as stream:
        specs = {
            row["name"]: set(filter(None, row["gpu_spec"].split("|")))
            for row in csv.DictReader(stream)
        }
    for name, types in zip(jobs.id.tolist(), jobs.gpu_types.values(), strict=True):
        listed = types.split("|") if types else []
        assert len(listed) == len(set(listed))
        assert set(listed) == specs[name]


@NEEDS_TRACE
def test_the_published_mixture_keeps_its_sizes_and_order():
    """The list without times has the sizes of the file, in its order."""
    path = TRACE / "openb_pod_list_multigpu50.csv"
    with path.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["num_gpu"] != "0"]
    jobs = import_trace([path]).workload()
    assert jobs.gpus.tolist() == [int(row["num_gpu"]) for row in rows]
    assert jobs.id.tolist() == [row["name"] for row in rows]


@NEEDS_TRACE
def test_the_published_lists_simulate_on_their_cluster():
    """Types and shares of the real pods are understood by the cluster they ran on."""
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.schedulers.simulation import simulate

    jobs = import_trace([TRACE / "openb_pod_list_gpuspec33.csv"]).workload()
    first = jobs.select(np.arange(len(jobs)) < 200)
    schedule = simulate(first, load_cluster("openb"), "fifo+skip@pack")
    assert len(schedule.start_s) == 200
    assert np.isfinite(schedule.start_s).all()
