"""One source, two ways to run it: as plain Python, or compiled by Numba.

Functions of the core are marked with `@kernel` and stay ordinary functions. Small workloads run
them as they are, which needs no Numba and no compilation. `compile_core` replaces every one of them
by its compiled form, in place and for the rest of the process; machine code is kept on disk.

The cache folder is named after the sources of the core, because Numba looks only at the file that
defines a function, not at the files of the functions it calls.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Row = TypeVar("Row")

CORE_MODULES = (
    "yardmaster.engine.core.bits",
    "yardmaster.engine.core.heap",
    "yardmaster.engine.core.nodes",
    "yardmaster.engine.core.queue",
    "yardmaster.engine.core.running",
    "yardmaster.engine.core.reservation",
    "yardmaster.engine.core.conservative",
    "yardmaster.engine.core.passes",
    "yardmaster.engine.core.events",
    "yardmaster.engine.core.tables",
)

_kernels: dict[Callable[..., Any], dict[str, bool]] = {}
"""Every function of the core, and what is special about compiling it."""
_compiled: dict[Callable[..., Any], Any] = {}


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


def entry_point(function: Function) -> Function:
    """Mark a kernel that Python calls; its machine code, with all it calls, is kept on disk."""
    _kernels[function] = {"cache": True}
    return function


def bare(array: Row) -> Row:
    """Return the array as the core wants it: itself, or compiled, a pointer to its first item.

    A pointer is one word to pass where an array is seven, and indexing it has no case for negative
    indices, which the core never uses.
    """
    return array


def is_compiled() -> bool:
    """Whether the core of this process runs compiled."""
    return bool(_compiled)


def cache_folder() -> Path:
    """Return the folder for this version's machine code, whether it exists or not."""
    root = os.environ.get("YARDMASTER_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "yardmaster" / _source_hash()


def is_cached() -> bool:
    """Whether this version has been compiled on this machine before."""
    return any(cache_folder().rglob("events.replay-*.nbc"))


def compile_core(announce: Callable[[str], None] | None = None) -> None:
    """Replace every kernel by its compiled form, once per process.

    Machine code is produced when a kernel is first called and kept on disk. `announce` is told
    when that will take a while because this version has never run on this machine.
    """
    if _compiled:
        return
    if announce is not None and not is_cached():
        announce("Compiling the simulation core (once per version, up to half a minute) …")
    _set_cache_folder()
    from numba import njit

    # No reference counting: kernels never create or keep an array, and counting would cost more
    # than the work itself.
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "_nrt": False,
        "no_cfunc_wrapper": True,
    }
    _compiled[bare] = _pointer_to_array()
    replace_kernels(lambda function, special: njit(**(options | special))(function))


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


def replace_kernels(compiler: Callable[[Callable[..., Any], dict[str, bool]], Any]) -> None:
    """Replace every kernel of the core by what `compiler` makes of it, for the whole process.

    The compiler is given the function and what is special about it (see `_kernels`).
    """
    modules = [importlib.import_module(name) for name in CORE_MODULES]
    for function, special in _kernels.items():
        _compiled[function] = compiler(function, special)
    for module in modules:
        _replace_in(module)


def _replace_in(module: ModuleType) -> None:
    """Point every name in `module` that refers to a kernel at the compiled form."""
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__hash__", None) and value in _compiled:
            setattr(module, name, _compiled[value])


def _set_cache_folder() -> None:
    """Tell Numba where to keep machine code; fall back to a temporary folder if we must."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="yardmaster-cache-"))
    import numba

    setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010  (unknown to its type stubs)


def _source_hash() -> str:
    """Return a short hash of the core's sources and of the interpreter's version."""
    digest = hashlib.sha256(sys.version.encode())
    here = Path(__file__).parent
    for path in sorted([*here.glob("core/*.py"), here / "state.py", Path(__file__)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
