"""A comparison or a schedule as text, for terminals and notebooks."""

from __future__ import annotations

from yardmaster.experiments.comparison import Comparison
from yardmaster.metrics.summary import summarise
from yardmaster.model.schedule import Schedule
from yardmaster.report.renderers import TERMINAL_WIDTH, to_terminal
from yardmaster.report.tables import comparison_table, summary_table


def table(result: Comparison | Schedule, *, width: int = TERMINAL_WIDTH) -> str:
    """Return the table of a comparison, or the metrics of one schedule, as plain text."""
    if isinstance(result, Comparison):
        return to_terminal(comparison_table(result), width=width)
    return to_terminal(summary_table(result, summarise(result)), width=width)
