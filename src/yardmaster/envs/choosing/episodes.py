"""Episodes of choosing: which regime and jobs an environment gets, laid out in advance.

The episodes of a set go through the regimes in turn, so that each regime has as many as any other.
`train`, `val` and `report` share no seed. Episode `n` of a set is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.places import Term
from yardmaster.envs.choosing.rewards import choosing_reward_of
from yardmaster.envs.choosing.standards import Standards, standards
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import FIRST_SEED, Split
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.names import unknown
from yardmaster.schedulers.meta.menu import PreparedChoice, Stakes, prepare_choice
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.regimes import PERTURBATIONS, Perturbation, Regime, perturbed, severities
from yardmaster.workloads.regimes import regimes as regimes_of

MEASURED_REGIMES = 16
"""Regimes whose mean run time becomes the time unit."""


class ChoosingEpisodes:
    """The episodes of one set of a task."""

    def __init__(
        self,
        task: ChoosingTask,
        split: Split = "train",
        *,
        regimes: tuple[Regime, ...] | None = None,
    ) -> None:
        """Open a set of episodes.

        Args:
            task: what is played.
            split: which set.
            regimes: in place of those that the task names.
        """
        if split not in FIRST_SEED:
            raise unknown("set of episodes", split, FIRST_SEED)
        self.split = split
        self.regimes = _chosen_regimes(task) if regimes is None else regimes
        self.reward = choosing_reward_of(task.reward)
        self._labels = _labels(self.regimes) if task.labelled else np.zeros((len(self.regimes), 0))
        sight = replace(task.sight, labels=self._labels.shape[1])
        if task.measured_unit:
            sight = replace(sight, time_unit_s=self._mean_run_time())
        self.task = replace(task, sight=sight, measured_unit=False)
        self._prepared: dict[int, PreparedChoice] = {}
        self._standards: dict[int, Standards] = {}

    def _mean_run_time(self) -> float:
        """Return the mean run time of some regimes' first training episodes, seconds."""
        some = self.regimes[:: max(len(self.regimes) // MEASURED_REGIMES, 1)]
        runs = [regime.jobs(FIRST_SEED["train"]).duration_s.mean() for regime in some]
        return max(float(np.mean(runs)), 1.0)

    @cached_property
    def numbers(self) -> IntArray:
        """The episodes to draw from."""
        return np.arange(self.task.episodes)

    def group(self, number: int) -> int:
        """Return the place of an episode's regime among the task's."""
        return number % len(self.regimes)

    def situation(self, number: int) -> tuple[Workload, Cluster]:
        """Return the jobs and the machines of an episode; the first job comes at second 0."""
        regime = self.regimes[self.group(number)]
        seed = FIRST_SEED[self.split] + number // len(self.regimes)
        jobs, machines = regime.jobs(seed), regime.machines()
        if self.task.randomised and self.split == "train":
            dice = np.random.default_rng([FIRST_SEED["train"], number])
            if dice.random() < 0.5:
                jobs, machines = perturbed(jobs, machines, _any_perturbation(dice), seed=number)
        return jobs.starting_at(float(jobs.submit_s[0])), machines

    def prepared(self, number: int) -> PreparedChoice:
        """Return an episode laid out at its first instant; kept for the next time."""
        if number not in self._prepared:
            self._prepared[number] = self._prepare(number)
        return self._prepared[number]

    def standards(self, number: int) -> Standards:
        """Return what the schedulers of the menu, each kept all the time, make of an episode."""
        if number not in self._standards:
            jobs, machines = self.situation(number)
            schedules = [
                simulate(jobs, machines, member, seed=number, compile_core="always")
                for member in self.task.sight.menu
            ]
            self._standards[number] = standards(schedules, self.reward, self.task.tail)
        return self._standards[number]

    def _prepare(self, number: int) -> PreparedChoice:
        jobs, machines = self.situation(number)
        found = self.standards(number)
        stakes = Stakes(
            found.weights,
            tail_s=found.tail_s,
            labels=tuple(self._labels[self.group(number)].tolist()),
            compared=found.compared,
            compared_span_s=found.span_s,
        )
        return prepare_choice(jobs, machines, self.task.sight, stakes=stakes, seed=number)

    def rules(self) -> IntArray:
        """Return the row of integers that says what the task is; see `engine.choosing.places`."""
        rules = self.task.sight.rules()
        rules[at.MAX_STEPS] = self.task.max_steps
        rules[at.USES_ENERGY] = self.reward.weights.get(Term.ENERGY.name.lower(), 0.0) != 0.0
        rules[at.USES_TAIL] = self.reward.weights.get(Term.TAIL.name.lower(), 0.0) != 0.0
        return rules

    def scales(self) -> FloatArray:
        """Return the row of reals that says what the task is."""
        return self.task.sight.scales()


def _chosen_regimes(task: ChoosingTask) -> tuple[Regime, ...]:
    found = tuple(regime for family in task.families for regime in regimes_of(family))
    if not task.regimes:
        return found
    by_name = {regime.name: regime for regime in found}
    for name in task.regimes:
        if name not in by_name:
            raise unknown("regime", name, by_name)
    return tuple(by_name[name] for name in task.regimes)


def _any_perturbation(dice: np.random.Generator) -> Perturbation:
    """Draw a disturbance of the jobs; machines stay, so that plain clusters stay plain."""
    kinds = [name for name in PERTURBATIONS if name != "capacity-dip"]
    kind = kinds[int(dice.integers(len(kinds)))]
    options = severities(kind)
    return options[int(dice.integers(len(options)))]


def _labels(regimes: Sequence[Regime]) -> FloatArray:
    """Return (regimes, numbers): words as one number each, numbers between 0 and 1."""
    columns: list[FloatArray] = []
    for name in dict.fromkeys(key for regime in regimes for key in regime.labels):
        values = [regime.labels.get(name) for regime in regimes]
        if all(isinstance(value, int | float) for value in values):
            numbers = np.array(values, dtype=np.float64)
            columns.append((numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-9))
        else:
            words = sorted({str(value) for value in values})
            columns += [np.array([float(str(value) == word) for value in values]) for word in words]
    if len(columns) > at.MOST_LABELS:
        raise YardmasterError(
            f"The regimes have {len(columns)} labels, and a chooser can be told"
            f" {at.MOST_LABELS}; choose fewer families or regimes."
        )
    return np.stack(columns, axis=1) if columns else np.zeros((len(regimes), 0))
