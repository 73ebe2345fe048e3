"""Keys as the engine takes them."""

import math

import numpy as np

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.state import OrderKind


def test_fixed_keys_are_numbers():
    """Whole numbers are accepted and become reals."""
    keys = OrderKeys.fixed(np.array([3, 1, 2]))
    assert keys.kind is OrderKind.FIXED
    assert keys.offset.dtype == np.float64
    assert keys.rekey is None


def test_ageing_keys_have_no_bounds_unless_given():
    """Age is unbounded and the constant part zero by default."""
    keys = OrderKeys.ageing(rate=np.ones(2), since=np.zeros(2))
    assert keys.offset.tolist() == [0, 0]
    assert keys.clip_s == (-math.inf, math.inf)


def test_other_kinds():
    """Shuffled and history orders carry no keys of their own; called ones carry a function."""
    assert OrderKeys.shuffled(3).kind is OrderKind.SHUFFLED
    assert OrderKeys.history(np.array([0, 1, 0])).group.tolist() == [0, 1, 0]
    called = OrderKeys.called(2, lambda rows, now: rows + now)
    assert called.kind is OrderKind.FIXED
    assert called.rekey(np.array([1, 2]), 3.0).tolist() == [4, 5]
