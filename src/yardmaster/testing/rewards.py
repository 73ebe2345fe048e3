"""Does a user's own reward keep the promises that environments and learners rely on?

    from yardmaster.testing import check_reward

    def test_my_reward():
        check_reward({"waiting": -1.0, "idle": -2.0})

A few small episodes are played, in plain Python, by heuristics and by dice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import play
from yardmaster.envs.reference import ReferencePickJob
from yardmaster.envs.rewards import Reward, reward_of
from yardmaster.envs.task import Task
from yardmaster.metrics import per_job
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.verdicts import Conformance, NotTriedError, Rule, judged

CLUSTER = "2x V100:2, 1x V100:4"
JOBS, EPISODES = 14, 4
PLAYERS = ("fifo", "sjf", "largest-first")
NEAR = 1e-6
"""How far two sums of the same numbers may be apart, by their size."""

IN_TIME = {"waiting": per_job.wait_s, "in_system": per_job.jct_s}
WITHOUT_UNIT = {"bounded_slowdown": per_job.bounded_slowdown, "slowdown": per_job.slowdown}
"""Terms that add up, over an episode, to the mean of a metric (slowdowns less 1)."""


def judge_reward(reward: str | Mapping[str, float] | Reward, *, name: str = "") -> Conformance:
    """Try every rule on small episodes.

    Args:
        reward: a name, weights of terms, or a `Reward`.
        name: what to call it.

    Raises:
        YardmasterError: if there is no such reward, or it names a term that does not exist.
    """
    chosen = reward_of(reward)
    suite = _Suite(chosen)
    return judged(
        "reward",
        name or (reward if isinstance(reward, str) else chosen.meaning),
        [
            Rule("has known terms and finite weights", suite.is_well_formed, is_needed=True),
            Rule("is a finite number at every step", suite.is_finite, is_needed=True),
            Rule("pays the same for the same decisions", suite.repeats),
            Rule("pays the same in the plain twin of the environment", suite.agrees_with_twin),
            Rule("adds up to the metric it is made of", suite.adds_up),
            Rule("tells schedules apart", suite.tells_apart),
        ],
    )


def check_reward(reward: str | Mapping[str, float] | Reward, *, name: str = "") -> None:
    """Check a reward; see `judge_reward`.

    Raises:
        ConformanceError: with the first rule that is broken, and why.
        YardmasterError: if there is no such reward, or it names a term that does not exist.
    """
    judge_reward(reward, name=name).insist()


@dataclass(frozen=True, slots=True)
class _Suite:
    """A reward, and episodes to try it on."""

    reward: Reward

    def _task(self) -> Task:
        sight = Sight(window=JOBS, gpu_slots=0, reservation=False)
        return Task(
            workload="lognormal",
            cluster=CLUSTER,
            jobs=JOBS,
            load=2.5,
            episodes=EPISODES,
            reward=self.reward,
            sight=sight,
        )

    def is_well_formed(self) -> str:
        if not self.reward.weights:
            return "it has no term, and pays nothing"
        known = {term.name.lower() for term in Term}
        strange = [name for name in self.reward.weights if name not in known]
        if strange:
            return f"there is no term {strange[0]!r}"
        infinite = [name for name, weight in self.reward.weights.items() if not np.isfinite(weight)]
        return f"the weight of {infinite[0]} is no finite number" if infinite else ""

    def _rewards(self, seed: int) -> list[float]:
        """Play an episode by dice; return what every step earned."""
        batch = self._batch(Episodes(self._task()), seed)
        dice = np.random.default_rng(seed)
        earned = []
        while not (batch.terminated[0] or batch.truncated[0]):
            batch.step(np.array([dice.choice(np.flatnonzero(batch.masks[0]))]))
            earned.append(float(batch.rewards[0]))
        return earned

    @staticmethod
    def _batch(episodes: Episodes, number: int = 0) -> EnvironmentBatch:
        batch = EnvironmentBatch(
            episodes, 1, compiled=False, autoreset=False, draw=lambda rows: rows + number
        )
        batch.begin(np.arange(1))
        return batch

    def is_finite(self) -> str:
        for seed in range(EPISODES):
            earned = np.array(self._rewards(seed))
            if not np.isfinite(earned).all():
                step = int(np.flatnonzero(~np.isfinite(earned))[0])
                return f"step {step + 1} of a random episode earns {earned[step]}"
        return ""

    def repeats(self) -> str:
        for seed in range(EPISODES):
            if self._rewards(seed) != self._rewards(seed):
                return "the same decisions earn something else the second time"
        return ""

    def agrees_with_twin(self) -> str:
        for number in range(EPISODES):
            episodes = Episodes(self._task())
            batch = self._batch(episodes, number)
            twin = ReferencePickJob(episodes.task, episodes.cluster)
            twin.reset(episodes.workload(number), baseline=episodes.baseline_score(number))
            dice = np.random.default_rng(number)
            while not twin.over:
                action = int(dice.choice(np.flatnonzero(twin.mask)))
                batch.step(np.array([action]))
                paid, expected = float(batch.rewards[0]), twin.step(action)[1]
                if not np.isclose(paid, expected, rtol=NEAR, atol=NEAR):
                    return f"step {twin.steps} earns {paid:g}, and {expected:g} in the twin"
        return ""

    def _returns(self, player: str) -> FloatArray:
        task = self._task()
        chosen = expert(player, task)
        return play(task, chosen, split="train", episodes=EPISODES, compiled=False).returns

    def adds_up(self) -> str:
        others = sorted(set(self.reward.weights) - set(IN_TIME) - set(WITHOUT_UNIT))
        if others:
            raise NotTriedError(f"no metric says what {', '.join(others)} should add up to")
        for player in PLAYERS:
            for number, got in enumerate(self._returns(player).tolist()):
                episodes = Episodes(self._task())
                jobs = episodes.workload(number)
                schedule = simulate(jobs, episodes.cluster, f"{player}+skip", compile_core="never")
                expected = self._expected(schedule, episodes.task.sight.time_unit_s)
                if not np.isclose(got, expected, rtol=NEAR, atol=NEAR):
                    return f"an episode of {player} earns {got:g}; its metrics say {expected:g}"
        return ""

    def _expected(self, schedule: Schedule, task_unit_s: float) -> float:
        """What the weights make of the metrics of a schedule."""
        unit_s = self.reward.unit_s or task_unit_s
        total = 0.0
        for name, weight in self.reward.weights.items():
            if name in IN_TIME:
                total += weight * float(np.nanmean(IN_TIME[name](schedule))) / unit_s
            else:
                total += weight * (float(np.nanmean(WITHOUT_UNIT[name](schedule))) - 1.0)
        return total

    def tells_apart(self) -> str:
        returns = np.array([self._returns(player) for player in PLAYERS])
        if np.allclose(returns, returns[0], rtol=NEAR, atol=NEAR):
            return f"{', '.join(PLAYERS)} earn the same in {EPISODES} episodes"
        return ""
