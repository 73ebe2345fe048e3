"""What happened while a job waited, against counting every GPU and every second by hand."""

from __future__ import annotations

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.dashboard.waits import wait_of
from yardmaster.model.schedule import Cause, Schedule
from yardmaster.model.site import Failures, Outage, Site

NODES = "3x V100:4"
DECIDED = {Cause.PREEMPTED, Cause.MIGRATED, Cause.RESIZED}


def small_jobs(seed: int) -> ym.Workload:
    """Forty jobs at whole seconds, so that events coincide, of 1 to 7 GPUs."""
    dice = np.random.default_rng(seed)
    return ym.Workload.of(
        submit_s=np.sort(dice.integers(0, 150, 40)).astype(float),
        duration_s=dice.integers(1, 60, 40).astype(float),
        gpus=dice.choice([1, 1, 2, 3, 4, 7], 40),
    )


SCHEDULERS = ["fifo+easy", "sjf+easy", "sjf+skip", "fifo+strict", "srpt+preemptive"]


@pytest.fixture(scope="module", params=SCHEDULERS)
def schedule(request) -> Schedule:
    return ym.simulate(small_jobs(5), ym.Cluster.of(NODES), request.param, compile_core="never")


def waits(schedule: Schedule):
    """Every job that waited, its span, and what is told of it."""
    for row in range(len(schedule.workload)):
        told = wait_of(schedule, row)
        begin, end = float(schedule.workload.submit_s[row]), float(schedule.start_s[row])
        assert (told is None) == (begin == end)
        if told:
            assert (told["begin_s"], told["end_s"]) == (begin, end)
            yield row, begin, end, told


