"""`yardmaster workload list`: what can be imported and what can be generated."""

from __future__ import annotations

from yardmaster.cli.console import say_json
from yardmaster.cli.options import JsonOption


def list_(*, json: JsonOption = False) -> None:
    """Show the trace formats that can be imported, and the presets that can be generated."""
    from yardmaster.cli.listing import print_rows, workload_rows

    found = {"trace formats": _formats(), "presets": workload_rows()}
    if json:
        say_json(found)
        return
    for title, rows in found.items():
        print_rows(title, rows)


def _formats() -> list[dict[str, object]]:
    from yardmaster.workloads.traces.formats import trace_formats

    return [
        {"format": entry.name, "reads": entry.reads, "source": entry.source}
        for entry in trace_formats().values()
    ]
