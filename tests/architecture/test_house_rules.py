"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MOST_LINES = 600
MOST_FUNCTION_LINES = 90
"""Including the docstring; the commands' option lists are the longest."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_functions_stay_short(path: Path):
    """No file is longer than 600 lines and no function longer than 90."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MOST_FUNCTION_LINES, f"{node.name} has {length} lines"


def test_names_explain_themselves():
    """No file is called utils, helpers, common or misc, or carries a version in its name."""
    bad = {"utils", "util", "helpers", "helper", "common", "misc"}
    for path in SOURCES + TESTS:
        assert path.stem not in bad
        assert "_v2" not in path.stem


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_test_says_what_it_shows(path: Path):
    """Each test function has a docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            assert ast.get_docstring(node), f"{node.name} says nothing"


def test_the_library_does_not_print():
    """Only the command line writes to the terminal."""
    for path in SOURCES:
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_print = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
            assert not is_print, path


def test_every_compiled_module_is_listed():
    """A kernel outside the listed modules would silently stay uncompiled."""
    from yardmaster.engine.compilation import CORE_MODULES

    folder = ROOT / "src/yardmaster/engine/core"
    names = {f"yardmaster.engine.core.{path.stem}" for path in folder.glob("[a-z]*.py")}
    assert names == set(CORE_MODULES)


@pytest.mark.parametrize("part", ["picking", "choosing"])
def test_every_module_with_kernels_is_listed(part: str):
    """The same of what is compiled together with the core: a file with kernels is on the list."""
    import importlib

    package = f"yardmaster.engine.{part}"
    compilation = importlib.import_module(f"{package}.compilation")
    listed = getattr(compilation, f"{part.upper()}_MODULES")
    with_kernels = {
        f"{package}.{path.stem}"
        for path in (ROOT / "src/yardmaster/engine" / part).glob("[a-z]*.py")
        if any(_is_kernel(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    }
    assert with_kernels == set(listed)


def test_every_kernel_for_a_gpu_is_listed():
    """The same of what is compiled for a GPU alone; of the rest, no module is left out halfway."""
    from yardmaster.engine.gpu import choosing, picking

    engine = ROOT / "src/yardmaster/engine"
    with_kernels = {
        f"yardmaster.engine.{path.parent.name}.{path.stem}"
        for part in ("drawing", "gpu")
        for path in (engine / part).glob("[a-z]*.py")
        if any(_is_kernel(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    }
    assert with_kernels <= {*picking.MODULES, *choosing.MODULES}
    for modules in (picking.MODULES, choosing.MODULES):
        assert len(modules) == len(set(modules))


def _is_kernel(node: ast.AST) -> bool:
    """Whether this defines a function that is to be compiled."""
    names = {"kernel", "hot_kernel", "spliced_kernel", "entry_point", "parallel_entry_point"}
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(isinstance(one, ast.Name) and one.id in names for one in decorators)


def test_places_of_choosers_are_distinct():
    """Menu, rules, scales, facts, book and purse of choosing each have room for all they hold."""
    from yardmaster.engine.choosing import places

    defined = [
        (name, value)
        for name, value in vars(places).items()
        if name.isupper() and isinstance(value, int) and not isinstance(value, places.Term)
    ]
    names = [name for name, _ in defined]
    for first, last in (
        ("MENU_ORDER", "MENU_FIELDS"),
        ("MEMBERS", "RULES"),
        ("TIME_UNIT_S", "SCALES"),
        ("HORIZON_S", "FACTS"),
        ("STEPS", "BOOK"),
        ("PAST_ARRIVALS", "PAST"),
        ("EARNED_AT", "PURSE"),
    ):
        part = [value for _, value in defined[names.index(first) : names.index(last) + 1]]
        assert part[0] == 0
        assert part == sorted(set(part))


def test_header_places_are_distinct():
    """Every counter, setting and table has its own place in one of the two headers."""
    from yardmaster.engine import state

    defined = [
        (name, value)
        for name, value in vars(state).items()
        if name.isupper() and isinstance(value, int)
    ]
    first = [name for name, _ in defined].index("NEXT_ARRIVAL")  # before it: constants
    names = [name for name, _ in defined[first:]]
    places = [value for _, value in defined[first:]]
    end = names.index("HEADER")
    assert places[: end + 1] == list(range(state.HEADER + 1))
    assert places[end + 1 :] == list(range(state.REALS_HEADER + 1))
    assert names[-1] == "REALS_HEADER"
