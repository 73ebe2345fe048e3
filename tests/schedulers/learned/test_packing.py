"""Packing refuses weights that do not make the network they claim to be."""

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import UnknownNameError
from yardmaster.schedulers.learned.packing import pack
from yardmaster.schedulers.learned.policy_file import PolicyFile, PolicyFileError

LAYOUT = Layout(3, ("gpus", "wait"), 2, ("idle",), 0, 6, (8,))


def kernel(**changes) -> PolicyFile:
    """Return a kernel policy; a change to None takes weights away."""
    shapes = {
        "token.weight": (2, 5), "context.weight": (3, 5), "context.bias": (5,), "noop": (5,),
        "hidden.0.weight": (5, 4), "hidden.0.bias": (4,),
        "head.0.weight": (4, 1), "head.0.bias": (1,), "noop_bias": (1,),
    }  # fmt: skip
    shapes |= {name.replace("__", "."): shape for name, shape in changes.items()}
    weights = {name: np.ones(shape, np.float32) for name, shape in shapes.items() if shape}
    return PolicyFile("kernel", LAYOUT, {}, weights)


def test_sizes_that_fit_are_packed():
    """Rows have the types the core reads, and scratch has room."""
    packed = pack(kernel())
    assert packed.net.dtype == np.int64
    assert packed.weights.dtype == np.float32
    assert packed.scratch_length > 0


def test_rows_begin_where_lines_of_the_cache_do():
    """Lanes would otherwise be fetched in two halves; a scratch row begins with zeros."""
    packed = pack(kernel())
    for row in (packed.weights, packed.scratch()):
        assert row.ctypes.data % 64 == 0
        assert row.dtype == np.float32
    assert len(packed.scratch()) == packed.scratch_length
    assert not packed.scratch().any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noop": None}, "lacks the weights 'noop'"),
        ({"head__0__weight": None}, r"lacks the weights 'head\.0\.weight'"),
        ({"token__weight": (3, 5)}, r"'token\.weight' are \[3, 5\]; the layout asks for \[2, 5\]"),
        ({"context__weight": (4, 5)}, r"'context\.weight' are \[4, 5\]"),
        ({"hidden__0__weight": (6, 4)}, r"'hidden\.0\.weight' are \[6, 4\]"),
        ({"context__bias": (5, 1)}, r"'context\.bias' are \[5, 1\]"),
        ({"head__0__weight": (4, 2), "head__0__bias": (2,)}, "make 2 numbers"),
        ({"state__0__weight": (4, 2), "state__0__bias": (2,)}, "'state' make 2 numbers"),
    ],
    ids=["noop", "head", "token", "context", "hidden", "axes", "outputs", "state"],
)
def test_misfits_are_named(changes, message):
    """Missing weights and wrong shapes are named with what was expected."""
    with pytest.raises(PolicyFileError, match=message):
        pack(kernel(**changes))


@pytest.mark.parametrize(
    "changes",
    [{"jobs_at": 1}, {"globals_at": (9,)}, {"globals_at": (7,)}, {"gpus_at": -2}, {"window": 0}],
    ids=str,
)
def test_layouts_with_gaps_are_refused(changes):
    """Compiled code trusts the layout, so one that points beyond the observation never gets in."""
    wrong = replace(kernel(), layout=replace(LAYOUT, **changes))
    with pytest.raises(PolicyFileError, match="layout does not say"):
        pack(wrong)


def test_unknown_architectures_are_refused():
    """A policy of another program's architecture is answered with the known ones."""
    with pytest.raises(UnknownNameError, match="Did you mean 'kernel'"):
        pack(PolicyFile("kernels", LAYOUT, {}, {}))
