"""How jobs end, in the words of each publisher and in ours."""

from __future__ import annotations

import polars as pl

STATUSES = {
    "COMPLETED": "completed", "PASS": "completed", "TERMINATED": "completed",
    "FINISHED": "completed", "SUCCEEDED": "completed", "FINISH": "completed",
    "CANCELLED": "cancelled", "CANCELED": "cancelled", "KILLED": "cancelled", "KILL": "cancelled",
    "STOPPED": "cancelled", "REVOKED": "cancelled",
    "FAILED": "failed", "FAIL": "failed", "BOOT_FAIL": "failed", "NODE_FAIL": "node failure",
    "LOST": "failed", "OUT_OF_MEMORY": "out of memory", "OOM": "out of memory",
    "TIMEOUT": "timeout", "DEADLINE": "timeout", "PREEMPTED": "preempted", "EVICT": "preempted",
    "RUNNING": "running", "SUSPENDED": "running", "PENDING": "waiting", "WAITING": "waiting",
    "REQUEUED": "waiting", "RESIZING": "running", "COMPLETING": "running",
}  # fmt: skip
"""Publisher's word, in capitals → ours."""


_WRITTEN = {
    form: ours
    for word, ours in STATUSES.items()
    for form in (word, word.lower(), word.capitalize(), word.title())
}


def status(word: pl.Expr) -> pl.Expr:
    """Return our word for each publisher's; words nobody knows stay as they are."""
    return word.replace(_WRITTEN)
