"""What D3QN, Rainbow and SAC have in common: act, remember, and learn from what is remembered."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from yardmaster.agents.advantages import returns_to_go, step_discounts
from yardmaster.agents.memories import Memory, NSteps, Sample
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.resident_memories import ResidentMemory, ResidentNSteps
from yardmaster.agents.resident_memories import random_legal as random_legal_there
from yardmaster.agents.tensors import ResidentBatch, as_tensor
from yardmaster.errors import InvalidConfigError

Bools = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OffPolicySettings:
    """How much to gather, to remember and to learn."""

    total_steps: int = 1_000_000
    """Environment steps of the whole training: what schedules are stretched over."""
    steps_per_update: int = 1024
    """Environment steps gathered in one update, over all environments together; rounded up to
    whole steps of the batch."""
    gradient_steps: int = 64
    """Steps of the optimiser in one update, spread evenly between the steps of the batch."""
    batch_size: int = 256
    """Remembered transitions drawn for one gradient step."""
    memory_size: int = 100_000
    """Transitions remembered. Each takes about 8 bytes per number of the observation."""
    warmup_steps: int = 5_000
    """Environment steps taken at random before learning begins."""
    learning_rate: float = 5e-4
    lr_end: float = 1.0
    """Share of the learning rates left at the end of the training; they fall linearly."""
    max_grad_norm: float | None = 10.0
    """Longer gradients are shortened to this length; None leaves them."""
    gamma: float = 0.99
    """Discount of one decision, or of `discount_per_s` seconds."""
    discount_per_s: float | None = None
    """Seconds over which the future loses one factor of `gamma`; None: every decision does."""
    reward_scale: float | None = None
    """What rewards are multiplied by before they are learned from. None: whatever makes the
    returns seen during warm-up of size 1 (root mean square)."""
    network: NetworkSettings = field(default_factory=NetworkSettings)

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        mistakes = self.mistakes()
        if mistakes:
            raise InvalidConfigError(type(self).__name__, mistakes)

    def mistakes(self) -> list[str]:
        """Return what is wrong, a line each."""
        found = self.below_one("total_steps", "steps_per_update", "batch_size", "memory_size")
        found += self.not_above_zero("learning_rate", "max_grad_norm", "discount_per_s")
        found += self.not_above_zero("reward_scale")
        if not 0.0 < self.lr_end <= 1.0:
            found.append(f"lr_end = {self.lr_end}: must be above 0 and at most 1")
        if self.gradient_steps < 0 or self.warmup_steps < 0:
            found.append("gradient_steps and warmup_steps must not be negative")
        if not 0.0 < self.gamma <= 1.0:
            found.append(f"gamma = {self.gamma}: must be above 0 and at most 1")
        if self.memory_size < self.batch_size:
            found.append(f"memory_size = {self.memory_size} holds no batch of {self.batch_size}")
        return found

    def below_one(self, *names: str) -> list[str]:
        """Return a line for each of these fields that is less than 1."""
        values = ((name, getattr(self, name)) for name in names)
        return [f"{name} = {value}: must be at least 1" for name, value in values if value < 1]

    def not_above_zero(self, *names: str) -> list[str]:
        """Return a line for each of these fields that is given and not more than 0."""
        values = ((name, getattr(self, name)) for name in names)
        return [
            f"{name} = {value}: must be above 0"
            for name, value in values
            if value is not None and not value > 0.0
        ]

    def not_shares(self, *names: str) -> list[str]:
        """Return a line for each of these fields that is not between 0 and 1."""
        values = ((name, getattr(self, name)) for name in names)
        return [
            f"{name} = {value}: must be between 0 and 1"
            for name, value in values
            if not 0.0 <= value <= 1.0
        ]


Settings = TypeVar("Settings", bound=OffPolicySettings)


def random_legal(masks: Bools, dice: np.random.Generator) -> Rows:
    """Return one legal action per row, each equally likely."""
    actions: Rows = np.where(masks, dice.random(masks.shape), -1.0).argmax(axis=1)
    return actions


def follow(target: nn.Module, network: nn.Module, tau: float) -> None:
    """Move the weights of a target network towards those of the network, by the share `tau`."""
    with torch.no_grad():
        for slow, quick in zip(target.parameters(), network.parameters(), strict=True):
            slow.lerp_(quick, tau)


class OffPolicyLearner(ABC, Generic[Settings]):
    """Acts in many environments, remembers what happens and learns from what it remembers.

    A learner says how to `choose` actions and how to `learn` from a sample; `saved` names its
    networks and optimisers.
    """

    network: nn.Module
    """Whose preferences are played greedily once training is over."""

    def __init__(
        self,
        batch: Any,
        settings: Settings,
        seed: int,
        memory: Memory | ResidentMemory,
        *,
        n_step: int = 1,
        device: str = "cpu",
    ) -> None:
        self.batch = batch
        self.device = torch.device(device)
        """Where networks are and learn; the memory is where the environments are."""
        self.settings = settings
        self.memory: Any = memory
        self.dice = np.random.default_rng(seed)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.steps = 0
        """Environment steps so far."""
        self.gradient_steps = 0
        self.scale = settings.reward_scale or 1.0
        """What rewards are multiplied by."""
        self._is_warm = False
        self._seen: list[tuple[Any, Any, Any]] = []
        self.is_resident = isinstance(batch, ResidentBatch)
        """Whether environments and memory are on a GPU: nothing then goes back and forth."""
        self._open: Any = (
            ResidentNSteps(n_step, batch.size, batch.layout, self.device)
            if self.is_resident
            else NSteps(n_step, batch.size, batch.layout)
        )
        batch.reset(seed, staggered=True)

    @abstractmethod
    def choose(self) -> Any:
        """Return what to do next in every environment, exploring."""

    @abstractmethod
    def learn(self) -> dict[str, Any]:
        """Take one gradient step; return scalars by name."""

    @abstractmethod
    def saved(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Return the networks and optimisers whose state is the learner's."""

    def warm(self, returns: Reals) -> None:
        """Adapt to the scaled returns seen during warm-up, if there is anything to adapt."""

    def update(self) -> dict[str, float]:
        """Gather some steps and learn from the memory; return scalars by name."""
        self.network.train()  # whoever judged it since may have switched its noise off
        self._slow_down()
        rounds = math.ceil(self.settings.steps_per_update / self.batch.size)
        learned: list[dict[str, Any]] = []
        tally = Tally()
        for done in range(rounds):
            self._step(tally)
            if self._may_learn():
                due = self.settings.gradient_steps * (done + 1) // rounds
                due -= self.settings.gradient_steps * done // rounds
                for _ in range(due):
                    self.gradient_steps += 1
                    learned.append(self.learn())
        if self.is_resident:
            tally.settle(*self.batch.finished())
        names = learned[0] if learned else {}
        means = {name: _mean([one[name] for one in learned]) for name in names}
        return tally.scalars() | {"memory": float(self.memory.filled)} | means

    def _slow_down(self) -> None:
        """Let the learning rates fall with what is done of the training."""
        if self.settings.lr_end == 1.0:
            return
        done = min(self.steps / self.settings.total_steps, 1.0)
        share = 1.0 + (self.settings.lr_end - 1.0) * done
        for part in self.saved().values():
            if isinstance(part, torch.optim.Optimizer):
                for group in part.param_groups:
                    group["lr"] = share * group.setdefault("first_lr", group["lr"])

    def told(self, figure: Tensor) -> Any:
        """Return a figure for people; on a GPU nobody waits for it before the update is over."""
        return figure.detach() if self.is_resident else figure.item()

    def _at_random(self) -> Any:
        """Return any legal action for every environment."""
        if self.is_resident:
            return random_legal_there(self.batch.masks, self.generator)
        return random_legal(self.batch.masks, self.dice)

    def _step(self, tally: Tally) -> None:
        batch, settings = self.batch, self.settings
        actions = self.choose() if self._is_warm else self._at_random()
        self._open.begin(batch, actions)
        batch.step(actions)
        discounts = step_discounts(batch.elapsed_s, settings.gamma, settings.discount_per_s)
        self.memory.add(self._open.finish(batch, discounts))
        self.steps += batch.size
        tally.count(batch, actions)
        if not self._is_warm:
            ended = batch.terminated | batch.truncated
            self._seen.append((batch.rewards + 0.0, discounts, ended))

    def _may_learn(self) -> bool:
        if self._is_warm:
            return True
        if self.steps < self.settings.warmup_steps:
            return False
        # A memory that is shared evenly may be a little smaller than what was asked for.
        if self.memory.filled < min(self.settings.batch_size, self.memory.size):
            return False
        together: Any = torch.stack if self.is_resident else np.array
        rewards, discounts, ended = (together(column) for column in zip(*self._seen, strict=True))
        returns = returns_to_go(rewards, rewards * 0.0, discounts, ended)
        if self.settings.reward_scale is None:
            size = math.sqrt(float((returns**2).mean()))
            self.scale = 1.0 / size if size > 0.0 else 1.0
        self.warm(returns * self.scale)
        self._seen.clear()
        self._is_warm = True
        return True

    def sample(self, beta: float = 1.0) -> tuple[Sample, Tensor]:
        """Draw a batch from the memory; return it, and its returns in the learner's scale."""
        count = self.settings.batch_size
        if self.is_resident:
            drawn: Sample = self.memory.sample(count, self.generator)
        else:
            drawn = self.memory.sample(count, self.dice, beta).to(self.device)
        return drawn, drawn.returns * self.scale

    def seen(self) -> tuple[Tensor, Tensor]:
        """Return what the environments show now, and what is legal in them."""
        observations = as_tensor(self.batch.observations).to(self.device)
        return observations, as_tensor(self.batch.masks).to(self.device)

    def descend(self, loss: Tensor, optimiser: torch.optim.Optimizer) -> None:
        """Take one step of an optimiser down the gradient of a loss."""
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        if self.settings.max_grad_norm is not None:
            weights: Iterable[Tensor] = optimiser.param_groups[0]["params"]
            nn.utils.clip_grad_norm_(weights, self.settings.max_grad_norm)
        optimiser.step()

    _PLAIN = ("steps", "gradient_steps", "scale", "_is_warm", "_seen")

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on from here, the memory included."""
        kept = {name: part.state_dict() for name, part in self.saved().items()}
        kept |= {name: getattr(self, name) for name in self._PLAIN}
        return copy.deepcopy(kept) | {
            "memory": self.memory.state(),
            "open": self._open.state(),
            "batch": self.batch.snapshot(),
            "dice": self.dice.bit_generator.state,
            "generator": self.generator.get_state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; updates then have the same results."""
        for name, part in self.saved().items():
            # A copy: an optimiser would go on in the very numbers that were saved.
            part.load_state_dict(copy.deepcopy(state[name]))
        for name in self._PLAIN:
            setattr(self, name, copy.deepcopy(state[name]))
        if self.is_resident:
            self._seen = [tuple(part.to(self.device) for part in one) for one in self._seen]
        self.memory.load(state["memory"])
        self._open.load(state["open"])
        self.batch.restore(state["batch"])
        self.dice.bit_generator.state = state["dice"]
        self.generator.set_state(state["generator"])


