"""Trained networks as policy files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from yardmaster.agents.networks.actor_critic import ActorCritic
from yardmaster.agents.networks.attention import Attention
from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.cross_attention import CrossAttentionBody
from yardmaster.agents.networks.heads import ActionHead
from yardmaster.agents.networks.kernel import KernelBody, TokenLayers
from yardmaster.agents.networks.mlp import MLPBody
from yardmaster.agents.networks.noisy import NoisyLinear
from yardmaster.agents.networks.q_network import QNetwork
from yardmaster.agents.networks.regime import RegimeBody
from yardmaster.agents.networks.self_attention import SelfAttentionBody
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.picking.layout import Layout
from yardmaster.schedulers.learned.policy_file import PolicyFile
from yardmaster.schedulers.meta.chooser_file import ChooserFile

Arrays = dict[str, npt.NDArray[np.float32]]


def policy_of(
    network: ActorCritic | QNetwork,
    layout: Layout,
    sight: dict[str, Any],
    about: dict[str, Any],
    *,
    choice: str | None = None,
) -> PolicyFile:
    """Return what is needed to choose greedily as the network does.

    Of a policy and critic, the policy. Of a dueling network the advantages, which rank actions as
    the values do; with several atoms also the state's part, which then matters. Of noisy weights,
    their means.

    Args:
        network: what was learned.
        layout: of the observations it was learned on.
        sight: settings of what it sees, as plain values.
        about: where it comes from, as plain values.
        choice: how preferences become a decision; by default as fits the network.
    """
    arrays = _of_body(network.body) | _of_head(network.head)
    if isinstance(network, QNetwork) and network.atoms > 1:
        arrays["support"] = _array(network.support)
        if network.state_head is not None:
            arrays |= _of_layers("state", network.state_head.stream)
    choice = choice or ("majority" if isinstance(network, ActorCritic) else "best")
    return PolicyFile(network.settings.arch, layout, dict(sight), arrays, dict(about), choice)


def chooser_of(
    network: ActorCritic | QNetwork, sight: ChoiceSight, about: dict[str, Any]
) -> ChooserFile:
    """Return what is needed to choose schedulers greedily as the network does.

    Of a dueling network the advantages are enough: they rank actions as the values do.

    Args:
        network: what was learned.
        sight: what it sees.
        about: where it comes from, as plain values.
    """
    return ChooserFile(sight, _of_body(network.body) | _of_head(network.head), dict(about))


def _of_body(body: Body) -> Arrays:
    if isinstance(body, RegimeBody):
        return _of_layers("past", body.of_past) | _of_layers("hidden", body.layers)
    if isinstance(body, MLPBody):
        return _of_layers("hidden", body.layers)
    if isinstance(body, KernelBody):
        return _of_token_layers(body.layers) | {"noop": _array(body.noop)}
    if isinstance(body, SelfAttentionBody):
        tokens = _of_layers("job", body.of_job) | {"noop": _array(body.noop)}
        return tokens | _of_attention(body.attention) | _of_token_layers(body.layers)
    if isinstance(body, CrossAttentionBody):
        return _of_cross_attention(body)
    raise TypeError(type(body))


def _of_cross_attention(body: CrossAttentionBody) -> Arrays:
    arrays = _of_layers("job", body.of_job) | _of_layers("gpu", body.of_gpu)
    if body.has_globals:
        arrays |= _of_layers("globals", body.of_globals) | _of_linear(
            "add_globals", body.add_globals
        )
    return arrays | _of_attention(body.attention) | _of_norm("last_norm", body.norm)


def _of_attention(attention: Attention) -> Arrays:
    arrays = _of_norm("norm", attention.norm)
    for name in ("query", "key", "value", "out"):
        arrays |= _of_linear(name, getattr(attention, name))
    return arrays


def _of_token_layers(layers: TokenLayers) -> Arrays:
    token = {"token.weight": _array(layers.of_token.weight.T)}
    return token | _of_linear("context", layers.of_context) | _of_layers("hidden", layers.rest)


def _of_head(head: ActionHead) -> Arrays:
    arrays = _of_layers("head", head.stream)
    if head.is_per_action:
        return arrays | {"noop_bias": _array(head.noop_bias)}
    # The no-op's numbers are the last ones of the last layer, which has a bias for each of them.
    last = max(name for name in arrays if name.endswith(".bias"))
    arrays[last][-head.outputs :] += _array(head.noop_bias)
    return arrays


def _of_layers(name: str, layers: nn.Sequential) -> Arrays:
    arrays: Arrays = {}
    linear = [layer for layer in layers if isinstance(layer, nn.Linear | NoisyLinear)]
    for place, layer in enumerate(linear):
        arrays |= _of_linear(f"{name}.{place}", layer)
    return arrays


def _of_linear(name: str, layer: nn.Linear | NoisyLinear) -> Arrays:
    plain = layer.mean if isinstance(layer, NoisyLinear) else layer
    return {f"{name}.weight": _array(plain.weight.T), f"{name}.bias": _array(plain.bias)}


def _of_norm(name: str, norm: nn.LayerNorm) -> Arrays:
    return {f"{name}.scale": _array(norm.weight), f"{name}.shift": _array(norm.bias)}


def _array(tensor: Tensor) -> npt.NDArray[np.float32]:
    """Return a copy of the weights, away from the network."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32, order="C")
