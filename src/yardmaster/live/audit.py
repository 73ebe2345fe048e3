"""The audit log: append-only, one JSON object a line, whole lines even after a crash."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.clock import LiveClock

TAIL_BYTES = 1 << 16


class JsonLines:
    """A file to which whole JSON lines are appended."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; what a crash cut off behind the last line is taken away."""
        self.path = path
        self.torn_bytes = _mend(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, record: dict[str, Any]) -> None:
        """Append one object, in one write: another reader never sees half of it for long."""
        line = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class AuditLog:
    """The audit log of a run: every line is numbered and says when it was written."""

    def __init__(self, path: Path, clock: LiveClock) -> None:
        """Open the log and go on counting behind its last line."""
        self._lines = JsonLines(path)
        self._clock = clock
        self.last = last_number(path)
        self.torn_bytes = self._lines.torn_bytes

    def write(self, what: str, **fields: Any) -> None:
        """Append one line of this kind; see `live.folder` for the kinds."""
        self.last += 1
        self._lines.write(
            {
                "n": self.last,
                "time_s": round(self._clock.time_s(), 4),
                "unix_s": round(time.time(), 4),
                "what": what,
                **fields,
            }
        )

    def close(self) -> None:
        """Close the log."""
        self._lines.close()


def _mend(path: Path) -> int:
    """Cut a file off behind its last newline; return how many bytes were lost with that."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return 0
    if size == 0:
        return 0
    with path.open("r+b") as file:
        end = size
        while end > 0:
            begin = max(end - TAIL_BYTES, 0)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                end = begin + found + 1
                break
            end = begin
        if end < size:
            file.truncate(end)
    return size - end


def last_number(path: Path) -> int:
    """Return the number of the last line of an audit log; 0 if there is none."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        reach = TAIL_BYTES
        while True:
            begin = max(size - reach, 0)
            file.seek(begin)
            lines = file.read(size - begin).splitlines()
            # The first line may have been cut by where reading began.
            whole = lines if begin == 0 else lines[1:]
            if whole or begin == 0:
                break
            reach *= 4
    return int(json.loads(whole[-1])["n"]) if whole else 0


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of a log; a last one without a newline was cut off and is none.

    Raises:
        YardmasterError: naming the line that cannot be read.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise YardmasterError(
            f"There is no {path.name} in {path.parent}: not a live run."
        ) from None
    with file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = json.loads(line)
            except ValueError:
                raise YardmasterError(f"{path}: line {number} is not JSON.") from None
            if not isinstance(record, dict):
                raise YardmasterError(f"{path}: line {number} is not an object.")
            yield record
