"""A schedule as one piece of binary data, for drawing a hundred thousand bars in a page.

Layout, all numbers little-endian:

```
bytes 0 … 7     "YMSCHED1"
bytes 8 … 11    length of the header in bytes, unsigned 32 bits
bytes 12 …      header: JSON in UTF-8, padded with spaces
then            columns, each beginning at a multiple of 8
```

The header's `columns` says of each column its `type` (f64, f32, u32, u16, i16, u8), its `offset`
from the begin of the data and its `length` in elements.

| columns | one per | what |
|---|---|---|
| `job_submit`, `job_start`, `job_end` | job | seconds; NaN where it never came to that |
| `job_wait`, `job_slowdown` | job | seconds to the first start; bounded slowdown; else NaN |
| `job_priority` | job | number |
| `job_tenant`, `job_kind` | job | index into the header's names, −1 if missing |
| `job_gpus`, `job_outcome` | job | GPUs asked for; index into the header's `outcomes` |
| `id_offset`, `id_text` | job + 1, byte | where each job's id begins in the UTF-8 text |
| `segment_job`, `segment_start`, `segment_end` | segment | row of the job; seconds |
| `segment_cause` | segment | why it ended: index into `causes` |
| `segment_share` | segment | thousandths that it holds of each of its GPUs |
| `bar_segment` | bar | a segment on one of its GPUs; those of a track together, by time |
| `track_bar` | track + 1 | where each track's bars begin; bars of one track do not overlap |
| `track_gpu`, `track_lane`, `gpu_lanes` | track, track, GPU | a shared GPU has several tracks |
| `node_gpus`, `node_type` | node | GPUs count through the nodes in order |
| `outage_node`, `outage_begin`, `outage_end` | outage | within the horizon |
| `NAME_edges`, `NAME_values` | step + 1, step | the header's `strips`: values over time |
"""

from __future__ import annotations

import heapq
import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from yardmaster.errors import YardmasterError
from yardmaster.metrics import per_job
from yardmaster.metrics.fragmentation import fragmentation_timeline
from yardmaster.metrics.holdings import segment_milli
from yardmaster.metrics.outages import outage_spans
from yardmaster.metrics.power import power_timeline
from yardmaster.metrics.timeline import StepFunction, busy_gpus, queue_length
from yardmaster.model.columns import Labels
from yardmaster.model.schedule import Cause, Outcome, Schedule

MAGIC = b"YMSCHED1"
MOST_BARS = 5_000_000
MOST_LANES = 16
"""Tracks of a shared GPU; what is shared more finely is drawn on the last."""
_TYPES = {"f64": "<f8", "f32": "<f4", "u32": "<u4", "u16": "<u2", "i16": "<i2", "u8": "u1"}

Columns = dict[str, tuple[str, npt.NDArray[Any]]]


class Tracks(NamedTuple):
    """Bars in the order in which they are drawn."""

    bar_segment: npt.NDArray[np.int64]
    track_bar: npt.NDArray[np.int64]
    track_gpu: npt.NDArray[np.int64]
    track_lane: npt.NDArray[np.int64]
    gpu_lanes: npt.NDArray[np.int64]


def encode(schedule: Schedule, about: Mapping[str, Any], *, with_strips: bool = True) -> bytes:
    """Return the schedule in the layout above; `about` goes into the header.

    Args:
        schedule: what happened.
        about: what else the header says.
        with_strips: whether values over time come along.

    Raises:
        YardmasterError: if it has more bars than a page can hold.
    """
    bars = len(schedule.gpu_ids)
    if bars > MOST_BARS:
        raise YardmasterError(
            f"The schedule has {bars:,} bars; a page shows {MOST_BARS:,} at most."
        )
    strips = _strips(schedule) if with_strips else []
    columns = _job_columns(schedule) | _bar_columns(schedule) | _place_columns(schedule)
    for strip, steps in strips:
        columns[f"{strip['name']}_edges"] = ("f64", steps.edges_s)
        columns[f"{strip['name']}_values"] = ("f32", np.asarray(steps.values))
    return _packed(_header(schedule, about) | {"strips": [strip for strip, _ in strips]}, columns)


def _packed(header: dict[str, Any], columns: Columns) -> bytes:
    """Put header and columns together."""
    parts: list[bytes] = []
    places: dict[str, Any] = {}
    offset = 0
    for name, (kind, values) in columns.items():
        data = np.ascontiguousarray(values).astype(_TYPES[kind]).tobytes()
        places[name] = {"type": kind, "offset": offset, "length": len(values)}
        padding = -len(data) % 8
        parts.append(data + b"\0" * padding)
        offset += len(data) + padding
    text = json.dumps(header | {"columns": places}, ensure_ascii=False).encode()
    text += b" " * (-(len(MAGIC) + 4 + len(text)) % 8)
    return b"".join((MAGIC, struct.pack("<I", len(text)), text, *parts))


def _header(schedule: Schedule, about: Mapping[str, Any]) -> dict[str, Any]:
    workload, cluster = schedule.workload, schedule.cluster
    return dict(about) | {
        "version": 1,
        "scheduler": schedule.scheduler,
        "workload": workload.name,
        "cluster": cluster.name,
        "begins": workload.begins,
        "is_pool": cluster.is_pool,
        "horizon_s": list(schedule.horizon_s),
        "jobs": len(workload),
        "segments": len(schedule.segment_job),
        "bars": len(schedule.gpu_ids),
        "gpus": cluster.gpus,
        "gpu_types": [kind.name for kind in cluster.gpu_types],
        "tenants": list(workload.tenant.names),
        "kinds": list(workload.kind.names),
        "outcomes": [outcome.name.lower() for outcome in Outcome],
        "causes": [cause.name.lower() for cause in Cause],
        "outcome_counts": [schedule.count(outcome) for outcome in Outcome],
        "cause_counts": np.bincount(schedule.segment_cause, minlength=len(Cause)).tolist(),
    }


