"""Modules that a user's file imports from the folder it stands in: they belong to the file.

A file that decides who is next may lean on others beside it, as any program may. They are found
without running anything, by the names in `import` statements; what is imported by other means is
not known. Names of the standard library and of installed libraries mean these, whatever stands
beside the file.

Each folder has its modules for itself: Python knows them as parts of a package that is named after
the folder, and their `import` statements look there first. So folders may have modules of the same
name, functions may import when they are called, and the program's own modules and paths stay.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.machinery
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

OURSELVES = "yardmaster"
"""A folder of this name is no neighbour, wherever a file stands."""
PACKAGE = "yardmaster_beside_"
"""How the package of a folder's modules is called, before a digest of the folder."""
_INSTALLED = frozenset(
    Path(place).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (place := sysconfig.get_path(name))
)
"""Where libraries are."""


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
    found: set[str] = set()
    waiting = [own]
    while waiting:
        for name in _imports(waiting.pop(), folder):
            files = _files_of(folder, name.partition(".")[0])
            new = {file.relative_to(folder).as_posix() for file in files if file != own} - found
            found |= new
            waiting += [folder / file for file in new]
    return {name: folder / name for name in sorted(found)}


def _imports(file: Path, folder: Path) -> set[str]:
    """Return the modules that a module imports, anywhere in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever runs it is warned
            tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError):  # whoever imports it will be told
        return set()
    inside = file.parent.relative_to(folder).parts if file.is_relative_to(folder) else ()
    return {name for node in ast.walk(tree) for name in _names(node, inside)}


def _names(node: ast.AST, inside: tuple[str, ...]) -> Iterator[str]:
    """Return the modules that a statement may import; `inside` are the packages it stands in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = inside[: len(inside) - node.level + 1] if node.level else ()
        if package or node.module:
            yield ".".join([*package, *([node.module] if node.module else [])])


def _files_of(folder: Path, name: str) -> Iterator[Path]:
    """Return the files of a module or package in a folder; none if there is no such thing."""
    if name == OURSELVES or folder in _INSTALLED or _is_library(name):
        return
    module, package = folder / f"{name}.py", folder / name
    if module.is_file():
        yield module
    if package.is_dir():
        yield from package.rglob("*.py")


@cache
def _is_library(name: str) -> bool:
    """Whether a name is that of an installed library, or of one that comes with Python."""
    places = [str(place) for place in _INSTALLED]
    return (
        name in sys.stdlib_module_names
        or importlib.machinery.PathFinder.find_spec(name, places) is not None
    )


@contextmanager
def importing_beside(module: ModuleType, folder: Path) -> Iterator[None]:
    """Let a module import others that stand in a folder: while it is run here, and ever after.

    If it fails, what it imported is forgotten, so that files can be mended and tried again.
    """
    package = _package_of(folder.resolve())
    before = set(sys.modules)
    _let_import(module, package)
    importlib.invalidate_caches()  # files may be newer than what was last looked for
    try:
        yield
    except BaseException:
        for name in set(sys.modules) - before:
            if name.startswith(f"{package.__name__}."):
                del sys.modules[name]
        raise


def _package_of(folder: Path) -> ModuleType:
    """Return the package that a folder's modules are parts of."""
    name = PACKAGE + hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    if name not in sys.modules:
        package = ModuleType(name, f"Modules of {folder}.")
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    return sys.modules[name]


def _let_import(module: ModuleType, package: ModuleType) -> None:
    # An import statement calls what goes by this name among the built-in ones of its module.
    ours = _Importing(package.__name__, Path(package.__path__[0]))
    module.__dict__["__builtins__"] = vars(builtins) | {"__import__": ours}


def name_beside(module: str) -> str:
    """Return the name that a module goes by in its own folder."""
    return module.partition(".")[2] if module.startswith(PACKAGE) else module


class _Importing(NamedTuple):
    """What `import` statements of a folder's modules call in place of the built-in function."""

    package: str
    folder: Path

    def __call__(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002  (as the built-in one has it)
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import a module, from the folder if it stands there."""
        top = name.partition(".")[0]
        if level > 0 or not any(_files_of(self.folder, top)):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        if fromlist:
            return builtins.__import__(f"{self.package}.{name}", globals, locals, fromlist)
        importlib.import_module(f"{self.package}.{name}")
        return sys.modules[f"{self.package}.{top}"]


class _Finder(MetaPathFinder):
    """Finds the modules of folders' packages, as Python does, and lets them import beside."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to load a module; None for those of other packages."""
        if not fullname.startswith(PACKAGE) or path is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of a folder's package."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, which may import what stands beside the order."""
        _let_import(module, sys.modules[module.__name__.partition(".")[0]])
        super().exec_module(module)

    def path_stats(self, path: Any) -> Any:
        """Refuse, so that machine code is neither kept beside a user's files nor read from there.

        It would be taken for that of a file that was changed within the same second.
        """
        raise OSError(path)
