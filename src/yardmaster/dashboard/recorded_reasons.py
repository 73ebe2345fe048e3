"""Decisions that a run wrote down (`simulate --why`): candidates, scores, what was legal."""

from __future__ import annotations

import json
import mmap
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LARGEST_FILE = 8_000_000_000
LONGEST_LINE = 4_000_000
KEPT = 4
MOST_CANDIDATES = 128
MOST_DECISIONS = 20
_BEGIN = re.compile(
    rb'\{"second": (?P<second>[^,]+), (?:"waiting": \d+, )?'
    rb'"chosen": (?P<chosen>"(?:[^"\\]|\\.)*"|null)'
)


@dataclass(slots=True)
class _Contents:
    """Where decisions stand in the file."""

    seconds: list[float] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    of_job: dict[str, list[int]] = field(default_factory=dict)
    """Chosen job (or scheduler) → numbers of decisions."""


class RecordedReasons:
    """The files of decisions that are being looked at."""

    def __init__(self) -> None:
        self._contents: OrderedDict[tuple[str, int, int], _Contents] = OrderedDict()
        self._lock = threading.Lock()

    def of_job(self, path: Path, job: str, start_s: list[float]) -> dict[str, Any] | None:
        """Return the decisions that started a job; None if the run wrote none down.

        Of a chooser, which chooses schedulers and not jobs, those at work when it started.
        """
        file = path / "why.jsonl"
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LARGEST_FILE:
            return None
        contents = self._read(file)
        numbers = contents.of_job.get(job)
        is_chooser = numbers is None
        if numbers is None:
            numbers = sorted({_last_before(contents.seconds, one) for one in start_s} - {-1})
        found = [_decision(file, contents.places[number]) for number in numbers[:MOST_DECISIONS]]
        decisions = [one for one in found if one and ("scores" in one or not is_chooser)]
        return {
            "decisions": decisions,
            "considered": _considered(file, job) if not is_chooser else None,
            "total": len(contents.seconds),
        }

    def _read(self, file: Path) -> _Contents:
        status = file.stat()
        key = (str(file), status.st_mtime_ns, status.st_size)
        with self._lock:
            if key not in self._contents:
                self._contents[key] = _table_of(file)
                while len(self._contents) > KEPT:
                    self._contents.popitem(last=False)
            self._contents.move_to_end(key)
            return self._contents[key]


def _table_of(file: Path) -> _Contents:
    """Look at the begin of every line, which says when and who; the rest is read when wanted."""
    contents = _Contents()
    place = 0
    with file.open("rb") as lines:
        for line in lines:
            match = _BEGIN.match(line[:4096])
            if match is not None and line.endswith(b"\n"):
                try:
                    second, chosen = float(match["second"]), json.loads(match["chosen"])
                except ValueError:
                    place += len(line)
                    continue
                if chosen is not None:
                    contents.of_job.setdefault(chosen, []).append(len(contents.seconds))
                contents.seconds.append(second)
                contents.places.append(place)
            place += len(line)
    return contents


def _decision(file: Path, place: int) -> dict[str, Any] | None:
    with file.open("rb") as lines:
        lines.seek(place)
        try:
            found = json.loads(lines.readline(LONGEST_LINE))
        except ValueError:
            return None
    if not isinstance(found, dict):
        return None
    candidates = found.get("candidates")
    if isinstance(candidates, list):
        ranked = sorted(candidates, key=_rank)
        found["candidate_count"] = len(ranked)
        found["candidates"] = ranked[:MOST_CANDIDATES]
    return found


def _rank(candidate: dict[str, Any]) -> float:
    score = candidate.get("score")
    return -score if isinstance(score, int | float) else float("inf")


def _last_before(seconds: list[float], second: float) -> int:
    """Return the number of the last decision up to a second, −1 if there is none."""
    import bisect

    return bisect.bisect_right(seconds, second) - 1


def _considered(file: Path, job: str) -> int:
    """Count the decisions in which a job was a candidate."""
    wanted = b'"job": ' + json.dumps(job).encode() + b","
    count = 0
    with file.open("rb") as opened:
        if file.stat().st_size == 0:
            return 0
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = data.find(wanted)
            while place >= 0:
                count += 1
                place = data.find(wanted, place + 1)
    return count
