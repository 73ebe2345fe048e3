"""One source, three ways to run it: as plain Python, or compiled by Numba, with or without frills.

Functions of the core are marked with `@kernel` and stay ordinary functions. Small workloads run
them as they are, which needs no Numba and no compilation. `compile_core` makes compiled copies;
machine code is kept on disk.

There are two sets of copies. In one, `REAL_CLUSTERS` is False, and the compiler drops everything
behind it before looking at it: equal GPUs that never fail are simulated by code that knows nothing
else, and that compiles quickly. In the other it is True.

The cache folder is named after the sources of the core, because Numba looks only at the file that
defines a function, not at the files of the functions it calls.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Row = TypeVar("Row")

CORE_MODULES = (
    "yardmaster.engine.core.bits",
    "yardmaster.engine.core.heap",
    "yardmaster.engine.core.nodes",
    "yardmaster.engine.core.room",
    "yardmaster.engine.core.scores",
    "yardmaster.engine.core.gangs",
    "yardmaster.engine.core.tenants",
    "yardmaster.engine.core.progress",
    "yardmaster.engine.core.queue",
    "yardmaster.engine.core.sharing",
    "yardmaster.engine.core.placement",
    "yardmaster.engine.core.release",
    "yardmaster.engine.core.running",
    "yardmaster.engine.core.outages",
    "yardmaster.engine.core.preemption",
    "yardmaster.engine.core.reservation",
    "yardmaster.engine.core.elastic",
    "yardmaster.engine.core.migration",
    "yardmaster.engine.core.conservative",
    "yardmaster.engine.core.passes",
    "yardmaster.engine.core.events",
    "yardmaster.engine.core.tables",
)

REAL_CLUSTERS = True
"""Whether the code for real clusters is there at all; see above."""

_kernels: dict[Callable[..., Any], dict[str, bool | str]] = {}
"""Every function of the core, and what is special about compiling it."""


class Core(NamedTuple):
    """The functions of the core that Python calls."""

    replay: Callable[..., int]
    start_planned: Callable[..., None]
    number_slots: Callable[..., None]
    expand_records: Callable[..., None]
    is_compiled: bool


_compiled: dict[bool, Core] = {}
"""The compiled cores of this process: without (False) and with real clusters (True)."""


def kernel(function: Function) -> Function:
    """Mark a function of the core: scalar code over arrays, no objects, no allocation."""
    _kernels[function] = {"no_cpython_wrapper": True}
    return function


def hot_kernel(function: Function) -> Function:
    """Mark a kernel run for every job: its code is copied to where it is called from.

    Passing arrays costs more than most kernels do; copying larger ones everywhere would make
    compilation slow instead.
    """
    _kernels[function] = {"no_cpython_wrapper": True, "forceinline": True}
    return function


def spliced_kernel(function: Function) -> Function:
    """Mark a kernel called from one place: it becomes part of its caller before compilation.

    Every separately compiled function is linked and optimised with all it calls, so that long
    chains of calls near the top of the core are what takes long to compile.
    """
    _kernels[function] = {"no_cpython_wrapper": True, "inline": "always"}
    return function


def entry_point(function: Function) -> Function:
    """Mark a kernel that Python calls; its machine code, with all it calls, is kept on disk."""
    _kernels[function] = {"cache": True}
    return function


def parallel_entry_point(function: Function) -> Function:
    """Mark a kernel that Python calls and whose `prange` loops share the processor's cores."""
    _kernels[function] = {"cache": True, "parallel": True}
    return function


prange = range
"""A loop whose rounds may run at the same time, where it is compiled."""


def bare(array: Row) -> Row:
    """Return the array as the core wants it: itself, or compiled, a pointer to its first item.

    A pointer is one word to pass where an array is seven, and indexing it has no case for negative
    indices, which the core never uses.
    """
    return array


BENCH = 64
"""Sums that fit on a workbench."""


def workbench() -> Any:
    """Return room for sums, 32-bit reals, that the calling kernel has for itself.

    Compiled, they are kept in the processor's registers. That cannot be done with a part of the
    core's rows: for all the compiler knows, two of these might be the same.
    """
    return [0.0] * BENCH


def core(*, is_real: bool, may_be_compiled: bool = True) -> Core:
    """Return the compiled core if there is one in this process, else the plain one."""
    if may_be_compiled and is_real in _compiled:
        return _compiled[is_real]
    events = importlib.import_module("yardmaster.engine.core.events")
    tables = importlib.import_module("yardmaster.engine.core.tables")
    return Core(
        replay=events.replay,
        start_planned=events.start_planned,
        number_slots=tables.number_slots,
        expand_records=tables.expand_records,
        is_compiled=False,
    )


def is_compiled(*, is_real: bool = False) -> bool:
    """Whether the core of this process runs compiled."""
    return is_real in _compiled


