"""Taking a flat observation apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.engine.choosing.sight import ChoiceLayout
from yardmaster.engine.picking.layout import Layout

AnyLayout = Layout | ChoiceLayout
"""Where everything stands in what is observed: jobs to pick, or statistics to choose by."""

ROWS_AT_ONCE = 128
"""Observations looked through in one go."""


class Parts(nn.Module):
    """The parts of flat observations (batch, length), as tensors.

    Observations may lack tokens at the end of the window: see `trimmed`.
    """

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

    def trimmed(self, observations: Tensor, masks: Tensor) -> Tensor:
        """Return the observations without the tokens behind all that show a job or are legal.

        Queues are mostly shorter than the window, and what is 0 everywhere adds nothing to any
        sum. One token of zeros stays, if there is one, for whoever looks for the largest number.
        """
        first, size = self.layout.jobs_at, self.layout.window * self.features
        sizes = sizes_of(observations[:, first : first + size]).reshape(-1, self.features)
        used = (sizes.sum(dim=1) > 0) | masks[:, :-1].any(dim=0)
        kept = min(int(used.nonzero().max()) + 2 if used.any() else 1, self.layout.window)
        before, after = first + kept * self.features, first + size
        return torch.cat([observations[:, :before], observations[:, after:]], dim=1)

    def tokens(self, observations: Tensor) -> int:
        """Return how many job tokens the observations have."""
        return (observations.shape[1] - self.context_size) // self.features

    def missing(self, observations: Tensor) -> int:
        """Return how many numbers the observations lack behind their last token."""
        return self.layout.length - observations.shape[1]

    def jobs(self, observations: Tensor) -> Tensor:
        """Return the job tokens, (batch, window, features)."""
        first, window = self.layout.jobs_at, self.tokens(observations)
        part = observations[:, first : first + window * self.features]
        return part.reshape(-1, window, self.features)

    def gpus(self, observations: Tensor) -> Tensor:
        """Return the numbers of the GPU slots, (batch, slots)."""
        first = self.layout.gpus_at
        first -= self.missing(observations) if first > self.layout.jobs_at else 0
        return observations[:, first : first + self.layout.gpu_slots]

    def globals(self, observations: Tensor) -> Tensor:
        """Return the globals, (batch, globals)."""
        return observations.index_select(1, self._places(self.globals_at, observations))

    def context(self, observations: Tensor) -> Tensor:
        """Return all that is no job: the globals, then the GPU slots."""
        return observations.index_select(1, self._places(self.context_at, observations))

    def _places(self, places: Tensor, observations: Tensor) -> Tensor:
        """Return where something stands in observations that may be trimmed."""
        missing = self.missing(observations)
        return places - missing * (places > self.layout.jobs_at) if missing else places

    def occupied(self, observations: Tensor) -> Tensor:
        """Return which tokens hold a job, (batch, window): a token of zeros is padding."""
        sizes = self.jobs(observations).abs()
        return sizes @ sizes.new_ones(self.features) > 0  # a product is the quickest way to add

    def counted(self, observations: Tensor) -> Tensor:
        """Return which actions stand for something, (batch, actions): jobs and the no-op."""
        return nn.functional.pad(self.occupied(observations), (0, 1), value=True)


class ChoiceParts(nn.Module):
    """The parts of a chooser's observations (batch, length), as tensors."""

    def __init__(self, layout: ChoiceLayout) -> None:
        super().__init__()
        self.layout = layout
        self.now_size = len(layout.now_features)
        self.past_size = len(layout.past_features)

    def trimmed(self, observations: Tensor, masks: Tensor) -> Tensor:
        """Return the observations: they have nothing that could be left out."""
        del masks
        return observations

    def now(self, observations: Tensor) -> Tensor:
        """Return the numbers of now."""
        return observations[:, : self.now_size]

    def past(self, observations: Tensor) -> Tensor:
        """Return the numbers of the recent past."""
        return observations[:, self.now_size :]

    def counted(self, observations: Tensor) -> Tensor:
        """Return which actions stand for something, (batch, actions): all schedulers do."""
        return observations.new_ones((len(observations), self.layout.actions), dtype=torch.bool)


def sizes_of(numbers: Tensor) -> Tensor:
    """Return the sum of sizes of every column."""
    # Few rows at once for a processor's cache: fetching memory would take three times as long.
    rows = ROWS_AT_ONCE if numbers.device.type == "cpu" else max(len(numbers), 1)
    return torch.stack([part.abs().sum(dim=0) for part in torch.split(numbers, rows)]).sum(dim=0)


def parts_of(layout: AnyLayout) -> Parts | ChoiceParts:
    """Return what takes observations of a layout apart."""
    return ChoiceParts(layout) if isinstance(layout, ChoiceLayout) else Parts(layout)
