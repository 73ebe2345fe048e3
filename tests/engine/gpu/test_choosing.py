"""What is compiled for choosing schedulers on a GPU; nothing here needs one."""

from __future__ import annotations

import importlib
import inspect

import pytest

from yardmaster.engine import compilation
from yardmaster.engine.gpu.choosing import _PASSES, MODULES


@pytest.mark.parametrize("name", _PASSES)
def test_passes_that_are_left_out_are_passes_of_the_core(name: str):
    """A stand-in has the name of one kernel, is called as it is, and is met where it is called."""
    for place in MODULES:
        importlib.import_module(place)
    kernels = [one for one in compilation._kernels if one.__module__ in MODULES]
    named = [one for one in kernels if one.__name__ == name]
    assert len(named) == 1
    stand_in = _PASSES[name][1]
    parameters = [len(inspect.signature(one).parameters) for one in (named[0], stand_in)]
    assert parameters[0] == parameters[1]
    assert any(name in one.__code__.co_names for one in kernels)
