"""How soon the queue has recovered after a regime has changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from yardmaster.metrics.timeline import StepFunction, queue_length
from yardmaster.model.schedule import Schedule

RECOVERED = 0.5
"""Share of its maximum to which the queue must have fallen."""


def transition_recovery_s(
    schedule: Schedule,
    change_s: float,
    *,
    until_s: float = math.inf,
    queue: StepFunction | None = None,
) -> float:
    """Return seconds from a change until the queue has fallen to half of what it then rose to.

    The maximum is that of the queue from the change on, up to `until_s` or the end of the horizon.
    Recovery is the first moment at or after the first time the queue is so long at which it is at
    most half as long. 0 if nobody waits after the change.

    Args:
        schedule: what happened.
        change_s: second of the workload's clock at which the regime changed.
        until_s: look no further than this second, such as the next change.
        queue: the schedule's `queue_length`, where it is at hand already.

    Returns:
        The seconds; NaN if the queue does not fall so far in the time looked at, or if that time
        is empty: a change after the end, or nothing between change and `until_s`.
    """
    steps = queue_length(schedule) if queue is None else queue
    begin_s = max(float(change_s), float(steps.edges_s[0]))
    end_s = min(float(until_s), float(steps.edges_s[-1]))
    if not begin_s < end_s:
        return math.nan
    first = int(np.searchsorted(steps.edges_s, begin_s, side="right")) - 1
    last = int(np.searchsorted(steps.edges_s, end_s, side="left"))
    waiting = steps.values[first:last]
    longest = waiting.max()
    if longest == 0:
        return 0.0
    peak = int(np.argmax(waiting))
    fallen = np.flatnonzero(waiting[peak:] <= RECOVERED * longest)
    if not len(fallen):
        return math.nan
    return float(steps.edges_s[first + peak + fallen[0]]) - float(change_s)


def mean_recovery_s(schedule: Schedule, changes_s: Sequence[float]) -> float:
    """Return the mean of `transition_recovery_s` over changes, each up to the end of the horizon.

    NaN without changes, or if the queue never recovers from one of them.
    """
    if not len(changes_s):
        return math.nan
    queue = queue_length(schedule)
    return float(
        np.mean([transition_recovery_s(schedule, each, queue=queue) for each in changes_s])
    )
