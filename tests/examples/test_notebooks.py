"""The notebooks run from top to bottom and print what is stored in them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RUNNING = runpy.run_path(str(FOLDER / "run_notebook.py"), run_name="run")


def test_there_are_two():
    """One compares schedulers on a log, the other trains and explains a policy."""
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_what_is_stored(path: Path):
    """Every cell runs, in order, and prints its stored output; cells are numbered from the top."""
    notebook = json.loads(path.read_text("utf-8"))
    printed = RUNNING["run"](notebook)
    assert printed == RUNNING["stored"](notebook), "python examples/notebooks/run_notebook.py"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert notebook["nbformat"] == 4
