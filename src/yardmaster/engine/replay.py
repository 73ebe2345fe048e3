"""Replaying a workload on the core, and turning its arrays into a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from yardmaster.engine import compilation
from yardmaster.engine import state as at
from yardmaster.engine.compilation import Core
from yardmaster.engine.conditions import Conditions
from yardmaster.engine.core.bits import WORD_BITS
from yardmaster.engine.decisions import Decide, check_plan, situation_of
from yardmaster.engine.layout import Simulation
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys, Rekey
from yardmaster.engine.requests import Shapes, shapes_of, shares_gpus
from yardmaster.engine.setup import lay_out
from yardmaster.engine.state import FIELDS, NOTHING, OrderKind, Status
from yardmaster.engine.unplaceable import unplaceable_reasons
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Workload

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
    is_real = options.conditions is not None
    if compile_core == "always" or (compile_core == "auto" and len(workload) > COMPILE_ABOVE_JOBS):
        compilation.compile_core(announce, is_real=is_real)
    core = compilation.core(is_real=is_real, may_be_compiled=compile_core != "never")
    by_tenant = keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
    shapes = shapes_of(workload, cluster, by_tenant=by_tenant)
    simulation = lay_out(workload, cluster, shapes, keys, options, core=core)
    if options.decide is None:
        _run(simulation, core, keys.rekey, until_s)
    else:
        _run_decided(
            simulation, core, shapes, rekey=keys.rekey, decide=options.decide, until_s=until_s
        )
    engine = "compiled" if core.is_compiled else "uncompiled"
    return schedule_of(
        simulation,
        core,
        workload,
        cluster,
        shapes,
        conditions=options.conditions,
        scheduler=scheduler,
        until_s=until_s,
        engine=engine,
    )


def _run(simulation: Simulation, core: Core, rekey: Rekey | None, until_s: float) -> None:
    """Drive the core to the end, setting keys and enlarging tables when it asks."""
    while True:
        status = core.replay(*_arrays(simulation, core), until_s)
        if status == Status.DONE:
            return
        if status == Status.NEEDS_ROOM:
            simulation.make_room()
        elif rekey is not None:
            _set_keys(simulation, rekey)


def _run_decided(
    simulation: Simulation,
    core: Core,
    shapes: Shapes,
    *,
    rekey: Rekey | None,
    decide: Decide,
    until_s: float,
) -> None:
    """Drive the core to the end, letting a Python function carry out every pass."""
    while True:
        status = core.replay(*_arrays(simulation, core), until_s)
        if status == Status.DONE:
            return
        if status == Status.NEEDS_ROOM:
            simulation.make_room()
            continue
        if rekey is not None:
            _set_keys(simulation, rekey)
        simulation.ints[at.PASSES] += 1
        situation = situation_of(simulation, shapes)
        waiting = set(situation.rows.tolist())
        for row, plan in decide(situation) if waiting else ():
            check_plan(situation, waiting, row, plan)
            waiting.remove(row)
            for place, (node, gpus) in enumerate(plan.items()):
                simulation.ints[simulation.ints[at.PLAN_NODE] + place] = node
                simulation.ints[simulation.ints[at.PLAN_GPUS] + place] = gpus
            simulation.ints[at.PLAN] = len(plan)
            simulation.ints[at.PLAN_SHARED] = NOTHING
            core.start_planned(*_arrays(simulation, core), row)


def _arrays(simulation: Simulation, core: Core) -> tuple[Any, Any]:
    """Give the uncompiled core memoryviews, whose items are plain Python numbers and quick."""
    if core.is_compiled:
        return simulation.ints, simulation.reals
    return simulation.ints.data, simulation.reals.data


def _set_keys(simulation: Simulation, rekey: Rekey) -> None:
    """Ask a Python order for the keys of the waiting jobs."""
    jobs = int(simulation.ints[at.JOBS])
    waiting = np.sort(simulation.int_table(at.QUEUE, int(simulation.ints[at.QUEUED])))
    if len(waiting):
        keys = rekey(waiting, float(simulation.reals[at.NOW]))
        simulation.real_table(at.OFFSET, jobs)[waiting] = keys


def schedule_of(
    simulation: Simulation,
    core: Core,
    workload: Workload,
    cluster: Cluster,
    shapes: Shapes,
    *,
    conditions: Conditions | None,
    scheduler: str,
    until_s: float,
    engine: str,
) -> Schedule:
    """Turn the arrays of a simulation that has run into a schedule."""
    segments = int(simulation.ints[at.SEGMENTS])
    job = simulation.int_table(at.SEGMENT_JOB, segments)
    begin = simulation.real_table(at.SEGMENT_START, segments)
    end = simulation.real_table(at.SEGMENT_END, segments)
    start_s = np.full(len(workload), np.nan)
    start_s[job[::-1]] = begin[::-1]  # reversed: the first segment of a job wins
    ended = ~np.isnan(end)
    is_last = ended if conditions is None else ended & (_causes(simulation) == Cause.FINISHED)
    end_s = np.full(len(workload), np.nan)
    end_s[job[is_last]] = end[is_last]
    is_running = np.zeros(len(workload), dtype=np.bool_)
    is_running[job[~ended]] = True
    cut_s = until_s if math.isfinite(until_s) else float(simulation.reals[at.NOW])
    offsets, gpu_ids = _recorded_gpus(simulation, core, cluster, segments)
    return Schedule(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        start_s=start_s,
        end_s=end_s,
        outcome=outcomes(
            workload,
            shapes,
            is_running,
            end_s,
            cut_s=cut_s,
            has_failed=_has_failed(simulation),
        ),
        segment_job=job.copy(),
        segment_start_s=begin.copy(),
        segment_end_s=np.where(ended, end, cut_s),
        segment_gpu_offset=offsets,
        gpu_ids=gpu_ids,
        horizon_s=(float(workload.submit_s[0]), max(cut_s, float(workload.submit_s[0]))),
        engine=engine,
        notes=notes_on(workload, cluster, shapes),
        **_interruptions(simulation, conditions, cut_s),
    )


def _causes(simulation: Simulation) -> IntArray:
    return simulation.int_table(at.SEGMENT_CAUSE, int(simulation.ints[at.SEGMENTS]))


def _has_failed(simulation: Simulation) -> BoolArray | None:
    """Return which jobs were given up after too many failures."""
    if not simulation.ints[at.IS_REAL]:
        return None
    failures = simulation.int_table(at.FAILURES, int(simulation.ints[at.JOBS]))
    return np.asarray(failures > simulation.ints[at.RETRIES])


def _interruptions(
    simulation: Simulation, conditions: Conditions | None, cut_s: float
) -> dict[str, Any]:
    """Return why each segment ended, what of it was wasted, and which nodes were away."""
    if conditions is None:
        return {}
    segments = int(simulation.ints[at.SEGMENTS])
    ended = ~np.isnan(simulation.real_table(at.SEGMENT_END, segments))
    job = simulation.int_table(at.SEGMENT_JOB, segments)
    overhead = simulation.reals[simulation.ints[at.OVERHEAD] + FIELDS * job]
    so_far = cut_s - simulation.real_table(at.SEGMENT_START, segments)
    wasted = simulation.real_table(at.SEGMENT_WASTED, segments)
    return {
        "segment_cause": np.where(ended, _causes(simulation), Cause.CUT).astype(np.int8),
        "segment_wasted_s": np.where(ended, wasted, np.minimum(overhead, so_far)),
        "outages": tuple(outage for outage in conditions.outages if outage.down_s <= cut_s),
    }


def _recorded_gpus(
    simulation: Simulation, core: Core, cluster: Cluster, segments: int
) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Expand the recorded words of bits into GPU numbers, segment after segment."""
    records = simulation.int_table(at.RECORD, int(simulation.ints[at.RECORDS]))
    held = int(np.bitwise_count(records & 0xFFFFFFFF).sum())
    through, gpu_ids = np.zeros(len(records) + 1, dtype=np.int64), np.zeros(held, dtype=np.int32)
    core.expand_records(records, _first_gpu_of_word(cluster), through[1:], gpu_ids)
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
    workload: Workload,
    shapes: Shapes,
    is_running: BoolArray,
    end_s: FloatArray,
    *,
    cut_s: float,
    has_failed: BoolArray | None = None,
) -> npt.NDArray[np.int8]:
    """Return how each job's simulation ended."""
    ended = ~np.isnan(end_s)
    if ended.all():
        return np.full(len(workload), Outcome.FINISHED, dtype=np.int8)
    outcome = np.where(is_running, Outcome.RUNNING, Outcome.QUEUED)
    outcome = np.where(ended, Outcome.FINISHED, outcome)
    if has_failed is not None:
        outcome = np.where(has_failed, Outcome.FAILED, outcome)
    outcome = np.where(workload.submit_s > cut_s, Outcome.NOT_SUBMITTED, outcome)
    return np.where(shapes.of_job < 0, Outcome.UNPLACEABLE, outcome).astype(np.int8)


def notes_on(workload: Workload, cluster: Cluster, shapes: Shapes) -> tuple[str, ...]:
    """Say what the reader must know: jobs the cluster can never hold, what is not modelled."""
    notes = []
    impossible = int(np.count_nonzero(shapes.of_job < 0))
    if impossible:
        verb = "is" if impossible == 1 else "are"
        why = "; ".join(unplaceable_reasons(workload, cluster, shapes))
        notes.append(
            f"{impossible} of {len(workload)} jobs can never be placed on this cluster and"
            f" {verb} left out of all averages: {why}"
        )
    fractions = int(np.count_nonzero(workload.milli_gpu < 1000))
    if fractions and not shares_gpus(workload, cluster):
        notes.append(f"{fractions} jobs ask for part of a GPU; each holds a whole one here")
    return tuple(notes)
