"""Google's trace of 2019: BigQuery exports in JSON and CSV, and the joined sample."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import math
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

SAMPLE = (
    Path(__file__).resolve().parents[3]
    / ".."
    / "shared"
    / "traces"
    / "google2019_sample"
    / "slice.csv"
)
NEEDS_SAMPLE = pytest.mark.skipif(
    not SAMPLE.exists(), reason="needs ../shared/traces/google2019_sample"
)
SUBMIT, QUEUE, ENABLE, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, PENDING, RUNNING = range(11)
ENDS = {
    EVICT: "preempted", FAIL: "failed", FINISH: "completed", KILL: "cancelled", LOST: "failed",
}  # fmt: skip
SLOT = 1 / 32
# Second 0 is ten minutes before Wednesday 2019-05-01; the workload begins on the Monday before.
SECOND_0 = (datetime(2019, 4, 30, 23, 50) - datetime(2019, 4, 29)).total_seconds()  # noqa: DTZ001
TIMES = st.integers(0, 60).map(lambda n: n and 600_000_000 + 1_500_000 * n)
CODES = st.sampled_from(range(11))
CPUS = st.sampled_from([None, 0.0, 0.001, 0.03125, 0.0625, 0.2])


def collection(time, code, job=7, kind=0, **more):
    """Make a row of collection_events as BigQuery exports it: whole numbers are text."""
    row = {"time": time, "type": code, "collection_id": job, "scheduling_class": 2,
           "collection_type": kind, "priority": 103, "alloc_collection_id": 0}  # fmt: skip
    names = {"user": f"u{job}=", "collection_name": "c=", "collection_logical_name": f"n{job}="}
    return {key: str(value) for key, value in row.items()} | names | more


def instance(time, code, job=7, task=0, cpu: float | None = 0.05, kind=0):
    """Make a row of instance_events; null values are left out, as BigQuery does."""
    row = collection(time, code, job, kind)
    kept = {key: value for key, value in row.items() if "name" not in key and key != "user"}
    request = {} if cpu is None else {"resource_request": {"cpus": cpu, "memory": 0.01}}
    return kept | {"instance_index": str(task), "machine_id": "-1"} | request | {"constraint": []}


def lines(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def array(rows) -> str:
    return json.dumps(rows, indent=2)


def table(rows, columns: tuple[str, ...]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


BASE = ("time", "type", "collection_id", "collection_type", "priority")


def flat(rows) -> str:
    cells = [
        row | {"resource_request.cpus": row.get("resource_request", {}).get("cpus")} for row in rows
    ]
    return table(cells, (*BASE, "instance_index", "resource_request.cpus", "machine_id"))


def nested(rows) -> str:
    return table(rows, (*BASE, "instance_index", "resource_request", "machine_id"))


def names(rows) -> str:
    return table(rows, (*BASE, "user", "collection_logical_name"))


def imported(folder: Path, *, jobs=(), tasks=(), write=(lines, lines), **options):
    paths = []
    for rows, to_text, name in zip((jobs, tasks), write, ("collection", "instance"), strict=True):
        if rows:
            paths.append(folder / f"{name}_events-000000000000.json")
            paths[-1].write_text(to_text(rows), encoding="utf-8")
    return import_trace(paths, options=ImportOptions(**options))


def rows_of(trace):
    return {row["id"]: row for row in trace.frame.iter_rows(named=True)}


# --- the definitions again, event by event --------------------------------------------------------


def span(events: list[tuple[int, int]], begin: float, end: float):
    """Return (submission, start, end, status) of a job or task, None if it never ran."""
    events = sorted(events)
    opened = [t for t, code in events if code in {SUBMIT, QUEUE, ENABLE}]
    started = [t for t, code in events if code == SCHEDULE]
    ended = [(t, code) for t, code in events if code in ENDS]
    unseen = bool(ended) and all(ended[0][0] < t for t in opened + started)
    if not started and not unseen:
        return None
    unfinished = not ended or any(t > ended[-1][0] for t in opened + started)
    if not unfinished and ended[-1][0] == 0:
        return None
    before = unseen or started[0] == 0
    start = begin if before else started[0] / 1e6
    submit = start if not opened else min(start, opened[0] / 1e6 if opened[0] else begin)
    stop = end if unfinished else ended[-1][0] / 1e6
    status = "running" if unfinished else "censored" if before else ENDS[max(ended)[1]]
    known = bool(opened) and opened[0] > 0 and not before
    return submit, stop - start, start - submit if known else None, status


def expected(jobs, tasks):
    """Return what should come of events of jobs and tasks, by the written definitions."""
    times = [t for t, *_ in jobs]
    inside = [t / 1e6 for t in times if t]
    begin = min(inside + ([600.0] if 0 in times else [])) if inside else 600.0
    end = max([*inside, begin])
    requests: dict[int, dict[int, float | None]] = defaultdict(dict)
    for _, _, job, task, cpu in tasks:
        seen = requests[job].get(task)
        requests[job][task] = seen if cpu is None else max(cpu, seen or 0.0)
    found = {}
    for job in {entry[2] for entry in jobs}:
        result = span([(t, code) for t, code, which in jobs if which == job], begin, end)
        if result is not None and job in requests:
            shares = requests[job].values()
            slots = sum(max(1, math.ceil((share or 0.0) / SLOT - 1e-6)) for share in shares)
            found[job] = (*result, slots)
    return found


JOBS = st.lists(st.tuples(TIMES, CODES, st.integers(1, 4)), max_size=25)
TASKS = st.lists(st.tuples(TIMES, CODES, st.integers(1, 4), st.integers(0, 2), CPUS), max_size=15)
# One job that surely stays, so that the import is not empty.
STEADY = [(0, SUBMIT, 99), (0, SCHEDULE, 99), (700_000_000, FINISH, 99)]


@settings(max_examples=80, deadline=None)
@given(
    jobs=JOBS,
    tasks=TASKS,
    write=st.sampled_from(
        [(lines, lines), (array, array), (names, flat), (names, nested), (lines, flat)]
    ),
)
def test_any_export_gives_the_jobs_of_the_definitions(tmp_path_factory, jobs, tasks, write):
    """Lines, array, CSV flat or nested: the same jobs as an event-by-event reading finds."""
    jobs, tasks = jobs + STEADY, [*tasks, (0, SUBMIT, 99, 0, 0.5)]
    trace = imported(
        tmp_path_factory.mktemp("export"),
        jobs=[collection(*entry) for entry in jobs],
        tasks=[instance(*entry) for entry in tasks],
        write=write,
    )
    want = expected(jobs, tasks)
    # Jobs of which only tasks tell take their times from these; here only the others are compared.
    told = {entry[2] for entry in jobs}
    got = {job: row for job, row in rows_of(trace).items() if job in told}
    assert got.keys() == want.keys()
    for job, (submit, run, wait, status, slots) in want.items():
        row = got[job]
        assert row["submit_s"] == pytest.approx(SECOND_0 + submit, abs=1e-6)
        assert row["duration_s"] == pytest.approx(run, abs=1e-6)
        assert (wait is None) == (row["recorded_wait_s"] is None)
        assert wait is None or row["recorded_wait_s"] == pytest.approx(wait, abs=1e-6)
        assert (row["status"], row["gpus"]) == (status, slots)
        assert (row["user"], row["kind"], row["priority"]) == (f"u{job}=", f"n{job}=", 103.0)
    collections, instances, _ = trace.account.stages
    assert (collections.read, instances.read) == (len(jobs), len(tasks))


def test_alloc_sets_are_no_jobs(tmp_path):
    """Reservations are dropped from both tables, and counted."""
    jobs = [
        collection(700_000_000 + c, c, job, kind)
        for c in (0, 3, 6)
        for job, kind in ((1, 0), (2, 1))
    ]
    tasks = [instance(700_000_000, 0, job, 0, 0.1, kind) for job, kind in ((1, 0), (2, 1))]
    account = imported(tmp_path, jobs=jobs, tasks=tasks).account
    assert [stage.dropped[0].count for stage in account.stages[:2]] == [3, 1]
    assert account.stages[-1].read == account.jobs == 1


def test_instances_alone_tell_when_their_jobs_ran(tmp_path):
    """Without collection events, times come from the instances; nobody's name is known."""
    tasks = [
        instance(700_000_000, SUBMIT), instance(705_000_000, SCHEDULE),
        instance(700_000_000, SUBMIT, task=1), instance(710_000_000, SCHEDULE, task=1),
        instance(720_000_000, FINISH), instance(730_000_000, KILL, task=1),
    ]  # fmt: skip
    row = rows_of(imported(tmp_path, tasks=tasks))[7]
    assert (row["duration_s"], row["recorded_wait_s"], row["gpus"]) == (25.0, 5.0, 4)
    assert (row["status"], row["user"]) == ("cancelled", None)


