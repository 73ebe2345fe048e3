"""The functions for choosing schedulers that Python calls, compiled or plain.

They are compiled together with the core they call, so that everything is one piece of machine code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from yardmaster.engine import compilation

CHOOSING_MODULES = (
    "yardmaster.engine.choosing.accounts",
    "yardmaster.engine.choosing.showing",
    "yardmaster.engine.choosing.stepping",
    "yardmaster.engine.choosing.many",
    "yardmaster.engine.choosing.nets",
    "yardmaster.engine.choosing.driving",
)


class Choosing(NamedTuple):
    """The functions for choosing schedulers that Python calls."""

    begin_many: Callable[..., None]
    step_many: Callable[..., None]
    step_parts: Callable[..., None]
    score_one: Callable[..., None]
    drive: Callable[..., int]
    decide: Callable[..., int]
    is_compiled: bool


_ENTRY_POINTS = {
    "begin_many": "many.begin_many",
    "step_many": "many.step_many",
    "step_parts": "many.step_parts",
    "score_one": "nets.score_one",
    "drive": "driving.drive",
    "decide": "driving.decide",
}

_compiled: dict[bool, Choosing] = {}


def plain() -> Choosing:
    """Return the functions as ordinary Python."""
    found = {}
    for name, place in _ENTRY_POINTS.items():
        module, _, function = place.partition(".")
        own = getattr(importlib.import_module(f"yardmaster.engine.choosing.{module}"), function)
        # Dice are mixed by products that are meant to overflow, of which NumPy would warn.
        found[name] = np.errstate(over="ignore")(own)
    return Choosing(**found, is_compiled=False)


def cache_folder(*, is_real: bool = False) -> Path:
    """Return the folder for this version's machine code, whether it exists or not."""
    return compilation.cache_folder(is_real=is_real, more=Path(__file__).parent)


def compiled(announce: Callable[[str], None] | None = None, *, is_real: bool = False) -> Choosing:
    """Return the functions compiled; machine code is made on the first call and kept on disk."""
    if is_real not in _compiled:
        folder = cache_folder(is_real=is_real)
        made: dict[str, Any] = compilation.compiled_functions(
            compilation.CORE_MODULES + CHOOSING_MODULES, folder, is_real=is_real
        )
        if announce is not None and not compilation.is_on_disk(made["many.step_many"]):
            announce(compilation.announcement("the choice of schedulers"))
        functions = {name: made[place] for name, place in _ENTRY_POINTS.items()}
        _compiled[is_real] = Choosing(**functions, is_compiled=True)
    return _compiled[is_real]
