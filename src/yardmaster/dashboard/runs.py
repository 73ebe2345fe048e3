"""The folder of runs: names to paths, never outside; and the live list of what is in it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Container, Iterator
from pathlib import Path

from yardmaster.dashboard.plain_files import DEEPEST as LOOKED_AT
from yardmaster.dashboard.plain_files import trap_in
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.run_cards import Card, card_of, is_run, watched_files

LONGEST_NAME = 1024
DEEPEST = 3
"""Folders of folders of runs that are looked into."""
MOST_RUNS = 20_000
BUDGET_S = 0.5
"""Spent on reading runs before an answer is given; the rest is read on the next ones."""
FRESH_S = 0.4
"""An answer is given again for so long: many open pages cost as much as one."""
_PARTIAL = ".partial-"

Signature = tuple[object, ...]


class RunsFolder:
    """A folder whose subfolders, or theirs, are runs."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock = threading.Lock()
        self._cards: dict[str, tuple[Signature, Card]] = {}
        self._answer: tuple[Card, ...] = ()
        self._answered = float("-inf")

    def resolve(self, name: str, *, deepest: int = LOOKED_AT) -> Path:
        """Return the folder of a run.

        Args:
            name: the run's path relative to the folder, with `/` between its parts.
            deepest: how many folders deep its files are read, and looked at for links before.

        Raises:
            Refusal: if it would leave the folder (also by a link, or one in it), or is not there.
        """
        parts = name.split("/")
        if not name or len(name) > LONGEST_NAME or "\0" in name or "\\" in name:
            raise Refusal(400, "A run is named by its path below the folder of runs.")
        if any(part in {"", ".", ".."} for part in parts):
            raise Refusal(400, "A run is named by its path below the folder of runs.")
        try:
            path = self.path.joinpath(*parts).resolve(strict=True)
        except (OSError, RuntimeError):
            raise Refusal(404, f"There is no run named {name!r}.") from None
        if not path.is_relative_to(self.path) or path == self.path or not path.is_dir():
            raise Refusal(404, f"There is no run named {name!r}.")
        trap = trap_in(path, self.path, deepest)
        if trap:
            raise Refusal(
                403, f"{trap} in {name} is a link out of the folder of runs, or a pipe: not opened."
            )
        return path

    def index(self) -> tuple[Card, ...]:
        """Return a card for every run there is now, in no particular order.

        What has not changed is not read again. Where much is new, some cards say `pending`: they
        are filled in by the next calls, so that none takes long.
        """
        with self._lock:
            if time.monotonic() - self._answered > FRESH_S:
                self._answer = self._look()
                self._answered = time.monotonic()
            return self._answer

    def _look(self) -> tuple[Card, ...]:
        deadline = time.monotonic() + BUDGET_S
        found: dict[str, tuple[Signature, Card]] = {}
        answer: list[Card] = []
        known_runs = {name for name, (_, card) in self._cards.items() if card.kind != "unknown"}
        for name, path in _runs_below(self.path, "", DEEPEST, known_runs):
            signature = _signature(path)
            known = self._cards.get(name)
            # Whoever works on a run may die without leaving a trace in its files.
            is_settled = known is not None and known[1].status not in {"running", "silent"}
            if known is not None and is_settled and known[0] == signature:
                found[name] = known
            elif time.monotonic() < deadline:
                found[name] = (signature, card_of(name, path))
            else:
                answer.append(known[1] if known else Card(name, pending=True))
                continue
            answer.append(found[name][1])
            if len(answer) >= MOST_RUNS:
                break
        self._cards = found
        return tuple(answer)


def _runs_below(
    folder: Path, prefix: str, depth: int, known: Container[str]
) -> Iterator[tuple[str, Path]]:
    """Yield the name and path of every run; what is no run is yielded if it holds none either."""
    try:
        with os.scandir(folder) as entries:
            # Links are not followed: they may lead out of the folder, or round in it.
            inside = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in inside:
        name, path = f"{prefix}{entry.name}", Path(entry.path)
        if entry.name.startswith(".") and _PARTIAL not in entry.name:
            continue
        if name in known or is_run(path):
            yield name, path
            continue
        below = list(_runs_below(path, f"{name}/", depth - 1, known)) if depth > 1 else []
        yield from below or [(name, path)]


def _signature(path: Path) -> Signature:
    """Return what changes when a run does: times and sizes of the folder and what grows in it."""
    parts: list[object] = []
    for file in (path, *watched_files(path)):
        try:
            status = file.stat()
        except OSError:
            parts.append(None)
        else:
            parts.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(parts)
