"""Taking a flat observation apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.engine.picking.layout import Layout


class Parts(nn.Module):
    """The parts of flat observations (batch, length), as tensors."""

    globals_at: Tensor
    context_at: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.features = len(layout.job_features)
        self.context_size = len(layout.global_features) + layout.gpu_slots
        gpus_at = range(layout.gpus_at, layout.gpus_at + layout.gpu_slots)
        # Buffers follow the network to its device; they say nothing that the layout does not.
        self.register_buffer(
            "globals_at", torch.tensor(layout.globals_at, dtype=torch.long), persistent=False
        )
        self.register_buffer(
            "context_at",
            torch.tensor([*layout.globals_at, *gpus_at], dtype=torch.long),
            persistent=False,
        )

    def jobs(self, observations: Tensor) -> Tensor:
        """Return the job tokens, (batch, window, features)."""
        first, window = self.layout.jobs_at, self.layout.window
        part = observations[:, first : first + window * self.features]
        return part.reshape(-1, window, self.features)

    def gpus(self, observations: Tensor) -> Tensor:
        """Return the numbers of the GPU slots, (batch, slots)."""
        return observations[:, self.layout.gpus_at : self.layout.gpus_at + self.layout.gpu_slots]

    def globals(self, observations: Tensor) -> Tensor:
        """Return the globals, (batch, globals)."""
        return observations.index_select(1, self.globals_at)

    def context(self, observations: Tensor) -> Tensor:
        """Return all that is no job: the globals, then the GPU slots."""
        return observations.index_select(1, self.context_at)

    def occupied(self, observations: Tensor) -> Tensor:
        """Return which tokens hold a job, (batch, window): a token of zeros is padding."""
        sizes = self.jobs(observations).abs()
        return sizes @ sizes.new_ones(self.features) > 0  # a product is the quickest way to add

    def counted(self, observations: Tensor) -> Tensor:
        """Return which actions stand for something, (batch, actions): jobs and the no-op."""
        return nn.functional.pad(self.occupied(observations), (0, 1), value=True)
