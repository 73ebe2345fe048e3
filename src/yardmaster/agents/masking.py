"""Choosing among legal actions only: what an illegal one can never get is probability.

`logits` and `scores` are (…, actions), `masks` of the same shape say which actions are legal. A row
without any legal action, such as the end of an episode, gives no NaN: all its probabilities are 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

ILLEGAL = -1e4
"""Log-probability of an illegal action: finite, so that products and differences of it are never
NaN, and so low that the probability is exactly 0 in every float type."""


def log_probs(logits: Tensor, masks: Tensor) -> Tensor:
    """Return the log-probability of every action; `ILLEGAL` for illegal ones."""
    lowest = torch.finfo(logits.dtype).min
    shares = logits.masked_fill(~masks, lowest).log_softmax(dim=-1)
    return shares.masked_fill(~masks, ILLEGAL)


def entropy(logits: Tensor, masks: Tensor) -> Tensor:
    """Return the entropy of the choice among legal actions, in nats."""
    shares = log_probs(logits, masks)
    return -(shares.exp() * shares).sum(dim=-1)


def sample(logits: Tensor, masks: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one legal action per row with the probabilities that the logits stand for.

    Dividing probabilities by exponential noise and taking the largest is an exact draw, and unlike
    an inverted cumulative sum no rounding can make it land on an illegal action.
    """
    return greedy(logits - log_noise(logits, generator), masks)


def log_noise(like: Tensor, generator: torch.Generator) -> Tensor:
    """Return the logarithm of exponential noise, in the shape of a tensor.

    Taken from the logarithms of probabilities, the largest difference is an exact draw.
    """
    return as_log_noise(
        torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)
    )


def as_log_noise(uniform: Tensor) -> Tensor:
    """Turn numbers between 0 and 1 into the logarithm of exponential noise, in place."""
    # Ten times as quick as drawing exponential noise directly.
    return uniform.clamp_min_(torch.finfo(uniform.dtype).tiny).log_().neg_().log_()


def greedy(scores: Tensor, masks: Tensor) -> Tensor:
    """Return the legal action with the highest score; the first of equals."""
    return scores.masked_fill(~masks, -torch.inf).argmax(dim=-1)


def decided(logits: Tensor, masks: Tensor) -> Tensor:
    """Return what a policy prefers: to wait, if that is likelier than all else, or the best job.

    The last action is the no-op. Many jobs that are alike share their probability, so that the
    no-op may be the likeliest single action and still be chosen rarely.
    """
    jobs, job_masks = logits[..., :-1].masked_fill(~masks[..., :-1], -torch.inf), masks[..., :-1]
    together = jobs.logsumexp(dim=-1)
    is_waiting = masks[..., -1] & (logits[..., -1] > together)
    noop = logits.shape[-1] - 1
    return torch.where(is_waiting | ~job_masks.any(dim=-1), noop, jobs.argmax(dim=-1))
