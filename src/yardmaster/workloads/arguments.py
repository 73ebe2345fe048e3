"""Checks of the numbers a user gives when asking for a workload."""

from __future__ import annotations

import math
import operator
from typing import Any

from yardmaster.errors import InvalidWorkloadError

LARGEST_JOBS = 100_000_000
"""More jobs than this would not fit into memory; asking for them is a typing mistake."""


def whole_number(name: str, value: Any, *, smallest: int, largest: int | None = None) -> int:
    """Return `value` as an int within the given bounds.

    Raises:
        InvalidWorkloadError: naming the argument, if it is not a whole number or out of bounds.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidWorkloadError(f"{name} must be a whole number, got {value!r}.") from None
    if isinstance(value, bool):
        raise InvalidWorkloadError(f"{name} must be a whole number, got {value!r}.")
    if number < smallest:
        raise InvalidWorkloadError(f"{name} must be at least {smallest}, got {number}.")
    if largest is not None and number > largest:
        raise InvalidWorkloadError(f"{name} must be at most {largest:,}, got {number:,}.")
    return number


def finite_number(name: str, value: Any, *, above: float, largest: float = math.inf) -> float:
    """Return `value` as a finite float in (`above`, `largest`].

    Raises:
        InvalidWorkloadError: naming the argument, if it is not a number or out of bounds.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidWorkloadError(f"{name} must be a number, got {value!r}.") from None
    if not math.isfinite(number) or number <= above:
        raise InvalidWorkloadError(f"{name} must be a number above {above:g}, got {value!r}.")
    if number > largest:
        raise InvalidWorkloadError(f"{name} must be at most {largest:g}, got {value!r}.")
    return number


def share(name: str, value: Any) -> float:
    """Return `value` as a share of the jobs, 0…1.

    Raises:
        InvalidWorkloadError: naming the argument, if it is not a number from 0 to 1.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidWorkloadError(f"{name} must be a number, got {value!r}.") from None
    if not 0.0 <= number <= 1.0:
        raise InvalidWorkloadError(f"{name} must be from 0 to 1, got {value!r}.")
    return number
