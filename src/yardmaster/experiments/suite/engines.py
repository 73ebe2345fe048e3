"""Who makes the runs: something that takes batches and gives outcomes back, in any order.

What an engine may lose is workers: a process that is killed, a machine that goes away. Its batches
come back as lost, and `carried_out` gives them out again. A batch that was lost twice is suspected
of killing its workers: it runs alone, then cell by cell, until what cannot be run is found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol

from yardmaster.experiments.suite.batch import Batch, Outcome

SHARED_TRIES = 2
"""Times a batch may be lost beside others before it must run alone."""
LONELY_TRIES = 3
"""Times a single cell may be lost while it runs alone before it is given up."""
GIVEN_UP = f"the process that ran it died {LONELY_TRIES} times"


class Engine(Protocol):
    """Processes or machines that make runs."""

    def room(self) -> int:
        """Return how many batches to have under way, so that nobody waits for work."""

    def submit(self, batch: Batch) -> Hashable:
        """Begin a batch and return a ticket for it."""

    def finished(self, tickets: Iterable[Hashable]) -> Mapping[Hashable, Outcome | None]:
        """Wait a moment, and return what came of some batches; None if the worker was lost."""

    def close(self, *, at_once: bool = False) -> None:
        """Let go of the workers; at once without letting them finish."""


class _Attempt(NamedTuple):
    """A batch, and how often it was lost."""

    batch: Batch
    losses: int = 0
    is_alone: bool = False


def carried_out(
    engine: Engine,
    batches: Iterable[Batch],
    *,
    take: Callable[[Outcome], None],
    is_stopped: Callable[[], bool],
) -> None:
    """Have all batches made, however many workers are lost on the way.

    Args:
        engine: who makes them.
        batches: what to make.
        take: given every outcome as it comes.
        is_stopped: asked now and then; what is under way then is finished, nothing more is begun.
    """
    waiting = deque(_Attempt(batch) for batch in batches)
    suspects: deque[_Attempt] = deque()
    flying: dict[Hashable, _Attempt] = {}
    while waiting or suspects or flying:
        if is_stopped():
            waiting.clear()
            suspects.clear()
        while waiting and len(flying) < engine.room():
            attempt = waiting.popleft()
            flying[engine.submit(attempt.batch)] = attempt
        if suspects and not flying:
            attempt = suspects.popleft()
            flying[engine.submit(attempt.batch)] = attempt
        for ticket, outcome in engine.finished(flying).items() if flying else ():
            attempt = flying.pop(ticket)
            if outcome is not None:
                take(outcome)
            elif attempt.losses + 1 < SHARED_TRIES and not attempt.is_alone:
                waiting.append(attempt._replace(losses=attempt.losses + 1))
            else:
                suspects.extend(_apart(attempt, take))


def _apart(lost: _Attempt, take: Callable[[Outcome], None]) -> list[_Attempt]:
    """Return what is to run alone after a loss; a cell that was lost too often is given up."""
    if not lost.is_alone:
        return [_Attempt(lost.batch, is_alone=True)]
    if len(lost.batch) > 1:
        return [_Attempt((cell,), is_alone=True) for cell in lost.batch]
    if lost.losses + 1 < LONELY_TRIES:
        return [lost._replace(losses=lost.losses + 1)]
    take(Outcome((), ((lost.batch[0].key, GIVEN_UP),)))
    return []
