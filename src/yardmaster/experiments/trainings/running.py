"""Carrying out the trainings of a study, several at a time, each in a process of its own.

A training writes its run folder as it goes: what a killed study leaves is where the next one goes
on, and what is finished is not done again.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.config import TrainConfig
from yardmaster.experiments.training.folder import RunFolder, read_json
from yardmaster.experiments.trainings.cost import measured_cost, whole_s
from yardmaster.experiments.trainings.plan import ENDED, Plan, Training, status_of
from yardmaster.experiments.worker_process import begin_worker

Announce = Callable[[str], None]
Progress = Callable[[str, int, int], None]
"""(what goes on, environment steps done, environment steps in all)."""
After = Callable[[Path, TrainConfig], None]
"""Called in the training's process with its run folder once it is trained."""

PATIENCE_S = 0.5
"""How long to wait for news before looking whether somebody wants to stop."""
NEWS_EVERY_S = 1.0
"""Least seconds between two pieces of news from one training."""
TRIES = 3
"""Times the process of a training may die before the training is given up."""


@dataclass(frozen=True, slots=True)
class TrainingsResult:
    """What came of the trainings."""

    trainings: int
    known: int
    """Those that were finished before."""
    failures: tuple[tuple[str, str], ...]
    """(training, reason) of each that could not be carried out."""
    is_complete: bool
    """Whether every training was tried to its end: false if somebody asked to stop."""
    seconds: float
    estimate_s: float
    untrained: tuple[str, ...] = ()
    """Finished ones that were never better than before their first step."""


def estimate(plan: Plan, workers: int, announce: Announce | None = None) -> float:
    """Say what there is to do and how long it will take; return the seconds."""
    todo = [one for one in plan.trainings if not plan.is_finished(one)]
    if not todo:
        return 0.0
    costs: dict[Any, float] = {}
    for one in todo:
        # What matters most is who learns, with what network, and on how large a task.
        alike = (one.config.learner, one.config.settings.network)
        if alike not in costs:
            costs[alike] = measured_cost(one.config, announce).seconds(one.config)
    each = [
        costs[one.config.learner, one.config.settings.network]
        * (1.0 - min(plan.steps_done(one) / one.config.train.steps, 1.0))
        for one in todo
    ]
    total = whole_s(each, workers)
    if announce is not None:
        known = len(plan.trainings) - len(todo)
        of_all = f" of {len(plan.trainings)} ({known} are finished already)" if known else ""
        several = "s" if len(todo) > 1 else ""
        announce(
            f"{len(todo)} training{several}{of_all}, {todo[0].config.train.steps:,} steps each:"
            f" about {_duration(total)} on {workers} processors, {_duration(max(each))} each."
        )
    return total


def only_expected(plan: Plan, estimate_s: float) -> TrainingsResult:
    """Return the result of trainings of which only an estimate was wanted."""
    known = sum(map(plan.is_finished, plan.trainings))
    return TrainingsResult(len(plan.trainings), known, (), False, 0.0, estimate_s)  # noqa: FBT003


def _duration(seconds: float) -> str:
    from yardmaster.experiments.suite.run import duration

    return duration(seconds)


def train_all(
    plan: Plan,
    *,
    workers: int,
    is_stopped: Callable[[], bool],
    after: After | None = None,
    is_done: Callable[[Training], bool] | None = None,
    announce: Announce | None = None,
    progress: Progress | None = None,
    estimate_s: float = 0.0,
) -> TrainingsResult:
    """Carry out every training of a plan that is not finished.

    Args:
        plan: the trainings; its folder must be held by the caller.
        workers: trainings at a time.
        is_stopped: asked now and then; those under way are then saved, nothing more is begun.
        after: what else to do with a finished one, in its process; a function of a module.
        is_done: whether a training, and what comes after it, is done; by default if it is finished.
        announce: told in sentences what happens.
        progress: told how far all of them are.
        estimate_s: how long it was expected to take, for the result.
    """
    done = is_done or plan.is_finished
    todo = [one for one in plan.trainings if not done(one)]
    work = _Work(plan, todo, after, announce or _nothing, progress)
    begun = time.monotonic()
    with _processes(work):
        work.carry_out(workers, is_stopped)
    return TrainingsResult(
        trainings=len(plan.trainings),
        known=len(plan.trainings) - len(todo),
        failures=tuple(work.failures.items()),
        is_complete=not work.left,
        seconds=time.monotonic() - begun,
        estimate_s=estimate_s,
        untrained=tuple(one.name for one in plan.trainings if plan.is_untrained(one)),
    )


def _nothing(_news: str) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class _Worker:
    """A process with one training."""

    training: Training
    process: BaseProcess
    tries: int
    outcome: tuple[str, str] | None = None
    """How it ended, in its own words: (status, reason)."""