def test_the_users_zone_is_the_clock(tmp_path):
    """Midnight Pacific time is three in the morning where cell a stands."""
    jobs = [collection(600_000_000, code) for code in (SUBMIT, SCHEDULE, FINISH)]
    here = imported(tmp_path, jobs=jobs)
    there = imported(tmp_path, jobs=jobs, time_zone="America/New_York")
    assert here.frame["submit_s"][0] % 86_400 == 0
    assert there.frame["submit_s"][0] % 86_400 == 3 * 3600
    assert "2019-05-01 03:00" in there.account.time_zone


def test_gzipped_shards_are_one_table(tmp_path):
    """Shards of one table may split a job anywhere."""
    jobs = [collection(700_000_000 + code, code) for code in (SUBMIT, SCHEDULE, FINISH)]
    for number, row in enumerate(jobs):
        path = tmp_path / f"collection_events-{number:012d}.json.gz"
        path.write_bytes(gzip.compress(lines([row]).encode()))
    trace = import_trace([tmp_path])
    assert trace.account.stages[0].what == "events of collection_events (3 parts)"
    assert rows_of(trace)[7]["duration_s"] == pytest.approx(3e-6)


BROKEN = {
    "time is '-1'": {"time": "-1"},
    "time is '99999999999999999'": {"time": "99999999999999999"},
    "type is '11'": {"type": "11"},
    "type is 'SUBMIT'": {"type": "SUBMIT"},
    "collection_id is empty": {"collection_id": None},
    "instance_index is '-4'": {"instance_index": "-4"},
    r"resource_request.cpus is '-0.5'": {"resource_request": {"cpus": -0.5}},
    r"resource_request.cpus is 'much'": {"resource_request": {"cpus": "much"}},
}


