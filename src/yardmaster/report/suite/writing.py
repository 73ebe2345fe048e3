"""The folder of a report: a page, and every table and figure as files of their own.

```
report/index.html          everything on one page that needs nothing else
report/figures/NAME.png    for slides      .pdf  for papers      .svg  for pages
report/tables/NAME.md      Markdown        .tex  LaTeX           .csv  unrounded, for programs
```

It is written under a temporary name and renamed when complete. The same results give the same
bytes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.report.drawing import Figure
from yardmaster.report.renderers import to_csv, to_latex, to_markdown
from yardmaster.report.suite.chapters import Chapter, chapters
from yardmaster.report.suite.experiment import Experiment, read_experiment
from yardmaster.report.suite.index_page import render_index
from yardmaster.report.tables import Table

FOLDER = "report"
PAGE = "index.html"
PICTURES = ("png", "pdf", "svg")
TABLES: Mapping[str, Callable[[Table], str]] = {"md": to_markdown, "tex": to_latex, "csv": to_csv}
Progress = Callable[[str, int, int], None]


def write_suite_report(
    folder: Path, out: Path | None = None, *, progress: Progress | None = None
) -> Path:
    """Write the report of an experiment and return its page.

    Args:
        folder: the folder of the experiment.
        out: the folder to write; by default `report` within it. An older report is replaced.
        progress: told which figure is being drawn, how many are done and how many there are.

    Raises:
        YardmasterError: if there are no results, or the report cannot be written.
    """
    target = folder / FOLDER if out is None else out
    refuse_to_replace(target)
    experiment = read_experiment(folder)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        _write(experiment, partial, progress or _unheard)
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    except OSError as error:
        raise YardmasterError(f"Cannot write to {target}: {error.strerror}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target / PAGE


def refuse_to_replace(target: Path) -> None:
    """Complain, before any long work, if something other than a report is in the way.

    Raises:
        YardmasterError: if so.
    """
    is_report = (target / PAGE).is_file()
    is_empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not is_report and not is_empty:
        raise YardmasterError(
            f"{target} already exists and is not a report; choose another place with --out."
        )


def _unheard(_label: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def _write(experiment: Experiment, folder: Path, progress: Progress) -> None:
    parts = chapters(experiment)
    (folder / "figures").mkdir(parents=True)
    (folder / "tables").mkdir()
    for chapter in parts:
        for named in chapter.tables:
            for ending, written in TABLES.items():
                text = written(named.table)
                (folder / "tables" / f"{named.name}.{ending}").write_text(text, encoding="utf-8")
    figures = _draw(parts, folder / "figures", progress)
    page = render_index(
        experiment, parts, figures, picture_endings=PICTURES, table_endings=tuple(TABLES)
    )
    (folder / PAGE).write_text(page, encoding="utf-8")


def _draw(parts: tuple[Chapter, ...], folder: Path, progress: Progress) -> dict[str, Figure]:
    """Draw all figures, as files and for the page."""
    sketches = [sketch for chapter in parts for sketch in chapter.sketches]
    figures = {}
    for done, sketch in enumerate(sketches):
        progress(sketch.title, done, len(sketches))
        figures[sketch.name] = figure = sketch.figure()
        (folder / f"{sketch.name}.svg").write_text(figure.svg, encoding="utf-8")
        for ending, content in sketch.pictures().items():
            (folder / f"{sketch.name}.{ending}").write_bytes(content)
    progress("done", len(sketches), len(sketches))
    return figures
