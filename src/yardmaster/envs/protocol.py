"""What a learner needs of many environments that step together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from yardmaster.engine.choosing.sight import ChoiceLayout
from yardmaster.engine.picking.layout import Layout

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


class Batch(Protocol):
    """Many environments in step; all arrays are written in place by `reset` and `step`.

    An environment whose episode ends begins its next one within the same step: `observations` and
    `masks` then already belong to the new episode, and the last ones of the old are in
    `final_observations` and `final_masks` (rows of other environments hold nothing of meaning).
    """

    size: int
    """Environments."""
    observations: Floats
    """(size, length) what each sees now."""
    masks: Bools
    """(size, actions) which actions are legal now; always at least one."""
    rewards: npt.NDArray[np.float64]
    """(size,) earned by the last step."""
    terminated: Bools
    """(size,) the last step ended the episode by itself: nothing comes after it."""
    truncated: Bools
    """(size,) the last step was cut off by a limit: its state still has a value."""
    elapsed_s: npt.NDArray[np.float64]
    """(size,) simulated seconds that passed in the last step; often 0."""
    final_observations: Floats
    final_masks: Bools
    episode_returns: npt.NDArray[np.float64]
    """(size,) where terminated or truncated: sum of the rewards of the episode that ended."""
    episode_steps: npt.NDArray[np.int64]
    """(size,) likewise, its decisions."""
    episode_noops: npt.NDArray[np.int64]
    """(size,) likewise, how many of them were no-ops."""

    @property
    def layout(self) -> Layout | ChoiceLayout:
        """Where everything stands in an observation."""

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """(size,) which kind of episode each is in; 0 where there is but one kind."""

    @property
    def group_count(self) -> int:
        """Kinds of episodes."""

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes in all environments; the same seed gives the same ones.

        Environments that begin together go through their episodes together, and a learner then
        sees mornings for a while and evenings for a while. Staggered ones have each played
        another number of random decisions.
        """

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Carry out one action in every environment."""

    def snapshot(self) -> dict[str, Any]:
        """Return everything needed to go on from here, as arrays and plain values."""

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; the same actions then have the same results."""
