"""`sacct --json`: one large document whose `jobs` are read one by one.

Newer versions wrap numbers (`{"set": true, "infinite": false, "number": 5}`) and list states; all
of them nest times under `time` and resources under `tres`. Earlier attempts of requeued jobs are
there as well, before their last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.slurm.records import LINE, Source

CHUNK_CHARACTERS = 1 << 22
CHUNK_RECORDS = 20_000
_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_BLANKS = re.compile(r"\s*")
_DECODER = json.JSONDecoder()

KEYS = {
    "JobIDRaw": "job_id", "User": "user", "Account": "account", "Partition": "partition",
    "Cluster": "cluster", "NodeList": "nodes", "State": "state.current",
    "Submit": "time.submission", "Eligible": "time.eligible", "Start": "time.start",
    "End": "time.end", "ElapsedRaw": "time.elapsed", "SuspendedRaw": "time.suspended",
    "TimelimitRaw": "time.limit", "Priority": "priority", "ReqCPUS": "required.CPUs",
    "ReqTRES": "tres.requested", "AllocTRES": "tres.allocated", "NNodes": "allocation_nodes",
    "JobID": "array.task_id",
}  # fmt: skip
"""`sacct`'s name of a column → the key in each record."""


def recognises(file: TraceFile) -> bool:
    """Tell the document by its first keys."""
    head = file.head.lstrip()
    named = b'"job_id"' in head or b"slurm" in head.lower()
    return head.startswith(b"{") and b'"jobs"' in head and named


def source_of(file: TraceFile) -> Source:
    """Return the records of a document."""
    source = Source(file, called=KEYS)
    source.batches = _batches(source)
    return source


def _batches(source: Source) -> Iterator[pl.DataFrame]:
    jobs = _sound(source)
    while chunk := list(islice(jobs, CHUNK_RECORDS)):
        schema = {LINE: pl.Int64} | dict.fromkeys(KEYS, pl.String)
        yield pl.DataFrame(chunk, schema=schema)


def _sound(source: Source) -> Iterator[dict[str, int | str | None]]:
    """Yield the records as text by `sacct`'s names; note those that are no job's."""
    for line, job in _jobs(source.file):
        source.read += 1
        if not isinstance(job, dict):
            source.bad.add(line, f"{str(job)[:60]!r} is no record of a job")
        elif not isinstance(job.get("time"), dict):
            source.bad.add(line, "a record without times: sacct --json has them under 'time'")
        else:
            row = {name: _written(_found(job, key)) for name, key in KEYS.items()}
            row |= {name: _tres(_found(job, KEYS[name])) for name in ("ReqTRES", "AllocTRES")}
            row |= {"JobID": _shown_id(job)}
            yield {LINE: line, **{name: _whole_letters(text) for name, text in row.items()}}


def _found(job: dict[str, Any], key: str) -> Any:
    value: Any = job
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _written(value: Any) -> str | None:
    """Return a value as `sacct` writes it: wrapped numbers bare, the first of several states."""
    if isinstance(value, dict) and "set" in value:
        if value.get("infinite"):
            return "UNLIMITED"
        value = value.get("number") if value["set"] else None
    if isinstance(value, list):
        value = value[0] if value else None
    return None if value is None else str(value)


def _whole_letters(text: str | None) -> str | None:
    """Return text without the halves of letters that JSON can write."""
    return text if text is None else text.encode("utf-8", "replace").decode()


def _tres(entries: Any) -> str | None:
    """Return resources as `sacct` writes them, such as `cpu=4,gres/gpu:v100=2`."""
    if not isinstance(entries, list):
        return None if entries is None else str(entries)
    written: list[str] = []
    for entry in entries:
        if not isinstance(entry, dict):
            return str(entries)
        amount = _written(entry.get("count"))
        name = f"{entry.get('type')}/{entry['name']}" if entry.get("name") else entry.get("type")
        if amount is not None:  # energy is null where nobody measures it
            written.append(f"{name}={amount}")
    return ",".join(written)


def _shown_id(job: dict[str, Any]) -> str | None:
    """Return a job's number as `sacct` shows it: 12_3 in an array, 13+0 in a group."""
    array, task = (_written(_found(job, f"array.{key}")) for key in ("job_id", "task_id"))
    whole, part = (_written(_found(job, f"het.{key}")) for key in ("job_id", "job_offset"))
    if array not in (None, "0") and task is not None:
        return f"{array}_{task}"
    if whole not in (None, "0") and part is not None:
        return f"{whole}+{part}"
    return _written(job.get("job_id"))


# --- one record after the other, however long the document is -------------------------------------


def _jobs(file: TraceFile) -> Iterator[tuple[int, Any]]:
    """Yield the records and the lines they begin on.

    Raises:
        TraceFormatError: if the document is damaged or cut off: nothing after that can be trusted.
    """
    with file.path.open(encoding="utf-8-sig") as stream:
        text = _Text(stream)
        number = 0
        try:
            text.enter_jobs()
            while text.has_another(is_first=number == 0):
                number += 1
                yield text.next_value()
            text.leave_jobs()
        except UnicodeDecodeError:
            raise TraceFormatError(f"{file.name}: not UTF-8 text after line {text.line}.") from None
        except (ValueError, RecursionError) as error:
            where = f"record {number} (near line {text.line})" if number else "this"
            message = f"{file.name}: {where} is not as sacct --json writes it: {str(error)[:100]}."
            raise TraceFormatError(message) from None


@dataclass(slots=True)
class _Text:
    """A document of which only a piece is in memory.

    Attributes:
        stream: the rest of it.
        text: the piece.
        place: what comes next in the piece.
        line: the line of that.
    """

    stream: TextIO
    text: str = ""
    place: int = 0
    line: int = 1

    def enter_jobs(self) -> None:
        """Go to the first record."""
        while (start := _JOBS.search(self.text)) is None:
            if not self._read_on():
                raise ValueError("there is no list of 'jobs'")
        json.loads(self.text[: start.end()] + "]}")  # all before it must be sound
        self._go_to(start.end())

    def leave_jobs(self) -> None:
        """See that the rest of the document is sound."""
        rest = self.text[self.place + 1 :] + self.stream.read()
        json.loads('{"jobs":[]' + rest)

    def next_letter(self) -> str:
        """Return what comes next after blanks; "" at the end."""
        while True:
            blanks = _BLANKS.match(self.text, self.place)
            self._go_to(blanks.end() if blanks else self.place)
            if self.place < len(self.text):
                return self.text[self.place]
            if not self._read_on():
                return ""

    def has_another(self, *, is_first: bool) -> bool:
        """Tell whether a further record follows, and go to it."""
        letter = self.next_letter()
        if letter == "]" or is_first:
            return letter != "]"
        if letter != ",":
            raise ValueError("`,` or `]` should follow it")
        self.place += 1
        return True

    def next_value(self) -> tuple[int, Any]:
        """Return the value that comes next, and the line it begins on."""
        self.next_letter()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.place)
            except json.JSONDecodeError as error:
                # An error far before the end of the piece is none of the piece's making.
                if len(self.text) - error.pos > CHUNK_CHARACTERS or not self._read_on():
                    raise
            else:
                line = self.line
                self._go_to(end)
                return line, value

    def _read_on(self) -> bool:
        more = self.stream.read(CHUNK_CHARACTERS)
        self.text, self.place = self.text[self.place :] + more, 0
        return bool(more)

    def _go_to(self, place: int) -> None:
        self.line += self.text.count("\n", self.place, place)
        self.place = place
