"""Conversions of public traces: the real files, counted again in plain Python; their traps."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.conversions import CONVERSIONS
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")

RFOLD = "#job id,arrival time (sec),topology,shape,size,duration (sec)"
POLLUX = "timestamp,duration,num_gpus,gpu_time,cluster"
ARRIVALS = "job_id,arrival_s,service_sec,gpu_count"
FLEETSIM = (
    "job_id,user,tenant,class,submit_time,num_chips,chip_type,num_nodes,duration_s,"
    "walltime_limit_s,final_status"
)
DRL = "arrival_time,runtime,gpus,priority"
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval"


def rows_of(path: Path) -> list[dict[str, str]]:
    """Read a table with Python's own reader: no comments, no `#` before the header."""
    with path.open(newline="") as stream:
        lines = [line for line in stream if not line.startswith("# ")]
    lines[0] = lines[0].lstrip("#")
    return list(csv.DictReader(lines))


def moments(jobs) -> list[datetime]:
    """Return the local date and time of each submission."""
    begins = datetime.fromisoformat(jobs.begins)
    assert (begins.weekday(), begins.time().isoformat()) == (0, "00:00:00")
    return [begins + timedelta(seconds=second) for second in jobs.submit_s.tolist()]


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@needs_traces
def test_philly_rfold_has_dates_and_all_jobs():
    """Every job is there, zero run times too, on the calendar of the known second 0."""
    path = TRACES / "philly" / "philly_rfold_until_2017-10.csv"
    rows = rows_of(path)
    found = import_trace([path])
    assert found.account.format == "philly-rfold"
    jobs = found.workload()
    second_0 = datetime(2017, 8, 14, 23, 27)  # noqa: DTZ001  (the trace's local clock)
    arrivals = [second_0 + timedelta(seconds=float(r["arrival time (sec)"])) for r in rows]
    assert moments(jobs) == arrivals
    assert jobs.gpus.tolist() == [int(r["size"]) for r in rows]
    assert jobs.duration_s.tolist() == [float(r["duration (sec)"]) for r in rows]
    assert jobs.id.tolist() == [int(r["job id"]) for r in rows]
    assert np.count_nonzero(jobs.duration_s == 0) == 6


@needs_traces
def test_philly_pollux_is_put_in_order():
    """Rows come unsorted with dates; the cluster is the tenant."""
    path = TRACES / "philly" / "philly_pollux_until_2017-10.csv"
    rows = sorted(rows_of(path), key=lambda row: row["timestamp"])
    found = import_trace([path])
    assert found.account.format == "philly-pollux"
    jobs = found.workload()
    assert [str(moment) for moment in moments(jobs)] == [row["timestamp"] for row in rows]
    assert jobs.tenant.values() == [row["cluster"] for row in rows]
    assert jobs.work_gpu_s == pytest.approx(sum(float(row["gpu_time"]) for row in rows))


@needs_traces
def test_helios_arrivals_of_venus_are_dated_and_censored():
    """Warm-up jobs are dropped, jobs cut off at two days are marked, dates are Venus's."""
    path = TRACES / "helios" / "venus_until_2020-07.csv"
    second_0 = datetime(2020, 3, 18, 4, 1, 39)  # noqa: DTZ001
    april = (datetime(2020, 4, 1) - second_0).total_seconds()  # noqa: DTZ001
    rows = rows_of(path)
    kept = [row for row in rows if float(row["arrival_s"]) >= april]
    found = import_trace([path])
    assert found.account.format == "helios-arrivals"
    assert found.account.stages[-1].dropped[0].count == len(rows) - len(kept) == 89
    jobs = found.workload()
    assert jobs.id.tolist() == [row["job_id"] for row in kept]
    assert moments(jobs) == [second_0 + timedelta(seconds=float(row["arrival_s"])) for row in kept]
    cut = [float(row["service_sec"]) == 172_800 for row in kept]
    assert [word == "censored" for word in jobs.status.values()] == cut
    assert list(found.account.censored.values()) == [sum(cut)]


