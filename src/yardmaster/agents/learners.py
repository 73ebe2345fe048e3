"""The learners by name, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from yardmaster.agents import masking
from yardmaster.agents.networks import QNetwork
from yardmaster.agents.tensors import ResidentBatch, torch_device
from yardmaster.engine.picking.layout import Layout
from yardmaster.envs.protocol import Batch
from yardmaster.names import Registry, unknown


class Learner(Protocol):
    """Something that gets better at acting in a batch of environments."""

    network: nn.Module
    """Whose preferences are played greedily once training is over."""

    def update(self) -> dict[str, float]:
        """Gather some steps and learn from them; return scalars by name.

        Among them `steps`: how many this update took, over all environments.
        """

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on from here, the environments included."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; updates then have the same results."""


@dataclass(frozen=True, slots=True)
class LearnerKind:
    """A kind of learner: where its class, its settings and its presets are."""

    name: str
    module: str
    class_name: str
    summary: str

    def build(
        self, batch: Batch | ResidentBatch, settings: Any, seed: int, *, device: str = "cpu"
    ) -> Learner:
        """Return a fresh learner, which begins fresh episodes in its environments.

        Raises:
            YardmasterError: if there is no such device.
        """
        made: Callable[..., Learner] = getattr(import_module(self.module), self.class_name)
        return made(batch, settings, seed, device=torch_device(device))

    def presets(self) -> Mapping[str, Any]:
        """Return its settings by name of the preset; `default` is always there."""
        return cast("Mapping[str, Any]", import_module(self.module).PRESETS)

    def preset(self, name: str) -> Any:
        """Return the settings of a preset.

        Raises:
            UnknownNameError: if there is none of that name.
        """
        presets = self.presets()
        if name not in presets:
            raise unknown(f"preset of {self.name}", name, presets)
        return presets[name]


LEARNERS: Registry[LearnerKind] = Registry("learner")
for _name, _class_name, _summary in (
    ("ppo", "PPO", "follows the gradient of the policy, a small step at a time"),
    ("d3qn", "D3QN", "learns values of actions: double, dueling"),
    ("rainbow", "Rainbow", "D3QN with prioritised memory, n steps, distributions, noisy weights"),
    ("sac", "SAC", "learns a policy that stays as random as it can afford"),
    ("meta-dqn", "MetaDQN", "learns when to trust which scheduler, across regimes"),
):
    _module = f"yardmaster.agents.{_name.replace('-', '_')}"
    LEARNERS.add(_name, LearnerKind(_name, _module, _class_name, _summary))


def greedy(network: nn.Module) -> Callable[[Batch], npt.NDArray[np.int64]]:
    """Return the network's policy without exploration: the preferred legal action everywhere."""

    @torch.no_grad()
    def choose(batch: Batch) -> npt.NDArray[np.int64]:
        device = next(network.parameters()).device
        observations = torch.from_numpy(batch.observations).to(device)
        masks = torch.from_numpy(batch.masks).to(device)
        was_training = network.training
        network.eval()  # noisy weights are for exploration
        if isinstance(network, QNetwork):
            chosen = masking.greedy(network.values(observations, masks), masks)
        else:
            preferences = cast("Any", network).logits(observations, masks)
            has_noop = isinstance(batch.layout, Layout)
            chosen = (masking.decided if has_noop else masking.greedy)(preferences, masks)
        network.train(was_training)
        actions: npt.NDArray[np.int64] = chosen.cpu().numpy()
        return actions

    return choose


def weights_are_finite(network: nn.Module) -> bool:
    """Whether all weights are numbers."""
    return all(bool(torch.isfinite(weights).all()) for weights in network.parameters())


def weights(network: nn.Module) -> dict[str, torch.Tensor]:
    """Return a copy of the network's weights, on the CPU."""
    return {name: part.detach().cpu().clone() for name, part in network.state_dict().items()}


def use_threads(threads: int) -> None:
    """Let torch compute with so many threads."""
    torch.set_num_threads(threads)
