"""Tests for what users write themselves: `check_order` for their orders, and so on.

Each `check_…` raises at the first rule that is broken; each `judge_…` of the same module returns a
verdict for every rule. Nothing here is needed to run simulations; `strategies` needs Hypothesis,
the checks do not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yardmaster.testing.conformance import check_order
    from yardmaster.testing.learners import check_learner
    from yardmaster.testing.placements import check_placement
    from yardmaster.testing.recipes import check_recipe
    from yardmaster.testing.rewards import check_reward
    from yardmaster.testing.targets import judge
    from yardmaster.testing.trace_formats import check_trace_format

_HOME = {
    "check_learner": "learners",
    "check_order": "conformance",
    "check_placement": "placements",
    "check_recipe": "recipes",
    "check_reward": "rewards",
    "check_trace_format": "trace_formats",
    "judge": "targets",
}

__all__ = [
    "check_learner",
    "check_order",
    "check_placement",
    "check_recipe",
    "check_reward",
    "check_trace_format",
    "judge",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"yardmaster.testing.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
