"""Google's trace of 2011: events of jobs and tasks folded into gangs, checked by plain Python."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
REAL = TRACES / "google2011"
NEEDS_REAL = pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/traces/google2011")
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST = range(7)
ENDS = {
    EVICT: "preempted", FAIL: "failed", FINISH: "completed", KILL: "cancelled", LOST: "failed",
}  # fmt: skip
AFTER = 2**63 - 1
SLOT = 1 / 32
# The trace's second 0 is 18:50 on Sunday 2011-05-01; the workload's is the Monday midnight before.
SECOND_0 = (datetime(2011, 5, 1, 18, 50) - datetime(2011, 4, 25)).total_seconds()  # noqa: DTZ001


def real_rows(table: str) -> Iterator[list[str]]:
    """Yield all rows of a table's parts, by nothing but the standard library."""
    for part in sorted((REAL / table).glob("*.csv.gz")):
        with gzip.open(part, "rt", newline="") as stream:
            yield from csv.reader(stream)


def real_lines(table: str) -> int:
    """Count the lines of a table's parts."""
    return sum(gzip.decompress(p.read_bytes()).count(b"\n") for p in (REAL / table).glob("*.gz"))


@pytest.fixture(scope="module")
def job_rows():
    return list(real_rows("job_events"))


@pytest.fixture(scope="module")
def whole():
    return import_trace([REAL])


def spans(rows: list[list[str]]) -> dict[int, dict[int, list[int]]]:
    """Return the times of each kind of event of each job."""
    found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[int(row[2])][int(row[3])].append(int(row[0]))
    return found


def expected_span(events: dict[int, list[int]], last_us: int):
    """Return submission, run time, wait and status of a real job as the definitions give them."""
    submit, start = min(events[SUBMIT]), min(events[SCHEDULE])
    ends = [(time, code) for code in ENDS for time in events[code]]
    unfinished = not ends or max(events[SUBMIT] + events[SCHEDULE]) > max(ends)[0]
    end = last_us if unfinished else max(ends)[0]
    begin = 600_000_000
    status = "running" if unfinished else "censored" if start == 0 else ENDS[max(ends)[1]]
    wait = (start - submit) / 1e6 if submit and start else None
    run = (end - (start or begin)) / 1e6
    return SECOND_0 + (submit or begin) / 1e6, run, wait, status


@NEEDS_REAL
def test_the_real_parts_give_the_jobs_that_plain_python_finds(whole, job_rows):
    """Submission, run time, wait, status, slots, priority and user of every job of eight parts."""
    cpu: dict[int, dict[int, float]] = defaultdict(dict)
    priority: dict[int, int] = {}
    for row in real_rows("task_events"):
        number, task = int(row[2]), int(row[3])
        cpu[number][task] = max(float(row[9] or 0), cpu[number].get(task, 0.0))
        priority[number] = max(int(row[8]), priority.get(number, 0))
    events = spans(job_rows)
    users = {int(row[2]): row[4] for row in job_rows}
    last_us = max(int(row[0]) for row in job_rows)
    want = {}
    for number, seen in events.items():
        if seen[SCHEDULE] and number in cpu:
            slots = sum(max(1, math.ceil(share / SLOT - 1e-6)) for share in cpu[number].values())
            span = expected_span(seen, last_us)
            want[number] = (*span, slots, float(priority[number]), users[number])
    got = {
        row["id"]: tuple(row[key] for key in (
            "submit_s", "duration_s", "recorded_wait_s", "status", "gpus", "priority", "user"
        ))
        for row in whole.frame.iter_rows(named=True)
    }  # fmt: skip
    assert got.keys() == want.keys()
    for number, entry in want.items():
        numbers = [(a, b) for a, b in zip(got[number], entry, strict=True) if isinstance(b, float)]
        assert all(math.isclose(a, b, abs_tol=1e-6) for a, b in numbers)
        assert [x for x in got[number] if not isinstance(x, float)] == [
            x for x in entry if not isinstance(x, float)
        ]


@NEEDS_REAL
def test_the_real_account_adds_up(whole, job_rows):
    """Every row and every job of the real parts is kept or dropped for a reason."""
    account = whole.account
    job_events, task_events, jobs = account.stages
    assert job_events.read == job_events.kept == len(job_rows)
    assert task_events.read == task_events.kept == real_lines("task_events")
    assert jobs.read == len({row[2] for row in job_rows})
    assert account.begins == "2011-04-25T00:00:00"
    assert account.time_zone.startswith("America/New_York")
    assert any(f"one slot is {SLOT:g}" in remark for remark in account.remarks)
    assert any("started again" in remark for remark in account.remarks)


