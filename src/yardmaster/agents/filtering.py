"""Trajectory filtering: which episodes are worth learning from.

Under a long-tailed load most random stretches of work are trivially easy (any order serves them
well) and a few are hopeless (no order does); both teach little and the hopeless ones drown the
rest. RLScheduler therefore trains only on stretches whose score under a reference heuristic lies
in a range, and widens to everything when it evaluates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yardmaster.errors import InvalidConfigError

Scores = npt.NDArray[np.float64]


def keep(scores: Scores, low: float, high: float) -> npt.NDArray[np.int64]:
    """Return the indices of the episodes to train on, in their given order.

    Args:
        scores: What a reference heuristic scored on each episode, e.g. mean bounded slowdown.
            Episodes without a score (NaN) are left out.
        low: Least score kept; below it, episodes are too easy.
        high: Greatest score kept; above it, they are hopeless.
    """
    if not low <= high:
        raise InvalidConfigError("filter", [f"low = {low} must not exceed high = {high}"])
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((scores >= low) & (scores <= high)).astype(np.int64)


def range_of(scores: Scores, low_quantile: float, high_quantile: float) -> tuple[float, float]:
    """Return the scores between which the given share of episodes lies, for `keep`.

    Args:
        scores: As for `keep`; episodes without a score are ignored.
        low_quantile: Share of episodes that are too easy, 0 to 1.
        high_quantile: One minus the share that is hopeless, `low_quantile` to 1.
    """
    if not 0.0 <= low_quantile <= high_quantile <= 1.0:
        mistake = f"quantiles {low_quantile} and {high_quantile} must be in order, between 0 and 1"
        raise InvalidConfigError("filter", [mistake])
    known = scores[~np.isnan(scores)]
    if not known.size:
        raise InvalidConfigError("filter", ["no episode has a score"])
    low, high = np.quantile(known, [low_quantile, high_quantile]).tolist()
    return low, high
