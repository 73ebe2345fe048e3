"""Discrete soft actor-critic: the best policy that still keeps its options open, with masks."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from yardmaster.agents import masking
from yardmaster.agents.d3qn import at
from yardmaster.agents.memories import Memory, Sample
from yardmaster.agents.networks import ActorCritic, NetworkSettings, actor_critic, q_network
from yardmaster.agents.off_policy import OffPolicyLearner, OffPolicySettings, Rows, follow
from yardmaster.envs.protocol import Batch


@dataclass(frozen=True, slots=True)
class SACSettings(OffPolicySettings):
    """Soft actor-critic for discrete actions with a learned temperature."""

    tau: float = 0.02
    """How far the target critics move towards the learned ones at each of their updates."""
    actor_every: int = 1
    """Gradient steps of the critics for one of the actor, the temperature and the targets."""
    entropy_ratio: float = 0.3
    """How undecided the policy should stay: 1 uniform over the legal actions, 0 settled. The
    entropy aimed at is this times the logarithm of the number of legal actions of each state."""
    alpha_start: float = 0.01
    """Temperature at first: what a nat of entropy is worth, in the learner's unit of reward. Low:
    over a long episode the bonuses add up, and a high one would make having choices the aim."""
    alpha_learning_rate: float = 3e-3

    def mistakes(self) -> list[str]:
        """Return what is wrong, a line each."""
        found = OffPolicySettings.mistakes(self) + self.below_one("actor_every")
        found += self.not_above_zero("tau", "alpha_start", "alpha_learning_rate")
        return found + self.not_shares("tau", "entropy_ratio")


PRESETS = {
    "default": SACSettings(),
    # The numbers of the DRL_Scheduler project; unlike there, the temperature's loss weighs actions
    # by their probability, illegal ones have none, and a cut-off episode has a future.
    "drl-scheduler": SACSettings(
        total_steps=4_000_000,
        steps_per_update=1000,
        gradient_steps=1000,
        batch_size=256,
        memory_size=100_000,
        warmup_steps=256,
        learning_rate=3e-4,
        max_grad_norm=None,
        gamma=0.95,
        reward_scale=1.0,
        network=NetworkSettings(arch="mlp", hidden=(256, 256)),
        tau=0.005,
        actor_every=2,
        entropy_ratio=0.98,
        alpha_start=1.0,
        alpha_learning_rate=3e-4,
    ),
}


class SAC(OffPolicyLearner[SACSettings]):
    """Learns a policy, and what actions are worth under it; chance is rewarded, at a price."""

    network: ActorCritic
    """The actor. Its critic of states is not used: here critics judge actions."""

    def __init__(self, batch: Batch, settings: SACSettings, seed: int, device: str = "cpu") -> None:
        memory = Memory(settings.memory_size, batch.layout)
        super().__init__(batch, settings, seed, memory, device=device)
        layout = batch.layout
        self.network = actor_critic(settings.network, layout, seed).to(self.device)
        # Two critics that begin differently: the lower of the two overestimates less.
        self.critics = nn.ModuleList(
            q_network(settings.network, layout, start) for start in (seed + 1, seed + 2)
        ).to(self.device)
        self.targets = copy.deepcopy(self.critics)
        self.temperature = Temperature(settings.alpha_start).to(self.device)
        rate = settings.learning_rate
        actor = [*self.network.body.parameters(), *self.network.head.parameters()]
        self.actor_optimiser = torch.optim.Adam(actor, lr=rate, fused=True)
        self.critic_optimiser = torch.optim.Adam(self.critics.parameters(), lr=rate, fused=True)
        self.temperature_optimiser = torch.optim.Adam(
            self.temperature.parameters(), lr=settings.alpha_learning_rate, fused=True
        )

    def saved(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Return the networks and optimisers whose state is the learner's."""
        return {
            "network": self.network,
            "critics": self.critics,
            "targets": self.targets,
            "temperature": self.temperature,
            "actor_optimiser": self.actor_optimiser,
            "critic_optimiser": self.critic_optimiser,
            "temperature_optimiser": self.temperature_optimiser,
        }

    @torch.no_grad()
    def choose(self) -> Rows:
        """Return an action for each environment, drawn from the policy."""
        observations, masks = self.seen()
        logits = self.network.logits(observations, masks)
        actions: Rows = masking.sample(logits, masks, self.generator).cpu().numpy()
        return actions

    def learn(self) -> dict[str, float]:
        """Improve the critics, and in their turn the actor, the temperature and the targets."""
        drawn, returns = self.sample()
        scalars = self._learn_critics(drawn, returns)
        if self.gradient_steps % self.settings.actor_every == 0:
            self._learn_actor(drawn)
            follow(self.targets, self.critics, self.settings.tau)
        with torch.no_grad():
            logits = self.network.logits(drawn.observations, drawn.masks)
            scalars["entropy"] = masking.entropy(logits, drawn.masks).mean().item()
        return scalars | {"alpha": self.temperature.alpha.item()}

    def _learn_critics(self, drawn: Sample, returns: Tensor) -> dict[str, float]:
        with torch.no_grad():
            shares = masking.log_probs(
                self.network.logits(drawn.next_observations, drawn.next_masks), drawn.next_masks
            )
            lower = lowest(self.targets, drawn.next_observations)
            following = soft_value(lower, shares, self.temperature.alpha)
            aims = returns + drawn.bootstrap * following
        judged = [at(critic(drawn.observations), drawn.actions) for critic in self.critics]
        loss = torch.stack([nn.functional.mse_loss(values, aims) for values in judged]).sum()
        self.descend(loss, self.critic_optimiser)
        return {
            "loss": loss.item(),
            "q_mean": judged[0].mean().item() / self.scale,
            "td_error": (aims - judged[0]).abs().mean().item() / self.scale,
        }

    def _learn_actor(self, drawn: Sample) -> None:
        shares = masking.log_probs(
            self.network.logits(drawn.observations, drawn.masks), drawn.masks
        )
        with torch.no_grad():
            values = lowest(self.critics, drawn.observations)
        loss = -soft_value(values, shares, self.temperature.alpha.detach()).mean()
        self.descend(loss, self.actor_optimiser)
        loss = self.temperature.loss(shares.detach(), drawn.masks, self.settings.entropy_ratio)
        self.descend(loss, self.temperature_optimiser)


