"""Tests for what users write themselves: `check_order` for their orders, strategies for the rest.

Nothing here is needed to run simulations; `strategies` needs Hypothesis, `check_order` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yardmaster.testing.conformance import check_order

__all__ = ["check_order"]


def __getattr__(name: str) -> Any:
    if name == "check_order":
        from yardmaster.testing.conformance import check_order

        return check_order
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