@needs_traces
def test_fleetsim_counts_microseconds_and_has_no_estimates():
    """Submissions are in µs from the window in the comments; the limit is an oracle."""
    path = TRACES / "helios_venus_2vc" / "helios_venus_2vc_sept.csv"
    rows = rows_of(path)
    found = import_trace([path])
    assert found.account.format == "fleetsim"
    jobs = found.workload()
    first = datetime(2020, 9, 1)  # noqa: DTZ001
    wanted = [first + timedelta(microseconds=int(row["submit_time"])) for row in rows]
    assert moments(jobs) == wanted
    assert np.isnan(jobs.estimate_s).all()
    assert any("walltime_limit_s is no estimate" in remark for remark in found.account.remarks)
    words = {"COMPLETED": "completed", "CANCELED": "cancelled", "FAILED": "failed"}
    states = Counter(words.get(row["final_status"], "node failure") for row in rows)
    assert Counter(jobs.status.values()) == states
    assert jobs.tenant.values() == [row["tenant"] for row in rows]
    assert jobs.kind.values() == [row["class"] for row in rows]


def test_arrivals_of_other_clusters_have_no_dates(tmp_path):
    """Second 0 is known for Venus only: elsewhere seconds stay seconds and nothing is dropped."""
    lines = [ARRIVALS, "363167#0,0.0,60.0,1", "2#1,90000.0,172800.0,8"]
    found = import_trace([table(tmp_path / "saturn_until_2020-07.csv", *lines)])
    assert (found.account.begins, found.workload().submit_s.tolist()) == ("", [0, 90_000])
    assert found.workload().status.values() == [None, "censored"]
    assert any("date of second 0 is not known" in remark for remark in found.account.remarks)
    venus = table(tmp_path / "Venus.csv", *lines)
    with pytest.raises(InvalidWorkloadError, match="no job is left: 2 submitted before 2020-04-01"):
        import_trace([venus])


def test_venus_on_another_clock_has_no_dates(tmp_path):
    """A later part that counts from its own beginning is not put into March."""
    lines = [ARRIVALS, "700000#9,0.0,60.0,1", "700001#10,5.0,50.0,8"]
    found = import_trace([table(tmp_path / "venus_2020-08.csv", *lines)])
    assert (found.account.begins, found.account.jobs) == ("", 2)


def test_rfold_tables_on_another_clock_have_no_dates(tmp_path):
    """Other traces in this shape are not put into Philly's August; later parts of Philly are."""
    other = [RFOLD, "0,0.0,CLOS,1,8,10.0", "1,5.0,CLOS,1,4,100.0"]
    found = import_trace([table(tmp_path / "other.csv", *other)])
    assert (found.account.begins, found.workload().submit_s.tolist()) == ("", [0, 5])
    later = import_trace([table(tmp_path / "later.csv", RFOLD, "70000,9000000.0,CLOS,1,8,10.0")])
    assert moments(later.workload()) == [datetime(2017, 11, 27, 3, 27)]  # noqa: DTZ001


def test_run_times_longer_than_the_cut_are_no_lower_bounds(tmp_path):
    """A file with jobs of more than two days was not cut off."""
    lines = [ARRIVALS, "1#0,0.0,172800.0,1", "2#1,5.0,172801.0,8"]
    found = import_trace([table(tmp_path / "earth.csv", *lines)])
    assert not found.account.censored


def test_fleetsim_without_a_window_has_no_dates(tmp_path):
    """Chip types are what the job asks for; without the comment second 0 is unknown."""
    path = table(
        tmp_path / "slice.csv", "# fleetsim", FLEETSIM,
        "7,ann,vc,pretrain,2500000,16,H100,2,60.0,60.0,CANCELED",
    )  # fmt: skip
    jobs = import_trace([path]).workload()
    assert (jobs.begins, jobs.submit_s.tolist()) == ("", [2.5])
    assert (jobs.gpu_types.values(), jobs.status.values()) == (["H100"], ["cancelled"])


