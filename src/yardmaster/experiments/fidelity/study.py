"""Replay fidelity: simulate what a trace recorded, and say how far apart the waits are and why.

The policy behind a record is rarely known exactly. Where nobody names it, a line-up of common ones
is simulated and ranked by closeness: the mean of |simulated − recorded| wait. The closest is a
guess made on the very data it is judged by, so it is also chosen on the first half of the jobs
alone and measured on the second.

The simulated machine is empty when the trace begins, the real one was not: what ran then is not in
the record and cannot be put back. Jobs of a warm-up are therefore left out of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.experiments.compare import Progress
from yardmaster.experiments.fidelity.assumptions import candidates_for
from yardmaster.experiments.fidelity.causes import find_causes
from yardmaster.experiments.fidelity.distance import DAY_S, Distance, measure_distance
from yardmaster.experiments.fidelity.evidence import Cause, Evidence
from yardmaster.experiments.line_up import parse_schedulers, refuse_unfit
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import BoolArray, FloatArray, Workload
from yardmaster.schedulers.language import Scheduler
from yardmaster.schedulers.simulation import simulate

WARM_UP_S = 7 * DAY_S
LONGEST_WARM_UP = 0.2
"""The warm-up is a week, but at most this share of the time jobs are submitted in."""
MOST_USED = 1.25
"""Jobs that kept so many times a cluster's GPUs busy on average ran elsewhere."""

