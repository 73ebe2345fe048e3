"""Rows that cannot be read: named if the file is refused, counted if they may be skipped."""

from __future__ import annotations

from dataclasses import dataclass, field

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.account import Dropped
from yardmaster.workloads.traces.reading.options import ImportOptions

LINES_NAMED = 20
"""How many bad lines a message names; the rest are counted."""

EXAMPLES = 5
"""How many bad lines an account names."""


@dataclass(slots=True)
class BadRows:
    """Rows that cannot be read: how many, and what is wrong with the first of them.

    Attributes:
        count: how many there are.
        first: line and mistake of the first ones.
    """

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, why: str) -> None:
        """Count a row, and remember it if it is among the first."""
        self.count += 1
        if len(self.first) < LINES_NAMED:
            self.first.append((line, why))

    def dropped(self, where: str, options: ImportOptions, *, what: str = "row") -> Dropped:
        """Refuse the file unless bad rows may be skipped; return them for the account.

        Args:
            where: the file's name.
            options: whether they may be skipped.
            what: what one of them is called.

        Raises:
            TraceFormatError: naming the first lines and what is wrong with each.
        """
        self.first.sort()
        if self.count and not options.skip_bad_rows:
            raise TraceFormatError(self._complaint(where, what))
        examples = tuple(f"line {line}" for line, _ in self.first[:EXAMPLES])
        return Dropped("cannot be read", self.count, examples)

    def _complaint(self, where: str, what: str) -> str:
        shown = [f"  - line {line}: {why}" for line, why in self.first]
        if self.count > len(self.first):
            shown.append(f"  … and {self.count - len(self.first):,} more")
        counted = f"{self.count:,} {what}" + ("" if self.count == 1 else "s")
        return (
            f"{where}: {counted} cannot be read (--skip-bad-rows drops and counts them)\n"
            + "\n".join(shown)
        )
