"""A schedule as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.

Every node is a process and every GPU a track in it; a job is one slice on each GPU it held. Slices
on one track must not overlap, so a GPU that several jobs shared has as many tracks as it had
sharers at once. Queue length and GPUs in use are counters, preemptions and failures marks, and a
node that was away has a track that says so. Times are microseconds on the workload's clock.

Events are written as they are made: a million jobs need no more memory than their schedule.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from yardmaster.metrics.holdings import WHOLE_MILLI, segment_milli
from yardmaster.metrics.timeline import StepFunction, busy_gpus, queue_length
from yardmaster.model.columns import Labels
from yardmaster.model.schedule import Cause, Schedule
from yardmaster.model.workload import IntArray
from yardmaster.workloads.files import whole_file

MICROSECONDS = 1e6
_MARKED = {
    Cause.PREEMPTED: "preempted",
    Cause.NODE_FAILED: "node failed",
    Cause.MIGRATED: "migrated",
    Cause.RESIZED: "resized",
}
"""Ends of segments that are marked on the track, and what the mark says."""
_CHUNK = 4096
"""Lines that are joined before they are written."""


def write_perfetto(schedule: Schedule, path: Path, *, overwrite: bool = False) -> None:
    """Write a schedule as a trace; packed if the name ends in `.gz`, which Perfetto opens too.

    Raises:
        InvalidWorkloadError: if the file is there already and may not be replaced, or cannot be
            written.
    """
    with whole_file(path, overwrite=overwrite) as unfinished:
        if path.name.endswith(".gz"):
            # Level 1 packs sixfold at the pace of writing plain text.
            with gzip.open(unfinished, "wt", compresslevel=1, encoding="utf-8") as file:
                _write(schedule, file)
        else:
            with unfinished.open("w", encoding="utf-8") as file:
                _write(schedule, file)


def _write(schedule: Schedule, file: IO[str]) -> None:
    file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
    chunk: list[str] = []
    is_first = True
    for line in trace_events(schedule):
        chunk.append(line)
        if len(chunk) == _CHUNK:
            file.write(("" if is_first else ",\n") + ",\n".join(chunk))
            chunk.clear()
            is_first = False
    if chunk:
        file.write(("" if is_first else ",\n") + ",\n".join(chunk))
    file.write("\n]}\n")


def trace_events(schedule: Schedule) -> Iterator[str]:
    """Yield every event of the trace as one line of JSON."""
    tracks = Tracks(schedule)
    yield from _names(schedule, tracks)
    cluster = schedule.cluster.nodes + 1
    yield from _counter(queue_length(schedule), cluster, "jobs waiting", "jobs")
    yield from _counter(busy_gpus(schedule), cluster, "GPUs in use", "GPUs")
    yield from _outages(schedule, tracks)
    yield from _slices(schedule, tracks)


class Tracks:
    """Which track every GPU of every segment is drawn on.

    Attributes:
        of_holding: (holdings,) track of each entry of the schedule's `gpu_ids`.
        gpu: (tracks,) the GPU each track belongs to.
        lane: (tracks,) 0 for a GPU's first track, 1, 2, … for those of further sharers.
    """

    def __init__(self, schedule: Schedule) -> None:
        gpus = schedule.cluster.gpus
        lanes = _lanes(schedule)
        per_gpu = np.ones(gpus, dtype=np.int64)
        np.maximum.at(per_gpu, schedule.gpu_ids, lanes + 1)
        first = np.concatenate(([0], np.cumsum(per_gpu)[:-1]))
        self.of_holding: IntArray = first[schedule.gpu_ids] + lanes
        self.gpu: IntArray = np.repeat(np.arange(gpus), per_gpu)
        self.lane: IntArray = np.arange(len(self.gpu)) - first[self.gpu]
        self.node: IntArray = schedule.cluster.gpu_node[self.gpu]
        # Numbers of tracks begin after those of processes: a thread with its process's number
        # would be taken for a main thread.
        self.first_number = schedule.cluster.nodes + 2


def _lanes(schedule: Schedule) -> IntArray:
    """Return (holdings,) which of its GPU's tracks each entry of `gpu_ids` goes to."""
    lanes = np.zeros(len(schedule.gpu_ids), dtype=np.int64)
    is_part = segment_milli(schedule) < WHOLE_MILLI
    if not is_part.any():
        return lanes
    held = np.diff(schedule.segment_gpu_offset)
    owner = np.repeat(np.arange(len(held)), held)
    shared = np.unique(schedule.gpu_ids[is_part[owner]])
    places = np.flatnonzero(np.isin(schedule.gpu_ids, shared))
    start, end = schedule.segment_start_s[owner[places]], schedule.segment_end_s[owner[places]]
    order = np.lexsort((end, start, schedule.gpu_ids[places]))
    gpu = -1
    free: list[int] = []
    taken: list[tuple[float, int]] = []
    for place, begin_s, end_s in zip(
        places[order].tolist(), start[order].tolist(), end[order].tolist(), strict=True
    ):
        if schedule.gpu_ids[place] != gpu:
            gpu, free, taken = int(schedule.gpu_ids[place]), [], []
        while taken and taken[0][0] <= begin_s:
            heapq.heappush(free, heapq.heappop(taken)[1])
        lane = heapq.heappop(free) if free else len(taken)
        lanes[place] = lane
        heapq.heappush(taken, (end_s, lane))
    return lanes


