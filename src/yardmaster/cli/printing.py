"""Printing a table in the format the user asked for."""

from __future__ import annotations

from dataclasses import replace

from yardmaster.cli.console import colours, remark, say, say_json, width
from yardmaster.report.renderers import to_csv, to_dict, to_latex, to_markdown, to_terminal
from yardmaster.report.tables import Table
from yardmaster.workloads.traces.reading.account import IMPORTED, in_brief


def print_table(
    table: Table, style: str, *, quiet: bool = False, whole: str = "--format csv"
) -> None:
    """Print a table as `table`, `markdown`, `csv`, `latex` or `json`.

    What an import noted about the jobs is one line, and none with `quiet`; JSON has it all. `whole`
    is the option that shows all columns.
    """
    if style == "json":
        say_json({"notes": list(table.notes)} | to_dict(table))
        return
    kept = (note for note in table.notes if not (quiet and IMPORTED in note))
    table = replace(table, notes=in_brief(kept))
    if style == "table":
        say(to_terminal(table, width=width(), colour=colours(), hint=f"; {whole} has all"))
    else:
        for note in table.notes:
            remark(f"Note: {note}")
        say({"markdown": to_markdown, "csv": to_csv, "latex": to_latex}[style](table))