@pytest.mark.parametrize("message", BROKEN)
@pytest.mark.parametrize("write", [lines, array])
def test_mistakes_are_named_with_their_record(tmp_path, write, message):
    """A value that makes no sense is named with its record; if allowed, only that one is lost."""
    tasks = [instance(700_000_000 + code, code) for code in (SUBMIT, ENABLE, SCHEDULE, FINISH)]
    tasks.insert(2, instance(700_000_000, ENABLE) | BROKEN[message])
    with pytest.raises(TraceFormatError, match=f"line 3: {message}"):
        imported(tmp_path, tasks=tasks, write=(write, write))
    account = imported(tmp_path, tasks=tasks, write=(write, write), skip_bad_rows=True).account
    assert (account.stages[0].read, account.stages[0].kept) == (5, 4)


def test_lines_that_are_no_json_are_named(tmp_path):
    """Blank lines do not shift the numbers; damaged ones are named, or dropped and counted."""
    tasks = [instance(700_000_000 + code, code) for code in (SUBMIT, SCHEDULE, FINISH)]
    text = lines(tasks[:1]) + "\n{nonsense\n" + lines(tasks[1:]) + '{"time": "7000'
    path = tmp_path / "instance_events.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceFormatError, match="2 records cannot be read") as refused:
        import_trace([path])
    assert "line 3: record 2" in str(refused.value)
    assert "line 6: record 5" in str(refused.value)
    account = import_trace([path], options=ImportOptions(skip_bad_rows=True)).account
    (dropped,) = account.stages[0].dropped
    assert (account.stages[0].read, account.stages[0].kept, dropped.count) == (5, 3, 2)
    assert dropped.examples == ("instance_events.json line 3", "instance_events.json line 6")


