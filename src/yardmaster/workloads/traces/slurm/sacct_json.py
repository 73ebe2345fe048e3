"""`sacct --json`: one large document whose `jobs` are read one by one.

Newer versions wrap numbers (`{"set": true, "infinite": false, "number": 5}`) and list states; all
of them nest times under `time` and resources under `tres`. Earlier attempts of requeued jobs are
there as well, before their last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.slurm.records import LINE, Source
from yardmaster.workloads.traces.trace_files import TraceFile

CHUNK_CHARACTERS = 1 << 22
CHUNK_RECORDS = 20_000
_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
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
            yield {LINE: line, **row, "JobID": _shown_id(job)}


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
    with file.path.open(encoding="utf-8-sig", errors="strict") as stream:
        try:
            yield from _decoded(file, stream)
        except UnicodeDecodeError:
            raise TraceFormatError(f"{file.name}: not UTF-8 text.") from None


def _decoded(file: TraceFile, stream: Any) -> Iterator[tuple[int, Any]]:
    text, line, number = "", 1, 0
    start = None
    while start is None:
        more = stream.read(CHUNK_CHARACTERS)
        text += more
        start = _JOBS.search(text)
        if start is None and not more:
            raise TraceFormatError(f"{file.name}: no list of 'jobs', as sacct --json writes it.")
    place = start.end()
    line += text.count("\n", 0, place)
    while True:
        gap = _BETWEEN.match(text, place)
        following = gap.end() if gap else place
        line += text.count("\n", place, following)
        place = following
        if text[place : place + 1] == "]":
            return
        try:
            job, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            more = stream.read(CHUNK_CHARACTERS) if isinstance(error, ValueError) else ""
            if not more:
                raise _damage(file, number + 1, line, at_end=place >= len(text)) from None
            text, place = text[place:] + more, 0
            continue
        number += 1
        yield line, job
        line += text.count("\n", place, end)
        place = end


def _damage(file: TraceFile, number: int, line: int, *, at_end: bool) -> TraceFormatError:
    what = "is missing: the list of jobs ends before it" if at_end else "is no JSON, or is cut off"
    return TraceFormatError(f"{file.name}: record {number} (from line {line}) {what}.")
