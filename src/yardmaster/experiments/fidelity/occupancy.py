"""Who held and who waited for the machine at every moment, in a record or in a simulation.

Time is cut at every submission, start and end; in between nothing changes. All changes of one
instant count together: a job that starts when it is submitted never waited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yardmaster.metrics.holdings import segment_gpus
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.site import Sharing
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Workload

MOST_SIZES = 256
"""Sizes of jobs that are told apart; beyond that, sizes are rounded up to so many."""
ROUNDING = 1e-6
"""Sums of fractions of a GPU are exact to this many GPUs."""


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """GPUs in use and jobs waiting, as step functions over the same moments.

    Attributes:
        gpus: GPUs of the cluster.
        moments_s: (moments,) seconds at which something changes, ascending.
        lasts_s: (moments,) seconds to the next moment; 0 for the last.
        used: (moments,) GPUs in use from each moment on.
        waiting: (moments,) jobs that wait from each moment on.
        largest: (moments,) GPUs that the largest of them asks for, 0 if nobody waits.
        wants: (jobs,) GPUs each job asks for.
        came: (jobs,) moment of its submission.
        went: (jobs,) moment of its start; as `came` for jobs whose start is not known.
    """

    gpus: int
    moments_s: FloatArray
    lasts_s: FloatArray
    used: FloatArray
    waiting: IntArray
    largest: FloatArray
    wants: FloatArray
    came: IntArray
    went: IntArray

    @property
    def free(self) -> FloatArray:
        """(moments,) GPUs not in use; below 0 where more are held than the cluster has."""
        return self.gpus - self.used

    @property
    def has_room_for_all(self) -> BoolArray:
        """(moments,) somebody waits, and even the largest waiting request would fit.

        However a queue is ordered, its first job would start now: no order and no backfilling rule
        leaves anybody waiting at such a moment (on a cluster without node borders).
        """
        is_room = self.largest <= self.free + ROUNDING
        return np.asarray((self.waiting > 0) & is_room)

    def waited_during_s(self, is_counted: BoolArray) -> FloatArray:
        """Return (jobs,) the seconds of each job's wait that fall into the moments counted."""
        passed = self._passed_s(is_counted)
        return np.asarray(passed[self.went] - passed[self.came])

    def waited_with_room_s(self) -> FloatArray:
        """Return (jobs,) the seconds each job waited while enough GPUs for it were free."""
        waited = np.zeros(len(self.wants))
        free = self.free + ROUNDING
        level, of_job = _levels(self.wants)
        has_waited = self.went > self.came
        for place, size in enumerate(level):
            rows = np.flatnonzero(has_waited & (of_job == place))
            if len(rows):
                passed = self._passed_s(free >= size)
                waited[rows] = passed[self.went[rows]] - passed[self.came[rows]]
        return waited

    def share_of_time(self, is_counted: BoolArray) -> float:
        """Return which share of the time the moments counted make up."""
        total = float(self.lasts_s.sum())
        return float(self.lasts_s[is_counted].sum()) / total if total > 0 else 0.0

    def highest_use(self, is_counted: BoolArray, share: float) -> float:
        """Return the GPUs in use that a share of the counted time stays at or below; 0 if none."""
        used, lasts_s = self.used[is_counted], self.lasts_s[is_counted]
        if not lasts_s.sum() > 0:
            return 0.0
        order = np.argsort(used)
        passed = np.cumsum(lasts_s[order])
        place = int(np.searchsorted(passed, share * passed[-1]))
        return float(used[order][min(place, len(order) - 1)])

    def utilisation(self, begin_s: float, end_s: float) -> float:
        """Return the mean share of the GPUs in use between two seconds; NaN if they are equal."""
        if not end_s > begin_s:
            return float("nan")
        held = np.concatenate(([0.0], np.cumsum(self.used * self.lasts_s)))[:-1]
        ends = np.interp([begin_s, end_s], self.moments_s, held)
        return float(np.diff(ends)[0]) / (self.gpus * (end_s - begin_s))

    def _passed_s(self, is_counted: BoolArray) -> FloatArray:
        """Return (moments,) the seconds counted before each moment."""
        return np.concatenate(([0.0], np.cumsum(np.where(is_counted, self.lasts_s, 0.0))[:-1]))


