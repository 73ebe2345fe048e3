"""Behaviour cloning: teach a network to decide as a heuristic does, before it learns by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from yardmaster.agents import masking
from yardmaster.agents.advantages import ReturnScale, returns_to_go, step_discounts
from yardmaster.agents.networks import ActorCritic
from yardmaster.agents.rollouts import Rollout, flat
from yardmaster.envs.protocol import Batch
from yardmaster.errors import ConformanceError, InvalidConfigError

Choose = Callable[[Batch], npt.NDArray[np.int64]]
"""Says what to do next in every environment of a batch."""


@dataclass(frozen=True, slots=True)
class CloneSettings:
    """How much to watch the expert, and how thoroughly to learn from it."""

    steps: int = 65_536
    """Decisions of the expert to learn from, over all environments and rounds together; rounded
    up to whole steps of the batch."""
    held_out: int = 8_192
    """Further decisions, never learned from, that agreement is measured on."""
    rounds: int = 1
    """Times the expert is watched; what is learned from grows with each."""
    learner_share: float = 0.0
    """Share of decisions, from the second round on, that are carried out as the network would
    have it, while the expert only says what it would have done: so that the network also learns
    what to do where its own mistakes lead (DAgger)."""
    epochs: int = 4
    """Passes over everything watched so far, in every round."""
    minibatch: int = 512
    """Decisions of one gradient step."""
    learning_rate: float = 1e-3
    max_grad_norm: float = 1.0
    """Longer gradients are shortened to this length, of policy and critic each."""
    gamma: float = 0.99
    """Discount of one decision, or of `discount_per_s` seconds, in what the critic learns."""
    discount_per_s: float | None = None
    """Seconds over which the future loses one factor of `gamma`; None: every decision does."""
    normalise_rewards: bool = True
    """Whether the critic learns rewards divided by the spread of the discounted return."""

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        mistakes = [
            f"{name} = {getattr(self, name)}: must be at least 1"
            for name in ("steps", "held_out", "rounds", "epochs", "minibatch")
            if getattr(self, name) < 1
        ]
        for name in ("learning_rate", "max_grad_norm", "discount_per_s"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                mistakes.append(f"{name} = {value}: must be above 0")
        if not 0.0 < self.gamma <= 1.0:
            mistakes.append(f"gamma = {self.gamma}: must be above 0, at most 1")
        if not 0.0 <= self.learner_share <= 1.0:
            mistakes.append(f"learner_share = {self.learner_share}: must be between 0 and 1")
        if self.learner_share and self.rounds == 1:
            mistakes.append("learner_share acts from the second round on: rounds must be above 1")
        if mistakes:
            raise InvalidConfigError("CloneSettings", mistakes)


def clone(
    network: ActorCritic, batch: Batch, expert: Choose, settings: CloneSettings, seed: int
) -> dict[str, float]:
    """Train a network in place to decide as an expert does; its critic, what that is worth.

    Args:
        network: Trained in place.
        batch: The environments to watch the expert in; fresh episodes are begun.
        expert: Says what to do.
        settings: How much to watch and to learn.
        seed: Of the environments and of all chance.

    Returns:
        `agreement`, the share of held-out decisions with more than one legal action in which the
        network prefers what the expert chooses; `loss` (mean surprise at the expert, in nats) and
        `value_loss` in the last pass; `reward_scale`, which rewards were divided by; `steps`
        taken in all; `episode_return` of the expert, as far as episodes ended.

    Raises:
        ConformanceError: if the expert chooses an illegal action.
    """
    lesson = _Lesson(network, batch, expert, settings, seed)
    losses: dict[str, float] = {}
    for done in range(settings.rounds):
        share = settings.learner_share if done else 0.0
        lesson.watched.append(lesson.watch(settings.steps / settings.rounds, share))
        losses = lesson.learn()
    unseen = lesson.watch(settings.held_out)
    scalars = losses | {
        "agreement": lesson.agreement(unseen),
        "reward_scale": lesson.scale,
        "steps": float(sum(one.actions.numel() for one in (*lesson.watched, unseen))),
    }
    returns = lesson.watched[0].episode_returns + unseen.episode_returns  # the expert's alone
    if returns:
        scalars["episode_return"] = float(np.mean(returns))
    return scalars


class _Lesson:
    """A network and its teacher at work."""

    def __init__(
        self,
        network: ActorCritic,
        batch: Batch,
        expert: Choose,
        settings: CloneSettings,
        seed: int,
    ) -> None:
        self.network = network
        self.batch = batch
        self.expert = expert
        self.settings = settings
        self.generator = torch.Generator().manual_seed(seed)
        self.optimiser = torch.optim.Adam(
            network.parameters(), lr=settings.learning_rate, fused=True
        )
        self.watched: list[Rollout] = []
        self.scale = 1.0
        """What rewards are divided by."""
        batch.reset(seed)

    @torch.no_grad()
    def watch(self, steps: float, learner_share: float = 0.0) -> Rollout:
        """Let the expert decide; decisions of the network's own are kept as the expert's."""
        batch, network = self.batch, self.network
        rollout = Rollout(math.ceil(steps / batch.size), batch.size, batch.layout)
        rows = np.arange(batch.size)
        masks = torch.from_numpy(batch.masks)
        for step in range(rollout.steps):
            rollout.before(step, batch)
            wanted = self.expert(batch)
            if not batch.masks[rows, wanted].all():
                raise ConformanceError("The expert to clone chose an illegal action.")
            labels = carried_out = torch.from_numpy(wanted.astype(np.int64))
            if learner_share:
                logits = network.logits(rollout.observations[step], masks)
                own = masking.sample(logits, masks, self.generator)
                is_own = torch.rand(batch.size, generator=self.generator) < learner_share
                carried_out = torch.where(is_own, own, labels)
            batch.step(carried_out.numpy())
            rollout.after(step, batch, labels)
        return rollout

    def learn(self) -> dict[str, float]:
        """Pass some times over all that was watched; return the mean losses of the last pass."""
        if self.settings.normalise_rewards:
            scale = ReturnScale(self.batch.size)
            for rollout in self.watched:
                scale.see(rollout.rewards, self._discounts(rollout), rollout.ended)
            self.scale = scale.scale
        observations = _joined([one.observations[:-1].flatten(0, 1) for one in self.watched])
        masks = _joined([one.masks.flatten(0, 1) for one in self.watched])
        labels = _joined([one.actions.flatten() for one in self.watched])
        losses: list[tuple[float, float]] = []
        for _ in range(self.settings.epochs):
            returns = _joined([self._returns(one) for one in self.watched])
            columns = (observations, masks, labels, returns)
            shuffled = torch.randperm(len(labels), generator=self.generator)
            losses = [
                self._descend(*(column.index_select(0, rows) for column in columns))
                for rows in torch.split(shuffled, self.settings.minibatch)
            ]
        loss, value_loss = np.mean(losses, axis=0).tolist()
        return {"loss": loss, "value_loss": value_loss}

    def _descend(
        self, observations: Tensor, masks: Tensor, labels: Tensor, returns: Tensor
    ) -> tuple[float, float]:
        """Take one gradient step; return the losses of policy and critic."""
        network = self.network
        shares = masking.log_probs(network.logits(observations, masks), masks)
        loss = nn.functional.nll_loss(shares, labels)
        value_loss = nn.functional.mse_loss(network.value(observations), returns)
        self.optimiser.zero_grad()
        torch.autograd.backward(loss + value_loss)
        # Apart: a critic far off at first would otherwise leave the policy no step to take.
        for part in (network.critic, network.body, network.head):
            nn.utils.clip_grad_norm_(part.parameters(), self.settings.max_grad_norm)
        self.optimiser.step()
        return loss.item(), value_loss.item()

    def _discounts(self, rollout: Rollout) -> npt.NDArray[np.float64]:
        settings = self.settings
        discounts: npt.NDArray[np.float64] = step_discounts(
            rollout.elapsed_s, settings.gamma, settings.discount_per_s
        )
        return discounts

    def _returns(self, rollout: Rollout) -> Tensor:
        """Return what came of each decision.

        Where the watching stopped before an episode did, the critic says what would have
        followed; so this is worked out anew for every pass, as the critic gets better.
        """
        rewards, tails = rollout.rewards / self.scale, rollout.tails(self.network.value)
        return flat(returns_to_go(rewards, tails, self._discounts(rollout), rollout.ended))

    @torch.no_grad()
    def agreement(self, rollout: Rollout) -> float:
        """Return the share of real choices in which the network prefers what the expert chose."""
        agreed = choices = 0
        for observations, masks, labels in zip(
            rollout.observations[:-1], rollout.masks, rollout.actions, strict=True
        ):
            has_choice = masks.sum(dim=-1) > 1
            preferred = masking.decided(self.network.logits(observations, masks), masks)
            agreed += int((preferred == labels)[has_choice].sum())
            choices += int(has_choice.sum())
        return agreed / choices if choices else 1.0


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
