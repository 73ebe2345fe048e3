"""The suite for learners: ours pass, and every rule can be broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from yardmaster.agents import masking
from yardmaster.agents.learners import LearnerKind
from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.errors import ConformanceError, UnknownNameError
from yardmaster.testing import check_learner
from yardmaster.testing.learners import HidingMachine, judge_learner


@dataclass(frozen=True)
class Settings:
    """Of the learner below."""

    rollout: int = 16
    learning_rate: float = 3e-2
    network: NetworkSettings = field(
        default_factory=lambda: NetworkSettings(arch="kernel", hidden=(8,))
    )


PRESETS = {"default": Settings()}
"""Looked for in the module of the classes below."""
BUDGET = 8_000


class Likelier:
    """What was followed by more than usual becomes likelier; small, to be broken below."""

    def __init__(self, batch: Any, settings: Settings, seed: int, device: str = "cpu") -> None:
        self.batch, self.settings = batch, settings
        self.network = actor_critic(settings.network, batch.layout, seed).to(device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), settings.learning_rate)
        self.dice = torch.Generator().manual_seed(seed)
        batch.reset(seed)

    def chosen(self, logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        """Choose an action in every environment."""
        return masking.sample(logits.detach(), masks, self.dice)

    def paid(self) -> np.ndarray:
        """Return what the last step earned."""
        return self.batch.rewards.copy()

    def update(self) -> dict[str, float]:
        """Gather some steps and learn from them."""
        likely, rewards, going_on = [], [], []
        for _ in range(self.settings.rollout):
            masks = torch.from_numpy(self.batch.masks.copy())
            logits = self.network.logits(torch.from_numpy(self.batch.observations.copy()), masks)
            actions = self.chosen(logits, masks)
            likely.append(masking.log_probs(logits, masks).gather(1, actions[:, None])[:, 0])
            self.batch.step(actions.numpy())
            rewards.append(self.paid())
            going_on.append(~self.batch.terminated)
        returns = np.zeros((len(rewards), self.batch.size))
        ahead = np.zeros(self.batch.size)
        for step in reversed(range(len(rewards))):
            ahead = rewards[step] + going_on[step] * ahead
            returns[step] = ahead
        better = torch.from_numpy((returns - returns.mean()) / (returns.std() + 1e-8))
        self.learn(-(torch.stack(likely) * better).mean())
        return {"steps": float(returns.size)}

    def learn(self, loss: torch.Tensor) -> None:
        """Follow the gradient."""
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def state(self) -> dict[str, Any]:
        """Return all that is needed to go on."""
        return {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "dice": self.dice.get_state(),
            "batch": self.batch.snapshot(),
        }

    def load(self, state: Any) -> None:
        """Go on from there."""
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.dice.set_state(state["dice"])
        self.batch.restore(state["batch"])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_good_learner_conforms():
    """A small honest learner keeps every rule."""
    found = judge_learner(Likelier, budget=BUDGET)
    assert [one.state for one in found.verdicts] == ["kept"] * 8, found.lines()
    assert len(found.verdicts) == len(BROKEN)


class Mute(Likelier):
    """Has no way to be saved."""

    state = property()


class Boaster(Likelier):
    """Counts all steps so far, not those of the update."""

    boasted = 0.0

    def update(self) -> dict[str, float]:
        """Gather some steps and learn from them."""
        self.boasted += super().update()["steps"]
        return {"steps": self.boasted}


class Idle(Likelier):
    """Plays and never learns."""

    def learn(self, loss: torch.Tensor) -> None:
        """Do nothing about it."""


class Reckless(Likelier):
    """Picks any waiting job, whatever the mask says."""

    def chosen(self, logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        """Choose an action in every environment."""
        del logits, masks
        waiting = self.batch.layout.jobs(self.batch.observations)[:, :, 0]
        return torch.from_numpy(waiting.argmax(axis=1))


class Restless(Likelier):
    """Shakes its weights with dice that nobody seeded."""

    shaking = np.random.default_rng()

    def learn(self, loss: torch.Tensor) -> None:
        """Follow the gradient."""
        super().learn(loss)
        with torch.no_grad():
            for part in self.network.parameters():
                part.add_(float(Restless.shaking.normal()) * 1e-3)


class Forgetful(Likelier):
    """Does not take up its dice where they lay."""

    def load(self, state: Any) -> None:
        """Go on from there."""
        dice = self.dice.get_state()
        super().load(state)
        self.dice.set_state(dice)


class Sick(Likelier):
    """Loses a weight to NaN."""

    def learn(self, loss: torch.Tensor) -> None:
        """Follow the gradient."""
        super().learn(loss)
        with torch.no_grad():
            list(self.network.parameters())[-1].view(-1)[0] = torch.nan


class Perverse(Likelier):
    """Learns to please whoever wants the opposite."""

    def paid(self) -> np.ndarray:
        """Return what the last step earned."""
        return -super().paid()


BROKEN = {
    "can be built": Mute,
    "says how many steps": Boaster,
    "begins to learn": Idle,
    "takes no action that is masked": Reckless,
    "learns the same from the same seed": Restless,
    "goes on from a checkpoint": Forgetful,
    "keeps its weights finite": Sick,
    "reaches 95%": Perverse,
}


@pytest.mark.parametrize("rule", BROKEN)
def test_every_rule_can_be_broken(rule: str):
    """Each rule is broken by a learner made for it, with a reason."""
    learner = BROKEN[rule]
    kind = LearnerKind(learner.__name__.lower(), learner.__module__, learner.__name__, "broken")
    judged = judge_learner(kind, budget=BUDGET)
    found = next(one for one in judged.verdicts if one.rule.startswith(rule))
    assert found.state == "broken", judged.lines()
    assert found.reason
    with pytest.raises(ConformanceError, match="breaks a rule"):
        judged.insist()


@dataclass(frozen=True)
class Nothing:
    """Settings of a learner that cannot be built."""


class Fragile:
    """Cannot be built."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise OSError("no GPU here")

    update = state = load = None


def test_what_cannot_be_built_is_told():
    """An exception of the learner is its verdict, and nothing else is tried."""
    found = judge_learner(Fragile, Nothing())
    assert found.verdicts[0].reason == "OSError: no GPU here"
    assert {one.state for one in found.verdicts[1:]} == {"not tried"}


def test_unknown_learners_are_suggested():
    """A name that does not exist is a misspelling."""
    with pytest.raises(UnknownNameError, match="Did you mean 'sac'"):
        check_learner("sacc")


def test_the_toy_hides_what_must_not_be_taken():
    """In the toy for masks some waiting jobs cannot be picked, and picking one is an error."""
    toy = HidingMachine(8)
    toy.reset(0)
    assert not toy.masks[:, :-1].all()
    assert toy.masks.any(axis=1).all()
    with pytest.raises(ValueError, match="mask forbids"):
        toy.step(toy.masks.argmin(axis=1))
