"""Policies that were never trained, for tests of what is done with policies."""

from __future__ import annotations

from typing import Any

import numpy as np

from yardmaster.engine.picking.sight import Sight
from yardmaster.schedulers.learned.policy_file import PolicyFile


def random_policy(sight: Sight, seed: int = 0, units: int = 8, **about: Any) -> PolicyFile:
    """Return a policy of random weights: its preferences change with all it sees.

    Args:
        sight: what it sees.
        seed: of the weights.
        units: of its one hidden layer.
        about: what its file says of it, as plain values.
    """
    dice = np.random.default_rng(seed)
    layout = sight.layout()
    sizes = {"hidden.0": (layout.length, units), "head.0": (units, layout.actions)}
    weights = {}
    for name, shape in sizes.items():
        weights[f"{name}.weight"] = dice.normal(size=shape).astype(np.float32)
        weights[f"{name}.bias"] = dice.normal(size=shape[1]).astype(np.float32)
    return PolicyFile("mlp", layout, sight.to_table(), weights, {"learner": "nobody"} | about)
