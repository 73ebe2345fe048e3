"""Replaying a workload with a chooser that changes the scheduler as it sees fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine import compilation as core_compilation
from yardmaster.engine import state
from yardmaster.engine.choosing import compilation
from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.compilation import Choosing
from yardmaster.engine.choosing.places import End, Term
from yardmaster.engine.conditions import Conditions
from yardmaster.engine.layout import Simulation
from yardmaster.engine.picking.layout import Floats
from yardmaster.engine.replay import schedule_of
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.meta.choosers import BanditChooser, Chooser, TrainedChooser
from yardmaster.schedulers.meta.menu import (
    NOTHING_AT_STAKE,
    PreparedChoice,
    prepare_choice,
)

DECISIONS_PER_CALL = 100_000
"""Decisions between two looks at the keyboard: Ctrl-C is heard only outside the core."""


@dataclass(frozen=True, slots=True, eq=False)
class WhyScheduler:
    """One decision of a chooser: the schedulers, how much it liked each, and which it took."""

    now_s: float
    waiting: int
    """Jobs waiting at that moment."""
    menu: tuple[str, ...]
    scores: Floats
    """Preference for each; none of a bandit's."""
    chosen: int
    """Place on the menu."""

    def record(self, _workload: Workload) -> dict[str, Any]:
        """Return the decision as plain values."""
        scores = dict(zip(self.menu, self.scores.tolist(), strict=False))
        return {
            "second": self.now_s,
            "waiting": self.waiting,
            "chosen": self.menu[self.chosen],
            "scores": scores,
        }


def drive_chooser(
    workload: Workload,
    cluster: Cluster,
    chooser: Chooser,
    *,
    called: str,
    seed: int = 0,
    until_s: float = math.inf,
    compiled: bool = True,
    announce: Callable[[str], None] | None = None,
    why: Callable[[WhyScheduler], None] | None = None,
) -> tuple[Schedule, Conditions | None]:
    """Simulate a chooser and return the schedule it makes, and the conditions it met.

    Decisions are the same, and so is the schedule, whether anybody asks why or not.
    """
    # The environment ends at its horizon; a replay still handles the events of that second.
    stakes = replace(
        NOTHING_AT_STAKE,
        horizon_s=math.nextafter(until_s, math.inf),
        labels=chooser.told(workload.name) if isinstance(chooser, TrainedChooser) else (),
    )
    prepared = prepare_choice(
        workload, cluster, chooser.sight, stakes=stakes, seed=seed, records_gpus=True
    )
    is_real = prepared.is_real
    if compiled:
        core_compilation.compile_core(announce, is_real=is_real)
        choosing = compilation.compiled(announce, is_real=is_real)
    else:
        choosing = compilation.plain()
    drive = _Drive(prepared, chooser, choosing, seed)
    drive.run(why)
    core = core_compilation.core(is_real=is_real, may_be_compiled=compiled)
    schedule = schedule_of(
        Simulation(drive.ints[0], drive.reals[0]),
        core,
        workload,
        cluster,
        prepared.shapes,
        conditions=prepared.conditions,
        scheduler=called,
        until_s=until_s,
        engine="compiled" if compiled else "uncompiled",
    )
    switches = int(drive.book[0, at.SWITCHES])
    return replace(schedule, choices=drive.choices(), switches=switches), prepared.conditions


