"""A policy's preferences by the compiled forward pass, while it acts in environments.

For a few dozen environments torch spends most of its time on being called. What a deployed policy
computes with (`engine.picking.nets`) has no such cost, and looks at legal jobs only, or at what is
not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from yardmaster.agents.export import policy_of
from yardmaster.agents.networks import ActorCritic
from yardmaster.agents.networks.kernel import KernelBody
from yardmaster.agents.networks.mlp import MLPBody
from yardmaster.engine.picking.layout import Layout
from yardmaster.schedulers.learned.packing import pack

MOST_ENVIRONMENTS = 128
"""Above this many, torch is no slower."""


class CompiledActor:
    """The preferences of a network as it was when last `refresh`ed."""

    def __init__(self, network: ActorCritic, batch: Any, score_many: Callable[..., None]) -> None:
        self._network, self._batch, self._score_many = network, batch, score_many
        self._scores = np.zeros(batch.masks.shape, dtype=np.float32)
        self._packed = self._pack()

    def _pack(self) -> Any:
        packed = pack(policy_of(self._network, self._batch.layout, {}, {}, choice="best"))
        return packed.net, packed.weights, packed.scratch()

    def refresh(self) -> None:
        """Take over what the network has learned."""
        self._packed = self._pack()

    def logits(self) -> Tensor:
        """Return the preferences in all environments now; those of illegal actions are −inf."""
        net, weights, scratch = self._packed
        batch = self._batch
        legal = batch.masks.view(np.int8)
        self._score_many(net, weights, batch.observations, legal, self._scores, scratch)
        return torch.from_numpy(self._scores)


def compiled_actor(network: ActorCritic, batch: Any, device: torch.device) -> CompiledActor | None:
    """Return the quicker way to act, if there is one for this network and these environments."""
    score_many = getattr(batch, "score_many", None)
    is_small = isinstance(network.body, KernelBody | MLPBody) and batch.size <= MOST_ENVIRONMENTS
    if score_many is None or not is_small or device.type != "cpu":
        return None
    return CompiledActor(network, batch, score_many) if isinstance(batch.layout, Layout) else None
