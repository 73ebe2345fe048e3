"""Modules that a user's file imports from the folder it stands in: they belong to the file.

A file that decides who is next may lean on others beside it, as any program may. They are found
without running anything, by the names in `import` statements; what is imported by other means is
not known.
"""

from __future__ import annotations

import ast
import importlib
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURSELVES = "yardmaster"
"""A folder of this name is no neighbour, wherever a file stands."""
_INSTALLED = frozenset(
    Path(place)
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (place := sysconfig.get_path(name))
)
"""Where libraries are."""


def neighbours(path: Path) -> dict[str, Path]:
    """Return the modules that a file imports from its own folder, and all that these import there.

    Packages count whole. Beside a file among installed libraries nothing is a neighbour.

    Args:
        path: the file.

    Returns:
        The files by their path within the folder, in alphabetical order.
    """
    own = path.resolve()
    folder = own.parent
    if folder in _INSTALLED:
        return {}
    found: set[Path] = set()
    waiting = [own]
    while waiting:
        for name in _imported(waiting.pop()):
            new = {file.resolve() for file in _files_of(folder, name)} - found - {own}
            found |= new
            waiting += new
    inside = [file for file in found if file.is_relative_to(folder)]
    return {file.relative_to(folder).as_posix(): file for file in sorted(inside)}


def _imported(file: Path) -> set[str]:
    """Return the first parts of the names that a module imports, anywhere in it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # whoever imports it will be told
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found - {OURSELVES}


def _files_of(folder: Path, name: str) -> list[Path]:
    """Return the files of a module or package in a folder; none if there is no such thing."""
    module, package = folder / f"{name}.py", folder / name
    found = [module] if module.is_file() else []
    return [*found, *package.rglob("*.py")] if package.is_dir() else found


@contextmanager
def importable(path: Path) -> Iterator[None]:
    """Let a file's neighbours be imported while it is, and later by its functions.

    Files of different folders may have neighbours of the same name: each is given its own.
    """
    names = {name.partition("/")[0].removesuffix(".py") for name in neighbours(path)}
    if not names:
        yield
        return
    folder = path.resolve().parent
    for name in names:
        if _is_of_another(name, folder):
            _forget(name)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # files may be newer than what was last looked for
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _is_of_another(name: str, folder: Path) -> bool:
    """Whether a module of this name was imported from a folder of a user's, and not from this."""
    module = sys.modules.get(name)
    # A package without a file of its own has paths, the one that is searched first in front.
    place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if place is None:
        return False
    path = Path(place).resolve()
    return folder not in path.parents and _INSTALLED.isdisjoint(path.parents)


def _forget(name: str) -> None:
    """Let a module be imported anew; whoever has it keeps it."""
    for known in list(sys.modules):
        if known == name or known.startswith(f"{name}."):
            del sys.modules[known]