def _names(schedule: Schedule, tracks: Tracks) -> Iterator[str]:
    """Name and order processes and tracks."""
    cluster = schedule.cluster
    title = f"{schedule.scheduler} on {schedule.workload.name}"
    yield _metadata("process_name", cluster.nodes + 1, {"name": f"cluster: {title}"})
    yield _metadata("process_sort_index", cluster.nodes + 1, {"sort_index": -1})
    for node, gpus in enumerate(cluster.node_gpus.tolist()):
        kind = cluster.gpu_types[int(cluster.node_type[node])].name
        what = "pool" if cluster.is_pool else f"node {node}"
        yield _metadata("process_name", node + 1, {"name": f"{what} ({gpus}× {kind})"})
        yield _metadata("process_sort_index", node + 1, {"sort_index": node})
    first = cluster.node_first_gpu
    for track, (gpu, lane, node) in enumerate(
        zip(tracks.gpu.tolist(), tracks.lane.tolist(), tracks.node.tolist(), strict=True)
    ):
        name = f"GPU {gpu - int(first[node])}" + (f", sharer {lane + 1}" if lane else "")
        number = tracks.first_number + track
        yield _metadata("thread_name", node + 1, {"name": name}, number)
        yield _metadata("thread_sort_index", node + 1, {"sort_index": track}, number)


def _metadata(what: str, pid: int, arguments: dict[str, object], tid: int = 0) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": arguments})


def _counter(steps: StepFunction, pid: int, name: str, unit: str) -> Iterator[str]:
    """Yield a counter's value from each change on."""
    times = _microseconds(steps.edges_s[:-1]).tolist()
    head = f'{{"ph":"C","pid":{pid},"name":{json.dumps(name)},"ts":'
    for time, value in zip(times, steps.values.tolist(), strict=True):
        yield f'{head}{time},"args":{{"{unit}":{value:g}}}}}'
    last = int(_microseconds(steps.edges_s[-1:])[0])
    yield f'{head}{last},"args":{{"{unit}":0}}}}'


def _outages(schedule: Schedule, tracks: Tracks) -> Iterator[str]:
    """Yield a slice for every time that a node was away, on a track of its own, and a mark."""
    number = tracks.first_number + len(tracks.gpu)
    end_s = schedule.horizon_s[1]
    for node in sorted({outage.node for outage in schedule.outages}):
        tid = number + node
        yield _metadata("thread_name", node + 1, {"name": "away"}, tid)
        for outage in schedule.outages:
            if outage.node != node or outage.down_s >= end_s:
                continue
            down, up = _microseconds(np.array([outage.down_s, min(outage.up_s, end_s)])).tolist()
            place = {"pid": node + 1, "tid": tid, "ts": down}
            yield json.dumps({"ph": "X", "name": "away", "cat": "outage", "dur": up - down} | place)
            yield json.dumps({"ph": "i", "name": "node failed", "cat": "failure", "s": "p"} | place)


def _slices(schedule: Schedule, tracks: Tracks) -> Iterator[str]:
    """Yield a slice for every GPU of every segment, and a mark where a segment was cut short."""
    begin = _microseconds(schedule.segment_start_s).tolist()
    end = _microseconds(schedule.segment_end_s).tolist()
    offsets = schedule.segment_gpu_offset.tolist()
    causes = schedule.segment_cause.tolist()
    words = _words(schedule)
    for segment, (name, arguments) in enumerate(words):
        start, stop = begin[segment], end[segment]
        head = f'{{"ph":"X","name":{name},"ts":{start},"dur":{stop - start},"pid":'
        holdings = slice(offsets[segment], offsets[segment + 1])
        of_segment = tracks.of_holding[holdings]
        for track, node in zip(of_segment.tolist(), tracks.node[of_segment].tolist(), strict=True):
            yield f'{head}{node + 1},"tid":{tracks.first_number + track},"args":{arguments}}}'
        mark = _MARKED.get(causes[segment])
        if mark is not None and len(of_segment):
            track = int(of_segment[0])
            place = f'"pid":{int(tracks.node[track]) + 1},"tid":{tracks.first_number + track}'
            yield f'{{"ph":"i","s":"t","cat":"stop","name":"{mark}","ts":{stop},{place}}}'


def _words(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """Yield the name and the details of each segment, as JSON."""
    jobs = schedule.workload
    rows = schedule.segment_job
    waits = (schedule.start_s - jobs.submit_s)[rows].tolist()
    causes = [cause.name.lower().replace("_", " ") for cause in Cause]
    gpus = np.diff(schedule.segment_gpu_offset).tolist()
    labels = [
        (key, _texts(column), column.codes)
        for key, column in (("tenant", jobs.tenant), ("user", jobs.user), ("kind", jobs.kind))
        if column.names
    ]
    for segment, row in enumerate(rows.tolist()):
        name = json.dumps(f"job {jobs.id[row]}")
        details = (
            f'{{"GPUs":{gpus[segment]},"first wait (s)":{waits[segment]:.3f},'
            f'"ended":"{causes[schedule.segment_cause[segment]]}"'
        )
        for key, texts, codes in labels:
            if codes[row] >= 0:
                details += f',"{key}":{texts[codes[row]]}'
        yield name, details + "}"


def _texts(labels: Labels) -> list[str]:
    return [json.dumps(name) for name in labels.names]


def _microseconds(seconds: npt.NDArray[np.float64] | Iterable[float]) -> IntArray:
    """Return whole microseconds: rounding keeps the order, so slices still do not overlap."""
    return np.rint(np.asarray(seconds) * MICROSECONDS).astype(np.int64)
