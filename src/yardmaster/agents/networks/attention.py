"""Attention with one head: tokens gather what they look for from other tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.layers import linear


class Attention(nn.Module):
    """Adds to every token what it finds among others, and normalises the sum."""

    def __init__(self, dim: int, dice: torch.Generator) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(dim)
        self.query = linear(dim, dim, dice, gain=1.0)
        self.key = linear(dim, dim, dice, gain=1.0)
        self.value = linear(dim, dim, dice, gain=1.0)
        self.out = linear(dim, dim, dice, gain=1.0)
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: Tensor, others: Tensor, seen: Tensor | None = None) -> Tensor:
        """Return the tokens, (batch, N, dim), after looking at others, (batch, M, dim).

        `seen` (batch, M) says which of the others are there; at least one must be.
        """
        likeness = self.query(tokens) @ self.key(others).transpose(1, 2) * self.scale
        if seen is not None:
            likeness = likeness.masked_fill(~seen.unsqueeze(1), -torch.inf)
        found = likeness.softmax(dim=-1) @ self.value(others)
        result: Tensor = self.norm(tokens + self.out(found))
        return result
