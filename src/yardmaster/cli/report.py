"""`yardmaster report`: every table and figure of an experiment, from its folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import progress, remark, say
from yardmaster.cli.options import QuietOption


def report(
    folder: Annotated[Path, Parameter(help="Folder of an `experiment`.")],
    *,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Folder to write; by default report/ within it."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write the report of an experiment: a page, figures as PNG, PDF and SVG, tables as Markdown,
    LaTeX and CSV. An older report is replaced; the same results give the same bytes.
    """  # noqa: D205  (the help shows all of it)
    from yardmaster.experiments.trainings.lookahead import RESULTS
    from yardmaster.report.suite.writing import write_suite_report

    if (folder / RESULTS).is_file():
        from yardmaster.report.lookahead import write_lookahead_report

        say(str(write_lookahead_report(folder, out)))
        return
    with progress(quiet=quiet, things="figures") as told:
        page = write_suite_report(folder, out, progress=told)
    say(str(page))
    if not quiet:
        remark(f"Tables and figures as files: {page.parent}")
