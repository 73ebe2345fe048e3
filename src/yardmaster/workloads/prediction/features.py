"""What a learnt model sees of a job: what its owner asked for, when, and how like jobs ran before.

Every number is known at the job's submission. Names of users or kinds never enter as such; a user
is seen by how long the user's jobs ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from yardmaster.model.workload import FloatArray, IntArray, Labels
from yardmaster.workloads.prediction.past import Past, means, medians

RECENT, MORE = 5, 20
"""How many of the latest like jobs are summed up, once few and once more."""

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
MONDAY = datetime(1970, 1, 5)  # noqa: DTZ001  (local time, as a workload's `begins` is)


def features(past: Past) -> FloatArray:
    """Return (jobs, features) numbers, NaN where something is not known."""
    return np.column_stack([*_requests(past), *_times(past), *_histories(past)])


def _requests(past: Past) -> Iterator[FloatArray]:
    jobs = past.workload
    yield past.size / 1000.0
    yield np.log(past.requested_s)
    yield from (jobs.priority, jobs.cpus, jobs.memory_gib, jobs.gpu_memory_gib)
    yield jobs.deadline_s - jobs.submit_s
    yield jobs.max_gpus.astype(np.float64)


def _times(past: Past) -> Iterator[FloatArray]:
    """Yield hour of the day and of the week; on a clock of unknown date they are only relative."""
    begins = past.workload.begins
    offset_s = (datetime.fromisoformat(begins) - MONDAY).total_seconds() if begins else 0.0
    second = past.workload.submit_s + offset_s % WEEK_S
    yield (second % DAY_S) / 3600.0
    yield np.floor((second % WEEK_S) / DAY_S)


def _histories(past: Past) -> Iterator[FloatArray]:
    """Yield how the latest like jobs ran, for several meanings of like."""
    jobs = past.workload
    meanings: tuple[tuple[IntArray | FloatArray | Labels, ...], ...] = (
        # The very same request, where requests say more than GPUs; no kind is a kind here.
        (jobs.user, past.size, past.requested_s, jobs.kind.codes.astype(np.int64)),
        (jobs.user, past.size),
        (jobs.user,),
        (jobs.tenant, past.size),
        (jobs.tenant,),
        (jobs.kind,),
        (past.size,),
        (),
    )
    for properties in meanings:
        # Names that nobody has would only add columns without a number in them.
        if all(len(each.names) for each in properties if isinstance(each, Labels)):
            yield from _history(past, properties)


def _history(
    past: Past, properties: tuple[IntArray | FloatArray | Labels, ...]
) -> Iterator[FloatArray]:
    """Yield count, the last two, and mean and median of recent log run times of like jobs."""
    alike = past.alike(*properties)
    everyone = np.arange(len(past))
    yield np.log1p(alike.count)
    latest = alike.latest(np.log(past.run_s), MORE, everyone)
    yield latest[:, 0]
    yield latest[:, 1]
    for many in (RECENT, MORE):
        yield means(latest[:, :many])
        yield medians(latest[:, :many])
