"""Rows whose cells make sense one by one, but not together."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.bad_rows import LINES_NAMED
from yardmaster.workloads.traces.reading.delimited import Reason
from yardmaster.workloads.traces.reading.draft import dropped_where
from yardmaster.workloads.traces.reading.options import ImportOptions


def judged(
    frame: pl.DataFrame,
    what: str,
    *,
    mistakes: Sequence[Reason],
    reasons: Sequence[Reason],
    named_by: str,
    options: ImportOptions,
    ledger: Ledger,
) -> pl.DataFrame:
    """Return the rows that stay; mistakes are refused or, if they may be, dropped and counted.

    Args:
        frame: the rows.
        what: what they are, such as `pods`; the account counts them under this name.
        mistakes: what no sound trace holds, such as an end before the start.
        reasons: what the format explains, such as jobs that never started.
        named_by: column that says which row is meant, for messages.
        options: whether mistakes may be skipped.
        ledger: the account.

    Raises:
        TraceFormatError: if there are mistakes and they may not be skipped, naming the first.
    """
    if not options.skip_bad_rows:
        _refuse(frame, what, mistakes, named_by, ledger)
    dropped = [(f"cannot be read: {mistake.text}", mistake.holds) for mistake in mistakes]
    explained = [(reason.text, reason.holds) for reason in reasons]
    return dropped_where(frame, what, [*dropped, *explained], ledger)


def _refuse(
    frame: pl.DataFrame, what: str, mistakes: Sequence[Reason], named_by: str, ledger: Ledger
) -> None:
    complaints = [
        f"  - {name}: {mistake.text}"
        for mistake in mistakes
        for name in frame.filter(mistake.holds)[named_by].to_list()
    ]
    if not complaints:
        return
    shown = complaints[:LINES_NAMED]
    if len(complaints) > LINES_NAMED:
        shown.append(f"  … and {len(complaints) - LINES_NAMED:,} more")
    raise TraceFormatError(
        f"{', '.join(ledger.files)}: {len(complaints):,} of the {what} make no sense"
        " (--skip-bad-rows drops and counts them)\n" + "\n".join(shown)
    )
