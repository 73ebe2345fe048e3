"""What every page is made of: one HTML file that needs nothing else.

Styles and pictures are inline; the page's own security policy forbids it to load anything, and to
run any script but the one it was made with, if there is one. The same content gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from html import escape
from importlib import metadata, resources
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.report.drawing import NAMESPACE, Figure
from yardmaster.report.tables import Cell, Column, Table
from yardmaster.report.web_page import digest_of

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a page may load: nothing but its own styles."""


def policy_with(script: str) -> str:
    """Return what a page with this script may load: the same, the script, and pictures it made."""
    return f"{POLICY} blob:; script-src {digest_of(script)}"


def page(
    *,
    title: str,
    eyebrow: str,
    lead: str,
    sections: Iterable[str],
    script: str = "",
    styles: str = "",
) -> str:
    """Return a whole page as text.

    Args:
        title: what the page is about.
        eyebrow: what kind of page it is, in a few words.
        lead: the answer in a sentence or two.
        sections: the parts, as `section` returns them.
        script: what makes parts of the page interactive (see `web_page`), if anything does.
        styles: more styles than every page has.
    """
    policy = policy_with(script) if script else POLICY
    style = resources.files("yardmaster.report").joinpath("report.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · Yardmaster</title>\n<style>\n{style}{styles}</style>\n</head>\n"
        f'<body>\n<main>\n<header>\n<p class="eyebrow">{escape(eyebrow)}</p>\n'
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n</header>\n'
        + "".join(sections)
        + f"<footer>Made with Yardmaster {escape(own_version())}.</footer>\n"
        "</main>\n" + (f"<script>{script}</script>\n" if script else "") + "</body>\n</html>\n"
    )


def refuse_folder(target: Path) -> None:
    """Raise a YardmasterError if a folder stands where a page should; drawing takes a while."""
    if target.is_dir():
        raise YardmasterError(f"Cannot write the report {target}: it is a folder, not a file.")


def write_page(target: Path, text: str) -> None:
    """Write a page; the file appears complete or not at all, and an older one is replaced.

    Raises:
        YardmasterError: if the file cannot be written.
    """
    refuse_folder(target)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise YardmasterError(f"Cannot write the report {target}: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def section(title: str, body: str) -> str:
    """Return a part of a page under its heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}</section>\n"


def results(table: Table) -> str:
    """Return a table with its legend."""
    head = "".join(_head_cell(column) for column in table.columns)
    body = "".join(
        f"<tr>{''.join(map(_body_cell, table.columns, row))}</tr>\n" for row in table.rows
    )
    legend = "".join(f"<li>{escape(line)}</li>\n" for line in table.legend)
    return (
        '<div class="card scroll" tabindex="0" role="region" aria-label="Results table">\n'
        f'<table class="results">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n'
        f'</table>\n</div>\n<ul class="legend">\n{legend}</ul>\n'
    )


def _column_class(column: Column) -> str:
    if not column.title:
        return "mark"
    return "left name" if column.align == "left" else ""


def _head_cell(column: Column) -> str:
    unit = f' <span class="unit">{escape(column.unit)}</span>' if column.unit else ""
    if not column.title:
        return '<td class="mark"></td>'
    return f'<th scope="col" class="{_column_class(column)}">{escape(column.title)}{unit}</th>'


def _body_cell(column: Column, cell: Cell) -> str:
    mean, bracket, ends = cell.text.partition(" [")
    is_name = column.align == "left" and column.title
    text = escape(cell.text if is_name else mean)
    if bracket and not is_name:
        text += f' <span class="interval">[{escape(ends)}</span>'
    style = f"{_column_class(column)} {cell.tone}".strip()
    if is_name:
        return f'<th scope="row" class="{style}"><span>{text}</span></th>'
    return f'<td class="{style}">{text}</td>' if style else f"<td>{text}</td>"


def figure_cards(figures: Iterable[Figure]) -> str:
    """Return figures side by side, each with its title and caption."""
    # A page knows SVG without its namespace, and a page without one address cannot load anything.
    cards = "".join(
        f'<figure class="card">\n<h3>{escape(figure.title)}</h3>\n'
        f"{figure.svg.replace(NAMESPACE, '', 1)}"
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>\n"
        for figure in figures
    )
    return f'<div class="figures">\n{cards}</div>\n'


def fact_list(facts: Iterable[tuple[str, str]]) -> str:
    """Return names and what they stand for, one below the other."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in facts)
    return f'<dl class="card">\n{items}</dl>\n'


def own_version() -> str:
    """Return the version of this package."""
    try:
        return metadata.version("yardmaster")
    except metadata.PackageNotFoundError:
        return "(not installed)"
