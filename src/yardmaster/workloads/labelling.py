"""Columns of names made from columns of numbers, such as user 12 or status 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.model.workload import Labels


def labels_from_numbers(numbers: npt.NDArray[Any], name: Callable[[int], str]) -> Labels:
    """Name every number; negative numbers are missing.

    Names are listed in order of first appearance, as `Labels.of` lists them, so that a workload
    keeps its fingerprint when it is written to a file and read again.
    """
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    order = order[distinct[order] >= 0]
    code_of = np.full(len(distinct), -1, dtype=np.int32)
    code_of[order] = np.arange(len(order), dtype=np.int32)
    return Labels(code_of[inverse], tuple(name(int(number)) for number in distinct[order]))
