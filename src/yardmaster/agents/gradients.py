"""What is done with gradients between computing them and following them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor


def forget(weights: Iterable[Tensor]) -> None:
    """Forget the gradients of the last step, as an optimiser's `zero_grad` does, only quicker."""
    for weight in weights:
        weight.grad = None


@torch.no_grad()
def shorten(weights: Iterable[Tensor], longest: float) -> None:
    """Shorten the gradient of all weights together to a length, if it is longer.

    The numbers are those of `torch.nn.utils.clip_grad_norm_`. For small networks on a CPU that
    spends most of its time on sorting gradients by device and type; these are all of one kind.
    """
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if not gradients:
        return
    lengths = torch._foreach_norm(gradients)  # noqa: SLF001 - as torch's own optimisers do
    share = longest / (torch.linalg.vector_norm(torch.stack(lengths)) + 1e-6)
    torch._foreach_mul_(gradients, share.clamp(max=1.0))


@torch.no_grad()
def take_up(optimiser: torch.optim.Optimizer, state: Mapping[str, Any]) -> bool:
    """Load an optimiser's saved numbers into the memory that it has them in already.

    Return False, and change nothing, if it has not the same ones. Settings of its groups, such as
    learning rates, stay as they are.
    """
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    own = {
        place: optimiser.state[one] for place, one in enumerate(weights) if one in optimiser.state
    }
    saved = state["state"]
    if not own or {place: set(kept) for place, kept in own.items()} != {
        place: set(kept) for place, kept in saved.items()
    }:
        return False
    for place, kept in own.items():
        for name, numbers in kept.items():
            numbers.copy_(saved[place][name])
    return True
