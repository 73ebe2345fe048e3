"""Values of actions, for learners that learn those and pick the best."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks import building
from yardmaster.agents.networks.heads import ActionHead, StateHead, duel
from yardmaster.agents.networks.noisy import NoisyLinear
from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.agents.networks.settings import NetworkSettings


class QNetwork(nn.Module):
    """Values of all actions, or for each the distribution of its value over evenly spaced atoms."""

    support: Tensor
    """(atoms,) the values that the atoms stand for."""

    def __init__(
        self,
        settings: NetworkSettings,
        layout: AnyLayout,
        dice: torch.Generator,
        *,
        dueling: bool,
        noisy: bool,
        atoms: int,
        value_range: tuple[float, float],
    ) -> None:
        super().__init__()
        self.settings = settings
        self.layout = layout
        self.atoms = atoms
        self.body = building.body(settings, layout, dice)
        hidden = settings.head_hidden
        self.head = ActionHead(self.body, atoms, dice, gain=1.0, hidden=hidden, noisy=noisy)
        self.state_head = None
        if dueling:
            self.state_head = StateHead(self.body, atoms, dice, hidden=hidden, noisy=noisy)
        self.register_buffer("support", torch.linspace(*value_range, atoms))

    def forward(self, observations: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return values (batch, actions), or logits of atoms (batch, actions, atoms) if several.

        Args:
            observations: (batch, length).
            masks: (batch, actions) legal actions: what a dueling network's advantages are averaged
                over. Without, over all actions. A policy exported from a network with several
                atoms averages over the legal ones.
        """
        embeddings = self.body(observations)
        numbers: Tensor = self.head(embeddings)
        if self.state_head is not None:
            state = self.state_head(embeddings, self.body.parts.counted(observations))
            numbers = duel(state, numbers, masks)
        return numbers if self.atoms > 1 else numbers.squeeze(-1)

    def values(self, observations: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return the (expected) value of every action, (batch, actions)."""
        numbers = self(observations, masks)
        if self.atoms > 1:
            numbers = numbers.softmax(dim=-1) @ self.support
        values: Tensor = numbers
        return values

    def reset_noise(self, generator: torch.Generator) -> None:
        """Draw new noise for the weights, if they are noisy."""
        for module in self.modules():
            if isinstance(module, NoisyLinear):
                module.reset_noise(generator)


def q_network(
    settings: NetworkSettings,
    layout: AnyLayout,
    seed: int,
    *,
    dueling: bool = False,
    noisy: bool = False,
    atoms: int = 1,
    value_range: tuple[float, float] = (-10.0, 10.0),
) -> QNetwork:
    """Return a fresh network for values of actions; the same seed gives the same weights.

    Args:
        settings: the body.
        layout: what it sees.
        seed: of the weights.
        dueling: the value of the state and the advantages of actions come from separate heads.
        noisy: the heads' weights carry noise while in training mode.
        atoms: 1 for plain values, more for their distribution.
        value_range: lowest and highest value of the atoms.

    Raises:
        YardmasterError: if the settings make no network for this layout.
    """
    dice = torch.Generator().manual_seed(seed)
    return QNetwork(
        settings, layout, dice, dueling=dueling, noisy=noisy, atoms=atoms, value_range=value_range
    )
