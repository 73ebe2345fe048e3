"""Observations without most of their zeros, for layers over all numbers at once.

Most queues are short, a few are long. As one table, observations are as wide as the longest queue
asks for; in two parts they are a fraction of that, and so is the arithmetic.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Filled:
    """Rows of numbers: some columns of all of them, and the others of those that are not 0 there.

    Whoever takes some of the rows of a table can take them of this: it has the same methods.
    """

    def __init__(self, shown: Tensor, rows: Tensor, tail: Tensor) -> None:
        """Keep the parts.

        Args:
            shown: (rows, …) the columns that are kept of all.
            rows: the numbers of the rows that have more, rising.
            tail: (these, …) what more they have.
        """
        self.shown, self.rows, self.tail = shown, rows, tail
        self._places: Tensor | None = None

    @property
    def device(self) -> torch.device:
        """Where the numbers are."""
        return self.shown.device

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.shown)

    def __getitem__(self, part: slice) -> Filled:
        """Return rows that follow each other."""
        return self.index_select(0, torch.arange(len(self))[part])

    def index_select(self, dim: int, rows: Tensor) -> Filled:
        """Return the rows with these numbers; `dim` is 0, as for a tensor."""
        if self._places is None:
            self._places = torch.full((len(self),), -1)
            self._places[self.rows] = torch.arange(len(self.rows))
        places = self._places.index_select(0, rows)
        longer = (places >= 0).nonzero().squeeze(1)
        tail = self.tail.index_select(0, places.index_select(0, longer))
        return Filled(self.shown.index_select(dim, rows), longer, tail)


def parted(observations: Tensor, front: int, after: int) -> Filled | None:
    """Return observations with the columns between the first and the last apart.

    None if so many rows have something there that little would be left out.
    """
    split = observations.shape[1] - after
    between = observations[:, front:split]
    rows = (between.abs() @ between.new_ones(between.shape[1])).nonzero().squeeze(1)
    if split <= front or 2 * len(rows) > len(observations):
        return None
    shown = torch.cat([observations[:, :front], observations[:, split:]], dim=1)
    return Filled(shown, rows, between.index_select(0, rows))


class FilledLinear(torch.autograd.Function):
    """A linear layer over filled observations. Of these no gradient is ever wanted."""

    @staticmethod
    def forward(  # noqa: PLR0917 - torch passes them by place
        ctx: Any,
        shown: Tensor,
        rows: Tensor,
        tail: Tensor,
        weight: Tensor,
        bias: Tensor,
        after: int,
    ) -> Tensor:
        """Apply the layer; the last `after` columns shown stand behind all others."""
        front, last = shown.shape[1] - after, weight.shape[1] - after
        sums = torch.addmm(bias, shown, torch.cat([weight[:, :front], weight[:, last:]], 1).t())
        sums.index_add_(0, rows, tail @ weight[:, front : front + tail.shape[1]].t())
        ctx.save_for_backward(shown, rows, tail)
        ctx.front, ctx.last, ctx.shape = front, last, weight.shape
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the weights, each part written to where it belongs."""
        shown, rows, tail = ctx.saved_tensors
        gradient = slopes.new_zeros(ctx.shape)
        of_shown = slopes.t() @ shown
        gradient[:, : ctx.front] = of_shown[:, : ctx.front]
        gradient[:, ctx.last :] = of_shown[:, ctx.front :]
        longer = slopes.index_select(0, rows)
        torch.mm(longer.t(), tail, out=gradient[:, ctx.front : ctx.front + tail.shape[1]])
        return None, None, None, gradient, slopes.sum(dim=0), None