def recorded_occupancy(workload: Workload, cluster: Cluster) -> Occupancy:
    """Return who held and who waited according to the record, had it happened on this cluster.

    A job held its GPUs from submission + recorded wait, for its duration. Jobs without a recorded
    wait are not there.
    """
    wants = wanted_gpus(workload, cluster)
    start_s = workload.submit_s + workload.recorded_wait_s
    known = np.flatnonzero(~np.isnan(start_s))
    end_s = start_s + workload.duration_s
    return _occupancy(
        workload.submit_s, start_s, wants, cluster.gpus,
        (start_s[known], end_s[known], wants[known]),
    )  # fmt: skip


def simulated_occupancy(schedule: Schedule) -> Occupancy:
    """Return who held and who waited in a simulation."""
    wants = wanted_gpus(schedule.workload, schedule.cluster)
    return _occupancy(
        schedule.workload.submit_s, schedule.start_s, wants, schedule.cluster.gpus,
        (schedule.segment_start_s, schedule.segment_end_s, segment_gpus(schedule)),
    )  # fmt: skip


def wanted_gpus(workload: Workload, cluster: Cluster) -> FloatArray:
    """Return (jobs,) the GPUs each job needs; parts of a GPU only where the cluster shares GPUs."""
    if (cluster.node_sharing == Sharing.NONE).all():
        return workload.gpus.astype(np.float64)
    return np.asarray(workload.gpus * (workload.milli_gpu / 1000.0))


def _occupancy(
    submit_s: FloatArray,
    start_s: FloatArray,
    wants: FloatArray,
    gpus: int,
    holds: tuple[FloatArray, FloatArray, FloatArray],
) -> Occupancy:
    """Cut time at every change and add up what holds and who waits in between."""
    begin_s, end_s, held = holds
    went_s = np.where(np.isnan(start_s), submit_s, start_s)
    jobs, spans = len(submit_s), len(begin_s)
    moments_s, place = np.unique(
        np.concatenate((submit_s, went_s, begin_s, end_s)), return_inverse=True
    )
    came, went = place[:jobs], place[jobs : 2 * jobs]
    begin, end = place[2 * jobs : 2 * jobs + spans], place[2 * jobs + spans :]
    count = len(moments_s)
    used = np.cumsum(np.bincount(begin, held, count) - np.bincount(end, held, count))
    waiting = np.cumsum(np.bincount(came, minlength=count) - np.bincount(went, minlength=count))
    return Occupancy(
        gpus=gpus,
        moments_s=moments_s,
        lasts_s=np.diff(moments_s, append=moments_s[-1:]),
        used=np.asarray(np.round(used, 6), dtype=np.float64),
        waiting=waiting,
        largest=_largest(wants, came, went, count),
        wants=wants,
        came=came,
        went=went,
    )


def _largest(wants: FloatArray, came: IntArray, went: IntArray, moments: int) -> FloatArray:
    """Return (moments,) the largest request among the waiting jobs."""
    largest = np.zeros(moments)
    waits = np.flatnonzero(went > came)
    level, of_job = _levels(wants[waits])
    for place, size in enumerate(level):  # ascending: the larger ones write last
        rows = waits[of_job == place]
        change = np.bincount(came[rows], minlength=moments)
        change -= np.bincount(went[rows], minlength=moments)
        largest[np.cumsum(change) > 0] = size
    return largest


def _levels(wants: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return the sizes told apart, ascending, and which of them each job has."""
    sizes, of_job = np.unique(wants, return_inverse=True)
    if len(sizes) <= MOST_SIZES:
        return sizes, of_job
    kept = sizes[np.unique(np.linspace(0, len(sizes) - 1, MOST_SIZES).round().astype(np.int64))]
    return kept, np.searchsorted(kept, wants)
