"""What has become of each job: the attempts at it, as the run's own folder holds them.

Before anything is asked of Ray, `submission.json` says which attempt was sent where; once we know
how it ended, `outcome.json` says so. An attempt with the first and without the second is somewhere,
and is looked for before anything else is done with the job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yardmaster.live.folder import JOBS, read_json, write_json
from yardmaster.live.local.commands import Command
from yardmaster.live.local.node import BACK_OFF_S, LONGEST_BACK_OFF_S
from yardmaster.live.ray.orders import Order

SUBMISSION, OUTCOME = "submission.json", "outcome.json"
MOST_LOSSES = 10
"""A job that is lost with its node so often is given up: it may be what brings nodes down."""
ASK_AGAIN_S = 1.0
CANNOT_START = 127

ENDED, LOST, STOPPED, NEVER_RAN = "ended", "lost", "stopped", "never ran"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended; times in seconds since 1970."""

    fate: str
    """ended (by itself), lost (with its node), stopped (by us) or never ran."""
    end_unix_s: float
    start_unix_s: float | None = None
    exit_code: int | None = None
    timed_out: bool = False
    slots: tuple[int | str, ...] = ()
    detail: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"slots": list(self.slots)}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Outcome:
        """Return the outcome of a record."""
        return cls(**(record | {"slots": tuple(record["slots"])}))


@dataclass(slots=True, eq=False)
class Trial:
    """An attempt that is somewhere in the cluster."""

    row: int
    order: Order
    node_id: str
    host: str
    since_s: float
    """When it started; when it was sent, before that is known."""
    phase: str = "starting"
    """starting, running, or unsure: its reservation is gone, and with it what we know."""
    reservation: Any = field(default=None, repr=False)
    ticket: Any = field(default=None, repr=False)
    """The answer that is waited for."""
    phase_since_s: float = 0.0
    ask_again_s: float = 0.0
    found_again: bool = False
    is_shared: bool = True
    start_unix_s: float | None = None
    slots: tuple[int | str, ...] = ()
    detail: str = ""
    is_withdrawn: bool = False
    """Whether it was we who let go of its reservation."""

    def outcome(self, report: dict[str, Any]) -> Outcome:
        """Return how it ended, as its folder says.

        Its node cannot tell why its reservation went away. If we let go before we knew that it had
        begun, it was stopped, and nothing was lost.
        """
        is_lost = report["is_lost"] and report["exit_code"] != 0  # else it was done just before
        if is_lost:
            fate = STOPPED if self.is_withdrawn else LOST
        else:
            fate = STOPPED if report["is_stopped"] else ENDED
        return Outcome(
            fate=fate, end_unix_s=report["end_unix_s"], start_unix_s=report.get("start_unix_s"),
            exit_code=report["exit_code"], timed_out=report["timed_out"],
            slots=tuple(report.get("slots", ())),
            detail="its reservation or node was lost" if fate == LOST else "",
        )  # fmt: skip

    @property
    def has_gpus(self) -> bool:
        """Whether it may be on its GPUs."""
        return self.phase != "unsure"


@dataclass(slots=True)
class Fate:
    """What has become of a job so far."""

    attempts: int = 0
    """Attempts that ended by themselves."""
    losses: int = 0
    misses: int = 0
    """Attempts in a row that never ran."""
    next_number: int = 1
    not_before_s: float = 0.0
    exit_code: int | None = None
    is_over: bool = False
    trial: Trial | None = field(default=None, repr=False)

    def settle(self, job: Command, outcome: Outcome, end_s: float) -> None:
        """Decide what an outcome means: done, given up, or another try."""
        self.trial = None
        self.misses = self.misses + 1 if outcome.fate == NEVER_RAN else 0
        if outcome.fate == ENDED:
            self.attempts += 1
            self.exit_code = outcome.exit_code
            self.is_over = outcome.exit_code == 0 or self.attempts > job.retries
            wait_s = BACK_OFF_S * 2.0 ** min(self.attempts - 1, 20)
            self.not_before_s = end_s + min(wait_s, LONGEST_BACK_OFF_S)
        elif outcome.fate == LOST:
            self.losses += 1
            self.exit_code = outcome.exit_code
            self.is_over = self.losses > MOST_LOSSES
        elif outcome.fate == NEVER_RAN:
            wait_s = ASK_AGAIN_S * 2.0 ** min(self.misses - 1, 20)
            self.not_before_s = end_s + min(wait_s, LONGEST_BACK_OFF_S)


class Journal:
    """The attempts of a run's jobs, in its folder."""

    def __init__(self, folder: Path) -> None:
        """Use this run's folder."""
        self._jobs = folder / JOBS
        self._jobs.mkdir(exist_ok=True)

    def place(self, job: str, attempt: int) -> Path:
        """Return the folder of one attempt."""
        return self._jobs / job / f"attempt-{attempt}"

    def know(self, job: Command) -> None:
        """Write down what a job is, once."""
        path = self._jobs / job.id / "job.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_json(path, job.record())

    def submitted(self, order: Order, node_id: str, host: str, since_s: float) -> None:
        """Write down that an attempt is about to be sent."""
        path = self.place(order.job, order.attempt)
        path.mkdir(parents=True, exist_ok=True)
        who = {"submission": order.submission, "node_id": node_id, "host": host}
        write_json(path / SUBMISSION, {**who, "since_s": since_s, "order": order.record()})

    def over(self, order: Order, outcome: Outcome) -> None:
        """Write down how an attempt ended."""
        write_json(self.place(order.job, order.attempt) / OUTCOME, outcome.record())

    def outcome(self, order: Order) -> Outcome | None:
        """Return how an attempt ended; None if we do not know yet."""
        path = self.place(order.job, order.attempt) / OUTCOME
        return Outcome.of(read_json(path)) if path.exists() else None

    def trials(self, row: int, job: Command) -> list[Trial]:
        """Return the attempts at a job that were sent, first to last."""
        found = []
        for path in (self._jobs / job.id).glob(f"attempt-*/{SUBMISSION}"):
            record = read_json(path)
            order = Order.of(record["order"])
            found.append(
                Trial(row, order, record["node_id"], record["host"], float(record["since_s"]))
            )
        return sorted(found, key=lambda trial: trial.order.attempt)

    def keep_logs(self, order: Order, tails: dict[str, bytes]) -> None:
        """Keep the ends of logs that were written where we cannot see them."""
        for name, tail in tails.items():
            (self.place(order.job, order.attempt) / name).write_bytes(tail)
