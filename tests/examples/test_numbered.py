"""The numbered examples print what is committed beside them."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("[0-9][0-9]_*.py"))


@pytest.fixture(autouse=True)
def forgotten_orders() -> Iterator[None]:
    """An order that an example registers is forgotten after it."""
    from yardmaster.schedulers.orders import ORDERS

    before = dict(ORDERS._items)
    yield
    ORDERS._items.clear()
    ORDERS._items.update(before)


@pytest.mark.parametrize("name", EXAMPLES)
def test_output_is_as_committed(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Each example runs as it is and prints its expected output, letter by letter."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "out"])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    expected = (FOLDER / "expected" / f"{name}.txt").read_text("utf-8")
    assert capsys.readouterr().out == expected, "if the change is right: make examples"


def test_ten_examples_each_with_its_output():
    """There are examples 01 to 10, each with an expected output and a line in the overview."""
    assert [name[:2] for name in EXAMPLES] == [f"{number:02d}" for number in range(1, 11)]
    assert {path.stem for path in (FOLDER / "expected").iterdir()} == set(EXAMPLES)
    overview = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"({name}.py)" in overview for name in EXAMPLES)
