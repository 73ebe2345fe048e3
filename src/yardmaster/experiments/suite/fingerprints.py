"""What a run depends on besides its description: the code, as digests.

All runs share the sources of the model, the workloads, the engine, the schedulers and the metrics.
Orders are the exception: of `orders.py`, the function of each order counts for the schedulers that
use it and for nobody else, so that editing one order leaves the runs of all others valid. A user's
own order counts with its file and the modules that it imports from beside it, a trained policy with
its weights, and who chooses among schedulers with all of its menu.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.schedulers import orders
from yardmaster.schedulers.language import Scheduler, order_files, parse_scheduler
from yardmaster.schedulers.neighbours import name_beside, neighbours

SHARED = ("model", "workloads", "engine", "schedulers", "metrics", "experiments/suite/measuring.py")
"""What every run depends on, in the package."""
SUFFIXES = (".py", ".toml")
LIBRARIES = ("numpy", "numba")
"""Libraries whose versions may change the last digit of a number."""


@cache
def code_fingerprint() -> str:
    """Return a digest of everything that all runs depend on."""
    own = Path(orders.__file__)
    package = own.parents[1]
    digest = hashlib.sha256()
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    for path in _sources(package, SHARED):
        text = path.read_bytes()
        if path == own:
            text = without_orders(text.decode("utf-8")).encode()
        digest.update(f"{path.relative_to(package).as_posix()} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


def _sources(package: Path, parts: Iterable[str]) -> Iterator[Path]:
    """Yield the files of some parts of the package, always in the same order."""
    for part in parts:
        place = package / part
        if place.is_file():
            yield place
        else:
            yield from sorted(file for file in place.rglob("*") if file.suffix in SUFFIXES)


def without_orders(source: str) -> str:
    """Return the source of a module without the functions registered as orders."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any(map(_registers, node.decorator_list)):
            first = min(decorator.lineno for decorator in node.decorator_list)
            lines[first - 1 : node.end_lineno] = [""] * ((node.end_lineno or first) - first + 1)
    # Empty lines would tell how long the functions were.
    return "\n".join(line for line in lines if line.strip())


def _registers(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "order"


def scheduler_fingerprint(name: str) -> str:
    """Return a digest of what this scheduler alone depends on: its order, policy or file.

    Raises:
        YardmasterError: if the scheduler cannot be read.
    """
    scheduler = parse_scheduler(name)
    digest = hashlib.sha256(name_by_content(name).encode())
    digest.update(_who_is_next(scheduler))
    return digest.hexdigest()


def name_by_content(name: str) -> str:
    """Return a scheduler's name with a digest in place of its file: the same wherever that lies.

    Raises:
        YardmasterError: if the scheduler or its file cannot be read.
    """
    text = str(parse_scheduler(name))
    for place, path in order_files([name]).items():
        written = place if place in text else place.removesuffix("/policy.npz")
        text = text.replace(written, hashlib.sha256(_program(path)).hexdigest())
    return text


def _content(path: Path) -> bytes:
    """Return the bytes of a file that a scheduler names."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise YardmasterError(f"Cannot read {path}: {error.strerror}.") from None


def _program(path: Path, root: Path | None = None) -> bytes:
    """Return a file that a scheduler names, and behind it the modules that it imports beside it.

    Of a file in a package, `root` is the folder that the package stands in.
    """
    parts = [_content(path)]
    for name, file in neighbours(path, root).items() if path.suffix == ".py" else ():
        text = _content(file)
        parts += [f"\n{name} {len(text)}\n".encode(), text]
    return b"".join(parts)


def _who_is_next(scheduler: Scheduler) -> bytes:
    """Return the source that decides who is next: a function here, a whole file elsewhere."""
    chooser = scheduler.chooser
    if chooser is not None:
        menu = "".join(map(scheduler_fingerprint, chooser.sight.menu)).encode()
        path = getattr(chooser, "path", None)
        return menu if path is None else menu + _content(path)
    if scheduler.policy is not None:
        return _content(scheduler.policy.path)  # one that comes along is no file of the user's
    function = scheduler.order.function
    if function.__module__ == orders.__name__:
        return inspect.getsource(function).encode()
    file = inspect.getsourcefile(function if inspect.isroutine(function) else type(function))
    if not file:
        return b""
    depth = name_beside(function.__module__).count(".") + (Path(file).name == "__init__.py")
    return _program(Path(file), Path(file).parents[depth])
