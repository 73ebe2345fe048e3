"""Following files of JSON lines as they grow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from yardmaster.dashboard.plain_files import open_plain

Record = dict[str, Any]
MOST_BYTES = 4_000_000
"""Read at once; a larger file comes in several pieces."""


class Tail:
    """Reads what was added to a file of JSON lines since the last look.

    A line without its newline is not a line yet. A file that was replaced, or became shorter, is
    read from its beginning again, and `restarted` says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False
        self._file: tuple[int, int] | None = None
        self._offset = 0

    def read_all(self) -> list[Record]:
        """Return all new records, however many pieces they come in."""
        piece = self.read()
        found = list(piece)
        restarted = self.restarted
        while piece:
            piece = self.read()
            found += piece
        self.restarted = restarted
        return found

    def read(self) -> list[Record]:
        """Return new records of one piece; lines that make no sense are passed over."""
        self.restarted = False
        try:
            with open_plain(self.path) as file:
                status = os.fstat(file.fileno())
                identity = (status.st_dev, status.st_ino)
                if identity != self._file or status.st_size < self._offset:
                    self.restarted = self._file is not None
                    self._file, self._offset = identity, 0
                if status.st_size == self._offset:
                    return []
                file.seek(self._offset)
                content = file.read(MOST_BYTES)
        except OSError:
            return []
        end = content.rfind(b"\n") + 1
        if end == 0 and len(content) == MOST_BYTES:
            end = len(content)  # no line is as long as this: damaged, and never to be finished
        self._offset += end
        return _records(content[:end])


def _records(content: bytes) -> list[Record]:
    found: list[Record] = []
    for line in content.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found
