"""A small picture in text: which GPUs are in use, and who waits."""

from __future__ import annotations

from yardmaster.envs.numbered import NumberedBatch
from yardmaster.names import unknown
from yardmaster.schedulers.picking import known_run_times

RENDER_MODES = ("ansi",)

MOST_NODES = 16
"""Nodes drawn; more are counted."""
MOST_JOBS = 8
"""Waiting jobs listed; more are counted."""
WIDEST = 64
"""GPUs of a node drawn one by one; of larger ones a mark stands for several."""


def checked_mode(mode: str | None) -> str | None:
    """Return a way of rendering, or refuse it.

    Raises:
        UnknownNameError: if there is no such way.
    """
    if mode is not None and mode not in RENDER_MODES:
        raise unknown("render_mode", mode, RENDER_MODES)
    return mode


def picture(batch: NumberedBatch, row: int) -> str:
    """Draw one environment: a line per node, then a line per job at the head of the queue."""
    cluster = batch.episodes.cluster
    free = batch.free_gpus(row)
    heading = (
        f"second {batch.now_s[row]:,.0f} of episode {batch.episode_numbers[row]}:"
        f" {cluster.gpus - int(free.sum())} of {cluster.gpus} GPUs in use,"
        f" {batch.waiting[row]} waiting"
    )
    lines = [heading, *_nodes(batch, row), *_queue(batch, row)]
    return "\n".join(lines) + "\n"


def _nodes(batch: NumberedBatch, row: int) -> list[str]:
    cluster = batch.episodes.cluster
    lines = []
    for node, free in enumerate(batch.free_gpus(row)[:MOST_NODES].tolist()):
        gpus = int(cluster.node_gpus[node])
        width = min(gpus, WIDEST)
        used = round((gpus - free) / gpus * width)
        kind = cluster.gpu_types[int(cluster.node_type[node])].name
        lines.append(f"  node {node:3d} {kind:10s} {'#' * used}{'.' * (width - used)}")
    left = cluster.nodes - MOST_NODES
    return [*lines, f"  … {left} more nodes"] if left > 0 else lines


def _queue(batch: NumberedBatch, row: int) -> list[str]:
    """Return what the policy may know of the first waiting jobs."""
    workload = batch.episodes.workload(int(batch.episode_numbers[row]))
    run_s = known_run_times(workload, batch.task.sight)
    jobs = [job for job in batch.window_jobs[row].tolist() if job >= 0][:MOST_JOBS]
    lines = []
    for place, job in enumerate(jobs):
        waited_s = float(batch.now_s[row] - workload.submit_s[job])
        runs = "" if run_s is None else f", runs {run_s[job]:,.0f} s"
        fits = _fits(batch, row, place)
        lines.append(
            f"  job {place:4d}: {workload.gpus[job]} GPUs, waited {waited_s:,.0f} s{runs}{fits}"
        )
    left = int(batch.waiting[row]) - len(jobs)
    return [*lines, f"  … {left} more jobs"] if left > 0 else lines


def _fits(batch: NumberedBatch, row: int, place: int) -> str:
    """Say whether a job fits, where what is legal tells."""
    sight = batch.task.sight
    if not sight.masked or sight.pace == "commit":
        return ""
    return ", fits" if batch.masks[row, place] else ", does not fit"
