"""Does a user's own learner keep the promises that training runs rely on?

    from yardmaster.testing import check_learner

    def test_my_learner():
        check_learner(MyLearner, settings)

Everything happens on a toy (`testing.toys`) whose best policy is known: jobs of random lengths on
one machine, where shortest first is optimal; for learners of schedulers, regimes that each have a
best choice.
"""

from __future__ import annotations

import copy
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from yardmaster.agents.learners import (
    LEARNERS,
    Learner,
    LearnerKind,
    greedy,
    weights,
    weights_are_finite,
)
from yardmaster.errors import ConformanceError
from yardmaster.testing.toys import OneMachine, WhichRegime
from yardmaster.testing.verdicts import Conformance, Rule, judged

BUDGET = 30_000
"""Steps within which the toy must be mastered."""
SHARE = 0.95
"""Of the best possible return, on draws that nobody trained on."""
UNTRAINED = 0.85
"""A learner that begins above this share has little to show."""
SEEDS, LOOKS = 16, 20
SIZE, UPDATES = 16, 2


class CountedMachine(OneMachine):
    """The toy of picking jobs; it counts how often it is stepped."""

    taken = 0

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Run one job in every environment."""
        self.taken += 1
        super().step(actions)


class CountedRegimes(WhichRegime):
    """The toy of choosing schedulers; it counts how often it is stepped."""

    taken = 0

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Choose in every environment."""
        self.taken += 1
        super().step(actions)


class HidingMachine(OneMachine):
    """The toy with most waiting jobs masked at random, so that masks have to be looked at."""

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes."""
        self.hiding = np.random.default_rng(seed + 1)
        super().reset(seed, staggered=staggered)
        self._hide()

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Run one job in every environment; raise at an action that is masked."""
        if not self.masks[np.arange(self.size), actions].all():
            raise ValueError("an action was taken that the mask forbids")
        self.masks[:] = self._waiting
        super().step(actions)
        self._hide()

    def _hide(self) -> None:
        self._waiting = self.masks.copy()
        keep = np.where(self.masks, self.hiding.random(self.masks.shape), -1.0).argmax(axis=1)
        self.masks &= self.hiding.random(self.masks.shape) < 0.4
        self.masks[np.arange(self.size), keep] = True


def judge_learner(
    learner: str | LearnerKind | type,
    settings: Any = None,
    *,
    budget: int = BUDGET,
    share: float = SHARE,
) -> Conformance:
    """Try every rule on the toy.

    Args:
        learner: a name, its kind, or its class.
        settings: of the learner; None takes the preset `check` of its module, else `default`.
        budget: steps within which the toy must be mastered.
        share: of the best possible return that counts as mastered.

    Raises:
        YardmasterError: if there is no such learner or preset.
    """
    suite = _Suite(_kind(learner), settings, budget, share)
    mastered = f"reaches {share:.0%} of the toy's optimum within {budget:,} steps"
    return judged(
        "learner",
        suite.kind.name,
        [
            Rule(
                "can be built and has network, update, state and load", suite.builds, is_needed=True
            ),
            Rule("says how many steps each update took", suite.counts, is_needed=True),
            Rule(f"begins to learn within {budget:,} steps", suite.begins, is_needed=True),
            Rule("takes no action that is masked", suite.obeys_masks),
            Rule("learns the same from the same seed", suite.repeats),
            Rule("goes on from a checkpoint as if nothing had happened", suite.resumes),
            Rule("keeps its weights finite", suite.stays_finite),
            Rule(mastered, suite.masters),
        ],
    )


def check_learner(
    learner: str | LearnerKind | type,
    settings: Any = None,
    *,
    budget: int = BUDGET,
    share: float = SHARE,
) -> None:
    """Check a learner; see `judge_learner`.

    Raises:
        ConformanceError: with the first rule that is broken, and why.
        YardmasterError: if there is no such learner or preset.
    """
    judge_learner(learner, settings, budget=budget, share=share).insist()


def _kind(learner: str | LearnerKind | type) -> LearnerKind:
    if isinstance(learner, str):
        return LEARNERS[learner]
    if isinstance(learner, LearnerKind):
        return learner
    name = learner.__name__
    return LearnerKind(name.lower(), learner.__module__, name, (learner.__doc__ or "").strip())


