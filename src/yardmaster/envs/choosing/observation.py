"""Between which bounds the numbers that a chooser sees lie, and how they are handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.engine.choosing.showing import PAST_FEATURES
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.picking.layout import Floats
from yardmaster.envs.observation import KINDS, ROUNDING, Observation
from yardmaster.names import unknown

if TYPE_CHECKING:
    import gymnasium


def lowest(name: str) -> float:
    """Return the least value of a number: −1 of those that can be opposite, else 0."""
    return -1.0 if name == "mean_priority" or name.endswith("_tells") else 0.0


def bounds(sight: ChoiceSight) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each number of a flat observation."""
    now = [lowest(name) for name, _ in sight.features()]
    past = [lowest(name) for name, _ in PAST_FEATURES] * sight.past
    low = np.array([*now, *past], dtype=np.float32)
    return low, np.full(len(low), 1.0 + ROUNDING, dtype=np.float32)


def arranged(flat: Floats, sight: ChoiceSight, kind: str) -> Observation:
    """Return flat observations, (…, length), in the way asked for; parts are views.

    Raises:
        UnknownNameError: if there is no such kind of observation.
    """
    if kind not in KINDS:
        raise unknown("kind of observation", kind, KINDS)
    if kind == "flat":
        return flat
    border = len(sight.features())
    parts = {"now": flat[..., :border]}
    if sight.past:
        shape = (*flat.shape[:-1], sight.past, len(PAST_FEATURES))
        parts["past"] = flat[..., border:].reshape(shape)
    return parts


def space(sight: ChoiceSight, kind: str) -> gymnasium.Space[Any]:
    """Return the space that a chooser's observations lie in."""
    from gymnasium import spaces

    low, high = (arranged(bound, sight, kind) for bound in bounds(sight))
    if isinstance(low, dict) and isinstance(high, dict):
        return spaces.Dict([(part, spaces.Box(low[part], high[part])) for part in low])
    return spaces.Box(np.asarray(low), np.asarray(high))
