"""The functions for picking jobs that Python calls, compiled or plain.

They are compiled together with the core they call, so that everything is one piece of machine code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from yardmaster.engine import compilation

PICKING_MODULES = (
    "yardmaster.engine.picking.line",
    "yardmaster.engine.picking.lookahead",
    "yardmaster.engine.picking.features",
    "yardmaster.engine.picking.other_features",
    "yardmaster.engine.picking.terms",
    "yardmaster.engine.picking.stepping",
    "yardmaster.engine.picking.many",
    "yardmaster.engine.picking.net_layers",
    "yardmaster.engine.picking.net_bodies",
    "yardmaster.engine.picking.nets",
    "yardmaster.engine.picking.driving",
)


class Picking(NamedTuple):
    """The functions for picking jobs that Python calls."""

    begin_many: Callable[..., None]
    step_many: Callable[..., None]
    step_parts: Callable[..., None]
    score_one: Callable[..., None]
    score_many: Callable[..., None]
    drive: Callable[..., int]
    is_compiled: bool


_ENTRY_POINTS = {
    "begin_many": "many.begin_many",
    "step_many": "many.step_many",
    "step_parts": "many.step_parts",
    "score_one": "nets.score_one",
    "score_many": "nets.score_many",
    "drive": "driving.drive",
}

_compiled: dict[bool, Picking] = {}


def plain() -> Picking:
    """Return the functions as ordinary Python."""
    found = {}
    for name, place in _ENTRY_POINTS.items():
        module, _, function = place.partition(".")
        found[name] = getattr(
            importlib.import_module(f"yardmaster.engine.picking.{module}"), function
        )
    return Picking(**found, is_compiled=False)


def cache_folder(*, is_real: bool = False) -> Path:
    """Return the folder for this version's machine code, whether it exists or not."""
    return compilation.cache_folder(is_real=is_real, more=Path(__file__).parent)


def compiled(announce: Callable[[str], None] | None = None, *, is_real: bool = False) -> Picking:
    """Return the functions compiled; machine code is made on the first call and kept on disk."""
    if is_real not in _compiled:
        folder = cache_folder(is_real=is_real)
        made: dict[str, Any] = compilation.compiled_functions(
            compilation.CORE_MODULES + PICKING_MODULES, folder, is_real=is_real
        )
        if announce is not None and not compilation.is_on_disk(made["many.step_many"]):
            announce(compilation.announcement("the environment"))
        functions = {name: made[place] for name, place in _ENTRY_POINTS.items()}
        _compiled[is_real] = Picking(**functions, is_compiled=True)
    return _compiled[is_real]