@dataclass(slots=True)
class _Suite:
    kind: LearnerKind
    settings: Any
    budget: int
    share: float
    chooses: bool = False
    """Whether it learns to choose schedulers, not jobs."""
    _batch: Any = None
    """The environments of the learner built last."""

    def __post_init__(self) -> None:
        self.chooses = self.kind.name == "meta-dqn"
        if self.settings is None:
            presets = self.kind.presets()
            self.settings = self.kind.preset("check" if "check" in presets else "default")

    def _fresh(self, seed: int = 0, toy: Callable[[int], Any] | None = None) -> Learner:
        batch = self._batch = (
            CountedRegimes(SIZE) if self.chooses else (toy or CountedMachine)(SIZE)
        )
        # A class may live in a module that nobody can import by name, such as a test's.
        made = getattr(sys.modules.get(self.kind.module), self.kind.class_name, None)
        if made is None:
            return self.kind.build(batch, self.settings, seed)
        learner: Learner = made(batch, self.settings, seed, device="cpu")
        return learner

    def builds(self) -> str:
        learner = self._fresh()
        missing = [
            name for name in ("network", "update", "state", "load") if not hasattr(learner, name)
        ]
        return f"it has no {missing[0]}" if missing else ""

    def counts(self) -> str:
        learner = self._fresh()
        batch = self._batch
        for _ in range(UPDATES):
            before = batch.taken
            scalars = learner.update()
            took = (batch.taken - before) * SIZE
            if scalars.get("steps") != took:
                return f"an update took {took} steps and says {scalars.get('steps')}"
        return ""

    def obeys_masks(self) -> str:
        learner = self._fresh(toy=HidingMachine)
        steps = 0.0
        while steps < self.budget / 4:  # exploring and preferring are two ways to be wrong
            steps += float(learner.update()["steps"])
        return ""

    def begins(self) -> str:
        self._learning()
        return ""

    def _learning(self, seed: int = 0) -> Learner:
        """Return a learner whose weights have begun to move: before, nothing can go wrong."""
        learner = self._fresh(seed)
        before, steps = weights(learner.network), 0.0
        while _same(before, weights(learner.network)):
            if steps >= self.budget:
                raise ConformanceError(f"No weight has changed after {steps:,.0f} steps.")
            steps += float(learner.update()["steps"])
        return learner

    def repeats(self) -> str:
        first, second = (weights(self._learning().network) for _ in range(2))
        return "" if _same(first, second) else "two trainings with seed 0 have other weights"

    def resumes(self) -> str:
        learner = self._learning()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint.pt"
            kept = copy.deepcopy(learner.state())
            write_checkpoint(path, Checkpoint(self.kind.name, {}, kept, {}))
            state = read_checkpoint(path).state
        resumed = self._fresh(seed=1)  # whatever it was before must not matter
        resumed.load(state)
        for _ in range(UPDATES):
            learner.update()
            resumed.update()
        if _same(weights(learner.network), weights(resumed.network)):
            return ""
        return "after the next updates it has other weights than one that was not interrupted"

    def stays_finite(self) -> str:
        learner = self._learning()
        for _ in range(UPDATES):
            learner.update()
        return "" if weights_are_finite(learner.network) else "a weight is NaN or infinite"

    def masters(self) -> str:
        # On a toy this small every other fresh network is right by luck.
        seed = next((one for one in range(SEEDS) if self._untrained(one) < UNTRAINED), None)
        if seed is None:
            return f"untrained it is right already, with each of {SEEDS} seeds"
        learner = self._fresh(seed)
        begun = best = self._share_of(learner)
        steps, look = 0.0, 0.0
        while steps < self.budget and best < self.share:
            steps += float(learner.update()["steps"])
            if steps >= look:
                best = max(best, self._share_of(learner))
                look = steps + self.budget / LOOKS
        if best >= self.share:
            return ""
        return f"after {steps:,.0f} steps it went from {begun:.1%} to {best:.1%} at best"

    def _untrained(self, seed: int) -> float:
        return self._share_of(self._fresh(seed))

    def _share_of(self, learner: Learner) -> float:
        """The return of greedy play on unseen draws, by the best possible one; 1 is optimal."""
        choose = greedy(learner.network)
        if self.chooses:
            regimes = WhichRegime(256)
            regimes.reset(1_000_000)
            while not regimes.terminated.any():
                regimes.step(choose(regimes))
            return float(regimes.episode_returns.mean() / regimes.steps)
        batch = OneMachine(256)
        batch.reset(1_000_000)
        best = batch.best_returns.copy()
        while not batch.terminated.any():
            batch.step(choose(batch))
        return float(best.sum() / batch.episode_returns.sum())


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(np.asarray(one[name]), np.asarray(other[name])) for name in one
    )