class _Drive:
    """One replay under way: a single environment that is never begun again."""

    def __init__(
        self, prepared: PreparedChoice, chooser: Chooser, choosing: Choosing, seed: int
    ) -> None:
        self._chooser = chooser
        self._choosing = choosing
        self._seed = seed
        sight, layout = chooser.sight, chooser.sight.layout()
        self._menu = sight.menu
        self._rules, self._scales = sight.rules(), sight.scales()
        self._facts = prepared.facts[None, :]
        self.ints = prepared.simulation.ints[None, :].copy()
        self.reals = prepared.simulation.reals[None, :].copy()
        self.book = np.zeros((1, prepared.book_length), dtype=np.int64)
        self.purse = np.zeros((1, prepared.purse_length))
        self._view = np.zeros((1, layout.length), dtype=np.float32)
        self._now_numbers = len(layout.now_features)
        first = np.zeros(1, dtype=np.int64)
        choosing.begin_many(
            *(prepared.simulation.ints[None, :], prepared.simulation.reals[None, :], self._facts),
            *(self._rules, self._scales, self.ints, self.reals, self.book, self.purse, self._view),
            *(first, self._lengths(), first),
        )

    def _lengths(self) -> npt.NDArray[np.int64]:
        rows = (self.ints, self.reals, self.book, self.purse)
        return np.array([row.shape[1] for row in rows], dtype=np.int64)

    def run(self, why: Callable[[WhyScheduler], None] | None) -> None:
        """Replay to the end."""
        if isinstance(self._chooser, TrainedChooser):
            self._run_trained(self._chooser, why)
        elif isinstance(self._chooser, BanditChooser):
            self._run_bandit(self._chooser, why)
        else:
            raise TypeError(type(self._chooser))

    def choices(self) -> dict[str, int]:
        """Return how often each scheduler of the menu was chosen."""
        counts = self.book[0, at.CHOICES_AT : at.CHOICES_AT + len(self._menu)]
        return dict(zip(self._menu, counts.tolist(), strict=True))

    def _run_trained(
        self, chooser: TrainedChooser, why: Callable[[WhyScheduler], None] | None
    ) -> None:
        packed = chooser.net
        scores = np.zeros(len(self._menu), dtype=np.float32)
        arguments = (
            *(self.ints[0], self.reals[0], self._rules, self._scales, self._facts[0]),
            *(self.book[0], self.purse[0], self._view[0], packed.net, packed.weights),
            *(scores, np.zeros(packed.scratch, dtype=np.float32)),
        )
        end = int(self.book[0, at.IS_OVER])
        while end == End.NOT_YET:
            before = self._situation()
            end = int(self._choosing.drive(*arguments, DECISIONS_PER_CALL if why is None else 1))
            if why is not None:
                why(WhyScheduler(*before, self._menu, scores.copy(), int(scores.argmax())))

    def _situation(self) -> tuple[float, int]:
        return float(self.reals[0, state.NOW]), int(self.ints[0, state.QUEUED])

    def _run_bandit(
        self, chooser: BanditChooser, why: Callable[[WhyScheduler], None] | None
    ) -> None:
        bandit = chooser.begin(len(self._menu), self._now_numbers, self._seed)
        ends, action = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        arguments = (
            *(self._facts, self._rules, self._scales, self.ints, self.reals, self.book),
            *(self.purse, self._view, np.zeros(1, dtype=np.int64), action),
            *(np.zeros(1), ends, np.zeros(1), 0, 1),
        )
        ends[0] = self.book[0, at.IS_OVER]
        while ends[0] == End.NOT_YET:
            before = self._situation()
            action[0] = bandit.choose(self._seen())
            self._choosing.step_many(*arguments)
            bandit.learn(self._earned())
            if why is not None:
                none = np.zeros(0, dtype=np.float32)
                why(WhyScheduler(*before, self._menu, none, int(action[0])))

    def _seen(self) -> FloatArray:
        return self._view[0, : self._now_numbers].astype(np.float64)

    def _earned(self) -> float:
        """Return 1 / (1 + mean queue by GPUs) of the last span."""
        purse, gpus = self.purse[0], float(self.ints[0, state.GPUS])
        elapsed = purse[at.ELAPSED_S]
        queue = float(self.ints[0, state.QUEUED])
        if elapsed > 0:
            queue = purse[at.EARNED_AT + Term.WAITING] * self._facts[0, at.PLACEABLE] / elapsed
        return float(1.0 / (1.0 + queue / gpus))