@dataclass(slots=True)
class _Work:
    """Trainings under way."""

    plan: Plan
    todo: list[Training]
    after: After | None
    announce: Announce
    progress: Progress | None
    failures: dict[str, str] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """Trainings that were not tried to their end."""
    steps: dict[str, int] = field(default_factory=dict)
    running: dict[Connection, _Worker] = field(default_factory=dict)
    is_leaving: bool = False
    """Whether somebody asked to stop."""

    def carry_out(self, workers: int, is_stopped: Callable[[], bool]) -> None:
        """Keep so many processes busy until nothing is left, or somebody asks to stop."""
        waiting = deque((one, 1) for one in self.todo)
        self.left = {one.name for one in self.todo}
        self.steps = {one.name: self.plan.steps_done(one) for one in self.todo}
        while waiting or self.running:
            if is_stopped() and not self.is_leaving:
                self.is_leaving = True
                waiting.clear()
                for worker in self.running.values():
                    worker.process.terminate()  # asks it to finish its update, and to save
            while waiting and len(self.running) < workers:
                self._start(*waiting.popleft())
            for pipe in connection.wait(list(self.running), timeout=PATIENCE_S):
                lost = self._hear(pipe)
                if lost is not None:
                    waiting.append(lost)

    def _start(self, training: Training, tries: int) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=_work_on,
            args=(training.config, self.plan.path(training), self.after, theirs),
            name=training.name,
        )
        process.start()
        theirs.close()  # or the end of the process would not be heard
        self.running[ours] = _Worker(training, process, tries)

    def _hear(self, pipe: Any) -> tuple[Training, int] | None:
        """Take in one piece of news; return a training whose process died and may begin again."""
        worker = self.running[pipe]
        name = worker.training.name
        try:
            kind, news = pipe.recv()
        except EOFError:
            pipe.close()
            del self.running[pipe]
            worker.process.join()
            return self._ended(worker)
        if kind == "steps":
            self.steps[name] = int(news)
            self._tell(name)
        else:
            worker.outcome = (kind, news)
        return None

    def _ended(self, worker: _Worker) -> tuple[Training, int] | None:
        name = worker.training.name
        status, reason = worker.outcome or ("died", f"exit code {worker.process.exitcode}")
        if status == "interrupted" or (status == "died" and self.is_leaving):
            return None
        if status == "died" and worker.tries < TRIES:
            self.announce(f"{name}: its process died ({reason}); it goes on from its checkpoint.")
            return worker.training, worker.tries + 1
        self.left.discard(name)
        if status in ("died", "failed"):
            said = f"its process died {TRIES} times, {reason}" if status == "died" else reason
            self.failures[name] = said
            self.announce(f"{name} failed: {said}")
        else:
            self.steps[name] = worker.training.config.train.steps
            done = len(self.todo) - len(self.left)
            self.announce(f"{name}: {reason}; {done} of {len(self.todo)} done.")
            self._tell(name)
        return None

    def _tell(self, name: str) -> None:
        if self.progress is not None:
            total = sum(one.config.train.steps for one in self.todo)
            self.progress(name, sum(self.steps.values()), total)


@contextmanager
def _processes(work: _Work) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    finally:
        for worker in work.running.values():
            worker.process.kill()
            worker.process.join()


def _work_on(config: TrainConfig, path: Path, after: After | None, pipe: Connection) -> None:
    """Carry out one training in this process, and tell how it goes."""
    begin_worker()
    os.setpgrp()  # Ctrl-C is the parent's to hear; it asks us politely, once
    try:
        status, said = carry_out(config, path, after, _every_now_and_then(pipe))
        pipe.send((status, said))
    except YardmasterError as error:
        pipe.send(("failed", str(error)))
    except KeyboardInterrupt:
        pipe.send(("interrupted", ""))
    except Exception as error:  # noqa: BLE001  (told to the parent; the others go on)
        pipe.send(("failed", f"{type(error).__name__}: {error}"))
    finally:
        pipe.close()


def _every_now_and_then(pipe: Connection) -> Callable[[Any], None]:
    last = 0.0

    def tell(progress: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= NEWS_EVERY_S:
            last = time.monotonic()
            pipe.send(("steps", progress.steps))

    return tell


def carry_out(
    config: TrainConfig,
    path: Path,
    after: After | None = None,
    on_progress: Callable[[Any], None] | None = None,
) -> tuple[str, str]:
    """Train in a run folder from where an earlier process got; return status and result in words.

    What is remembered only to go on learning is removed in the end: it is large.
    """
    from yardmaster.experiments.training.run import train

    folder = RunFolder(path)
    if path.is_dir() and not folder.is_run():
        shutil.rmtree(path)  # a process was killed in its first moments
    if status_of(folder) not in ENDED:
        path.parent.mkdir(parents=True, exist_ok=True)
        result = train(config, out=path, resume=folder.is_run(), on_progress=on_progress)
        if result.status == "interrupted":
            return "interrupted", ""
    if after is not None:
        after(path, config)
    folder.last.unlink(missing_ok=True)
    about = read_json(folder.about)
    return str(about["status"]), f"{about['metric']} {about['best']:.4g} on validation"
