"""A schedule: what happened to every job, and on which GPUs.

The schedule is the only thing metrics are computed from. It has one row per *segment* (one
uninterrupted run of a job on one set of GPUs); a job that is never preempted has one segment. Jobs
that never ran have none, and `outcome` says why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Outage
from yardmaster.model.workload import FloatArray, IntArray, Workload


class Outcome(IntEnum):
    """How a job's simulation ended."""

    FINISHED = 0
    RUNNING = 1
    """Started, but the simulation was cut before its end."""
    QUEUED = 2
    """Submitted, but not started before the simulation was cut."""
    UNPLACEABLE = 3
    """Asks for more than the empty cluster could ever give; never queued, always reported."""
    NOT_SUBMITTED = 4
    """The simulation was cut before its submission."""
    FAILED = 5
    """Lost its nodes more often than the site starts a job again."""


class Cause(IntEnum):
    """Why a segment ended."""

    FINISHED = 0
    PREEMPTED = 1
    """Made room for another job."""
    NODE_FAILED = 2
    MIGRATED = 3
    """Moved to other GPUs, to make one large hole out of small ones."""
    RESIZED = 4
    """Went on with more or fewer GPUs."""
    CUT = 5
    """Still running when the simulation was cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What a scheduler did with a workload on a cluster.

    Attributes:
        workload: the jobs; rows of all per-job columns below refer to it.
        cluster: the machines; GPU numbers count through its nodes in order.
        scheduler: the scheduler's name in the language `order+discipline@placement`.
        start_s: (jobs,) first start, NaN if never started.
        end_s: (jobs,) completion, NaN if not finished.
        outcome: (jobs,) `Outcome` of each job.
        segment_job: (segments,) row of the job, in order of start.
        segment_start_s: (segments,) start of the segment.
        segment_end_s: (segments,) end of the segment; the cut if still running then.
        segment_gpu_offset: (segments + 1,) where the segment's GPUs begin in `gpu_ids`.
        gpu_ids: flat list of GPU numbers held by each segment.
        segment_cause: (segments,) `Cause`: why the segment ended.
        segment_wasted_s: (segments,) seconds of the segment that brought its job no nearer to its
            end: restoring, and work that was lost with the segment and must be done again.
        outages: (node, down, up) of every outage that began before the end.
        horizon_s: (begin, end) of the measured span: first submission to last event or cut.
        engine: which engine made it.
        notes: what the reader must know (jobs that could not be placed, features not modelled).
        choices: how often each scheduler of a menu was chosen, where one was chosen.
        switches: how often another one was chosen than the one at work.
    """

    workload: Workload
    cluster: Cluster
    scheduler: str
    start_s: FloatArray
    end_s: FloatArray
    outcome: npt.NDArray[np.int8]
    segment_job: IntArray
    segment_start_s: FloatArray
    segment_end_s: FloatArray
    segment_gpu_offset: IntArray
    gpu_ids: npt.NDArray[np.int32]
    horizon_s: tuple[float, float]
    engine: str = "compiled"
    notes: tuple[str, ...] = ()
    segment_cause: npt.NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    segment_wasted_s: FloatArray = field(default_factory=lambda: np.zeros(0))
    outages: tuple[Outage, ...] = ()
    choices: Mapping[str, int] = field(default_factory=dict)
    switches: int = 0

    def __post_init__(self) -> None:
        """Fill in what plain schedules leave out: one segment a job, none of it wasted."""
        segments = len(self.segment_job)
        if len(self.segment_cause) != segments:
            ended = self.outcome[self.segment_job] != Outcome.RUNNING
            cause = np.where(ended, Cause.FINISHED, Cause.CUT).astype(np.int8)
            object.__setattr__(self, "segment_cause", cause)
        if len(self.segment_wasted_s) != segments:
            object.__setattr__(self, "segment_wasted_s", np.zeros(segments))

    def gpus_of(self, segment: int) -> npt.NDArray[np.int32]:
        """Return the GPU numbers held by one segment, ascending."""
        begin, end = self.segment_gpu_offset[segment], self.segment_gpu_offset[segment + 1]
        return np.sort(self.gpu_ids[begin:end])

    def count(self, outcome: Outcome) -> int:
        """Return how many jobs ended with this outcome."""
        return int(np.count_nonzero(self.outcome == outcome))

    def event_log(self) -> bytes:
        """Return every start and end with its GPUs as text lines in time order.

        Two runs did the same thing exactly when their logs are byte-identical.
        """
        lines: list[tuple[float, int, int, str]] = []
        for segment, job in enumerate(self.segment_job.tolist()):
            gpus = ",".join(map(str, self.gpus_of(segment).tolist()))
            start, end = float(self.segment_start_s[segment]), float(self.segment_end_s[segment])
            lines.append((start, 1, job, f"{start!r} start {job} {gpus}"))
            if self.segment_cause[segment] != Cause.CUT:
                lines.append((end, 0, job, f"{end!r} end {job} {gpus}"))
        lines.sort()
        return ("\n".join(text for *_, text in lines) + "\n").encode()

    def fingerprint(self) -> str:
        """Return a SHA-256 of starts, ends, outcomes and GPUs of every job and segment."""
        digest = hashlib.sha256()
        offsets = self.segment_gpu_offset
        owner = np.repeat(np.arange(len(self.segment_job)), np.diff(offsets))
        gpus = self.gpu_ids[np.lexsort((self.gpu_ids, owner))]
        for column in (
            self.start_s,
            self.end_s,
            self.outcome,
            self.segment_job,
            self.segment_start_s,
            self.segment_end_s,
            offsets,
            gpus,
            self.segment_cause,
            self.segment_wasted_s,
        ):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()
