"""Google's Borg cells: jobs made of tasks, told as what happened to each of them, event by event.

The traces of 2011 and 2019 share this shape. One table tells of jobs, one of their tasks; both come
in parts. Times count microseconds from 600 s before the trace began; 0 stands for any time before
it and 2⁶³ − 1 for any time after it. Events of a job or a task: it is opened (submitted, queued,
enabled), scheduled, ended (evicted, failed, finished, killed, lost), perhaps opened and scheduled
again.

Here the events become histories, one row per job or task; `borg_jobs` makes gangs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.bad_rows import EXAMPLES
from yardmaster.workloads.traces.reading.cells import Field, is_blank
from yardmaster.workloads.traces.reading.delimited import Reason
from yardmaster.workloads.traces.reading.trace_files import TraceFile

BEGIN_S = 600.0
"""Second of the trace's clock at which it begins."""

AFTER_US = 2**63 - 1
"""The time of whatever happened after the trace had ended."""

LARGEST_US = 366 * 86_400 * 10**6
"""Times beyond a year of microseconds are damaged cells; the traces last a month."""

AFTER_THE_END = Reason("happened after the trace had ended", pl.col("time") == AFTER_US)
ALLOC_SETS = Reason(
    "of an alloc set, which reserves resources for jobs", pl.col("collection_type") == 1
)
"""Only 2019 tells of these."""

_ROWS_HELD = 4_000_000
EVENT_CODES = 16
"""Events have smaller numbers than this, in both versions of the trace."""


@dataclass(frozen=True, slots=True)
class Bounded(Field):
    """A column of whole numbers within bounds.

    Attributes:
        largest: the largest number that makes sense.
        also: one more number that does.
    """

    largest: int = 2**63 - 1
    also: int = 0

    def impossible(self) -> pl.Expr:
        """Return where a number cannot be; never where it is null."""
        value = pl.col(self.name)
        wrong = ((value < 0) | (value > self.largest)) & (value != self.also)
        return wrong.fill_null(value=False)


_CPUS = r"""cpus['"]?\s*[:=]\s*"""


@dataclass(frozen=True, slots=True)
class Request(Field):
    """A column of CPU requests: numbers, or objects such as `{'cpus': 0.02, 'memory': 0.01}`."""

    def parsed(self, text: pl.Expr) -> pl.Expr:
        """Return the request, null where there is none or it is unreadable."""
        inside = text.str.extract(_CPUS + r"""['"]?([-+.\deE]+)""")
        return pl.coalesce(
            text.cast(pl.Float64, strict=False), inside.cast(pl.Float64, strict=False)
        )

    def blank(self, text: pl.Expr) -> pl.Expr:
        """Return where nothing is written: no cell, or an object without a number of CPUs."""
        an_object = text.str.starts_with("{") & text.str.ends_with("}")
        no_number = ~text.str.contains(_CPUS + r"[^Nn\s]")
        return is_blank(text) | (an_object & no_number)


@dataclass(frozen=True, slots=True)
class EventCodes:
    """What the numbers of events mean in one version of the trace.

    Attributes:
        opened: a job or task asks to run.
        scheduled: it begins to run.
        ended: it stops running, and how.
    """

    opened: tuple[int, ...]
    scheduled: int
    ended: Mapping[int, str]


@dataclass(slots=True)
class Window:
    """Which time some parts of a table cover, in microseconds.

    Attributes:
        first: the first event within the trace.
        last: the last one.
        from_the_start: whether the parts tell what was there before the trace began.
    """

    first: int = AFTER_US
    last: int = 0
    from_the_start: bool = False

    def widen(self, times: pl.Series) -> None:
        """Take the events of one more part into account."""
        inside = times.filter(times > 0).to_frame("time")
        if len(inside):
            first, last = inside.select(pl.min("time"), last=pl.max("time")).row(0)
            self.first, self.last = min(self.first, first), max(self.last, last)
        self.from_the_start = self.from_the_start or len(inside) < len(times)

    @property
    def begin_s(self) -> float:
        """The second at which the parts begin."""
        first_s = self.first / 1e6 if self.last else BEGIN_S
        return min(first_s, BEGIN_S) if self.from_the_start else first_s

    @property
    def end_s(self) -> float:
        """The second at which the parts end."""
        return max(self.last / 1e6, self.begin_s)