def cache_folder(*, is_real: bool = False, more: Path | None = None) -> Path:
    """Return the folder for this version's machine code, whether it exists or not.

    `more` is a folder of further sources that are compiled together with the core.
    """
    root = os.environ.get("YARDMASTER_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "yardmaster" / _source_hash(more) / ("real" if is_real else "plain")


def is_cached(*, is_real: bool = False) -> bool:
    """Whether this installation has been compiled on this machine before."""
    folder = cache_folder(is_real=is_real)
    if not any(folder.rglob("events.replay*.nbc")):
        return False  # without loading Numba
    return is_on_disk(compiled_functions(CORE_MODULES, folder, is_real=is_real)["events.replay"])


def is_on_disk(function: Any) -> bool:
    """Whether a compiled function's machine code can be read back, instead of being made.

    Numba goes by the path of the sources too: where the same version is installed elsewhere, the
    files of the other installation lie in the folder, and are of no use.
    """
    try:
        return bool(function._cache._cache_file._load_index())  # noqa: SLF001  (nobody else knows)
    except (AttributeError, EOFError, OSError, ValueError):
        return False


def announcement(what: str, *, minutes: str = "about a minute") -> str:
    """Return what users read before the first use of compiled code."""
    return f"Compiling {what} for this machine, once: {minutes} …"


def compile_core(announce: Callable[[str], None] | None = None, *, is_real: bool = False) -> None:
    """Compile the core, once per process.

    Machine code is produced when a kernel is first called and kept on disk. `announce` is told
    when that will take a while because this version has never run on this machine.
    """
    if is_real in _compiled:
        return
    made = compiled_functions(CORE_MODULES, cache_folder(is_real=is_real), is_real=is_real)
    if announce is not None and not is_on_disk(made["events.replay"]):
        took = "a minute or two" if is_real else "about a minute"
        announce(announcement("the simulation core", minutes=took))
    _compiled[is_real] = Core(
        replay=made["events.replay"],
        start_planned=made["events.start_planned"],
        number_slots=made["tables.number_slots"],
        expand_records=made["tables.expand_records"],
        is_compiled=True,
    )


def compiled_functions(
    modules: Sequence[str],
    folder: Path,
    *,
    is_real: bool,
    replaced: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return compiled copies of every kernel of the modules, by `module.function`.

    Machine code is kept in the folder; `replaced` as in `copies`.
    """
    _set_cache_folder(folder)
    from numba import njit
    from numba import prange as parallel_range

    # No reference counting: kernels never create or keep an array, and counting would cost more
    # than the work itself.
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "_nrt": False,
        "no_cfunc_wrapper": True,
    }
    if is_real:
        # So many functions call the hot ones that copying them would take minutes.
        options["forceinline"] = False
    return copies(
        lambda function, special: njit(**(special | options))(function),
        modules,
        is_real=is_real,
        replaced={
            "bare": _pointer_to_array(),
            "workbench": _stack(),
            "prange": parallel_range,
        }
        | dict(replaced or {}),
    )


def _pointer_to_array() -> Any:
    """Return the compiled form of `bare`."""
    from numba.extending import intrinsic

    types: Any = importlib.import_module("numba.core.types")
    cgutils: Any = importlib.import_module("numba.core.cgutils")

    @intrinsic
    def pointer(_: Any, array: Any) -> Any:
        signature = types.CPointer(array.dtype)(array)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (value,) = arguments
            return cgutils.create_struct_proxy(signature.args[0])(context, builder, value).data

        return signature, generate

    return pointer


def _stack() -> Any:
    """Return the compiled form of `workbench`."""
    from numba.extending import intrinsic

    types: Any = importlib.import_module("numba.core.types")
    cgutils: Any = importlib.import_module("numba.core.cgutils")

    @intrinsic
    def stack(_: Any) -> Any:
        signature = types.CPointer(types.float32)()

        def generate(context: Any, builder: Any, signature: Any, _: Any) -> Any:
            real = context.get_value_type(signature.return_type.dtype)
            return cgutils.alloca_once(builder, real, size=BENCH)

        return signature, generate

    return stack


def copies(
    compiler: Callable[[Callable[..., Any], dict[str, bool | str]], Any],
    modules: Sequence[str] = CORE_MODULES,
    *,
    is_real: bool,
    replaced: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what `compiler` makes of a copy of every kernel, by `module.function`.

    The copies see each other's compiled forms under the names of the originals, `REAL_CLUSTERS` as
    `is_real`, and `replaced` for further names. The compiler is given the function and what is
    special about it (see `_kernels`).
    """
    spaces = {name: dict(vars(importlib.import_module(name))) for name in modules}
    made: dict[Callable[..., Any], Any] = {}
    for function, special in _kernels.items():
        if function.__module__ in spaces:
            copy = _copy(function, spaces[function.__module__])
            if is_real:
                # Machine code from different processes is told apart by names alone: two sets that
                # were kept on disk must not share any, or one would run the other's functions.
                copy.__qualname__ += "_real"
            made[function] = compiler(copy, special)
    for space in spaces.values():
        for name, value in list(space.items()):
            if callable(value) and getattr(value, "__hash__", None) and value in made:
                space[name] = made[value]
        space |= {key: value for key, value in replaced.items() if key in space}
        if "REAL_CLUSTERS" in space:
            space["REAL_CLUSTERS"] = is_real
    return {
        f"{function.__module__.rpartition('.')[2]}.{function.__name__}": copy
        for function, copy in made.items()
    }


def _copy(function: Callable[..., Any], space: dict[str, Any]) -> Callable[..., Any]:
    """Return the function with other globals."""
    copy = FunctionType(
        function.__code__, space, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    copy.__annotations__ = function.__annotations__
    return copy


def _set_cache_folder(folder: Path) -> None:
    """Tell Numba where to keep machine code; fall back to a temporary folder if we must."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="yardmaster-cache-"))
    import numba

    setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010  (unknown to its type stubs)


def _source_hash(more: Path | None) -> str:
    """Return a short hash of the core's sources and of the interpreter's version."""
    digest = hashlib.sha256(sys.version.encode())
    here = Path(__file__).parent
    model = here.parent / "model"
    named = [here / "state.py", model / "site.py", model / "schedule.py", Path(__file__)]
    further = more.glob("*.py") if more is not None else ()
    for path in sorted([*here.glob("core/*.py"), *named, *further]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
