"""When will my job start? Many simulations from now on, each with its own luck.

One simulation draws how long the running and the waiting jobs will still run (`run_time_model`) and
who else will come (a week of the past, shifted to now), lets the scheduler go on from there, and
notes when the job starts. The starts of all simulations are the distribution asked for.

Nothing is read that is not known at the moment of asking: a `Snapshot` has no run time of a job
that has not ended. Simulations go on with the jobs where they are (see `layout`), on the cluster
as it is, with two simplifications that are said where they matter: no node fails, and no power cap
holds jobs back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.replay import COMPILE_ABOVE_JOBS
from yardmaster.engine.requests import shapes_of
from yardmaster.errors import YardmasterError
from yardmaster.experiments.layout import FILLER, Layout, layout_of
from yardmaster.experiments.pace import without_failures
from yardmaster.experiments.past_arrivals import DAY_S, WEEK_S, PastArrivals
from yardmaster.experiments.run_time_model import RunTimeModel
from yardmaster.experiments.snapshot import Snapshot
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import COLUMN_NAMES, FloatArray, IntArray, Labels
from yardmaster.model.site import Failures
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import JobsView

SIMULATIONS = 200
HORIZONS_S = (DAY_S, WEEK_S, 4 * WEEK_S)
"""How far ahead simulations look; a longer look only for those in which the job has not started."""
FILLED_UNTIL_S = 0.25
"""What fills up nodes while running jobs are put back ends so long before now."""

Report = Callable[[int, int], None]
"""(simulations done, simulations in all)."""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """When waiting jobs will start.

    Attributes:
        now_s: the moment of asking.
        ids: the jobs asked for.
        gpus: (jobs,) their GPUs.
        waited_s: (jobs,) how long they have waited.
        wait_s: (jobs, simulations) how much longer each waits; infinite beyond the last horizon.
        notes: what the reader must know.
    """

    now_s: float
    ids: tuple[str, ...]
    gpus: IntArray
    waited_s: FloatArray
    wait_s: FloatArray
    notes: tuple[str, ...] = ()

    def quantile(self, share: float) -> FloatArray:
        """Return (jobs,) the wait that a share of the simulations does not exceed."""
        # No interpolation: an infinite neighbour would turn a finite wait into NaN.
        return np.quantile(self.wait_s, share, axis=1, method="inverted_cdf")

    def within(self, seconds: float) -> FloatArray:
        """Return (jobs,) the probability to start within so many seconds from now."""
        return np.asarray((self.wait_s <= seconds).mean(axis=1), dtype=np.float64)


def predict(
    snapshot: Snapshot,
    rows: IntArray | None = None,
    *,
    simulations: int = SIMULATIONS,
    seed: int = 0,
    report: Report | None = None,
) -> Forecast:
    """Predict when waiting jobs will start.

    Args:
        snapshot: the moment of asking.
        rows: rows of the waiting jobs asked for; by default all.
        simulations: how many futures to simulate.
        seed: seed of all draws.
        report: told how many simulations are done.

    Raises:
        YardmasterError: if nobody waits, or nothing is known about run times.
    """
    asked = snapshot.queued if rows is None else np.asarray(rows, dtype=np.int64)
    if not len(asked):
        raise YardmasterError(f"Nobody waits at second {snapshot.now_s:g}; ask for a new job.")
    _refuse_impossible(snapshot, asked)
    if simulations < 1:
        raise YardmasterError(f"At least one simulation is needed, got {simulations}.")
    future = _Future.of(snapshot, simulations, seed)
    waits = np.full((len(asked), simulations), np.inf)
    enough = 0  # a horizon that was needed once is likely to be needed again
    for number in range(simulations):
        if report is not None:
            report(number, simulations)
        for place in range(enough, len(HORIZONS_S)):
            enough = place
            waits[:, number] = future.waits(number, asked, HORIZONS_S[place])
            if np.isfinite(waits[:, number]).all():
                break
    return Forecast(
        now_s=snapshot.now_s,
        ids=tuple(map(str, snapshot.jobs.id[asked])),
        gpus=snapshot.jobs.gpus[asked],
        waited_s=snapshot.now_s - snapshot.jobs.submit_s[asked],
        wait_s=waits,
        notes=tuple(future.notes()),
    )


def _refuse_impossible(snapshot: Snapshot, asked: IntArray) -> None:
    """Refuse to predict the start of a job that the empty cluster could not hold."""
    shape = shapes_of(snapshot.jobs, snapshot.cluster).of_job
    never = asked[shape[asked] < 0]
    if len(never):
        jobs, row = snapshot.jobs, int(never[0])
        raise YardmasterError(
            f"Job {jobs.id[row]} asks for {jobs.gpus[row]} GPUs and can never start on"
            f" {snapshot.cluster.name!r} ({snapshot.cluster.gpus} GPUs), under its limits."
        )


@dataclass(frozen=True, slots=True)
class ResumedOrder(Order):
    """An order that goes on: jobs are let in now, but their age counts from submission."""

    submitted_s: FloatArray = field(default_factory=lambda: np.zeros(0))

    def keys(self, jobs: JobsView) -> OrderKeys:
        """Return the keys the jobs would have had, had they been in the queue all the time."""
        # Not super(): a dataclass with slots is built anew, and super() would look at the old one.
        return Order.keys(self, replace(jobs, submit_s=self.submitted_s))


@dataclass(slots=True, eq=False)
class _Future:
    """Everything drawn for all simulations from one moment on."""

    snapshot: Snapshot
    scheduler: Scheduler
    cluster: Cluster
    model: RunTimeModel
    seed: int
    layout: Layout
    running_s: FloatArray
    """(simulations, running) the work each has left."""
    queued_s: FloatArray
    """(simulations, waiting) the work each has left: all of it, unless it was interrupted."""
    past: PastArrivals
    misplaced: int = 0
    """Running jobs that were not put back where they are, over all simulations."""

    @classmethod
    def of(cls, snapshot: Snapshot, simulations: int, seed: int) -> _Future:
        jobs, running, queued = snapshot.jobs, snapshot.running, snapshot.queued
        done_s = jobs.duration_s
        model = RunTimeModel.of(jobs, done_s, snapshot.ended)
        rng = np.random.default_rng([seed, 0])
        running_s = model.draw_rest(rng, running, simulations)
        queued_s = model.draw_like_neighbours(rng, queued, simulations)
        was_interrupted = done_s[queued] > 0
        if was_interrupted.any():
            rest_s = model.draw_rest(rng, queued[was_interrupted], simulations)
            queued_s[:, was_interrupted] = rest_s
        scheduler = parse_scheduler(snapshot.scheduler)
        return cls(
            snapshot=snapshot,
            scheduler=scheduler,
            cluster=_calm(snapshot.cluster),
            model=model,
            seed=seed,
            layout=layout_of(snapshot, scheduler),
            running_s=running_s,
            queued_s=queued_s,
            past=PastArrivals.of(snapshot),
        )

    def waits(self, number: int, asked: IntArray, horizon_s: float) -> FloatArray:
        """Simulate one future as far as the horizon; return how long the jobs asked for wait."""
        now_s = self.snapshot.now_s
        jobs, submitted_s = self._jobs(number, horizon_s)
        order = self.scheduler.order
        resumed = ResumedOrder(
            order.name, order.function, order.reads_run_time, order.formula,
            order.source, order.discipline, submitted_s,
        )  # fmt: skip
        schedule = simulate(
            jobs,
            self.cluster,
            replace(self.scheduler, order=resumed),
            seed=self.seed + number,
            until_s=now_s + horizon_s,
            # Compiling pays by the jobs of all simulations together.
            compile_core="always"
            if len(jobs) * len(self.running_s) > COMPILE_ABOVE_JOBS
            else "auto",
        )
        begun = schedule.start_s[: len(self.layout)]
        self.misplaced += int(np.count_nonzero(begun != self.layout.at_s))
        place = len(self.layout) + np.searchsorted(self.snapshot.queued, asked)
        wait_s = np.maximum(schedule.start_s[place] - now_s, 0.0)
        return np.where(np.isnan(wait_s), np.inf, wait_s)

    def _jobs(self, number: int, horizon_s: float) -> tuple[Workload, FloatArray]:
        """Return the jobs of one future by submit time, and when each was really submitted."""
        now_s, layout, queued = self.snapshot.now_s, self.layout, self.snapshot.queued
        came, at_s, run_s = self.past.arrivals(self.model, [self.seed, 1, number], horizon_s)
        rows = np.concatenate([layout.row, queued, came])
        columns = _taken(self.snapshot.jobs, rows)
        submitted_s = columns["submit_s"].copy()
        submitted_s[len(rows) - len(came) :] = at_s
        stays_s = self._stays(number)
        columns |= {
            "id": np.arange(len(rows)),
            "submit_s": np.concatenate([layout.at_s, np.full(len(queued), now_s), at_s]),
            "duration_s": np.concatenate([stays_s, self.queued_s[number], run_s]),
        }
        self._put_back(columns)
        return Workload(name=self.snapshot.jobs.name, **columns), submitted_s

    def _stays(self, number: int) -> FloatArray:
        """Return how long each part of the layout stays from when it is let in."""
        layout, now_s, running = self.layout, self.snapshot.now_s, self.snapshot.running
        if not len(running):
            return now_s - FILLED_UNTIL_S - layout.at_s
        place = np.searchsorted(running, np.maximum(layout.row, 0))
        left_s = self.running_s[number][np.minimum(place, len(running) - 1)] / self._speed()
        left_s = np.where(layout.row == FILLER, -FILLED_UNTIL_S, left_s)
        return np.asarray(now_s - layout.at_s + left_s, dtype=np.float64)

    def _speed(self) -> FloatArray:
        """Return how fast each part works where it is put, as its duration there is counted.

        A part that is told its GPU type has its duration counted on that type.
        """
        layout = self.layout
        return np.where(layout.types.codes >= 0, self.snapshot.speed[layout.row], 1.0)

    def _put_back(self, columns: dict[str, Any]) -> None:
        """Set what the parts of the layout ask for: their own GPUs, nothing that changes."""
        layout = self.layout
        parts = slice(0, len(layout))
        columns["gpus"][parts] = layout.gpus
        for name, nothing in _RIGID.items():
            columns[name][parts] = nothing
        for name in ("cpus", "memory_gib"):
            columns[name][parts] *= np.where(layout.row == FILLER, np.nan, layout.share)
        columns["estimate_s"][parts] = self._estimates(columns["estimate_s"][parts])
        fillers = np.flatnonzero(layout.row == FILLER)
        columns["gpu_memory_gib"][fillers] = np.nan
        for name in ("tenant", "user", "kind"):  # fillers are nobody's: no quota holds them back
            columns[name].codes[fillers] = -1
        wanted: Labels = columns["gpu_types"]
        codes = wanted.codes.copy()
        told = layout.types.codes >= 0
        codes[parts][told] = layout.types.codes[told] + len(wanted.names)
        columns["gpu_types"] = Labels(codes, wanted.names + layout.types.names)

    def _estimates(self, estimate_s: FloatArray) -> FloatArray:
        """Let running jobs be expected to end when they are: after what they have left of it."""
        layout, moment = self.layout, self.snapshot
        if not moment.jobs.has_estimates:
            return estimate_s
        left_s = (estimate_s - moment.jobs.duration_s[layout.row]) / self._speed()
        left_s = np.where(layout.row == FILLER, -FILLED_UNTIL_S, left_s)
        return np.maximum(moment.now_s + left_s - layout.at_s, 1e-3)

    def notes(self) -> list[str]:
        """Say what the reader must know."""
        notes = list(self.past.notes)
        if not self.layout.is_exact:
            notes.append(
                "running jobs are put back onto other nodes than they hold: where they are is not"
                f" known, or cannot be told to {self.scheduler}"
            )
        if self.misplaced:
            share = self.misplaced / (len(self.running_s) * len(self.layout))
            notes.append(f"{share:.1%} of the running jobs found no room at once when put back")
        site = self.snapshot.cluster.site
        if math.isfinite(site.power.cap_w):
            notes.append("the site's power cap is not looked at")
        if site.failures != Failures():
            notes.append("node failures are not looked at")
        return notes


_RIGID = {"max_gpus_per_node": 0, "min_gpus": 0, "max_gpus": 0, "milli_gpu": 1000}
"""Columns of a job that is put back: it has what it has."""


def _calm(cluster: Cluster) -> Cluster:
    """Return the cluster without failures and power cap; the same object if it has neither."""
    calm = without_failures(cluster)
    if math.isinf(calm.site.power.cap_w):
        return calm
    return calm.under(replace(calm.site, power=replace(calm.site.power, cap_w=math.inf)))


def _taken(jobs: Workload, rows: IntArray) -> dict[str, Any]:
    """Return the columns of some rows, copied; row −1 gives the last one."""
    columns = {name: getattr(jobs, name) for name in COLUMN_NAMES}
    return {
        name: value.take(rows) if isinstance(value, Labels) else value[rows]
        for name, value in columns.items()
    }
