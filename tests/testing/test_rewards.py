"""The suite for rewards: those that come along pass, and every rule can be broken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from yardmaster.engine.picking.places import Term
from yardmaster.envs.rewards import Reward
from yardmaster.errors import ConformanceError, UnknownNameError
from yardmaster.testing import check_reward
from yardmaster.testing.rewards import judge_reward


class Moody(Reward):
    """Pays by other weights whenever it is asked for them."""

    calls: Iterator[int] = itertools.count(1)

    def row(self, time_unit_s: float) -> np.ndarray:
        """Return the weights by term."""
        return super().row(time_unit_s) * next(Moody.calls)


class Generous(Reward):
    """Forgets the unit of time."""

    def row(self, time_unit_s: float) -> np.ndarray:
        """Return the weights by term."""
        return super().row(time_unit_s) * 1000.0


class Endless(Reward):
    """Pays beyond all bounds."""

    def row(self, time_unit_s: float) -> np.ndarray:
        """Return the weights by term."""
        row = super().row(time_unit_s)
        row[Term.WAITING] = np.inf
        return row


def misspelt() -> Reward:
    weights = {"waiting": -1.0}
    reward = Reward("changed behind its back", weights)
    weights["wating"] = weights.pop("waiting")
    return reward


BROKEN = {
    "has known terms and finite weights": misspelt(),
    "is a finite number at every step": Endless("endless", {"waiting": -1.0}),
    "pays the same for the same decisions": Moody("moody", {"waiting": -1.0}),
    "pays the same in the plain twin of the environment": Moody("moody", {"waiting": -1.0}),
    "adds up to the metric it is made of": Generous("generous", {"waiting": -1.0}),
    "tells schedules apart": Reward("everybody finishes", {"finished": 1.0}),
}


@pytest.mark.parametrize("name", ["jct", "bounded_slowdown", "relative_wait", "balanced"])
def test_rewards_that_come_along_conform(name: str):
    """Sums, relative and mixed ones keep every rule that can be tried on them."""
    found = judge_reward(name)
    assert found.conforms, found.lines()
    assert {one.rule for one in found.verdicts} == set(BROKEN)


def test_weights_are_enough():
    """Weights of terms are checked as a reward is; what claims no sum is not tried on it."""
    check_reward({"waiting": -1.0, "in_system": -0.5})
    found = {one.rule: one for one in judge_reward({"idle": -1.0}, name="mine").verdicts}
    assert found["adds up to the metric it is made of"].state == "not tried"
    assert "idle" in found["adds up to the metric it is made of"].reason


@pytest.mark.parametrize("rule", BROKEN)
def test_every_rule_can_be_broken(rule: str):
    """Each rule is broken by a reward made for it, with a reason."""
    found = {one.rule: one for one in judge_reward(BROKEN[rule]).verdicts}
    assert found[rule].state == "broken"
    assert found[rule].reason
    with pytest.raises(ConformanceError, match="breaks a rule"):
        check_reward(BROKEN[rule])


def test_nothing_pays_nothing():
    """A reward without terms is no reward."""
    with pytest.raises(ConformanceError, match="it has no term, and pays nothing"):
        check_reward(Reward("nothing"))


def test_misspelt_terms_are_suggested():
    """A term that does not exist is a misspelling, not a broken rule."""
    with pytest.raises(UnknownNameError, match="Did you mean 'waiting'"):
        check_reward({"wating": -1.0})
