"""What the numbers of an observation mean and between which bounds they lie.

One list serves the spaces that Gymnasium is told of, the views of a flat observation as a
dictionary, and the tables of the MDP card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yardmaster.engine.picking.layout import Floats, Layout
from yardmaster.envs.task import Task
from yardmaster.names import unknown

if TYPE_CHECKING:
    import gymnasium

Observation: TypeAlias = Floats | dict[str, Floats]

KINDS = ("flat", "dict")
"""How an observation is handed over: one row of numbers, or a dictionary of its parts."""

ANY = 1e9
"""Bound of numbers that have none of their own, such as priorities as the job table has them."""

ROUNDING = 1e-6
"""GPU slots add up many small shares in 32 bits: the sum may pass 1 by this much."""

QUEUE_SCALE = 200.0
"""Waiting jobs that DRL_Scheduler shows as 1."""


@dataclass(frozen=True, slots=True)
class Field:
    """One number of an observation."""

    name: str
    meaning: str
    low: float = 0.0
    high: float = 1.0


JOB_FIELDS: dict[str, tuple[Field, ...]] = {
    "standard": (
        Field("present", "1 if the place of the window holds a job; a blank token is all 0"),
        Field("gpus_log", "log2(1 + GPUs asked for) / log2(1 + GPUs of the cluster)"),
        Field("gpus", "GPUs asked for, as a share of the cluster's"),
        Field("run_time", "ln(1 + run time in s) / ln(1 + 30 days in s), at most 1; 0 if blind"),
        Field("area", "the same of run time × GPUs (30 days on all GPUs: 1); 0 if blind"),
        Field("priority", "p / (1 + |p|)", low=-1.0),
        Field("wait", "time waited, t / (t + unit)"),
        Field("stretch", "wait / (wait + max(run time, 10 s)); 0 if blind"),
        Field("fits", "1 if the job could start now"),
        Field("reserved", "1 for the first job of the window that does not fit"),
        Field("harmless", "1 if it fits and starting it would not delay the reserved job"),
        Field(
            "slack",
            "time from its end to the reserved job's start, t / (|t| + unit); 0 if none or blind",
            low=-1.0,
        ),
        Field(
            "deadline",
            "time to spare before its deadline if it started now, t / (|t| + unit); 0 if none",
            low=-1.0,
        ),
    ),
    "gpu_optimizer": (
        Field("duration", "run time / `longest_s`, at most 1"),
        Field("priority", "priority / 10", low=-ANY, high=ANY),
        Field("gpus", "GPUs asked for, as a share of the cluster's"),
        Field("wait", "time waited / length of the episode, at most 1"),
    ),
    "drl_scheduler": (
        Field("priority", "priority / 5", low=-ANY, high=ANY),
        Field("flops", "run time × GPUs × 1e12 FLOP/s, by 5e12, at most 1"),
        Field("gpus", "GPUs asked for, as a share of the cluster's"),
        Field("run_time", "run time / `longest_s`, at most 1"),
    ),
    "rltune": (
        Field("wait", "time waited / 12 h, below 1"),
        Field("gpus", "GPUs asked for by those of the largest node of its pool, below 1"),
        Field("share_of_free", "GPUs asked for / free ones / capacity of its pool, below 1"),
        Field(
            "room_left",
            "(free − its GPUs − GPUs that others in the window ask for + capacity)"
            " / (2 · capacity) of its pool",
        ),
        Field("partly_used", "share of the pool's nodes that are partly used"),
        Field("ways", "ways to place it, 0 to 3, by 3"),
        Field("can_run", "almost 1 if it could start now, almost 0 if not"),
    ),
}
"""By feature set: the numbers of a job token."""

GLOBAL_FIELDS: dict[str, tuple[Field, ...]] = {
    "standard": (
        Field("free", "share of the GPUs that are free"),
        Field("waiting", "waiting jobs n, n / (n + window)"),
        Field("hidden", "share of the waiting jobs beyond the window"),
        Field("running", "running jobs by GPUs of the cluster, at most 1"),
        Field(
            "shadow",
            "time until the reserved job can start, t / (|t| + unit); 0 if none or blind",
            low=-1.0,
        ),
        Field("spare", "share of the GPUs that are free beside the reservation"),
    ),
    "gpu_optimizer": (
        Field("idle", "share of the GPUs that are free"),
        Field("busy", "share of the GPUs in use"),
    ),
    "drl_scheduler": (
        Field("free", "share of the GPUs that are free; the first number"),
        Field("waiting", "waiting jobs / 200, may pass 1; the last number", high=ANY),
    ),
    "rltune": (),
}
"""By feature set: the numbers that concern the whole cluster."""

LOOKAHEADS = {
    "off": "0",
    "per_gpu": "time left of each GPU, in the order of the GPUs",
    "sorted": "time left of each GPU, shortest first",
    "cdf": "share of the GPUs whose time left is at most (slot + 1) / slots",
}
"""What the GPU slots say, by `lookahead`."""


def job_fields(task: Task) -> tuple[Field, ...]:
    """Return the numbers of a job token of a task, in order."""
    sight = task.sight
    ranks = (_rank(order) for order in sight.ranks)
    return (*JOB_FIELDS[sight.features], *ranks)


def _rank(order: str) -> Field:
    return Field(f"rank_{order}", f"place in the window under {order}: 1/n the first, 1 the last")


def bounds(task: Task) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each number of a flat observation."""
    layout = task.sight.layout()
    low = np.zeros(layout.length, dtype=np.float32)
    high = np.ones(layout.length, dtype=np.float32)
    tokens = job_fields(task)
    layout.jobs(low)[:] = [field.low for field in tokens]
    layout.jobs(high)[:] = [field.high for field in tokens]
    layout.gpus(high)[:] += ROUNDING
    for place, field in zip(layout.globals_at, GLOBAL_FIELDS[task.sight.features], strict=True):
        low[place], high[place] = field.low, field.high
    if task.sight.features == "drl_scheduler":  # no more can wait than an episode has jobs
        high[layout.globals_at[-1]] = max(task.jobs / QUEUE_SCALE, 1.0)
    return low, high


def arranged(flat: Floats, layout: Layout, kind: str) -> Observation:
    """Return flat observations, (…, length), in the way asked for; parts are views if they can be.

    Raises:
        UnknownNameError: if there is no such kind of observation.
    """
    if kind not in KINDS:
        raise unknown("kind of observation", kind, KINDS)
    if kind == "flat":
        return flat
    parts = {"jobs": layout.jobs(flat)}
    if layout.gpu_slots:
        parts["gpus"] = layout.gpus(flat)
    if layout.global_features:
        parts["globals"] = layout.globals(flat)
    return parts


def copied(observation: Observation) -> Observation:
    """Return an observation that nobody else writes to."""
    if isinstance(observation, dict):
        return {name: part.copy() for name, part in observation.items()}
    return observation.copy()


def space(task: Task, kind: str) -> gymnasium.Space[Any]:
    """Return the space that observations of a task lie in."""
    from gymnasium import spaces

    layout = task.sight.layout()
    low, high = (arranged(bound, layout, kind) for bound in bounds(task))
    if isinstance(low, dict) and isinstance(high, dict):
        parts = low.keys()
        return spaces.Dict([(part, spaces.Box(low[part], high[part])) for part in parts])
    return spaces.Box(np.asarray(low), np.asarray(high))
