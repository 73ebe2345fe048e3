"""Schedules as traces for Perfetto."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import yardmaster as ym
from yardmaster.errors import YardmasterError
from yardmaster.model.schedule import Cause, Schedule
from yardmaster.report.perfetto import trace_events, write_perfetto
from yardmaster.testing.real_strategies import real_situations
from yardmaster.testing.strategies import Situation

Event = dict[str, Any]


def events_of(schedule: Schedule) -> list[Event]:
    return [json.loads(line) for line in trace_events(schedule)]


def names(events: list[Event], what: str) -> dict[tuple[int, int], str]:
    return {
        (one["pid"], one["tid"]): one["args"]["name"]
        for one in events
        if one["ph"] == "M" and one["name"] == what
    }


def value_at(events: list[Event], counter: str, time_us: float) -> float:
    """The counter's last value at a time, read from the trace alone."""
    told = [e for e in events if e["ph"] == "C" and e["name"] == counter and e["ts"] <= time_us]
    (value,) = max(told, key=lambda one: one["ts"])["args"].values()
    return float(value)


@settings(max_examples=60, deadline=None)
@given(real_situations())
def test_slices_of_a_track_do_not_overlap_and_add_up(situation: Situation):
    """On any cluster, sharing and failing included: tracks are sequences, nothing is left out."""
    schedule = situation.replayed("never")
    events = events_of(schedule)
    tracks = names(events, "thread_name")
    slices = [one for one in events if one["ph"] == "X"]
    of_track: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for one in slices:
        assert one["dur"] >= 0
        of_track[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for track, spans in of_track.items():
        if tracks[track] == "away":
            continue
        spans.sort()
        for (_, ended), (begun, _) in itertools.pairwise(spans):
            assert ended <= begun
    jobs = [one for one in slices if one.get("cat") != "outage"]
    assert len(jobs) == len(schedule.gpu_ids)
    held = np.diff(schedule.segment_gpu_offset)
    lengths = schedule.segment_end_s - schedule.segment_start_s
    gpu_s = float((held * lengths).sum())
    assert sum(one["dur"] for one in jobs) / 1e6 == pytest.approx(
        gpu_s, abs=1e-6 * len(jobs) + 1e-9
    )


@settings(max_examples=30, deadline=None)
@given(real_situations())
def test_processes_are_nodes_and_marks_are_stops(situation: Situation):
    """A slice lies in the process of its GPU's node; each preemption and failure has its mark."""
    schedule = situation.replayed("never")
    events = events_of(schedule)
    cluster = schedule.cluster
    expected: dict[tuple[int, str], int] = defaultdict(int)
    for segment, job in enumerate(schedule.segment_job.tolist()):
        for gpu in schedule.gpus_of(segment).tolist():
            expected[int(cluster.gpu_node[gpu]) + 1, f"job {schedule.workload.id[job]}"] += 1
    found: dict[tuple[int, str], int] = defaultdict(int)
    for one in events:
        if one["ph"] == "X" and one.get("cat") != "outage":
            found[one["pid"], one["name"]] += 1
    assert found == expected
    marks = [one["name"] for one in events if one["ph"] == "i" and one["cat"] == "stop"]
    stops = schedule.segment_cause.tolist()
    assert marks.count("preempted") == stops.count(Cause.PREEMPTED)
    assert marks.count("node failed") == stops.count(Cause.NODE_FAILED)


def test_counters_tell_queue_and_gpus():
    """Two jobs for one GPU: one waits while the other runs, and the trace says so at any time."""
    jobs = ym.Workload.of(submit_s=[0, 10], duration_s=[100, 50], gpus=[1, 1])
    events = events_of(ym.simulate(jobs, ym.Cluster.of("V100"), "fifo"))
    assert [value_at(events, "jobs waiting", s * 1e6) for s in (5, 20, 120)] == [0, 1, 0]
    assert [value_at(events, "GPUs in use", s * 1e6) for s in (5, 120, 150)] == [1, 1, 0]
    assert names(events, "thread_name") == {(1, 3): "GPU 0"}


def test_the_file_is_json_packed_or_not(tmp_path: Path):
    """Both kinds of files hold the same trace, hostile names included; none is overwritten."""
    jobs = ym.Workload.of(submit_s=[0], duration_s=[9.5], id=['"</script>\n'], tenant=["a\\b"])
    schedule = ym.simulate(jobs, ym.Cluster.of("V100:2"), "fifo")
    write_perfetto(schedule, tmp_path / "t.json")
    write_perfetto(schedule, tmp_path / "t.json.gz")
    plain = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()).decode() == plain
    (found,) = [one for one in json.loads(plain)["traceEvents"] if one["ph"] == "X"]
    assert found["name"] == 'job "</script>\n'
    assert found["args"]["tenant"] == "a\\b"
    assert found["dur"] == 9_500_000
    with pytest.raises(YardmasterError, match="there already"):
        write_perfetto(schedule, tmp_path / "t.json")


def test_writing_needs_little_memory_beyond_the_schedule(tmp_path: Path):
    """The trace is written as it is made: it is several times larger than what is held."""
    jobs = ym.load_workload("venus-like", jobs=8_000, gpus=128, load=0.7)
    schedule = ym.simulate(jobs, "demo", "fifo+easy")
    tracemalloc.start()
    write_perfetto(schedule, tmp_path / "t.json")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = (tmp_path / "t.json").stat().st_size
    assert size > 4e6
    assert most < size / 2
