"""Early warnings: signs that a run is going wrong, told once each while there is time to stop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from yardmaster.errors import YardmasterError

SPAN = 10
"""Updates that are looked at together: single ones vary too much."""
ENTROPY_SHARE = 0.1
"""Entropy below this share of its start means that hardly anything new is tried any more."""
NOOP_SHARE = 0.9
"""Above this share of no-ops, waiting has become the policy."""

UNHELPED = 3
"""Evaluations in a row that were no better than the network before training: time to say so."""

_WATCHED = ("entropy", "episode_return", "noop_share")
_ENTROPY, _NOOP = "entropy collapse", "no-op collapse"


class TrainingFailedError(YardmasterError):
    """A run that cannot go on: its numbers are no longer numbers."""


class Watch:
    """Looks at the scalars of every update and says, once each, what is worrying.

    It remembers the first and the latest `SPAN` values of what it watches.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._first: dict[str, list[float]] = {name: [] for name in _WATCHED}
        self._latest: dict[str, list[float]] = {name: [] for name in _WATCHED}
        self.told: list[str] = []
        """Kinds of warnings that were given."""
        if state is not None:
            self._first = {name: list(values) for name, values in state["first"].items()}
            self._latest = {name: list(values) for name, values in state["latest"].items()}
            self.told = list(state["told"])

    def state(self) -> dict[str, Any]:
        """Return what it remembers, as plain values."""
        return {
            "first": {name: list(values) for name, values in self._first.items()},
            "latest": {name: list(values) for name, values in self._latest.items()},
            "told": list(self.told),
        }

    def look(self, scalars: Mapping[str, float]) -> list[str]:
        """Take in the scalars of an update and return new warnings, as sentences."""
        for name in _WATCHED:
            if name in scalars:
                self._remember(name, scalars[name])
        signs = {_ENTROPY: self._entropy_sign(), _NOOP: self._noop_sign()}
        new = {kind: text for kind, text in signs.items() if text and kind not in self.told}
        self.told += new
        return list(new.values())

    def _remember(self, name: str, value: float) -> None:
        if len(self._first[name]) < SPAN:
            self._first[name].append(value)
        self._latest[name] = [*self._latest[name], value][-SPAN:]

    def _entropy_sign(self) -> str:
        begun, now = _mean(self._first["entropy"]), _mean(self._latest["entropy"])
        was, is_now = _mean(self._first["episode_return"]), _mean(self._latest["episode_return"])
        # A policy that has become good is sure of itself too: low entropy alone is no bad sign.
        if not now < ENTROPY_SHARE * begun or not is_now <= was:
            return ""
        return (
            f"Entropy collapse: the policy's entropy fell from {begun:.3g} to {now:.3g} while"
            f" returns did not improve ({was:.4g} at the start, {is_now:.4g} now). A larger entropy"
            " coefficient or a smaller learning rate may help."
        )

    def _noop_sign(self) -> str:
        share = _mean(self._latest["noop_share"])
        if not share > NOOP_SHARE:
            return ""
        return (
            f"No-op collapse: {share:.0%} of the latest decisions were to wait. Offer the no-op"
            " only while a better job is blocked, lower its bias, or start from a heuristic"
            " (--warm-start)."
        )


def untrained(warm_start: str | None) -> str:
    """Say that the best policy of a run is the one it began with, and what may help."""
    if warm_start is None:
        return (
            "The best policy is the untrained network: training has not helped yet. Try more steps,"
            " a smaller learning rate, or a heuristic to start from (--warm-start sjf)."
        )
    return (
        f"The best policy is the imitation of {warm_start}: training has not helped yet. Try more"
        " steps, a smaller learning rate, a discount by time (discount_per_s, lambda_per_s under"
        " [learner]), or another heuristic."
    )


def _mean(values: list[float]) -> float:
    """Return the mean of a full span, NaN before it is full."""
    return sum(values) / SPAN if len(values) == SPAN else math.nan


def refuse_non_finite(scalars: Mapping[str, float], *, weights_are_finite: bool, when: str) -> None:
    """Stop a run whose numbers have become NaN or infinite.

    Args:
        scalars: what the update returned.
        weights_are_finite: whether all weights of the network are.
        when: where the run stands, for the message.

    Raises:
        TrainingFailedError: naming what is not finite.
    """
    bad = [f"{name} is {value}" for name, value in scalars.items() if not math.isfinite(value)]
    if not weights_are_finite:
        bad.append("the network's weights are not finite")
    if bad:
        raise TrainingFailedError(
            f"Training failed {when}: {', '.join(bad)}. The last checkpoint is from before that;"
            " a smaller learning rate or gradient norm may help."
        )
