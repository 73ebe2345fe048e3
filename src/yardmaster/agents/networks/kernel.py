"""One small network applied to every job: it treats all places of the window alike."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.layers import hidden_layers, learned_token, linear
from yardmaster.agents.networks.parts import Parts
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.picking.layout import Layout


class TokenLayers(nn.Module):
    """Hidden layers over one token and the context.

    The first is in two parts, one for the token and one for the context, whose sum is that of one
    layer over both. The context's part is computed once per observation instead of once per job.
    """

    def __init__(
        self, inputs: int, context_size: int, hidden: tuple[int, ...], dice: torch.Generator
    ) -> None:
        super().__init__()
        self.of_token = linear(inputs, hidden[0], dice, has_bias=False)  # the context's has one
        self.of_context = linear(context_size, hidden[0], dice)
        self.rest = hidden_layers(hidden, dice)

    def forward(self, first: Tensor, context: Tensor) -> Tensor:
        """Return what the layers make of tokens that `of_token` has been applied to."""
        with_context = first + self.of_context(context).unsqueeze(1)
        result: Tensor = self.rest(with_context.relu())
        return result


class KernelBody(Body):
    """The same hidden layers for every job, and for a learned token that stands for the no-op."""

    is_per_action = True
    parts: Parts

    def __init__(self, settings: NetworkSettings, layout: Layout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = Parts(layout)
        self.width = settings.hidden[-1]
        self.layers = TokenLayers(
            self.parts.features, self.parts.context_size, settings.hidden, dice
        )
        self.noop = learned_token(settings.hidden[0], dice)

    def forward(self, observations: Tensor) -> Tensor:
        """Return one embedding per action."""
        jobs = self.layers.of_token(self.parts.jobs(observations))
        noop = self.noop.expand(len(observations), 1, -1)
        embeddings: Tensor = self.layers(
            torch.cat([jobs, noop], dim=1), self.parts.context(observations)
        )
        return embeddings

    def of_legal(self, observations: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Return the embeddings of legal actions alone, and where in (batch, actions) they belong.

        Few jobs of a window can start, and no action's embedding depends on another's. Those of
        the no-op come last.
        """
        rows, places = masks[:, :-1].nonzero(as_tuple=True)
        waiting = masks[:, -1].nonzero().squeeze(1)
        context = self.layers.of_context(self.parts.context(observations))
        jobs = self.layers.of_token(self.parts.jobs(observations)[rows, places])
        # Not with brackets: their gradient sorts the rows, and takes longer than all the rest.
        of_jobs, of_noops = context.index_select(0, rows), context.index_select(0, waiting)
        first = torch.cat([jobs + of_jobs, self.noop + of_noops])
        actions = masks.shape[1]
        where = torch.cat([rows * actions + places, waiting * actions + (actions - 1)])
        embeddings: Tensor = self.layers.rest(first.relu())
        return embeddings, where

    def of_legal_within(
        self, observations: Tensor, masks: Tensor, room: int
    ) -> tuple[Tensor, Tensor]:
        """Return the same in shapes that depend on no number, for so many legal jobs at most.

        The embeddings are those of `room` jobs, then those of every row's no-op. With them comes
        where in (batch, window) the jobs belong; those that are none belong one behind the end.
        Observations are not trimmed.
        """
        legal = masks[:, :-1]
        window, jobs = legal.shape[1], legal.numel()
        counts = legal.reshape(-1).cumsum(0, dtype=torch.int32)
        numbers = torch.arange(1, room + 1, dtype=torch.int32, device=masks.device)
        where = torch.searchsorted(counts, numbers)
        # What is no job is computed with some other: not one for all, since adding up the gradients
        # of many in one place takes long, even if they are 0.
        source = torch.where(where < jobs, where, (numbers - 1) % jobs)
        rows, places = source // window, source % window
        context = self.layers.of_context(self.parts.context(observations))
        tokens = self.layers.of_token(self.parts.jobs(observations)[rows, places])
        first = torch.cat([tokens + context.index_select(0, rows), self.noop + context])
        embeddings: Tensor = self.layers.rest(first.relu())
        return embeddings, where
