"""Helios logs as SenseTime publishes them."""

import csv
import io
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

HEADER = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
STATES = ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "RUNNING", "SUSPENDED"]
EPOCH = datetime(2020, 1, 1)  # noqa: DTZ001  (the log's own clock)


def row(number: int, gpus: int, state: str, submit: str, duration: str, queue: str) -> str:
    return (
        f"{number},u{number % 3},vc{number % 2},{gpus},{gpus * 4 + 1},1,{state},{submit},"
        f"{submit},{submit},{duration},{queue}"
    )


ROWS = st.lists(
    st.builds(
        row,
        st.integers(1, 10**7),
        st.sampled_from([0, 0, 1, 8, 64]),
        st.sampled_from(STATES),
        st.datetimes(datetime(2020, 3, 18), datetime(2020, 9, 27)).map(  # noqa: DTZ001
            lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S")
        ),
        st.integers(0, 1_209_700).map(str),
        st.integers(0, 10**6).map(str),
    ),
    max_size=30,
)


def expected(rows: list[str]) -> list[tuple[str, int, float, float, str]]:
    """Say what must come out, by the publisher's description alone."""
    found = []
    for cells in csv.DictReader(io.StringIO("\n".join([HEADER, *rows]))):
        if cells["state"] in {"RUNNING", "SUSPENDED"} or cells["gpu_num"] == "0":
            continue
        if cells["submit_time"] < "2020-04-01":
            continue
        found.append(
            (
                cells["submit_time"], int(cells["gpu_num"]), float(cells["duration"]),
                float(cells["queue"]), cells["vc"],
            )
        )  # fmt: skip
    return sorted(found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ROWS)
def test_jobs_are_those_that_used_gpus_and_ended(tmp_path: Path, rows: list[str]):
    """CPU jobs, unfinished jobs and what is left from March are dropped; all else is as logged."""
    path = tmp_path / "cluster_log.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    wanted = expected(rows)
    if not wanted:
        with pytest.raises(InvalidWorkloadError, match="no job is left"):
            import_trace([path], "helios")
        return
    imported = import_trace([path])
    assert imported.account.format == "helios"
    assert imported.account.stages[0].read == len(rows)
    jobs = imported.workload()
    begins = (datetime.fromisoformat(jobs.begins) - EPOCH).total_seconds()
    found = [
        (
            datetime.fromtimestamp(EPOCH.timestamp() + begins + submit).strftime(  # noqa: DTZ006
                "%Y-%m-%d %H:%M:%S"
            ),
            int(gpus), float(duration), float(wait), str(vc),
        )
        for submit, gpus, duration, wait, vc in zip(
            jobs.submit_s, jobs.gpus, jobs.duration_s, jobs.recorded_wait_s,
            jobs.tenant.values(), strict=True,
        )
    ]  # fmt: skip
    assert sorted(found) == wanted


def test_cores_may_be_slots(tmp_path: Path):
    """With slots of cores, CPU jobs stay: 64 cores are eight slots of eight, 9 cores are two."""
    path = tmp_path / "cluster_log.csv"
    times = "2020-04-02 00:00:00,2020-04-02 00:01:00,2020-04-02 01:01:00,3600,60"
    sizes = ("8,64", "0,64", "0,9", "0,0")
    rows = [f"{n},u,vc,{size},1,COMPLETED,{times}" for n, size in enumerate(sizes)]
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    found = import_trace([path], "helios", options=ImportOptions(slot_cores=8))
    assert found.workload().gpus.tolist() == [8, 8, 2]
    (dropped,) = found.account.stages[0].dropped
    assert (dropped.reason, dropped.count) == ("asked for neither GPUs nor cores", 1)
    assert any("2 jobs asked for cores only" in remark for remark in found.account.remarks)


def test_words_for_the_end_are_ours(tmp_path: Path):
    """The publisher's states become the words every trace uses."""
    path = tmp_path / "cluster_log.csv"
    rows = [row(n, 1, state, "2020-05-01 00:00:00", "5", "6") for n, state in enumerate(STATES[:5])]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    assert import_trace([path]).workload().status.values() == [
        "completed", "cancelled", "failed", "timeout", "node failure",
    ]  # fmt: skip


def test_one_cluster_at_a_time(tmp_path: Path):
    """The publisher's archive holds four clusters: the user chooses one, by name."""
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(("Earth", "Venus")):
            text = f"{HEADER}\n{row(number, 2, 'COMPLETED', '2020-05-01 00:00:00', '5', '6')}\n"
            archive.writestr(f"data/{name}/cluster_log.csv", text)
            archive.writestr(
                f"data/{name}/cluster_gpu_number.csv", "date,vc1,total\n2020-04-01,8,8\n"
            )
    with pytest.raises(InvalidWorkloadError, match=r"--only.*Earth.*Venus"):
        import_trace([path])
    imported = import_trace([path], only="Venus")
    assert imported.workload().id.tolist() == [1]


def test_a_log_that_broke_off_is_refused(tmp_path: Path):
    """A last line without its end is a mistake with its number."""
    path = tmp_path / "cluster_log.csv"
    whole = row(1, 1, "COMPLETED", "2020-05-01 00:00:00", "5", "6")
    path.write_text(f"{HEADER}\n{whole}\n{whole[:40]}")
    with pytest.raises(TraceFormatError, match="line 3"):
        import_trace([path])
