"""Heuristics as players: what `sjf`, `sjf+easy` or `random-feasible` would pick in an environment.

They serve as opponents of a policy in the same environment, and as teachers to imitate.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.picking.sight import Sight
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Workload
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.picking import keys_of
from yardmaster.schedulers.views import RunTimes

PLAYED = (Discipline.STRICT, Discipline.SKIP, Discipline.COMMIT, Discipline.EASY)


class Expert:
    """One scheduler, asked for its action in many environments at once.

    `skip` picks the first job in order that fits. `strict` and `commit` pick the first in order and
    wait if it does not fit. `easy` then picks what cannot delay it; it reads the reservation that
    the standard observation shows, so the window must be in its own order.
    """

    def __init__(self, scheduler: Scheduler, seed: int = 0) -> None:
        self.scheduler = scheduler
        self._dice = np.random.default_rng(seed)
        self._keys: dict[tuple[int, int], OrderKeys] = {}
        """By set of episodes and number."""

    def __call__(self, batch: EnvironmentBatch) -> npt.NDArray[np.int64]:
        """Return the action of each environment."""
        noop = batch.layout.window
        jobs = batch.window_jobs
        fits = batch.masks[:, :noop] & (jobs >= 0)
        keys = self._keys_of(batch, jobs)
        allowed = fits
        discipline = self.scheduler.discipline
        if discipline is not Discipline.SKIP:
            first = np.where(jobs >= 0, keys, np.inf).argmin(axis=1)
            is_first = np.arange(noop)[None, :] == first[:, None]
            allowed = fits & is_first
            if discipline is Discipline.EASY:
                starts_first = allowed.any(axis=1, keepdims=True)
                allowed = np.where(starts_first, allowed, fits & self._harmless(batch))
        keys = np.where(allowed, keys, np.inf)
        chosen = np.where(allowed.any(axis=1), keys.argmin(axis=1), noop)
        # Where waiting is not legal, the first job that fits is the nearest thing to it.
        rows = np.arange(batch.size)
        is_legal = batch.masks[rows, chosen]
        return np.where(is_legal, chosen, batch.masks.argmax(axis=1)).astype(np.int64)

    def _keys_of(self, batch: EnvironmentBatch, jobs: IntArray) -> FloatArray:
        keys = np.zeros(jobs.shape)
        now_s = batch.now_s
        for row, number in enumerate(batch.episode_numbers.tolist()):
            key = (id(batch.episodes), number)
            if key not in self._keys:
                self._keys[key] = self._look_up(batch, number)
            known, here = self._keys[key], jobs[row]
            if known.kind is OrderKind.SHUFFLED:
                keys[row] = self._dice.random(len(here))
                continue
            keys[row] = known.offset[here]
            if known.rate is not None and known.since is not None:
                age = np.clip(now_s[row] - known.since[here], *known.clip_s)
                keys[row] += known.rate[here] * age
        # Equal keys go by row of the job.
        order = np.lexsort((jobs, keys), axis=1)
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(jobs.shape[1])[None, :], axis=1)
        return ranks.astype(np.float64)

    def _look_up(self, batch: EnvironmentBatch, number: int) -> OrderKeys:
        workload = batch.episodes.workload(number)
        is_true = self.scheduler.run_times is RunTimes.TRUE
        run_s = workload.duration_s if is_true else workload.estimate_s
        return keys_of(
            self.scheduler.order.name, workload, batch.episodes.cluster_of(number), run_s
        )

    def _harmless(self, batch: EnvironmentBatch) -> BoolArray:
        feature = batch.layout.job_features.index("harmless")
        return np.asarray(batch.layout.jobs(batch.observations)[:, :, feature] > 0.5)


class Seen(Protocol):
    """A task, of which only counts what is seen of it."""

    @property
    def sight(self) -> Sight:
        """What is seen."""


def expert(name: str, task: Seen, *, seed: int = 0) -> Expert:
    """Return a scheduler of the language as a player of a task.

    Raises:
        YardmasterError: if it cannot play: its discipline moves running jobs, or it backfills and
            the window is not in its order.
    """
    scheduler = parse_scheduler(name)
    if "+" not in name:  # in an environment, passing over what does not fit is what picking means
        scheduler = Scheduler(
            scheduler.order, Discipline.SKIP, scheduler.placement, scheduler.run_times
        )
    jobs = Workload.of(submit_s=[0], duration_s=[1])
    keys = keys_of(scheduler.order.name, jobs, Cluster.pool(1), jobs.duration_s)
    if keys.kind is OrderKind.HISTORY:
        raise YardmasterError(f"{scheduler} cannot play: its keys depend on the past.")
    if scheduler.discipline not in PLAYED:
        raise YardmasterError(f"{scheduler} cannot play: it does more than pick jobs.")
    if scheduler.discipline is Discipline.EASY:
        sight = task.sight
        if sight.window_order != scheduler.order.name or not sight.reserves:
            raise YardmasterError(
                f"{scheduler} can play only where the window is in its own order and reservations"
                f" are shown: set window_order to {scheduler.order.name!r}, with standard features."
            )
    return Expert(scheduler, seed)
