"""Run the notebooks from top to bottom without Jupyter, and write what they print into them.

Their cells are plain Python that prints; a reader needs Jupyter, running them does not.

python examples/notebooks/run_notebook.py            # runs all, writes their output
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def run(notebook: dict[str, Any]) -> list[str]:
    """Run all code cells in one namespace, in an empty folder; return what each prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    with redirect_stdout(io.StringIO()) as text:
                        exec("".join(cell["source"]), names)  # noqa: S102  (our own cells)
                    printed.append(text.getvalue())
        finally:
            os.chdir(home)
    return printed


def stored(notebook: dict[str, Any]) -> list[str]:
    """Return what each code cell printed when the notebook was written."""
    return [
        "".join("".join(output["text"]) for output in cell["outputs"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def with_output(notebook: dict[str, Any], printed: list[str]) -> dict[str, Any]:
    """Return the notebook with that output in its cells, numbered from the top."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(code, printed, strict=True), 1):
        cell["execution_count"] = number
        lines = text.splitlines(keepends=True)
        stream = {"name": "stdout", "output_type": "stream", "text": lines}
        cell["outputs"] = [stream] if lines else []
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        read = json.loads(path.read_text("utf-8"))
        made = with_output(read, run(read))
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path.name)