@dataclass(slots=True)
class History:
    """One table, folded: what became of each job or task, and which time the table covers."""

    frame: pl.DataFrame
    window: Window = field(default_factory=Window)


def folded(
    files: Sequence[TraceFile],
    read_part: Callable[[TraceFile, Ledger], pl.DataFrame],
    codes: EventCodes,
    *,
    keys: Sequence[str],
    table: str,
    ledger: Ledger,
) -> History:
    """Read the parts of a table one after the other, and keep one row per job or task.

    Args:
        files: the parts, in any order.
        read_part: returns one part's events with the columns `time`, `code`, `priority`, `user`
            and `kind`, the keys, and for tasks `cpu`; books its rows in the ledger it is given.
        codes: what the events mean.
        keys: `("job",)` or `("job", "task")`.
        table: the name of the table, for the account.
        ledger: the account.
    """
    rows = Ledger(ledger.format, [])
    window = Window()

    def parts() -> Iterable[pl.DataFrame]:
        for file in files:
            events = read_part(file, rows)
            window.widen(events["time"])
            yield _summed_up(events, codes, keys)

    frame = _merged(parts(), keys)
    _book(
        f"events of {table} ({len(files)} {'part' if len(files) == 1 else 'parts'})", rows, ledger
    )
    return History(frame, window)


def _summed_up(events: pl.DataFrame, codes: EventCodes, keys: Sequence[str]) -> pl.DataFrame:
    """Return one row per job or task: when it was first and last opened, started and ended.

    `ended` holds time and event in one number, so that the latest end is a simple maximum.
    """
    time, code = pl.col("time"), pl.col("code")
    opens = code.is_in(codes.opened)
    starts = code == codes.scheduled
    ends = code.is_in(list(codes.ended))
    cpu = [pl.col("cpu").max()] if "cpu" in events.columns else []
    return events.group_by(keys).agg(
        pl.when(opens).then(time).min().alias("opened"),
        pl.when(starts).then(time).min().alias("started"),
        pl.when(opens | starts).then(time).max().alias("again"),
        pl.when(ends).then(time).min().alias("first_end"),
        pl.when(ends).then(time * EVENT_CODES + code).max().alias("ended"),
        starts.sum().cast(pl.UInt32).alias("starts"),
        pl.col("priority").max(),
        pl.col("user", "kind").cast(pl.Categorical).drop_nulls().first(),
        *cpu,
    )


def _merged(parts: Iterable[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Put the rows of several parts together, now and then, so that only few are held twice."""
    held: list[pl.DataFrame] = []
    for part in parts:
        held.append(part)
        if sum(map(len, held[1:])) > max(_ROWS_HELD, len(held[0])):
            held = [_once(held, keys)]
    return _once(held, keys)


def _once(held: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    if len(held) == 1:
        return held[0]
    rows = pl.concat(held)
    cpu = [pl.col("cpu").max()] if "cpu" in rows.columns else []
    return rows.group_by(keys).agg(
        pl.col("opened", "started", "first_end").min(),
        pl.col("again", "ended", "priority").max(),
        pl.col("starts").sum(),
        pl.col("user", "kind").drop_nulls().first(),
        *cpu,
    )


def _book(what: str, rows: Ledger, ledger: Ledger) -> None:
    """Book the rows of all parts as one stage: there may be five hundred."""
    counts: dict[str, int] = {}
    examples: dict[str, list[str]] = {}
    for stage in rows.stages:
        part = stage.what.removeprefix("rows of ")
        for entry in stage.dropped:
            counts[entry.reason] = counts.get(entry.reason, 0) + entry.count
            places = examples.setdefault(entry.reason, [])
            places += [f"{part} {place}" for place in entry.examples]
    dropped = [
        Dropped(reason, count, tuple(examples[reason][:EXAMPLES]))
        for reason, count in counts.items()
    ]
    read, kept = sum(s.read for s in rows.stages), sum(s.kept for s in rows.stages)
    ledger.stage(what, read, kept, dropped)
    ledger.missing(rows.missing_columns)
    for text in rows.remarks:
        ledger.remark(text)
