"""A policy and a critic, for learners that follow the gradient of the policy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks import building
from yardmaster.agents.networks.heads import ActionHead
from yardmaster.agents.networks.kernel import KernelBody
from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.agents.networks.settings import NetworkSettings


class ActorCritic(nn.Module):
    """Preferences among actions and values of states, from separate networks."""

    def __init__(self, settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.layout = layout
        self.body = building.body(settings, layout, dice)
        self.head = ActionHead(self.body, 1, dice, noop_bias=settings.noop_bias)
        self.critic = building.critic(settings, layout, dice)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (batch, actions), illegal actions included, and values (batch,)."""
        return self.logits(observations), self.value(observations)

    def logits(
        self, observations: Tensor, masks: Tensor | None = None, room: int | None = None
    ) -> Tensor:
        """Return the preferences among actions, (batch, actions).

        With masks, those of illegal actions are of no account, and not computed if that saves time.
        Nor are those of tokens that trimmed observations lack. Given `room`, an upper limit of the
        legal jobs in all rows together, shapes depend on nothing that is observed.
        """
        if masks is not None and room is not None and isinstance(self.body, KernelBody):
            return self._logits_within(self.body, observations, masks, room)
        if masks is not None and isinstance(self.body, KernelBody):
            return self._legal_logits(self.body, observations, masks)
        preferences: Tensor = self.head(self.body(observations))
        preferences = preferences.squeeze(-1)
        lacking = self.layout.actions - preferences.shape[1]
        if lacking == 0:
            return preferences
        jobs, noop = preferences[:, :-1], preferences[:, -1:]
        return torch.cat([nn.functional.pad(jobs, (0, lacking)), noop], dim=1)

    def _legal_logits(self, body: KernelBody, observations: Tensor, masks: Tensor) -> Tensor:
        embeddings, where = body.of_legal(observations, masks)
        numbers = self.head.stream(embeddings).squeeze(-1)
        noops = int(masks[:, -1].sum())
        numbers = torch.cat(
            [numbers[: len(numbers) - noops], numbers[len(numbers) - noops :] + self.head.noop_bias]
        )
        logits = numbers.new_zeros(masks.numel())
        return logits.index_put((where,), numbers).reshape(masks.shape)

    def _logits_within(
        self, body: KernelBody, observations: Tensor, masks: Tensor, room: int
    ) -> Tensor:
        embeddings, where = body.of_legal_within(observations, masks, room)
        numbers = self.head.stream(embeddings).squeeze(-1)
        rows, window = len(masks), masks.shape[1] - 1
        jobs = numbers.new_zeros(rows * window + 1).scatter(0, where, numbers[:room])
        noops = numbers[room:] + self.head.noop_bias
        return torch.cat([jobs[:-1].reshape(rows, window), noops.unsqueeze(1)], dim=1)

    @property
    def looks_at_legal_jobs(self) -> bool:
        """Whether the time it takes depends on how many jobs are legal."""
        return isinstance(self.body, KernelBody)

    def value(self, observations: Tensor) -> Tensor:
        """Return the values of states, (batch,)."""
        values: Tensor = self.critic(observations)
        return values


def actor_critic(settings: NetworkSettings, layout: AnyLayout, seed: int) -> ActorCritic:
    """Return a fresh policy and critic; the same seed gives the same weights.

    Raises:
        YardmasterError: if the settings make no network for this layout.
    """
    return ActorCritic(settings, layout, torch.Generator().manual_seed(seed))