@NEEDS_REAL
def test_without_task_events_every_job_is_one_slot(job_rows):
    """Job events alone tell when, not how large; the account says so."""
    trace = import_trace([REAL / "job_events"])
    started = {row[2] for row in job_rows if int(row[3]) == SCHEDULE}
    assert len(trace.frame) == len(started)
    assert set(trace.frame["gpus"].to_list()) == {1}
    assert any("1 slot" in remark for remark in trace.account.remarks)
    begun = {row[2] for row in job_rows if int(row[3]) == SCHEDULE and row[0] == "0"}
    ended = {row[2] for row in job_rows if int(row[3]) in ENDS}
    censored = trace.account.censored
    assert sum(censored.values()) == len(started & (begun | (started - ended)))
    assert censored["had begun before the first event"] == len(begun & ended)


@NEEDS_REAL
def test_a_later_part_alone_begins_with_its_first_event():
    """Jobs whose start is not in the part have run at least since it begins."""
    part = REAL / "job_events" / "part-00003-of-00500.csv.gz"
    with gzip.open(part, "rt", newline="") as stream:
        rows = list(csv.reader(stream))
    trace = import_trace([part])
    events = spans(rows)
    first, last = int(rows[0][0]), int(rows[-1][0])
    unseen = {n for n, seen in events.items() if not seen[SUBMIT] and not seen[SCHEDULE]}
    got = {row["id"]: row for row in trace.frame.iter_rows(named=True)}
    assert unseen
    for number in unseen:
        ended = max(time for code in ENDS for time in events[number][code])
        assert math.isclose(got[number]["duration_s"], (ended - first) / 1e6, abs_tol=1e-6)
        assert math.isclose(got[number]["submit_s"], SECOND_0 + first / 1e6, abs_tol=1e-6)
        assert got[number]["status"] == "censored"
    assert (
        max(row["submit_s"] + row["duration_s"] for row in got.values())
        <= SECOND_0 + last / 1e6 + 1e-3
    )
    assert trace.account.censored["had begun before the first event"] == len(unseen)


# --- made-up parts --------------------------------------------------------------------------------


def job_line(time, code, job=7, name="n="):
    return f"{time},,{job},{code},user=,2,name=,{name}"


def task_line(time, code, task=0, job=7, cpu="0.0625", priority=2):
    return f"{time},,{job},{task},11,{code},user=,2,{priority},{cpu},0.01,0.0001,0"


def imported(folder: Path, *, jobs=(), tasks=(), parts=1, **options):
    """Import made-up events, those of tasks spread over some parts."""
    paths = []
    if jobs:
        paths.append(folder / "job_events-part-00000-of-00500.csv")
        paths[0].write_text("\n".join([*jobs, ""]), encoding="utf-8")
    for part in range(parts if tasks else 0):
        lines = tasks[part::parts]
        if lines:
            path = folder / f"task_events-part-{part:05d}-of-00500.csv.gz"
            path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
            paths.append(path)
    return import_trace(paths, options=ImportOptions(**options))


def only_row(trace):
    (row,) = trace.frame.iter_rows(named=True)
    return row


def test_a_job_of_tasks_that_were_started_again(tmp_path):
    """One gang from the first start to the last end, of the slots of all tasks."""
    tasks = [
        task_line(700_000_000, SUBMIT, 0), task_line(700_000_000, SUBMIT, 1, cpu="0.07"),
        task_line(710_000_000, SCHEDULE, 0), task_line(712_000_000, SCHEDULE, 1, cpu="0.07"),
        task_line(720_000_000, EVICT, 0), task_line(720_000_000, SUBMIT, 0),
        task_line(730_000_000, SCHEDULE, 0), task_line(800_000_000, FINISH, 0),
        task_line(790_000_000, FINISH, 1, cpu="0.07"),
    ]  # fmt: skip
    trace = imported(tmp_path, tasks=tasks)
    row = only_row(trace)
    assert (row["duration_s"], row["recorded_wait_s"], row["status"]) == (90.0, 10.0, "completed")
    assert row["gpus"] == 2 + 3  # 0.0625 and 0.07 in slots of 1/32
    assert any(remark.startswith("1 jobs had tasks") for remark in trace.account.remarks)
    assert only_row(imported(tmp_path, tasks=tasks, slot_cores=0.5))["gpus"] == 2
    with pytest.raises(InvalidWorkloadError, match="share of the largest machine"):
        imported(tmp_path, tasks=tasks, slot_cores=4)