class Tally:
    """What happened in the environments during one update."""

    def __init__(self) -> None:
        self._steps = 0
        self._noops = 0
        self._returns: list[float] = []
        self._finished: tuple[float, float] | None = None

    def settle(self, episodes: float, returns: float) -> None:
        """Take in how many episodes ended on a GPU, and the sum of their returns."""
        self._finished = episodes, returns

    def count(self, batch: Any, actions: Any) -> None:
        """Take in one step of the batch."""
        self._steps += batch.size
        if isinstance(batch, ResidentBatch):
            return  # there episodes are counted, and no scheduler is a no-op
        self._noops += int((actions == batch.layout.window).sum())
        ended = batch.terminated | batch.truncated
        self._returns += batch.episode_returns[ended].tolist()

    def scalars(self) -> dict[str, float]:
        """Return the scalars; the mean return only if an episode ended."""
        count, total = self._finished or (float(len(self._returns)), 0.0)
        scalars = {
            "steps": float(self._steps),
            "noop_share": self._noops / self._steps,
            "episodes": count,
        }
        if count:
            scalars["episode_return"] = (
                float(np.mean(self._returns)) if self._finished is None else total / count
            )
        return scalars


def _mean(figures: list[Any]) -> float:
    """Return the mean of numbers, or of tensors of one number each."""
    if isinstance(figures[0], Tensor):
        return float(torch.stack(figures).mean())
    return float(np.mean(figures))