def free_per_node(schedule: Schedule, time_s: float, *, before: bool) -> list[int]:
    """GPUs that nobody holds before or after the starts of a second, one by one."""
    free = [4] * 3
    for segment in range(len(schedule.segment_job)):
        begin, end = schedule.segment_start_s[segment], schedule.segment_end_s[segment]
        ends_by_pass = Cause(int(schedule.segment_cause[segment])) in DECIDED
        is_held = (
            begin < time_s and (end > time_s or (end == time_s and ends_by_pass))
            if before
            else begin <= time_s < end
        )
        for gpu in schedule.gpus_of(segment).tolist() if is_held else ():
            free[gpu // 4] -= 1
    return free


def would_fit(free: list[int], gpus: int) -> bool:
    """A gang of up to four stays within a node; a larger one spans them."""
    return max(free) >= gpus if gpus <= 4 else sum(free) >= gpus


def test_overtaking_jobs_are_counted_one_by_one(schedule):
    """Submitted later, started earlier; their GPU-seconds are those within the wait."""
    seen = 0
    for row, begin, end, told in waits(schedule):
        by = [one for one in range(row + 1, 40) if schedule.start_s[one] < end]
        held = dict.fromkeys(by, 0.0)
        for segment, job in enumerate(schedule.segment_job.tolist()):
            if job in held:
                span = min(end, schedule.segment_end_s[segment]) - max(
                    begin, schedule.segment_start_s[segment]
                )
                held[job] += max(span, 0.0) * len(schedule.gpus_of(segment))
        found = told["overtaken"]
        assert found["count"] == len(by)
        assert found["gpu_s"] == pytest.approx(sum(held.values()))
        assert [one["gpu_s"] for one in found["jobs"]] == sorted(held.values(), reverse=True)[:12]
        mine = schedule.workload.gpus[row]
        assert found["fewer_gpus"] == sum(schedule.workload.gpus[one] < mine for one in by)
        seen += bool(by)
    assert (seen == 0) == (schedule.scheduler == "fifo+strict")


def test_gpu_time_of_the_wait_adds_up(schedule):
    """Who ran before, who came earlier, who came later and nobody: second by second."""
    for row, begin, end, told in list(waits(schedule))[::3]:
        counted = dict.fromkeys(("running", "earlier", "later", "idle"), 0)
        for second in range(int(begin), int(end)):
            busy = 0
            for segment, job in enumerate(schedule.segment_job.tolist()):
                if schedule.segment_start_s[segment] <= second < schedule.segment_end_s[segment]:
                    gpus = len(schedule.gpus_of(segment))
                    is_running = schedule.start_s[job] < begin
                    whose = "running" if is_running else "earlier" if job < row else "later"
                    counted[whose] += gpus
                    busy += gpus
            counted["idle"] += 12 - busy
        found = told["gpu_s"]
        assert {name: found[name] for name in counted} == pytest.approx(counted)
        assert found["all"] == 12 * (end - begin)


def test_room_is_found_where_it_was(schedule):
    """The first second with enough free GPUs, how often, how long unused, and who had them."""
    events = set(schedule.segment_start_s.tolist()) | set(schedule.segment_end_s.tolist())
    found_first = 0
    for row, begin, end, told in waits(schedule):
        gpus = int(schedule.workload.gpus[row])
        instants = sorted({begin} | {one for one in events if begin <= one < end})
        open_at = [
            one for one in instants if would_fit(free_per_node(schedule, one, before=True), gpus)
        ]
        unused = sum(
            would_fit(free_per_node(schedule, second, before=False), gpus)
            for second in range(int(begin), int(end))
        )
        room = told["room"]
        assert room["moments"] == len(open_at)
        assert room["unused_s"] == unused
        first = room["first"]
        assert (first is None) == (not open_at)
        if first:
            found_first += 1
            takers = {
                int(job)
                for job, start in zip(schedule.segment_job, schedule.segment_start_s, strict=True)
                if start == open_at[0]
            }
            after = free_per_node(schedule, open_at[0], before=False)
            assert first["time_s"] == open_at[0]
            assert first["free_gpus"] == sum(free_per_node(schedule, open_at[0], before=True))
            assert {one["row"] for one in first["takers"]} == takers
            assert first["is_left"] == would_fit(after, gpus)
    assert found_first


def test_whose_turn_it_was_is_told_where_keys_stay(schedule):
    """First in order: second by second, nobody who waits has a lower key."""
    keys = {
        "fifo": schedule.workload.submit_s,
        "sjf": schedule.workload.duration_s,
    }.get(schedule.scheduler.partition("+")[0])
    for row, begin, end, told in waits(schedule):
        turn = told["turn"]
        assert turn["discipline"] == schedule.scheduler.partition("+")[2]
        if keys is None:
            assert turn["first_s"] is None
            continue
        is_first = [
            not any(
                (keys[other], other) < (keys[row], row)
                for other in range(40)
                if schedule.workload.submit_s[other] <= second < schedule.start_s[other]
            )
            for second in range(int(begin), int(end))
        ]
        assert turn["first_s"] == sum(is_first)
        since = len(is_first) - is_first[::-1].index(False) if False in is_first else 0
        assert turn["since_s"] == (begin + since if is_first[-1] else None)


def test_who_stood_ahead_is_counted(schedule):
    """Submitted earlier and waiting when it came; left are those who still wait when it starts."""

    def is_waiting(row: int, time_s: float) -> bool:
        mine = np.flatnonzero(schedule.segment_job == row)
        starts, ends = schedule.segment_start_s[mine], schedule.segment_end_s[mine]
        return schedule.end_s[row] > time_s and not ((starts <= time_s) & (time_s < ends)).any()

    for row, begin, end, told in waits(schedule):
        ahead = [one for one in range(row) if is_waiting(one, begin)]
        assert told["ahead"]["count"] == len(ahead)
        assert told["ahead"]["gpus"] == schedule.workload.gpus[ahead].sum()
        assert told["ahead"]["left"] == sum(is_waiting(one, end) for one in ahead)


def test_a_node_that_is_away_is_no_room():
    """GPUs of a node in an outage are neither free nor idle."""
    site = Site(failures=Failures(outages=(Outage(1, 0.0, 500.0),)))
    cluster = ym.Cluster.of("2x V100:4").under(site)
    jobs = ym.Workload.of(submit_s=[0, 10], duration_s=[600, 10], gpus=[4, 4])
    told = wait_of(ym.simulate(jobs, cluster, "fifo+easy"), 1)
    assert told is not None
    assert told["end_s"] == 500.0
    assert told["room"]["moments"] == 0
    assert told["gpu_s"]["away"] == 4 * 490
    assert told["gpu_s"]["idle"] == 0
    assert told["turn"] is None


def test_a_job_that_never_started_waited_until_the_cut():
    """The wait ends with the simulation, and says so."""
    jobs = ym.Workload.of(submit_s=[0, 10], duration_s=[600, 10], gpus=[4, 4])
    told = wait_of(ym.simulate(jobs, ym.Cluster.of("1x V100:4"), "fifo", until_s=100.0), 1)
    assert told is not None
    assert (told["end_s"], told["has_started"]) == (100.0, False)
    assert told["gpu_s"]["running"] == 4 * 90


def test_code_of_a_user_is_not_loaded_to_tell(tmp_path):
    """Of an order in a file nothing is said of turns, and the file is not run again."""
    from dataclasses import replace

    jobs = ym.Workload.of(submit_s=[0, 10], duration_s=[600, 10], gpus=[4, 4])
    made = ym.simulate(jobs, ym.Cluster.of("1x V100:4"), "fifo+easy")
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit('it was run')")
    told = wait_of(replace(made, scheduler=f"{file}:mine+easy"), 1)
    assert told is not None
    assert told["turn"] is None