def _job_columns(schedule: Schedule) -> Columns:
    workload = schedule.workload
    texts = [str(name).encode() for name in workload.id.tolist()]
    ends = np.cumsum([0, *map(len, texts)])
    return {
        "job_submit": ("f64", workload.submit_s),
        "job_start": ("f64", schedule.start_s),
        "job_end": ("f64", schedule.end_s),
        "job_wait": ("f32", schedule.start_s - workload.submit_s),
        "job_slowdown": ("f32", per_job.bounded_slowdown(schedule)),
        "job_priority": ("f32", workload.priority),
        "job_gpus": ("u32", workload.gpus),
        "job_tenant": ("i16", _codes(workload.tenant)),
        "job_kind": ("i16", _codes(workload.kind)),
        "job_outcome": ("u8", schedule.outcome),
        "id_offset": ("u32", ends),
        "id_text": ("u8", np.frombuffer(b"".join(texts), dtype=np.uint8)),
    }


def _codes(labels: Labels) -> npt.NDArray[np.int64]:
    """Return codes that fit 16 bits; names beyond count as missing."""
    codes = labels.codes.astype(np.int64)
    return np.where(codes > np.iinfo(np.int16).max, -1, codes)


def _bar_columns(schedule: Schedule) -> Columns:
    tracks = tracks_of(schedule)
    return {
        "segment_job": ("u32", schedule.segment_job),
        "segment_start": ("f64", schedule.segment_start_s),
        "segment_end": ("f64", schedule.segment_end_s),
        "segment_cause": ("u8", schedule.segment_cause),
        "segment_share": ("u16", segment_milli(schedule)),
        "bar_segment": ("u32", tracks.bar_segment),
        "track_bar": ("u32", tracks.track_bar),
        "track_gpu": ("u32", tracks.track_gpu),
        "track_lane": ("u8", tracks.track_lane),
        "gpu_lanes": ("u8", tracks.gpu_lanes),
    }


def _place_columns(schedule: Schedule) -> Columns:
    node, begin, end = outage_spans(schedule)
    return {
        "node_gpus": ("u32", schedule.cluster.node_gpus),
        "node_type": ("u16", schedule.cluster.node_type),
        "outage_node": ("u32", node),
        "outage_begin": ("f64", begin),
        "outage_end": ("f64", end),
    }


def tracks_of(schedule: Schedule) -> Tracks:
    """Sort the bars of every GPU by time; where jobs share it, onto tracks without overlap."""
    held = np.diff(schedule.segment_gpu_offset)
    segment = np.repeat(np.arange(len(held)), held)
    gpu = schedule.gpu_ids.astype(np.int64)
    begin, end = schedule.segment_start_s[segment], schedule.segment_end_s[segment]
    order = np.lexsort((begin, gpu))
    segment, gpu, begin, end = segment[order], gpu[order], begin[order], end[order]
    lane = np.zeros(len(gpu), dtype=np.int64)
    overlaps = (gpu[1:] == gpu[:-1]) & (begin[1:] < end[:-1])
    for shared in np.unique(gpu[1:][overlaps]):
        first, past = np.searchsorted(gpu, (shared, shared + 1))
        lane[first:past] = _lanes(begin[first:past].tolist(), end[first:past].tolist())
    lanes = np.ones(schedule.cluster.gpus, dtype=np.int64)
    np.maximum.at(lanes, gpu, lane + 1)
    track_gpu = np.repeat(np.arange(len(lanes)), lanes)
    first_track = np.cumsum(lanes) - lanes
    track = first_track[gpu] + lane
    by_track = np.argsort(track, kind="stable")
    counts = np.bincount(track, minlength=len(track_gpu))
    return Tracks(
        segment[by_track],
        np.concatenate(([0], np.cumsum(counts))),
        track_gpu,
        np.arange(len(track_gpu)) - first_track[track_gpu],
        lanes,
    )


def _lanes(begin: list[float], end: list[float]) -> list[int]:
    """Give every span, in order of begin, the lowest lane that is free."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    opened = 0
    lanes = []
    for start, stop in zip(begin, end, strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free and opened < MOST_LANES:
            heapq.heappush(free, opened)
            opened += 1
        lane = heapq.heappop(free) if free else MOST_LANES - 1
        heapq.heappush(busy, (stop, lane))
        lanes.append(lane)
    return lanes


def _strips(schedule: Schedule) -> list[tuple[dict[str, Any], StepFunction]]:
    """Return what is drawn above the bars on the same time axis."""
    gpus = schedule.cluster.gpus
    found = [
        ("queue", "Queue", "jobs", None, queue_length(schedule)),
        ("busy", "Busy", "GPUs", gpus, busy_gpus(schedule)),
        ("fragmented", "Fragmented", "GPUs", None, fragmentation_timeline(schedule)),
        ("power", "Power", "W", None, power_timeline(schedule)),
    ]
    return [
        (
            {
                "name": name,
                "title": title,
                "unit": unit,
                "top": top,
                "mean": _known(steps.time_average()),
                "most": _known(steps.maximum()),
            },
            steps,
        )
        for name, title, unit, top, steps in found
    ]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
