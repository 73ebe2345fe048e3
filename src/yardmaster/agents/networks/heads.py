"""From embeddings to numbers per action: preferences, values, or values' distributions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.layers import POLICY_GAIN, hidden_layers, linear, masked_mean
from yardmaster.agents.networks.noisy import NoisyLinear


def stream(
    sizes: tuple[int, ...], dice: torch.Generator, gain: float, *, noisy: bool = False
) -> nn.Sequential:
    """Return hidden layers and a last linear one; with noisy weights if wanted."""
    layers = [*hidden_layers(sizes[:-1], dice), linear(sizes[-2], sizes[-1], dice, gain)]
    if noisy:
        layers = [NoisyLinear(part) if isinstance(part, nn.Linear) else part for part in layers]
    return nn.Sequential(*layers)


class ActionHead(nn.Module):
    """Numbers for every action from its embedding, (batch, actions, outputs).

    Embeddings per action share one stream, with a learned extra for the no-op; from one embedding
    for all, the stream makes the numbers of all actions at once.
    """

    def __init__(
        self,
        body: Body,
        outputs: int,
        dice: torch.Generator,
        *,
        gain: float = POLICY_GAIN,
        hidden: int = 0,
        noisy: bool = False,
        noop_bias: float = 0.0,
    ) -> None:
        super().__init__()
        self.outputs = outputs
        self.is_per_action = body.is_per_action
        last = outputs if body.is_per_action else outputs * body.parts.layout.actions
        sizes = (body.width, hidden, last) if hidden else (body.width, last)
        self.stream = stream(sizes, dice, gain, noisy=noisy)
        self.noop_bias = nn.Parameter(torch.full((outputs,), noop_bias))

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return the numbers of every action."""
        numbers: Tensor = self.stream(embeddings)
        numbers = numbers.reshape(len(embeddings), -1, self.outputs)
        # One sum: taken apart and put together again, the gradient would take twice as long.
        others = numbers.shape[1] - 1
        return numbers + nn.functional.pad(self.noop_bias.unsqueeze(0), (0, 0, others, 0))


class StateHead(nn.Module):
    """Numbers for the whole observation, (batch, outputs), from the mean of its embeddings."""

    def __init__(
        self, body: Body, outputs: int, dice: torch.Generator, *, hidden: int, noisy: bool
    ) -> None:
        super().__init__()
        self.is_per_action = body.is_per_action
        sizes = (body.width, hidden, outputs) if hidden else (body.width, outputs)
        self.stream = stream(sizes, dice, gain=1.0, noisy=noisy)

    def forward(self, embeddings: Tensor, counted: Tensor) -> Tensor:
        """Return the numbers; `counted` (batch, actions) says which embeddings mean something."""
        if self.is_per_action:
            embeddings = masked_mean(embeddings, counted)
        numbers: Tensor = self.stream(embeddings)
        return numbers


def duel(state: Tensor, advantages: Tensor, among: Tensor | None) -> Tensor:
    """Return values of actions: the state's, plus how much better than average an action is.

    Args:
        state: (batch, outputs).
        advantages: (batch, actions, outputs).
        among: (batch, actions) the actions to average over; all if not given. A row without any
            averages to 0.
    """
    mean = advantages.mean(dim=1) if among is None else masked_mean(advantages, among)
    return advantages + (state - mean).unsqueeze(1)
