"""MetaDQN: learns when to trust which scheduler, across many regimes at once.

A dueling double Q-network chooses among the schedulers of a menu. What regime it is in nobody tells
it: a part of the network makes an embedding out of the recent past (`arch = "regime"`). Regimes in
which much happens must not crowd out the others, so each has its own share of the memory. Deadlines
and energy are terms of the task's reward, ages of jobs a switch of what it sees: all of it can be
left out, one by one, to find out what it is good for (`yardmaster experiment ablation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from yardmaster.agents import masking
from yardmaster.agents.d3qn import D3QN, D3QNSettings
from yardmaster.agents.memories import BalancedMemory, Memory
from yardmaster.agents.networks import NetworkSettings, QNetwork
from yardmaster.agents.off_policy import Rows, random_legal
from yardmaster.agents.resident_memories import ResidentMemory
from yardmaster.agents.resident_memories import random_legal as random_legal_there
from yardmaster.agents.tensors import PRECISIONS, ResidentBatch
from yardmaster.names import unknown


@dataclass(frozen=True, slots=True)
class MetaDQNSettings(D3QNSettings):
    """Dueling double Q-learning over regimes."""

    balanced: bool = True
    """Whether every regime has as much of the memory, and is drawn from it as often, as others."""
    target_network: bool = True
    """Whether a slow copy of the network says what the future is worth; else it does itself."""
    hold: float = 8.0
    """Decisions for which a scheduler that is put to work at random stays there, on average: what
    one decision does is too little to be seen (temporally extended exploration)."""
    precision: str = "float32"
    """Numbers the networks compute in: `float32`, or on a GPU `bfloat16`, which is quicker."""

    def mistakes(self) -> list[str]:
        """Return what is wrong, a line each."""
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        found = D3QNSettings.mistakes(self)
        return found if self.hold >= 1.0 else [*found, f"hold = {self.hold}: must be at least 1"]


_DEFAULT = MetaDQNSettings(
    total_steps=300_000,
    steps_per_update=2048,
    gradient_steps=32,
    batch_size=512,
    memory_size=240_000,
    warmup_steps=20_000,
    learning_rate=7e-4,
    gamma=0.995,
    n_step=20,
    tau=0.01,
    network=NetworkSettings(arch="regime", hidden=(64, 64), dim=16, noop_bias=0.0),
)
PRESETS = {
    "default": _DEFAULT,
    # For gangs and many regimes: more to tell apart, and decisions that are further apart.
    "gangs": replace(
        _DEFAULT,
        total_steps=1_750_000,
        gamma=0.99,
        n_step=10,
        hold=4.0,
        lr_end=0.05,
        network=replace(_DEFAULT.network, hidden=(128, 128), dim=32),
    ),
}


class MetaDQN(D3QN):
    """Learns what putting each scheduler to work is worth, and mostly takes the best."""

    settings: MetaDQNSettings

    def __init__(
        self, batch: Any, settings: MetaDQNSettings, seed: int, device: str = "cpu"
    ) -> None:
        super().__init__(batch, settings, seed, device)
        self._held: Any = np.zeros(batch.size, dtype=np.int64)
        """(environments,) decisions for which each goes on with what was put to work at random."""
        self._holding: Any = np.zeros(batch.size, dtype=np.int64)
        if self.is_resident:
            self._held = torch.zeros(batch.size, dtype=torch.int64, device=self.device)
            self._holding = torch.zeros_like(self._held)
        if not settings.target_network:
            self.target = self.network

    @classmethod
    def memory_for(cls, batch: Any, settings: D3QNSettings) -> Memory | ResidentMemory:
        """Return room for what is to be remembered, shared evenly among regimes if wanted."""
        if isinstance(settings, MetaDQNSettings) and settings.balanced and batch.group_count > 1:
            if isinstance(batch, ResidentBatch):
                size, groups = settings.memory_size, batch.group_count
                return ResidentMemory(size, batch.layout, groups, batch.device)
            return BalancedMemory(settings.memory_size, batch.layout, batch.group_count)
        return super().memory_for(batch, settings)

    def valued(self, network: QNetwork, observations: Tensor, masks: Tensor) -> Tensor:
        """Return what a network says that every scheduler is worth."""
        if self.settings.precision == "float32":
            return network.values(observations, masks)
        with torch.autocast(self.device.type, torch.bfloat16):
            return network.values(observations, masks).float()

    @torch.no_grad()
    def choose(self) -> Any:
        """Return the best scheduler for each environment, or one that is tried out for a while."""
        observations, masks = self.seen()
        best = masking.greedy(self.valued(self.network, observations, masks), masks)
        share = self.settings.epsilon(self.steps)
        if self.is_resident:
            return self._held_on_gpu(best, masks, share / self.settings.hold)
        actions: Rows = best.cpu().numpy()
        begins = self.dice.random(self.batch.size) < share / self.settings.hold
        begins &= self._held == 0
        if begins.any():
            count = int(begins.sum())
            self._holding[begins] = random_legal(self.batch.masks[begins], self.dice)
            self._held[begins] = self.dice.geometric(1.0 / self.settings.hold, count)
        held = self._held > 0
        actions[held] = self._holding[held]
        self._held[held] -= 1
        return actions

    def _held_on_gpu(self, best: Tensor, masks: Tensor, share: float) -> Tensor:
        """Return the same with dice of the GPU, for all environments at once."""
        dice = torch.rand(len(best), generator=self.generator, device=self.device)
        begins = (dice < share) & (self._held == 0)
        tried = random_legal_there(masks, self.generator)
        spans = torch.ones_like(dice)
        if self.settings.hold > 1.0:  # torch refuses dice that always succeed
            spans.geometric_(1.0 / self.settings.hold, generator=self.generator)
        self._holding = torch.where(begins, tried, self._holding)
        self._held = torch.where(begins, spans.long(), self._held)
        actions = torch.where(self._held > 0, self._holding, best)
        self._held = (self._held - 1).clamp(min=0)
        return actions

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on from here, the memory included."""
        return super().state() | {"held": self._held + 0, "holding": self._holding + 0}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; updates then have the same results."""
        super().load(state)
        for mine, saved in ((self._held, "held"), (self._holding, "holding")):
            mine[:] = state[saved]
