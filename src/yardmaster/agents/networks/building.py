"""Networks by name."""

from __future__ import annotations

import torch

from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.critics import FlatCritic, PooledCritic
from yardmaster.agents.networks.cross_attention import CrossAttentionBody
from yardmaster.agents.networks.kernel import KernelBody
from yardmaster.agents.networks.mlp import MLPBody
from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.agents.networks.regime import RegimeBody
from yardmaster.agents.networks.self_attention import SelfAttentionBody
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.choosing.sight import ChoiceLayout

_TOKEN_BODIES: dict[str, type[KernelBody | SelfAttentionBody | CrossAttentionBody]] = {
    "kernel": KernelBody,
    "self-attention": SelfAttentionBody,
    "cross-attention": CrossAttentionBody,
}


def body(settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator) -> Body:
    """Return a fresh body of the named architecture.

    Raises:
        YardmasterError: if the settings make no network for this layout.
    """
    settings.check(layout)
    if settings.arch == "mlp":
        return MLPBody(settings, layout, dice)
    if isinstance(layout, ChoiceLayout):
        return RegimeBody(settings, layout, dice)
    return _TOKEN_BODIES[settings.arch](settings, layout, dice)


def critic(
    settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator
) -> FlatCritic | PooledCritic:
    """Return a fresh critic that goes with the named architecture."""
    if settings.arch == "mlp" or isinstance(layout, ChoiceLayout):
        return FlatCritic(settings, layout, dice)
    return PooledCritic(settings, layout, dice)
