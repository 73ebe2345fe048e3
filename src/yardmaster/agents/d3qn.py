"""D3QN: values of actions from a dueling network, learned by double Q-learning."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from yardmaster.agents import masking
from yardmaster.agents.memories import Memory
from yardmaster.agents.networks import NetworkSettings, QNetwork, q_network
from yardmaster.agents.off_policy import (
    OffPolicyLearner,
    OffPolicySettings,
    Rows,
    follow,
    random_legal,
)
from yardmaster.agents.resident_memories import ResidentMemory
from yardmaster.agents.tensors import ResidentBatch
from yardmaster.names import unknown

LOSSES = {"huber": nn.functional.smooth_l1_loss, "mse": nn.functional.mse_loss}
DECAYS = ("exponential", "linear")


@dataclass(frozen=True, slots=True)
class D3QNSettings(OffPolicySettings):
    """Dueling double Q-learning with ε-greedy exploration."""

    n_step: int = 5
    """Steps whose rewards are added up before the value of what follows is estimated."""
    loss: str = "huber"
    """`huber`: errors above 1 count linearly, so that rare surprises do not rule. `mse`."""
    target_every: int = 1
    """Gradient steps between updates of the target network."""
    tau: float = 0.02
    """How far the target network then moves towards the learned one; 1 copies it."""
    epsilon_start: float = 1.0
    """Share of actions taken at random, at first."""
    epsilon_end: float = 0.05
    """The same, in the long run."""
    epsilon_decay: str = "linear"
    """`linear`, or `exponential`: always the same share of what is left above the end."""
    epsilon_steps: int | None = None
    """Environment steps until the end (linear), or in which the distance to it shrinks by e
    (exponential); None: a fifth, or a fifteenth, of `total_steps`."""

    def mistakes(self) -> list[str]:
        """Return what is wrong, a line each."""
        if self.loss not in LOSSES:
            raise unknown("loss", self.loss, LOSSES)
        if self.epsilon_decay not in DECAYS:
            raise unknown("epsilon_decay", self.epsilon_decay, DECAYS)
        found = OffPolicySettings.mistakes(self)
        found += self.below_one("n_step", "target_every")
        found += self.not_above_zero("tau", "epsilon_steps")
        return found + self.not_shares("tau", "epsilon_start", "epsilon_end")

    def epsilon(self, steps: int) -> float:
        """Return the share of random actions after so many environment steps."""
        above = self.epsilon_start - self.epsilon_end
        if self.epsilon_decay == "exponential":
            above *= math.exp(-steps / (self.epsilon_steps or self.total_steps / 15))
        else:
            above *= max(0.0, 1.0 - steps / (self.epsilon_steps or self.total_steps / 5))
        return self.epsilon_end + above


PRESETS = {
    "default": D3QNSettings(),
    # The numbers of the DRL_Scheduler project; unlike there, a cut-off episode has a future.
    "drl-scheduler": D3QNSettings(
        total_steps=4_000_000,
        steps_per_update=1000,
        gradient_steps=1000,
        batch_size=128,
        memory_size=100_000,
        warmup_steps=128,
        learning_rate=1e-4,
        max_grad_norm=None,
        gamma=0.95,
        reward_scale=1.0,
        network=NetworkSettings(arch="mlp", hidden=(256, 256), head_hidden=128),
        n_step=1,
        loss="mse",
        target_every=500,
        tau=1.0,
        epsilon_decay="exponential",
        epsilon_steps=20_000,
    ),
}


class D3QN(OffPolicyLearner[D3QNSettings]):
    """Learns what each action is worth, and mostly takes the best."""

    network: QNetwork

    def __init__(self, batch: Any, settings: D3QNSettings, seed: int, device: str = "cpu") -> None:
        memory = self.memory_for(batch, settings)
        super().__init__(batch, settings, seed, memory, n_step=settings.n_step, device=device)
        network = q_network(settings.network, batch.layout, seed, dueling=True)
        self.network = network.to(self.device)
        self.target = copy.deepcopy(self.network)
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=settings.learning_rate, fused=True
        )

    @classmethod
    def memory_for(cls, batch: Any, settings: D3QNSettings) -> Memory | ResidentMemory:
        """Return room for what is to be remembered."""
        if isinstance(batch, ResidentBatch):
            return ResidentMemory(settings.memory_size, batch.layout, 1, batch.device)
        return Memory(settings.memory_size, batch.layout)

    def saved(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Return the networks and optimisers whose state is the learner's."""
        return {"network": self.network, "target": self.target, "optimiser": self.optimiser}

    @torch.no_grad()
    def choose(self) -> Rows:
        """Return the best action for each environment, or now and then a random one."""
        observations, masks = self.seen()
        values = self.network.values(observations, masks)
        actions: Rows = masking.greedy(values, masks).cpu().numpy()
        exploring = self.dice.random(self.batch.size) < self.settings.epsilon(self.steps)
        if exploring.any():
            actions[exploring] = random_legal(self.batch.masks[exploring], self.dice)
        return actions

    def valued(self, network: QNetwork, observations: Tensor, masks: Tensor) -> Tensor:
        """Return what a network says that every action is worth."""
        return network.values(observations, masks)

    def learn(self) -> dict[str, Any]:
        """Move the values of remembered actions towards what came of them."""
        drawn, returns = self.sample()
        with torch.no_grad():
            # Double: one network picks the action, the other says what it is worth, so that an
            # action is not picked for being overestimated and then believed.
            picked = masking.greedy(
                self.valued(self.network, drawn.next_observations, drawn.next_masks),
                drawn.next_masks,
            )
            following = self.valued(self.target, drawn.next_observations, drawn.next_masks)
            aims = returns + drawn.bootstrap * at(following, picked)
        values = at(self.valued(self.network, drawn.observations, drawn.masks), drawn.actions)
        loss = LOSSES[self.settings.loss](values, aims)
        self.descend(loss, self.optimiser)
        if self.gradient_steps % self.settings.target_every == 0:
            follow(self.target, self.network, self.settings.tau)
        return {
            "loss": self.told(loss),
            "q_mean": self.told(values.mean()) / self.scale,
            "td_error": self.told((aims - values).abs().mean()) / self.scale,
            "epsilon": self.settings.epsilon(self.steps),
        }


def at(values: Tensor, actions: Tensor) -> Tensor:
    """Return the value of one action per row, (batch,) from (batch, actions)."""
    return values.gather(1, actions.unsqueeze(1)).squeeze(1)