def test_one_task_that_has_not_ended_keeps_its_job_running(tmp_path):
    """Without job events, a job ends when all its tasks have; until then it is censored."""
    tasks = [
        task_line(700_000_000, SUBMIT, 0), task_line(700_000_000, SCHEDULE, 0),
        task_line(700_000_000, SUBMIT, 1), task_line(701_000_000, SCHEDULE, 1),
        task_line(750_000_000, FINISH, 0),
        task_line(760_000_000, SUBMIT, 0, job=8), task_line(761_000_000, KILL, 0, job=8),
        task_line(770_000_000, 8, 1),
    ]  # fmt: skip
    trace = imported(tmp_path, tasks=tasks)
    row = only_row(trace)
    assert (row["duration_s"], row["status"]) == (70.0, "running")
    assert trace.account.censored == {"were still running at the last event": 1}
    assert trace.account.stages[-1].dropped[0].reason == "never scheduled"


def test_both_ends_of_the_trace(tmp_path):
    """Time 0 is before the trace and 2^63 − 1 after it; both make run times lower bounds."""
    jobs = [
        *(job_line(0, code, job=1) for code in (SUBMIT, SCHEDULE)),
        *(job_line(0, code, job=2) for code in (SUBMIT, SCHEDULE)),
        job_line(0, SUBMIT, job=3),
        *(job_line(0, code, job=5) for code in (SUBMIT, SCHEDULE, KILL)),
        job_line(650_000_000, SCHEDULE, job=3),
        job_line(660_000_000, FINISH, job=1),
        job_line(690_000_000, LOST, job=3),
        job_line(700_000_000, SUBMIT, job=4),
        job_line(700_000_000, SCHEDULE, job=4),
        job_line(AFTER, FINISH, job=2),
    ]
    trace = imported(tmp_path, jobs=jobs)
    got = {row["id"]: row for row in trace.frame.iter_rows(named=True)}
    assert {n: row["duration_s"] for n, row in got.items()} == {1: 60.0, 2: 100.0, 3: 40.0, 4: 0.0}
    assert {n: row["submit_s"] - SECOND_0 for n, row in got.items()} == {
        1: 600.0, 2: 600.0, 3: 600.0, 4: 700.0,
    }  # fmt: skip
    assert {n: row["status"] for n, row in got.items()} == {
        1: "censored", 2: "running", 3: "failed", 4: "running",
    }  # fmt: skip
    assert [row["recorded_wait_s"] for row in got.values()] == [None, None, None, 0.0]
    first, jobs_stage = trace.account.stages
    assert first.dropped[0].reason == "happened after the trace had ended"
    assert jobs_stage.dropped[0].reason == "had ended before the trace began"
    assert sum(trace.account.censored.values()) == 3
    assert trace.account.changed == {"were submitted before the trace; they wait from its start": 1}


def test_tasks_without_a_request_count_as_one_slot(tmp_path):
    """A blank CPU request is not a mistake, nor is a request for nothing."""
    tasks = [
        task_line(700_000_000, SUBMIT, 0, cpu=""), task_line(700_000_000, SCHEDULE, 0, cpu=""),
        task_line(700_000_000, SUBMIT, 1, cpu="0"), task_line(900_000_000, FINISH, 1, cpu="0"),
    ]  # fmt: skip
    trace = imported(tmp_path, tasks=tasks)
    assert only_row(trace)["gpus"] == 2
    assert trace.account.changed == {"have tasks without a CPU request, counted as 1 slot each": 1}


