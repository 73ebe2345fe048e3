"""A table in other people's formats: terminal, Markdown, CSV, LaTeX and JSON.

Terminal, Markdown and LaTeX write the table's cells, rounded for reading. CSV and JSON write its
records: every metric in base units (seconds, fractions) at full precision, for programs.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from yardmaster.report.tables import Cell, Column, Record, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

TERMINAL_WIDTH = 120
"""Columns to fill where the width of the reader's terminal is unknown, as in a pipe."""
WIDEST_NAME = 48
"""Characters of a row's name in a terminal, beyond which it goes on in the next line."""
NARROWEST_HEADER = 8
_STYLES = {"better": "green", "worse": "red", "strong": "bold", "": ""}


def to_terminal(
    table: Table, *, width: int = TERMINAL_WIDTH, colour: bool = False, hint: str = ""
) -> str:
    """Write the table for a terminal of `width` characters.

    The least important columns are left out until the rest fits, and the legend names them, with a
    hint where to see them.
    Without `colour` the text holds no escape codes, so it can be piped or saved.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if colour else None,
        force_terminal=colour,
        legacy_windows=False,
    )
    shown = _fitting(table, console, hint)
    with console.capture() as capture:
        console.print(Text(shown.title, style="bold"))
        console.print(_rich(shown))
        for line in _below(shown):
            console.print(Text(line, style="dim"))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _below(table: Table) -> tuple[str, ...]:
    """Return the lines below the table: legend, then notes."""
    return (*table.legend, *(f"Note: {note}" for note in table.notes))


def _fitting(table: Table, console: Console, hint: str) -> Table:
    """Leave out columns, least important first, until the table fits the console."""
    unlimited = console.options.update(max_width=100_000)
    shown = table
    while True:
        needed = console.measure(_rich(shown), options=unlimited).maximum
        droppable = [column for column in shown.columns if column.importance > 0]
        if needed <= console.width or not droppable:
            break
        shown = _without(shown, max(droppable, key=lambda column: column.importance))
    hidden = [column.header for column in table.columns if column not in shown.columns]
    if not hidden:
        return table
    line = f"Left out to fit {console.width} characters: {', '.join(hidden)}{hint}."
    return replace(shown, legend=(*shown.legend, line))


def _without(table: Table, column: Column) -> Table:
    place = table.columns.index(column)
    return replace(
        table,
        columns=table.columns[:place] + table.columns[place + 1 :],
        rows=tuple(row[:place] + row[place + 1 :] for row in table.rows),
    )


def _rich(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    # One long name must not push out every column that could be left out.
    yields = any(column.importance > 0 for column in table.columns)
    for place, column in enumerate(table.columns):
        widest = max((len(row[place].text) for row in table.rows), default=0)
        lines = textwrap.wrap(column.header, max(widest, NARROWEST_HEADER), break_long_words=False)
        drawn.add_column(
            Text("\n".join(lines)), justify=column.align, overflow="fold", vertical="bottom",
            max_width=WIDEST_NAME if place == 0 and yields else None,
        )  # fmt: skip
    for row in table.rows:
        drawn.add_row(*(Text(cell.text, style=_STYLES[cell.tone]) for cell in row))
    return drawn


def to_markdown(table: Table) -> str:
    """Write the table as GitHub-flavoured Markdown, title above and legend below."""
    rule = ["---:" if column.align == "right" else ":---" for column in table.columns]
    lines = [
        f"**{_markdown(table.title)}**",
        "",
        _markdown_row([_markdown(column.header) for column in table.columns]),
        _markdown_row(rule),
        *(_markdown_row([_markdown_cell(cell) for cell in row]) for row in table.rows),
        "",
        *(f"- {_markdown(line)}" for line in _below(table)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = _markdown(cell.text)
    return f"**{text}**" if cell.tone == "strong" and text else text


def _markdown(text: str) -> str:
    # A bracket alone is only a bracket; one followed by these would close a link.
    return re.sub(r"([\\`*_<>|&#~$]|\](?=[(\[:]))", r"\\\1", text)


def to_csv(table: Table) -> str:
    """Write the table's records as CSV: base units, full precision, empty where unknown."""
    out = io.StringIO()
    fields = list(dict.fromkeys(key for record in table.records for key in record))
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: _csv_value(value) for key, value in record.items()} for record in table.records
    )
    return out.getvalue()


def _csv_value(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def to_dict(table: Table) -> dict[str, Any]:
    """Return the table's facts and records, ready for `json.dumps`; unknown numbers are None."""
    rows: list[Record] = [dict(record) for record in table.records]
    return {**table.facts, "rows": rows}


_LATEX = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "Δ": r"$\Delta$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "×": r"$\times$",
    "…": r"\ldots{}",
    "★": r"$\bigstar$",
    "◆": r"$\blacklozenge$",
    "◇": r"$\lozenge$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def to_latex(table: Table) -> str:
    """Write the table as a LaTeX float with booktabs rules, legend below."""
    align = "".join("r" if column.align == "right" else "l" for column in table.columns)
    header = " & ".join(_latex(column.header) for column in table.columns)
    body = [" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in table.rows]
    legend = [rf"\par {_latex(line)}" for line in _below(table)]
    lines = [
        r"% needs \usepackage{booktabs,amssymb}",
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{_latex(table.title)}}}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        rf"{header} \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\medskip\raggedright\footnotesize",
        *legend,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell) -> str:
    text = _latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.tone == "strong" and text else text


def _latex(text: str) -> str:
    # A cell that opens with a bracket would be read as an optional argument of `\\` above it.
    escaped = "".join(_LATEX.get(mark, mark) for mark in text)
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped
