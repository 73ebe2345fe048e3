"""Rainbow: Q-learning with six improvements, each of which can be switched off.

Double and dueling as D3QN; surprising transitions drawn more often; rewards of several steps added
up; the distribution of an action's value learned instead of its mean (C51); and noise in the
weights instead of random actions.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from yardmaster.agents import masking
from yardmaster.agents.d3qn import LOSSES, D3QNSettings, at
from yardmaster.agents.memories import Memory, PrioritisedMemory, Sample
from yardmaster.agents.networks import QNetwork, q_network
from yardmaster.agents.off_policy import OffPolicyLearner, Reals, Rows, follow, random_legal
from yardmaster.envs.protocol import Batch


@dataclass(frozen=True, slots=True)
class RainbowSettings(D3QNSettings):
    """Rainbow; the fields of D3QN about ε only count without noise, its loss only without atoms."""

    n_step: int = 3
    """Steps whose rewards are added up before the value of what follows is estimated; 1: off."""
    double: bool = True
    """The learned network picks the next action and the target network values it; off: the target
    network does both."""
    dueling: bool = True
    noisy: bool = True
    """Explore by noise in the weights; off: ε-greedily."""
    prioritised: bool = True
    """Draw surprising transitions more often; off: all alike."""
    priority: float = 0.5
    """How much more often: 0 not at all, 1 in proportion to the surprise."""
    beta: float = 0.4
    """How far weights in the loss undo the preference: at first so far, at the end wholly (1)."""
    atoms: int = 51
    """Values whose probabilities make up the distribution of an action's value; 1: its mean only,
    without a distribution."""
    v_min: float | None = None
    """Least value of a state that the distribution can tell, in the unit of the reward; lower ones
    count as this. None: from the returns seen during warm-up, with a margin."""
    v_max: float | None = None
    """The greatest likewise."""

    def mistakes(self) -> list[str]:
        """Return what is wrong, a line each."""
        found = D3QNSettings.mistakes(self)
        found += self.below_one("atoms") + self.not_shares("priority", "beta")
        if self.v_min is not None and self.v_max is not None and self.v_min >= self.v_max:
            found.append(f"v_min = {self.v_min} must be below v_max = {self.v_max}")
        return found


PRESETS = {"default": RainbowSettings()}

MARGIN = 0.5
"""By which share of its width a range from warm-up is widened on either side: the policy learned
will see other returns than random play."""


class Rainbow(OffPolicyLearner[RainbowSettings]):
    """Learns how the value of each action is distributed, and takes the best on average."""

    network: QNetwork

    def __init__(
        self, batch: Batch, settings: RainbowSettings, seed: int, device: str = "cpu"
    ) -> None:
        memory = Memory(settings.memory_size, batch.layout)
        if settings.prioritised:
            memory = PrioritisedMemory(settings.memory_size, batch.layout, settings.priority)
        super().__init__(batch, settings, seed, memory, n_step=settings.n_step, device=device)
        network = q_network(
            settings.network,
            batch.layout,
            seed,
            dueling=settings.dueling,
            noisy=settings.noisy,
            atoms=settings.atoms,
        )
        self.network = network.to(self.device)
        self.target = copy.deepcopy(self.network)
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=settings.learning_rate, fused=True
        )

    def saved(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Return the networks and optimisers whose state is the learner's."""
        return {"network": self.network, "target": self.target, "optimiser": self.optimiser}

    def warm(self, returns: Reals) -> None:
        """Set the range of values, from the returns seen where the settings leave it open."""
        v_min, v_max = self.settings.v_min, self.settings.v_max
        least = None if v_min is None else v_min * self.scale
        greatest = None if v_max is None else v_max * self.scale
        support = torch.linspace(*value_range(returns, least, greatest), self.settings.atoms)
        for network in (self.network, self.target):
            network.support.copy_(support)

    @torch.no_grad()
    def choose(self) -> Rows:
        """Return the best action for each environment under fresh noise, or ε-greedily."""
        self.network.reset_noise(self.generator)
        observations, masks = self.seen()
        values = self.network.values(observations, masks)
        actions: Rows = masking.greedy(values, masks).cpu().numpy()
        exploring = self.dice.random(self.batch.size) < self._epsilon()
        if exploring.any():
            actions[exploring] = random_legal(self.batch.masks[exploring], self.dice)
        return actions

    def _epsilon(self) -> float:
        return 0.0 if self.settings.noisy else self.settings.epsilon(self.steps)

    def learn(self) -> dict[str, float]:
        """Move the values of remembered actions towards what came of them."""
        settings = self.settings
        progress = min(1.0, self.steps / settings.total_steps)
        drawn, returns = self.sample(beta=settings.beta + (1.0 - settings.beta) * progress)
        self.network.reset_noise(self.generator)
        self.target.reset_noise(self.generator)
        judge = self._distributions if settings.atoms > 1 else self._means
        losses, values, errors = judge(drawn, returns)
        loss = (drawn.weights * losses).mean()
        self.descend(loss, self.optimiser)
        surprises = losses if settings.atoms > 1 else errors
        self.memory.reprioritise(drawn.rows, surprises.detach().cpu().numpy().astype(np.float64))
        if self.gradient_steps % settings.target_every == 0:
            follow(self.target, self.network, settings.tau)
        return {
            "loss": loss.item(),
            "q_mean": values.mean().item() / self.scale,
            "td_error": errors.mean().item() / self.scale,
            "epsilon": self._epsilon(),
        }

    def _picked(self, drawn: Sample) -> Tensor:
        """Return the action that seems best after each transition."""
        judge = self.network if self.settings.double else self.target
        values = judge.values(drawn.next_observations, drawn.next_masks)
        return masking.greedy(values, drawn.next_masks)

    def _means(self, drawn: Sample, returns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return losses, values and sizes of the errors, one per transition: without atoms."""
        with torch.no_grad():
            following = self.target.values(drawn.next_observations, drawn.next_masks)
            aims = returns + drawn.bootstrap * at(following, self._picked(drawn))
        values = at(self.network.values(drawn.observations, drawn.masks), drawn.actions)
        losses = LOSSES[self.settings.loss](values, aims, reduction="none")
        return losses, values.detach(), (aims - values.detach()).abs()

    def _distributions(self, drawn: Sample, returns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return losses, values and sizes of the errors, one per transition: with atoms."""
        support = self.network.support
        with torch.no_grad():
            logits = self.target(drawn.next_observations, drawn.next_masks)
            following = of_action(logits, self._picked(drawn)).softmax(dim=-1)
            aims = project(following, returns, drawn.bootstrap, support)
        logits = self.network(drawn.observations, drawn.masks)
        shares = of_action(logits, drawn.actions).log_softmax(dim=-1)
        # The divergence of what is believed from the aim: the cross-entropy that C51 descends,
        # less what no belief can avoid, so that it is 0 for what is known.
        losses = (torch.xlogy(aims, aims) - aims * shares).sum(dim=-1)
        values = shares.detach().exp() @ support
        return losses, values, (aims @ support - values).abs()


def value_range(returns: Reals, least: float | None, greatest: float | None) -> tuple[float, float]:
    """Return the range that values are expected in, from returns seen and what is given of it."""
    # Every episode passes through states with nothing left to earn.
    low, high = min(0.0, float(returns.min())), max(0.0, float(returns.max()))
    margin = MARGIN * (high - low) or 1.0
    return (
        min(low, low if greatest is None else greatest) - margin if least is None else least,
        max(high, high if least is None else least) + margin if greatest is None else greatest,
    )


def of_action(logits: Tensor, actions: Tensor) -> Tensor:
    """Return the atoms of one action per row, (batch, atoms) from (batch, actions, atoms)."""
    return logits[torch.arange(len(actions), device=actions.device), actions]


def project(shares: Tensor, returns: Tensor, discounts: Tensor, support: Tensor) -> Tensor:
    """Return the distribution of return + discount × value on the atoms that values have.

    What falls between two atoms is divided between them so that the mean is kept; what falls
    outside the range goes to its end.

    Args:
        shares: (batch, atoms) probabilities of the values in `support`.
        returns: (batch,).
        discounts: (batch,) each transition its own; 0 where nothing follows.
        support: (atoms,) evenly spaced values, ascending.
    """
    last = len(support) - 1
    moved = returns.unsqueeze(1) + discounts.unsqueeze(1) * support
    places = (moved - support[0]) / (support[-1] - support[0]) * last
    places = places.clamp(0.0, float(last))
    below = places.floor()
    upper_part = shares * (places - below)
    at_below = below.long()
    result = torch.zeros_like(shares)
    result.scatter_add_(1, at_below, shares - upper_part)
    result.scatter_add_(1, (at_below + 1).clamp_max(last), upper_part)
    return result
