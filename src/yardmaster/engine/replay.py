"""Replaying a workload on the core, and turning its arrays into a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from yardmaster.engine import compilation
from yardmaster.engine import state as at
from yardmaster.engine.core.bits import WORD_BITS
from yardmaster.engine.orders import OrderKeys, Rekey
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.engine.setup import Options, Simulation, lay_out
from yardmaster.engine.state import Status
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import FloatArray, IntArray, Workload

Compile = Literal["auto", "always", "never"]

COMPILE_ABOVE_JOBS = 4_000
"""Up to this many jobs, plain Python is quicker than loading the compiled core."""


def replay(
    workload: Workload,
    cluster: Cluster,
    keys: OrderKeys,
    options: Options,
    *,
    scheduler: str,
    until_s: float = math.inf,
    compile_core: Compile = "auto",
    announce: Callable[[str], None] | None = None,
) -> Schedule:
    """Simulate the workload to its end, or until `until_s`, and return what happened."""
    if compile_core == "always" or (compile_core == "auto" and len(workload) > COMPILE_ABOVE_JOBS):
        compilation.compile_core(announce)
    shapes = shapes_of(workload, cluster)
    simulation = lay_out(workload, cluster, shapes, keys, options)
    _run(simulation, keys.rekey, until_s)
    engine = "compiled" if compilation.is_compiled() else "uncompiled"
    return _schedule(
        simulation,
        workload,
        cluster,
        shapes,
        scheduler=scheduler,
        until_s=until_s,
        engine=engine,
    )


def _run(simulation: Simulation, rekey: Rekey | None, until_s: float) -> None:
    """Drive the core to the end, setting keys and enlarging tables when it asks."""
    from yardmaster.engine.core import events  # late: compile_core replaces its functions

    while True:
        status = events.replay(*_arrays(simulation), until_s)
        if status == Status.DONE:
            return
        if status == Status.NEEDS_ROOM:
            simulation.make_room()
        elif rekey is not None:
            _set_keys(simulation, rekey)


def _arrays(simulation: Simulation) -> tuple[Any, Any]:
    """Give the uncompiled core memoryviews, whose items are plain Python numbers and quick."""
    if compilation.is_compiled():
        return simulation.ints, simulation.reals
    return simulation.ints.data, simulation.reals.data


def _set_keys(simulation: Simulation, rekey: Rekey) -> None:
    """Ask a Python order for the keys of the waiting jobs."""
    jobs = int(simulation.ints[at.JOBS])
    waiting = np.sort(simulation.int_table(at.QUEUE, int(simulation.ints[at.QUEUED])))
    if len(waiting):
        keys = rekey(waiting, float(simulation.reals[at.NOW]))
        simulation.real_table(at.OFFSET, jobs)[waiting] = keys


def _schedule(
    simulation: Simulation,
    workload: Workload,
    cluster: Cluster,
    shapes: Shapes,
    *,
    scheduler: str,
    until_s: float,
    engine: str,
) -> Schedule:
    segments = int(simulation.ints[at.SEGMENTS])
    job = simulation.int_table(at.SEGMENT_JOB, segments)
    begin = simulation.real_table(at.SEGMENT_START, segments)
    end = simulation.real_table(at.SEGMENT_END, segments)
    start_s = np.full(len(workload), np.nan)
    start_s[job[::-1]] = begin[::-1]  # reversed: the first segment of a job wins
    end_s = np.full(len(workload), np.nan)
    end_s[job] = end
    finished = ~np.isnan(end)
    cut_s = until_s if math.isfinite(until_s) else float(simulation.reals[at.NOW])
    offsets, gpu_ids = _recorded_gpus(simulation, cluster, segments)
    return Schedule(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        start_s=start_s,
        end_s=end_s,
        outcome=outcomes(workload, shapes, start_s, end_s, cut_s),
        segment_job=job.copy(),
        segment_start_s=begin.copy(),
        segment_end_s=np.where(finished, end, cut_s),
        segment_gpu_offset=offsets,
        gpu_ids=gpu_ids,
        horizon_s=(float(workload.submit_s[0]), max(cut_s, float(workload.submit_s[0]))),
        engine=engine,
        notes=notes_on(workload, shapes),
    )


def _recorded_gpus(
    simulation: Simulation, cluster: Cluster, segments: int
) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Expand the recorded words of bits into GPU numbers, segment after segment."""
    from yardmaster.engine.core import tables  # late: compile_core replaces its functions

    records = simulation.int_table(at.RECORD, int(simulation.ints[at.RECORDS]))
    held = int(np.bitwise_count(records & 0xFFFFFFFF).sum())
    through, gpu_ids = np.zeros(len(records) + 1, dtype=np.int64), np.zeros(held, dtype=np.int32)
    tables.expand_records(records, _first_gpu_of_word(cluster), through[1:], gpu_ids)
    if len(records) == segments:  # one record each, the usual case
        return through, gpu_ids
    return through[simulation.int_table(at.SEGMENT_RECORD, segments + 1)], gpu_ids


def _first_gpu_of_word(cluster: Cluster) -> IntArray:
    """Return the number of the first GPU of every word of free bits."""
    words = -(-cluster.node_gpus // WORD_BITS)
    node = np.repeat(np.arange(cluster.nodes), words)
    within = np.arange(len(node)) - (np.cumsum(words) - words)[node]
    return np.asarray(cluster.node_first_gpu[node] + WORD_BITS * within, dtype=np.int64)


def outcomes(
    workload: Workload, shapes: Shapes, start_s: FloatArray, end_s: FloatArray, cut_s: float
) -> npt.NDArray[np.int8]:
    """Return how each job's simulation ended."""
    ended = ~np.isnan(end_s)
    if ended.all():
        return np.full(len(workload), Outcome.FINISHED, dtype=np.int8)
    started = ~np.isnan(start_s)
    outcome = np.where(started, Outcome.RUNNING, Outcome.QUEUED)
    outcome = np.where(ended, Outcome.FINISHED, outcome)
    outcome = np.where(workload.submit_s > cut_s, Outcome.NOT_SUBMITTED, outcome)
    return np.where(shapes.of_job < 0, Outcome.UNPLACEABLE, outcome).astype(np.int8)


def notes_on(workload: Workload, shapes: Shapes) -> tuple[str, ...]:
    """Say what the reader must know: jobs too large for the cluster, features not modelled."""
    notes = []
    impossible = np.flatnonzero(shapes.of_job < 0)
    if len(impossible):
        examples = ", ".join(
            f"{workload.id[row]} ({workload.gpus[row]} GPUs)" for row in impossible[:3]
        )
        notes.append(
            f"{len(impossible)} of {len(workload)} jobs can never be placed on this cluster and"
            f" are left out of all averages, for example {examples}"
        )
    fractions = int(np.count_nonzero(workload.milli_gpu < 1000))
    if fractions:
        notes.append(f"{fractions} jobs ask for part of a GPU; each holds a whole one here")
    return tuple(notes)