def test_requests_as_text_are_read(tmp_path):
    """Python's and JSON's way to write the nested request, and requests without CPU."""
    texts = ["{'cpus': 0.1, 'memory': None}", '{"cpus": 1e-1}', "{'cpus': None}", "{}", ""]
    tasks = [
        instance(700_000_000 + code, code, task=n) | {"resource_request": text}
        for n, text in enumerate(texts)
        for code in (SUBMIT, SCHEDULE, FINISH)
    ]
    trace = imported(tmp_path, tasks=tasks, write=(nested, nested))
    assert rows_of(trace)[7]["gpus"] == 4 + 4 + 1 + 1 + 1
    assert "have tasks without a CPU request, counted as 1 slot each" in trace.account.changed
    with pytest.raises(TraceFormatError, match="line 2: resource_request is 'a lot'"):
        imported(tmp_path, tasks=[tasks[0] | {"resource_request": "a lot"}], write=(nested, nested))


# --- the joined sample ----------------------------------------------------------------------------


@NEEDS_SAMPLE
def test_the_real_sample_gives_what_its_rows_show():
    """Jobs last from their first usage window to their last, on the slots of the instances seen."""
    with SAMPLE.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    windows: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    requests: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["collection_type"] == "0":
            key = (f"cell {row['cluster']}", int(row["collection_id"]))
            windows[key].append((int(row["start_time"]), int(row["end_time"])))
            cpu = ast.literal_eval(row["resource_request"])["cpus"]
            requests[key][row["instance_index"]] = max(
                cpu, requests[key].get(row["instance_index"], 0)
            )
    trace = import_trace([SAMPLE])
    got = {(row["tenant"], row["id"]): row for row in trace.frame.iter_rows(named=True)}
    assert got.keys() == windows.keys()
    for key, seen in windows.items():
        first, last = min(start for start, _ in seen), max(end for _, end in seen)
        assert got[key]["submit_s"] == pytest.approx(SECOND_0 + first / 1e6, abs=1e-6)
        assert got[key]["duration_s"] == pytest.approx((last - first) / 1e6, abs=1e-6)
        slots = sum(max(1, math.ceil(cpu / SLOT - 1e-6)) for cpu in requests[key].values())
        assert got[key]["gpus"] == slots
    account = trace.account
    table_stage, jobs = account.stages
    assert (table_stage.read, table_stage.kept) == (len(rows), sum(map(len, windows.values())))
    assert jobs.kept == len(windows) == sum(account.censored.values())
    assert set(trace.frame["status"].to_list()) == {"censored"}
    assert len(trace.workload()) == len(windows)


@NEEDS_SAMPLE
def test_bad_rows_of_the_sample_are_named(tmp_path):
    """A row of many lines is named by the line on which it begins."""
    text = SAMPLE.read_text(encoding="utf-8")
    path = tmp_path / "borg_traces_data.csv"
    path.write_text(text.replace("1800713000000", "-1800713000000", 1), encoding="utf-8")
    line = 1 + text[: text.index("1,2517305308183")].count("\n")
    with pytest.raises(TraceFormatError, match=f"line {line}: start_time is '-1800713000000'"):
        import_trace([path])
    account = import_trace([path], options=ImportOptions(skip_bad_rows=True)).account
    assert account.stages[0].read == 99


@NEEDS_SAMPLE
def test_the_sample_is_read_alone(tmp_path):
    """It already holds events; a table of events besides it would count them twice."""
    path = tmp_path / "collection_events.json"
    path.write_text(lines([collection(700_000_000, 0)]), encoding="utf-8")
    with pytest.raises(TraceFormatError, match="without other tables"):
        import_trace([SAMPLE, path])


def test_slots_larger_than_a_machine_are_refused(tmp_path):
    """CPU is a share of the largest machine here, so 4 cores a slot mean nothing."""
    with pytest.raises(InvalidWorkloadError, match="share of the largest machine"):
        imported(tmp_path, jobs=[collection(700_000_000, 0)], slot_cores=4)
