"""What every body has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from yardmaster.agents.networks.parts import ChoiceParts, Parts


class Body(nn.Module, ABC):
    """Turns flat observations into embeddings, from which a head makes preferences or values."""

    parts: Parts | ChoiceParts
    width: int
    """Numbers of an embedding."""
    is_per_action: bool
    """Whether there is an embedding per action, (batch, actions, width), or one for all,
    (batch, width)."""

    @abstractmethod
    def forward(self, observations: Tensor) -> Tensor:
        """Return the embeddings."""
