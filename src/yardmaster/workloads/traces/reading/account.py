"""The account of an import: every row read is kept or dropped for a reason that is counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

IMPORTED = "import: "
"""How notes begin that come from an account."""

REMARK = "note: "
"""How lines of an account begin that are remarks."""

FILES_NAMED = 4
"""How many files the lines of an account name before the rest are counted."""


_STAGE = re.compile(r"import: (?P<read>[\d,]+) .* read, (?P<kept>[\d,]+) kept$")


@dataclass(frozen=True, slots=True)
class Dropped:
    """Rows that did not become jobs, all for one reason.

    Attributes:
        reason: why, in words that follow "dropped …: ".
        count: how many.
        examples: places of the first of them, such as `line 17`.
    """

    reason: str
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One step from a publisher's table to jobs: rows in, rows out, and why they differ.

    Attributes:
        what: what is counted, such as `rows of cluster_log.csv` or `jobs`.
        read: how many came in.
        kept: how many went on.
        dropped: the others; `read` = `kept` + the sum of these.
    """

    what: str
    read: int
    kept: int
    dropped: tuple[Dropped, ...] = ()

    def __post_init__(self) -> None:
        lost = sum(entry.count for entry in self.dropped)
        if self.read != self.kept + lost:
            raise AssertionError(f"{self.what}: {self.read} ≠ {self.kept} kept + {lost} dropped")

    def lines(self) -> list[str]:
        """Return the stage as people read it, one fact per line."""
        counted = f"{self.read:,} {self.what} read, {self.kept:,} kept"
        return [counted, *(f"  dropped {_counted(entry)}" for entry in self.dropped)]


@dataclass(frozen=True, slots=True)
class Account:
    """What an import did with the publisher's rows.

    Attributes:
        format: name of the trace format.
        files: the files read.
        stages: from rows to jobs; the last stage's `kept` is the number of jobs.
        censored: why run times are only lower bounds → how many jobs.
        changed: what was altered → how many jobs.
        time_zone: what local time means in this trace.
        begins: local date and time of second 0, "" if the trace has no dates.
        missing_columns: columns of the format that the files do not have.
        remarks: what else the reader must know.
    """

    format: str
    files: tuple[str, ...]
    stages: tuple[Stage, ...]
    censored: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    time_zone: str = ""
    begins: str = ""
    missing_columns: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def jobs(self) -> int:
        """Jobs that were written."""
        return self.stages[-1].kept

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and dictionaries, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the account as people read it, one fact per line."""
        more = (
            f" and {len(self.files) - FILES_NAMED:,} more" if len(self.files) > FILES_NAMED else ""
        )
        lines = [f"{self.format}: {', '.join(self.files[:FILES_NAMED])}{more}"]
        for stage in self.stages:
            lines += stage.lines()
        lines += [f"censored: {count:,} jobs {why}" for why, count in self.censored.items()]
        lines += [f"changed: {count:,} jobs {what}" for what, count in self.changed.items()]
        lines.append(f"time zone: {self.time_zone or 'none: the trace has no dates'}")
        lines.append(f"second 0: {self.begins or 'the first second of the trace'}")
        if self.missing_columns:
            lines.append(f"columns missing: {', '.join(self.missing_columns)}")
        return lines + [f"{REMARK}{remark}" for remark in self.remarks]

    def notes(self) -> tuple[str, ...]:
        """Return what travels with the workload: the account without its table of files."""
        told = (line.strip().removeprefix(REMARK) for line in self.lines()[1:])
        return tuple(f"{IMPORTED}{line}" for line in told)


def in_brief(notes: Iterable[str]) -> tuple[str, ...]:
    """Return a workload's notes with one line in place of all that its import noted."""
    notes = tuple(notes)
    imported = [note for note in notes if IMPORTED in note]
    if not imported:
        return notes
    counts = [match for note in imported if (match := _STAGE.search(note))]
    # Two stages are rows and the jobs made of them; where there are more, tables were joined.
    first = counts[0] if len(counts) == 2 else counts[-1] if counts else None
    kept = "" if first is None else f"{counts[-1]['kept']} of {first['read']} jobs kept; "
    line = f"{IMPORTED}{kept}`yardmaster workload describe FILE` tells why"
    return (line, *(note for note in notes if IMPORTED not in note))


def _counted(entry: Dropped) -> str:
    places = f" ({', '.join(entry.examples)}{', …' if entry.count > len(entry.examples) else ''})"
    return f"{entry.count:,}: {entry.reason}{places if entry.examples else ''}"


@dataclass(slots=True)
class Ledger:
    """An account while it is being kept."""

    format: str
    files: Sequence[str]
    stages: list[Stage] = field(default_factory=list)
    censored: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    missing_columns: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def stage(self, what: str, read: int, kept: int, dropped: Iterable[Dropped] = ()) -> None:
        """Book one step; reasons that hit nothing are left out."""
        self.stages.append(Stage(what, read, kept, tuple(d for d in dropped if d.count)))

    def censor(self, why: str, count: int) -> None:
        """Book run times that are only lower bounds."""
        if count:
            self.censored[why] = self.censored.get(why, 0) + count

    def change(self, what: str, count: int) -> None:
        """Book jobs that were altered."""
        if count:
            self.changed[what] = self.changed.get(what, 0) + count

    def missing(self, columns: Iterable[str]) -> None:
        """Book columns of the format that a file does not have."""
        self.missing_columns += [name for name in columns if name not in self.missing_columns]

    def remark(self, text: str) -> None:
        """Book something else the reader must know, once."""
        if text not in self.remarks:
            self.remarks.append(text)

    def closed(self, *, time_zone: str, begins: str) -> Account:
        """Return the finished account."""
        return Account(
            format=self.format,
            files=tuple(self.files),
            stages=tuple(self.stages),
            censored=dict(self.censored),
            changed=dict(self.changed),
            time_zone=time_zone,
            begins=begins,
            missing_columns=tuple(self.missing_columns),
            remarks=tuple(self.remarks),
        )
