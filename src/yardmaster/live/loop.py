"""One tick after the other: observe, decide, plan, apply, and write all of it down."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog
from yardmaster.live.decision import Backend, Decider, Decision
from yardmaster.live.state import State


class Recorded(Protocol):
    """What became of an operation."""

    def record(self) -> dict[str, Any]:
        """Return `operation`, `outcome` (done, failed or skipped) and what else there is to say."""


Operation = TypeVar("Operation")
Outcome = TypeVar("Outcome", bound=Recorded)


@dataclass(frozen=True, slots=True, eq=False)
class Tick(Generic[Outcome]):
    """What one tick saw and did."""

    state: State
    decision: Decision | None
    """None if nothing had changed since the last tick, or the scheduler failed."""
    outcomes: Sequence[Outcome] = ()


class Loop(Generic[Operation, Outcome]):
    """A scheduler at work on a real system."""

    def __init__(
        self,
        backend: Backend[Operation, Outcome],
        decider: Decider,
        audit: AuditLog,
        *,
        fallback: Decider | None = None,
    ) -> None:
        """Join the parts; `fallback` decides where the scheduler fails, else nobody does."""
        self._backend, self._decider, self._audit = backend, decider, audit
        self._fallback = fallback
        self._last = ""
        self.number = 0

    def tick(self) -> Tick[Outcome]:
        """Look once, and do what the scheduler says if anything has changed."""
        self.number += 1
        began = time.perf_counter()
        state = self._backend.observe()
        digest = state.digest()
        if digest == self._last:
            return Tick(state, None)
        self._last = digest
        self._audit.write(
            "observe",
            tick=self.number,
            digest=digest,
            waiting=len(state.waiting),
            running=len(state.running),
            held=int(state.is_held.sum()),
            free_gpus=state.free_gpus.tolist(),
            took_ms=round(1000 * (time.perf_counter() - began), 3),
        )
        if not len(state.orderable):
            return Tick(state, None)
        decision = self._decide(state)
        if decision is None:
            return Tick(state, None)
        self._audit.write("decide", tick=self.number, **decision.record(state))
        outcomes = self._backend.apply(self._backend.plan(state, decision))
        records = [outcome.record() for outcome in outcomes]
        for record in records:
            self._audit.write("apply", tick=self.number, **record)
        if any(record["outcome"] == "failed" for record in records):
            self._last = ""  # what failed must be tried again, whether anything changes or not
        return Tick(state, decision, outcomes)

    def _decide(self, state: State) -> Decision | None:
        try:
            return self._decider.decide(state)
        except YardmasterError as error:
            self._audit.write("skip", tick=self.number, reason=str(error))
        return self._fallback.decide(state) if self._fallback is not None else None