def test_jobs_whose_tasks_are_not_in_the_files_are_dropped(tmp_path):
    """Task parts may cover less time than job parts."""
    jobs = [job_line(700_000_000 + code, code, job=n) for code in (0, 1, 4) for n in (7, 9)]
    tasks = [task_line(700_000_000, SUBMIT), task_line(700_000_001, SCHEDULE)]
    account = imported(tmp_path, jobs=jobs, tasks=tasks).account
    (dropped,) = account.stages[-1].dropped
    assert (dropped.count, account.jobs) == (1, 1)
    assert "size is not known" in dropped.reason


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 40).map(lambda n: n and 600_000_000 + 1_000_000 * n),
        st.sampled_from([SUBMIT, SCHEDULE, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, 7, 8]),
        st.integers(0, 2),
        st.integers(1, 3),
        st.sampled_from(["", "0.01", "0.0625", "0.5"]),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=50, deadline=None)
@given(events=EVENTS, parts=st.integers(2, 6), order=st.randoms(use_true_random=False))
def test_parts_may_be_cut_anywhere(tmp_path_factory, events, parts, order):
    """However the events are spread over parts, the jobs are the same."""
    # A job that surely stays; it also fixes the first and the last event.
    steady = [
        task_line(0, SUBMIT, job=99), task_line(0, SCHEDULE, job=99),
        task_line(700_000_000, FINISH, job=99),
    ]  # fmt: skip
    lines = [task_line(t, code, task, job, cpu) for t, code, task, job, cpu in events] + steady
    one = imported(tmp_path_factory.mktemp("one"), tasks=lines)
    order.shuffle(lines)
    many = imported(tmp_path_factory.mktemp("many"), tasks=lines, parts=parts)
    assert many.frame.equals(one.frame)
    assert many.account.stages[-1] == one.account.stages[-1]
    assert (one.frame["duration_s"] >= 0).all()
    assert many.account.stages[0].read == len(lines)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (task_line(-5, SUBMIT), "time is '-5'"),
        (task_line(10**15, SUBMIT), "time is '1000000000000000'"),
        (task_line(700_000_000, 9), "event_type is '9'"),
        (task_line(700_000_000, "x"), "event_type is 'x'"),
        (task_line(700_000_000, SUBMIT, job=""), "job_id is empty"),
        (task_line(700_000_000, SUBMIT, task=-1), "task_index is '-1'"),
        (task_line(700_000_000, SUBMIT, cpu="-0.1"), "cpu_request is '-0.1'"),
        (task_line(700_000_000, SUBMIT)[:30], "cells, but there are 13"),
        (task_line(700_000_000, SUBMIT) + ",1", "14 cells"),
        (task_line(700_000_000, SUBMIT).replace("user=", "\udcff"), "not UTF-8"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, line, message):
    """A bad row among good ones is named; if allowed, it alone is lost, and its part is named."""
    good = [task_line(700_000_000 + code, code, task=n) for n in range(4) for code in (0, 1, 4)]
    lines = [*good[:5], line, *good[5:]]
    path = tmp_path / "part-00000-of-00500.csv"
    path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogateescape"))
    with pytest.raises(TraceFormatError, match=f"line 6: .*{message}"):
        import_trace([path])
    account = import_trace([path], options=ImportOptions(skip_bad_rows=True)).account
    (dropped,) = account.stages[0].dropped
    assert (dropped.count, dropped.examples) == (1, ("part-00000-of-00500.csv line 6",))
    assert account.stages[0].kept == len(good)


def test_other_tables_of_the_trace_are_refused(tmp_path):
    """Machine events have six cells: named as this format, they are told from the two tables."""
    path = tmp_path / "part-00000-of-00001.csv"
    path.write_text(
        "0,5,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493\n", encoding="utf-8"
    )
    with pytest.raises(TraceFormatError, match="6 cells in a row; job_events has 8"):
        import_trace([path], "google-2011")


@pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")
def test_no_other_real_file_is_taken_for_google_philly_or_acme():
    """Of all the real files, only Google's own are recognised by these formats."""
    from yardmaster.workloads.traces import acme, google_2011, google_2019, philly
    from yardmaster.workloads.traces.reading.trace_files import opened

    with opened([TRACES]) as files:
        names = {file.name: file for file in files}
        taken = {
            name: [
                m.FORMAT.name for m in (philly, acme, google_2011, google_2019) if m.recognises(f)
            ]
            for name, f in names.items()
        }
    for name, formats in taken.items():
        own = ["google-2011"] if "/google2011/" in name else []
        own += ["google-2019"] if "/google2019_sample/" in name else []
        assert formats == own, name
    assert list(itertools.chain.from_iterable(taken.values())).count("google-2011") == 8