def test_drl_scheduler_tables_drop_what_their_makers_drop(tmp_path):
    """Rows of 1 s or less and rows without GPUs are dropped, each with its reason."""
    path = table(
        tmp_path / "alibaba_low.csv", DRL,
        "0,100,1,0.5", "5,1,1,0.5", "6,0.4,2,1", "7,50,0,0.5", "9,20,8,5.0",
    )  # fmt: skip
    found = import_trace([path])
    assert found.account.format == "drl-scheduler-csv"
    jobs = found.workload()
    assert (jobs.gpus.tolist(), jobs.priority.tolist()) == ([1, 8], [0.5, 5])
    assert [entry.count for entry in found.account.stages[0].dropped] == [1, 2]


def test_tiresias_tables_carry_the_model(tmp_path):
    """The model is the kind of job."""
    path = table(
        tmp_path / "480_job.csv", TIRESIAS, "1,4,0,1000,vgg16,360,10", "2,1,10,5,alexnet,9,0"
    )
    found = import_trace([path])
    assert found.account.format == "tiresias"
    assert found.workload().kind.values() == ["vgg16", "alexnet"]
    assert "columns not used: iterations, interval" in found.account.remarks


SAMPLES = {
    "philly-rfold": (RFOLD, "0,{},CLOS,1,1,60.0"),
    "philly-pollux": (POLLUX, "2017-10-09 07:01:{},66.0,1,66.0,11cb48"),
    "helios-arrivals": (ARRIVALS, "1#{0},{0},60,1"),
    "fleetsim": (FLEETSIM, "7,ann,vc,train,{},16,,2,60.0,60.0,FAILED"),
    "drl-scheduler-csv": (DRL, "{},100,1,0.5"),
    "tiresias": (TIRESIAS, "1,4,{},1000,vgg16,360,10"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_bad_cells_are_named_or_skipped(tmp_path, name):
    """A submission that makes no sense is refused with its line, or dropped and counted."""
    header, row = SAMPLES[name]
    lines = [header, row.format("10"), row.format("-7x"), row.format("11")]
    path = table(tmp_path / "trace.csv", *lines)
    with pytest.raises(TraceFormatError, match=r"line 3: .*-7x"):
        import_trace([path])
    found = import_trace([path], options=ImportOptions(skip_bad_rows=True))
    assert found.account.format == name
    stage = found.account.stages[0]
    assert (stage.read, stage.kept, stage.dropped[0].examples) == (3, 2, ("line 3",))


@pytest.mark.parametrize("name", SAMPLES)
def test_columns_may_come_in_any_order(tmp_path, name):
    """Columns are read by name: shuffled ones give the same jobs."""
    header, row = SAMPLES[name]
    lines = [header.lstrip("#"), row.format("10"), row.format("11")]
    turned = [",".join(reversed(line.split(","))) for line in lines]
    found = [import_trace([table(tmp_path / "trace.csv", *each)]) for each in (lines, turned)]
    assert found[0].account.format == found[1].account.format == name
    assert found[0].workload().fingerprint() == found[1].workload().fingerprint()


def test_no_conversion_is_taken_for_another(tmp_path):
    """Exactly one entry recognises each sample."""
    from yardmaster.workloads.traces.formats import trace_formats
    from yardmaster.workloads.traces.reading.trace_files import TraceFile

    assert set(SAMPLES) == {conversion.name for conversion in CONVERSIONS}
    for name, (header, row) in SAMPLES.items():
        path = table(tmp_path / "trace.csv", header, row.format("10"))
        file = TraceFile(str(path), path)
        known = [entry for key, entry in trace_formats().items() if key != "csv"]
        assert [entry.name for entry in known if entry.recognises(file)] == [name]