class Temperature(nn.Module):
    """What a nat of entropy is worth; learned so that the policy's entropy meets its target."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor(math.log(start)))

    @property
    def alpha(self) -> Tensor:
        """The temperature."""
        return self.log_alpha.exp()

    def loss(self, shares: Tensor, masks: Tensor, ratio: float) -> Tensor:
        """Return a loss that cools a policy with more entropy than wanted, and heats the other.

        The logarithm stands where the temperature might, so that a policy grown cold heats as
        quickly as a hot one cools. States without a choice have no say.

        Args:
            shares: (batch, actions) log-probabilities.
            masks: (batch, actions) legal actions.
            ratio: Share of the greatest possible entropy that is wanted.
        """
        entropy = -(shares.exp() * shares).sum(dim=-1)
        choices = masks.sum(dim=-1).clamp_min(1)
        has_choice = choices > 1
        surplus = torch.where(has_choice, entropy - ratio * choices.log(), 0.0)
        return self.log_alpha * surplus.sum() / has_choice.sum().clamp_min(1)


def soft_value(values: Tensor, shares: Tensor, alpha: Tensor) -> Tensor:
    """Return what states are worth under a policy: expected value plus what its chance is worth.

    Args:
        values: (batch, actions).
        shares: (batch, actions) log-probabilities; illegal actions have none, and do not count.
        alpha: what a nat of entropy is worth.
    """
    return (shares.exp() * (values - alpha * shares)).sum(dim=-1)


def lowest(critics: nn.ModuleList, observations: Tensor) -> Tensor:
    """Return the lower of the critics' values of every action."""
    return torch.stack([critic(observations) for critic in critics]).amin(dim=0)