FEWEST_JOBS = 10
"""Jobs with recorded waits after the warm-up; fewer say nothing."""
EMPTY_AT_FIRST = (
    "the simulated machine is empty at first, the real one was not: jobs that ran or waited when"
    " the trace began are not in it and cannot be put back"
)
NO_DEPENDENCIES = "dependencies between jobs are not considered: the job table does not hold them"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One scheduler held against the record.

    Attributes:
        scheduler: its name.
        distance: how far its waits are from the recorded ones, warm-up left out.
        with_warm_up: the same for all jobs.
        halves: how far apart (`Distance.apart`) in the earlier and in the later half of the jobs.
    """

    scheduler: str
    distance: Distance
    with_warm_up: Distance
    halves: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Fidelity:
    """How well simulations reproduce a record.

    Attributes:
        workload: the jobs, with their recorded waits.
        cluster: the machines simulated.
        candidates: every scheduler, the closest first.
        is_guess: whether the closest of several was taken, rather than the one that was named.
        schedule: what the closest one did.
        evidence: record and simulation side by side.
        causes: everything that was looked for, found or not.
        notes: what the reader must know.
    """

    workload: Workload
    cluster: Cluster
    candidates: tuple[Candidate, ...]
    is_guess: bool
    schedule: Schedule
    evidence: Evidence
    causes: tuple[Cause, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def closest(self) -> Candidate:
        """The candidate with the smallest mean difference."""
        return self.candidates[0]

    @property
    def ties(self) -> int:
        """How many candidates are exactly as close as the closest."""
        apart_s = [each.distance.mean_apart_s for each in self.candidates]
        return apart_s.count(apart_s[0]) - 1

    def utilisation(self, *, with_warm_up: bool = False) -> tuple[float, float]:
        """Return recorded and simulated utilisation up to the last submission."""
        submit_s = self.workload.submit_s
        begin_s = float(submit_s[0]) if with_warm_up else self.evidence.warm_up_ends_s
        sides = (self.evidence.record, self.evidence.replay)
        recorded, simulated = (side.utilisation(begin_s, float(submit_s[-1])) for side in sides)
        return recorded, simulated

    @property
    def chosen_early(self) -> Candidate:
        """The candidate that is closest in the first half of the jobs."""
        return min(self.candidates, key=lambda each: each.halves[0])

    @property
    def best_late(self) -> Candidate:
        """The candidate that is closest in the second half."""
        return min(self.candidates, key=lambda each: each.halves[1])


def measure_fidelity(
    workload: Workload,
    cluster: Cluster,
    schedulers: Sequence[str | Scheduler] | None = None,
    *,
    warm_up_s: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Fidelity:
    """Simulate recorded jobs and compare their waits with the recorded ones.

    Args:
        workload: jobs of which some or all have a `recorded_wait_s`.
        cluster: the machines they ran on.
        schedulers: the policy, or several to rank; by default those of `assumptions`.
        warm_up_s: seconds from the first submission that are left out of the verdict; by default
            a week, or a fifth of a trace shorter than five weeks.
        seed: seed of random orders and placements.
        progress: told before each simulation.
        announce: told when the core must be compiled first.

    Raises:
        InvalidWorkloadError: if too few jobs have a recorded wait, or no scheduler is named and the
            jobs used more than the cluster has.
        YardmasterError: if a scheduler that was named cannot run here.
    """
    warm_up_ends_s = _warm_up_ends_s(workload, warm_up_s)
    _refuse_without_record(workload, warm_up_ends_s)
    if schedulers is None:
        _refuse_small(workload, cluster)
    parsed = parse_schedulers(candidates_for(workload) if schedulers is None else schedulers)
    if schedulers is not None:
        refuse_unfit(parsed, workload, cluster, seed=seed, announce=announce)
    notes = _notes(workload)
    found: list[Candidate] = []
    best: Schedule | None = None
    for number, scheduler in enumerate(parsed):
        if progress is not None:
            progress(str(scheduler), number, len(parsed))
        try:
            schedule = simulate(workload, cluster, scheduler, seed=seed, announce=announce)
        except YardmasterError as error:
            if schedulers is not None:
                raise
            notes.append(f"left out: {error}")
            continue
        found.append(_held_against_record(schedule, warm_up_ends_s))
        if found[-1] is min(found, key=_closeness):
            best = schedule
    if best is None:
        raise YardmasterError(f"No scheduler of the line-up can run here. {'. '.join(notes)}.")
    return _concluded(best, found, warm_up_ends_s, notes)


def _concluded(
    best: Schedule, found: Sequence[Candidate], warm_up_ends_s: float, notes: Sequence[str]
) -> Fidelity:
    """Rank the candidates and look for causes in what the closest one did."""
    evidence = Evidence.of(best, warm_up_ends_s)
    return Fidelity(
        workload=best.workload,
        cluster=best.cluster,
        candidates=tuple(sorted(found, key=_closeness)),
        is_guess=len(found) > 1,
        schedule=best,
        evidence=evidence,
        causes=find_causes(evidence),
        notes=(*notes, *best.notes),
    )


def _closeness(candidate: Candidate) -> float:
    return candidate.distance.mean_apart_s


def _held_against_record(schedule: Schedule, warm_up_ends_s: float) -> Candidate:
    """Compare the waits of one schedule with the recorded ones, over all and over some jobs."""
    jobs = schedule.workload
    simulated_s = schedule.start_s - jobs.submit_s
    compared = np.isfinite(simulated_s) & np.isfinite(jobs.recorded_wait_s)
    late = compared & (jobs.submit_s >= warm_up_ends_s)
    if np.count_nonzero(late) < FEWEST_JOBS:
        raise InvalidWorkloadError(
            f"{jobs.name}: only {np.count_nonzero(late)} jobs with a recorded wait can start on"
            f" {schedule.cluster.name!r} ({schedule.cluster.gpus} GPUs)."
        )
    middle_s = float(np.median(jobs.submit_s[late]))
    halves = (late & (jobs.submit_s < middle_s), late & (jobs.submit_s >= middle_s))
    return Candidate(
        scheduler=schedule.scheduler,
        distance=_distance(jobs, simulated_s, late),
        with_warm_up=_distance(jobs, simulated_s, compared),
        halves=(_apart(jobs, simulated_s, halves[0]), _apart(jobs, simulated_s, halves[1])),
    )


def _distance(jobs: Workload, simulated_s: FloatArray, rows: BoolArray) -> Distance:
    return measure_distance(
        jobs.submit_s[rows], jobs.duration_s[rows], jobs.recorded_wait_s[rows], simulated_s[rows]
    )


def _apart(jobs: Workload, simulated_s: FloatArray, rows: BoolArray) -> float:
    return _distance(jobs, simulated_s, rows).apart if rows.any() else math.nan


def _warm_up_ends_s(workload: Workload, warm_up_s: float | None) -> float:
    """Return the second at which the warm-up ends.

    Raises:
        YardmasterError: if it is not a span of time, or nothing would be left.
    """
    first_s, span_s = float(workload.submit_s[0]), float(np.ptp(workload.submit_s))
    if warm_up_s is None:
        return first_s + min(WARM_UP_S, LONGEST_WARM_UP * span_s)
    if not 0 <= warm_up_s < math.inf:
        raise YardmasterError(f"The warm-up must be 0 s or longer, got {warm_up_s}.")
    if warm_up_s > 0 and warm_up_s >= span_s:
        raise YardmasterError(
            f"A warm-up of {warm_up_s / DAY_S:g} days leaves nothing: {workload.name} spans"
            f" {span_s / DAY_S:.3g} days."
        )
    return first_s + warm_up_s


def _refuse_without_record(workload: Workload, warm_up_ends_s: float) -> None:
    """Refuse a trace that has nothing to compare with."""
    known = np.isfinite(workload.recorded_wait_s)
    if not known.any():
        raise InvalidWorkloadError(
            f"{workload.name}: no job says how long it waited (recorded_wait_s is empty), so there"
            " is nothing to compare a simulation with. Some logs, such as NASA-iPSC, hold start"
            " times only."
        )
    late = int(np.count_nonzero(known & (workload.submit_s >= warm_up_ends_s)))
    if late < FEWEST_JOBS:
        raise InvalidWorkloadError(
            f"{workload.name}: only {late} jobs with a recorded wait are left after the warm-up;"
            f" at least {FEWEST_JOBS} are needed."
        )


def _refuse_small(workload: Workload, cluster: Cluster) -> None:
    """Refuse to rank schedulers on machines that cannot be those of the record.

    Queues would grow without end, which takes long and tells nothing.
    """
    known = np.isfinite(workload.recorded_wait_s)
    ends_s = workload.submit_s + workload.recorded_wait_s + workload.duration_s
    span_s = float(np.max(ends_s[known])) - float(workload.submit_s[0])
    used = workload.work_gpu_s / span_s if span_s > 0 else 0.0
    if used > MOST_USED * cluster.gpus:
        raise InvalidWorkloadError(
            f"{workload.name}: its jobs kept {used:,.0f} GPUs busy on average, but the cluster has"
            f" {cluster.gpus:,}: these cannot be the machines of the record. To compare all the"
            " same, name a scheduler."
        )


def _notes(workload: Workload) -> list[str]:
    """Say what of the trace limits the comparison."""
    notes = [EMPTY_AT_FIRST, NO_DEPENDENCIES]
    recorded_s = workload.recorded_wait_s
    unknown = int(np.count_nonzero(np.isnan(recorded_s)))
    if unknown:
        notes.append(
            f"{unknown:,} of {len(workload):,} jobs have no recorded wait: they are simulated, but"
            " neither compared nor part of the recorded use"
        )
    if np.nanmax(recorded_s) == 0:
        notes.append("the record says that nobody ever waited: are its submissions really starts?")
    if not workload.has_estimates:
        notes.append(
            "not every job has an estimate: schedulers that read run times read the true ones,"
            " which the real scheduler cannot have known"
        )
    return notes
