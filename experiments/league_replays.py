"""Playing: every scheduler on every window of a scene, many at a time; what was played is kept."""

from __future__ import annotations

import hashlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from league_heuristics import knowledge
from league_scenes import PARTS, SCENES, Part, Scene, dropped_share, windows
from league_store import METRICS, STORE, Entry, Played, Record, read_record, write_record

from yardmaster.errors import YardmasterError
from yardmaster.experiments.worker_process import begin_worker
from yardmaster.metrics import per_job
from yardmaster.metrics.utilisation import utilisation
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.simulation import simulate

AT_ONCE = 6
"""Schedulers of a scene that a worker plays before it reports."""
SAY_EVERY_S = 5.0

Say = Callable[[str], None]


class Errand(NamedTuple):
    """Work for a worker: some schedulers of one scene."""

    scene: str
    schedulers: tuple[str, ...]


def play(scene: Scene, scheduler: str) -> Played:
    """Return the numbers of a scheduler in every window of both parts."""
    return {part: _played(scene, scheduler, part) for part in PARTS}


def _played(scene: Scene, scheduler: str, part: Part) -> FloatArray:
    rows = [
        measured(simulate(jobs, scene.machines, scheduler, compile_core="always"))
        for jobs in _windows(scene, part)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(METRICS))


@lru_cache(maxsize=4)
def _windows(scene: Scene, part: Part) -> tuple[Workload, ...]:
    return tuple(windows(scene, part))


def measured(schedule: Schedule) -> tuple[float, ...]:
    """Return the metrics of one window, in the order of `METRICS`.

    Raises:
        YardmasterError: if a job did not finish: means over the others would be no match.
    """
    if not per_job.is_finished(schedule).all():
        raise YardmasterError(f"{schedule.scheduler} left jobs of a window unfinished.")
    jct_s = per_job.jct_s(schedule)
    slowdown = float(per_job.bounded_slowdown(schedule).mean())
    p95_s = float(np.percentile(jct_s, 95))
    return slowdown, float(jct_s.mean()), p95_s, utilisation(schedule)


def digest_of(scene: Scene) -> str:
    """Return what changes when the jobs or the machines of a scene do."""
    digest = hashlib.sha256(scene.cluster.encode())
    for part in PARTS:
        for jobs in _windows(scene, part):
            digest.update(jobs.fingerprint().encode())
    return digest.hexdigest()


def objective_of(scheduler: str) -> str:
    """Return the metric a policy says it was trained for; "" where it says nothing."""
    policy = parse_scheduler(scheduler).policy
    if policy is None:
        return ""
    about = policy.file.about
    said = about.get("objective") or about.get("metric") or ""
    return str(said)


def play_all(
    scenes: Sequence[str],
    schedulers: Sequence[str],
    *,
    workers: int,
    again: bool,
    say: Say,
    folder: Path = STORE,
) -> None:
    """Play what is missing, and keep it scene by scene.

    Args:
        scenes: where.
        schedulers: who.
        workers: processes that play.
        again: play those who have played before, too.
        say: told how far it is.
        folder: where results are kept.
    """
    known = {scheduler: (knowledge(scheduler), objective_of(scheduler)) for scheduler in schedulers}
    records = {name: _record(SCENES[name], folder, say) for name in scenes}
    errands = [
        errand
        for name, record in records.items()
        for errand in errands_for(
            name, [one for one in schedulers if again or one not in record.entries]
        )
    ]
    left = {name: sum(errand.scene == name for errand in errands) for name in scenes}
    progress = Progress(sum(len(errand.schedulers) for errand in errands), say)
    for errand, played in _carried_out(errands, workers):
        record = records[errand.scene]
        for scheduler, values in played.items():
            record.entries[scheduler] = Entry(*known[scheduler], values)
        left[errand.scene] -= 1
        if not left[errand.scene]:
            write_record(record, folder)
        progress.add(len(played), errand.scene)


def _record(scene: Scene, folder: Path, say: Say) -> Record:
    """Return what is kept of a scene; nothing where its jobs have changed since."""
    found, digest = read_record(scene.name, folder), digest_of(scene)
    if found is not None and found.digest == digest:
        return found
    if found is not None:
        say(f"{scene.name}: its windows have changed; everybody plays again.")
    training, validation = (dropped_share(scene, part) for part in PARTS)
    return Record(scene.name, digest, (training, validation))


def errands_for(scene: str, schedulers: Sequence[str]) -> list[Errand]:
    """Share schedulers out, so that slow and quick ones are mixed in every errand."""
    count = -(-len(schedulers) // AT_ONCE)
    return [Errand(scene, tuple(schedulers[first::count])) for first in range(count)]


def _carried_out(
    errands: Sequence[Errand], workers: int
) -> Iterator[tuple[Errand, dict[str, Played]]]:
    if workers == 1 or len(errands) < 2:
        yield from map(_carry_out, errands)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(workers, len(errands)), initializer=begin_worker) as pool:
        yield from pool.imap_unordered(_carry_out, errands)


def _carry_out(errand: Errand) -> tuple[Errand, dict[str, Played]]:
    scene = SCENES[errand.scene]
    return errand, {scheduler: play(scene, scheduler) for scheduler in errand.schedulers}


class Progress:
    """Says how far it is, at what rate, and how long it will take."""

    def __init__(self, total: int, say: Say) -> None:
        self.total, self.done, self.say = total, 0, say
        self.begun = self.said = time.monotonic()

    def add(self, count: int, where: str) -> None:
        """Count what was played, and say so now and then."""
        self.done += count
        now = time.monotonic()
        if now - self.said < SAY_EVERY_S and self.done < self.total:
            return
        self.said = now
        rate = self.done / max(now - self.begun, 1e-9)
        left_s = (self.total - self.done) / rate
        self.say(
            f"{where}: {self.done:,} of {self.total:,} plays, {rate:.1f} a second,"
            f" {left_s / 60:.1f} min left"
        )
