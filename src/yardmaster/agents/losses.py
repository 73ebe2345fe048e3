"""What PPO learns from: judged decisions, and how far the policy and the critic are from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from yardmaster.agents.networks.filled import Filled

LEAST_LOG = -87.0
"""Logarithm of about the least number that 32 bits hold in full."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Judged decisions, one per row."""

    observations: Tensor | Filled
    """Without tokens that are blank in all of them, or in full if shapes must not change."""
    masks: Tensor
    is_choice: Tensor
    """Whether more than one action was legal: the others say nothing about the policy."""
    actions: Tensor
    log_probs: Tensor
    """Of the actions, under the policy that took them."""
    entropies: Tensor
    """Of the policy that took them."""
    values: Tensor
    """What the critic expected."""
    advantages: Tensor
    returns: Tensor
    """What the critic should have expected."""
    summaries: Tensor | Filled
    """What the critic is shown; made once, since nothing of it is learned."""


class Choices(NamedTuple):
    """What the policy learns from some of the decisions; see there."""

    observations: Tensor | Filled
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    entropies: Tensor
    advantages: Tensor

    @classmethod
    def of(cls, decisions: Decisions, rows: Tensor) -> Choices:
        """Return those with these numbers."""
        # Ten times as quick as indexing with brackets, and most of what a minibatch costs.
        return cls(*(getattr(decisions, name).index_select(0, rows) for name in cls._fields))


class PolicyTerms(NamedTuple):
    """Means over some decisions."""

    loss: Tensor
    """Of the policy, clipped."""
    bonus: Tensor
    """Entropy in nats, clamped."""
    kl: Tensor
    """Divergence in nats from the policy that collected."""
    clip_share: Tensor
    """Share of the decisions that are clipped."""


def policy_terms(
    shares: Tensor,
    part: Choices,
    average: Callable[[Tensor], Tensor],
    *,
    clip: float,
    clamp: float | None,
) -> PolicyTerms:
    """Return what the log-probabilities of all actions (rows, actions) come to.

    Args:
        shares: Of the policy now.
        part: The decisions.
        average: The mean over those that count.
        clip: How far the probability of an action may move, as a share.
        clamp: Nats by which the mean entropy may differ from that at collection; None: any.
    """
    moved = at(shares, part.actions) - part.log_probs
    ratio = moved.exp()
    held = ratio.clamp(1.0 - clip, 1.0 + clip)
    loss = -average(torch.minimum(ratio * part.advantages, held * part.advantages))
    bonus = average(entropy(shares))
    if clamp is not None:
        before = average(part.entropies)
        bonus = before + (bonus - before).clamp(-clamp, clamp)
    with torch.no_grad():
        kl = average(ratio - 1.0 - moved)
        clip_share = average(((ratio - 1.0).abs() > clip).float())
    return PolicyTerms(loss, bonus, kl, clip_share)


def value_loss(values: Tensor, returns: Tensor, before: Tensor, clip: float | None) -> Tensor:
    """Return half the mean square of what the critic is wrong by.

    With `clip`, values that have moved further than that from those `before` gain nothing by it.
    """
    errors = (values - returns).square()
    if clip is not None:
        held = before + (values - before).clamp(-clip, clip)
        errors = torch.maximum(errors, (held - returns).square())
    return 0.5 * errors.mean()


def at(shares: Tensor, actions: Tensor) -> Tensor:
    """Return the log-probability of one action per row, (rows,) from (rows, actions)."""
    return shares.gather(1, actions.unsqueeze(1)).squeeze(1)


def mean(numbers: Tensor) -> Tensor:
    """Return the mean; 0 of nothing."""
    return numbers.sum() / max(len(numbers), 1)


def entropy(shares: Tensor) -> Tensor:
    """Return the entropy, in nats, of log-probabilities that are at hand already."""
    # Exponentials that are no normal numbers would take ten times as long, and add nothing.
    return -(shares.clamp_min(LEAST_LOG).exp() * shares).sum(dim=-1)
