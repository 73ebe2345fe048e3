"""Printing a table in the format the user asked for."""

from __future__ import annotations

from yardmaster.cli.console import colours, remark, say, say_json, width
from yardmaster.report.renderers import to_csv, to_dict, to_latex, to_markdown, to_terminal
from yardmaster.report.tables import Table


def print_table(table: Table, style: str) -> None:
    """Print a table as `table`, `markdown`, `csv`, `latex` or `json`."""
    if style == "json":
        say_json({"notes": list(table.notes)} | to_dict(table))
    elif style == "table":
        say(to_terminal(table, width=width(), colour=colours()))
    else:
        for note in table.notes:
            remark(f"Note: {note}")
        say({"markdown": to_markdown, "csv": to_csv, "latex": to_latex}[style](table))
