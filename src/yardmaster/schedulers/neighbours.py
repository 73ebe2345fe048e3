"""Modules that a user's file imports from the folder it stands in: they belong to the file.

A file that decides who is next may lean on others beside it, as any program may. They are found
without running anything, by the names in `import` statements; what is imported by other means is
not known. Names of the standard library and of installed libraries mean these, whatever stands
beside the file.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

OURSELVES = "yardmaster"
"""A folder of this name is no neighbour, wherever a file stands."""
_INSTALLED = frozenset(
    Path(place).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (place := sysconfig.get_path(name))
)
"""Where libraries are."""


class Import(NamedTuple):
    """A module that a file imports."""

    name: str
    """With dots."""
    is_late: bool
    """Whether it is imported inside a function: when that is called."""


def neighbours(path: Path, root: Path | None = None) -> dict[str, Path]:
    """Return the modules that a file imports from its own folder, and all that these import there.

    Packages count whole. Beside a file among installed libraries nothing is a neighbour.

    Args:
        path: the file.
        root: the folder to look in, if the file is part of a package; by default its own.

    Returns:
        The files by their path within the folder, in alphabetical order.
    """
    folder = (root or path.parent).resolve()
    own = path.parent.resolve() / path.name
    return {name: folder / name for name in sorted(_searched(folder, own)[0])}


def _searched(folder: Path, own: Path) -> tuple[set[str], set[str]]:
    """Return the neighbours of a file, and the names with dots that are imported late."""
    found: set[str] = set()
    late: set[str] = set()
    if folder in _INSTALLED:
        return found, late
    waiting = [own]
    while waiting:
        for name, is_late in _imports(waiting.pop(), folder):
            files = _files_of(folder, name.partition(".")[0])
            if files and is_late:
                late.add(name)
            new = {file.relative_to(folder).as_posix() for file in files if file != own} - found
            found |= new
            waiting += [folder / file for file in new]
    return found, late


def _imports(file: Path, folder: Path) -> set[Import]:
    """Return the modules that a module imports, anywhere in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever runs it is warned
            tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError):  # whoever imports it will be told
        return set()
    late = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(outer)
    }
    inside = file.parent.relative_to(folder).parts if file.is_relative_to(folder) else ()
    return {
        Import(name, id(node) in late)
        for node in ast.walk(tree)
        for name in _names(node, inside)
        if name.partition(".")[0] != OURSELVES
    }


def _names(node: ast.AST, inside: tuple[str, ...]) -> Iterator[str]:
    """Return the modules that a statement may import; `inside` are the packages it stands in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = inside[: len(inside) - node.level + 1] if node.level else ()
        whole = ".".join([*package, *([node.module] if node.module else [])])
        if whole:
            yield whole
            # Either what stands in it, or a module of that name.
            yield from (f"{whole}.{alias.name}" for alias in node.names)


def _files_of(folder: Path, name: str) -> list[Path]:
    """Return the files of a module or package in a folder; none if there is no such thing."""
    module, package = folder / f"{name}.py", folder / name
    found = [module] if module.is_file() else []
    found += package.rglob("*.py") if package.is_dir() else []
    return [] if found and _is_library(name) else found


@cache
def _is_library(name: str) -> bool:
    """Whether a name is that of an installed library, or of one that comes with Python."""
    places = [str(place) for place in _INSTALLED]
    return (
        name in sys.stdlib_module_names
        or importlib.machinery.PathFinder.find_spec(name, places) is not None
    )


@contextmanager
def importable(path: Path) -> Iterator[None]:
    """Let a file's neighbours be imported while it is.

    What it imports in functions is imported now, and stays. All else leaves no trace behind: files
    of different folders may have neighbours of the same name, and so may the program.

    Raises:
        ImportError: if a function imports a module whose name is taken.
    """
    folder = path.parent.resolve()
    found, late = _searched(folder, folder / path.name)
    tops = {name.partition("/")[0].removesuffix(".py") for name in found}
    if not tops:
        yield
        return
    staying = {name.partition(".")[0] for name in late}
    taken = _known(tops, folder)
    for name, module in taken.items():
        if name in staying:
            raise ImportError(
                f"a function of {path.name} imports {name}, and another module of that name is in"
                f" use ({_place_of(module)}). Import it at the top of the file, or give one of them"
                " another name"
            )
    _forget(taken)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # files may be newer than what was last looked for
    try:
        yield
        _import_now(late, folder)
    except BaseException:
        staying = set()
        raise
    finally:
        with suppress(ValueError):  # the file itself may have changed the path
            sys.path.remove(str(folder))
        _forget({name for name in sys.modules if name.partition(".")[0] in tops - staying})
        sys.modules.update(taken)


def _known(tops: set[str], folder: Path) -> dict[str, ModuleType]:
    """Return modules with these names that were imported from elsewhere, with what is in them."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in tops and not _is_here(name, module, folder)
    }


def _is_here(name: str, module: ModuleType, folder: Path) -> bool:
    """Whether a module is the neighbour itself, or to the last letter like it."""
    place = getattr(module, "__file__", None)
    if place is None:  # a package without a file of its own
        parts = getattr(module, "__path__", ())
        return any(Path(part).resolve().is_relative_to(folder) for part in parts)
    here = folder / Path(*name.split("."))
    here = here / "__init__.py" if here.is_dir() else here.with_suffix(".py")
    with suppress(OSError):
        return Path(place).samefile(here) or Path(place).read_bytes() == here.read_bytes()
    return False


def _place_of(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or next(iter(module.__path__), "?"))


def _import_now(names: set[str], folder: Path) -> None:
    """Import modules that functions will ask for; who cannot be imported is told when asked."""
    for name in sorted(names):
        place = folder / Path(*name.split("."))
        if place.is_dir() or place.with_suffix(".py").is_file():
            with suppress(Exception):
                importlib.import_module(name)


def _forget(names: Iterable[str]) -> None:
    """Let modules be imported anew; whoever has them keeps them."""
    for name in list(names):
        del sys.modules[name]
