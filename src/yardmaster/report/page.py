"""A page about one question: tables, figures and facts in one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from yardmaster.report.drawing import Figure
from yardmaster.report.html import POLICY, _facts, _figures, _results, _section, _version
from yardmaster.report.tables import Table
from yardmaster.report.values import plain


def write_page(
    path: Path,
    *,
    eyebrow: str,
    lead: str,
    table: Table,
    figures: Sequence[Figure],
    definitions: Iterable[tuple[str, str]],
    command: str,
) -> None:
    """Write the page.

    Args:
        path: the file to write.
        eyebrow: what kind of page it is, in a few words.
        lead: the answer in a sentence or two.
        table: the numbers; its title is the page's.
        figures: the pictures.
        definitions: what the numbers mean.
        command: the command line that made it.
    """
    style = resources.files("yardmaster.report").joinpath("report.css").read_text("utf-8")
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in table.notes)
    shown = f'<pre class="card scroll" tabindex="0"><code>{escape(plain(command))}</code></pre>\n'
    sections = [
        _section("Results", _results(table)),
        _section("Figures", _figures(figures)) if figures else "",
        _section("What to know", f'<ul class="notes">\n{notes}</ul>\n') if notes else "",
        _section("What the numbers mean", _facts(definitions)),
        _section("How to reproduce this", shown + _facts([("Yardmaster", _version())])),
    ]
    title = escape(table.title)
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · Yardmaster</title>\n<style>\n{style}</style>\n</head>\n"
        f'<body>\n<main>\n<header>\n<p class="eyebrow">{escape(eyebrow)}</p>\n<h1>{title}</h1>\n'
        f'<p class="lead">{escape(lead)}</p>\n</header>\n'
        + "".join(sections)
        + f"<footer>Made with Yardmaster {escape(_version())}.</footer>\n"
        "</main>\n</body>\n</html>\n"
    )
    path.write_text(page, encoding="utf-8")


def write_figures(folder: Path, figures: Iterable[Figure]) -> None:
    """Write every figure as an SVG file of its own."""
    folder.mkdir(exist_ok=True)
    for figure in figures:
        (folder / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
