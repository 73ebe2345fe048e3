"""Beside Slurm, tick after tick: read, decide, plan, and in `apply` mode change the order.

Nothing is remembered that reading back does not confirm: what Slurm lost in a crash is sent again
because it is missing. A tick in which anything is odd (Slurm does not answer, the scheduler fails,
the decision is late or about other jobs) does nothing, and the next one comes later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog
from yardmaster.live.decision import Decider, Decision
from yardmaster.live.folder import LiveFolder
from yardmaster.live.slurm.changes import (
    Change,
    Outcome,
    SetFactor,
    SetPrefer,
    apply_changes,
    skipped,
)
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.happenings import Happenings
from yardmaster.live.slurm.ledger import Ledger
from yardmaster.live.slurm.observing import Allowed, Believe, Observation, observe
from yardmaster.live.slurm.planning import Plan, check_decision, plan_changes
from yardmaster.live.slurm.probing import Capabilities
from yardmaster.live.slurm.requeueing import Exchange, Requeuer, Rules
from yardmaster.live.slurm.stops import Stops
from yardmaster.live.slurm.wishes import plan_wishes, read_wishes

LONGEST_PAUSE_S = 300.0
DECIDE_AGAIN_S = 30.0
"""A decision about the same situation is made anew after so long; age moves some orders."""
LOGGED_CHANGES = 50
"""Of how many changes of a tick the audit log has a line each; the rest are counted in one."""

Mode = Literal["shadow", "apply"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to work beside Slurm.

    Attributes:
        mode: `shadow` touches nothing, `apply` changes the order.
        dry_run: with `apply`: plan every change and send none.
        interval_s: seconds between ticks.
        max_advance_s: starvation bound, in seconds of waiting.
        latest_s: a decision that comes later than this after the tick began is not used.
        updates_per_tick: most changes in one tick.
        updates_per_minute: most changes in any 60 seconds.
        allowed: whose jobs may be ordered.
        prefer: let jobs that are to start now prefer the node the scheduler would give them.
        requeue: when a running job may be requeued for a waiting one; never if there are no rules.
    """

    mode: Mode = "shadow"
    dry_run: bool = False
    interval_s: float = 10.0
    max_advance_s: float = 86_400.0
    latest_s: float = 10.0
    updates_per_tick: int = 1000
    updates_per_minute: int = 3000
    allowed: Allowed = field(default_factory=Allowed)
    prefer: bool = False
    requeue: Rules | None = None

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            YardmasterError: naming the setting.
        """
        least = {"interval_s": 0.1, "max_advance_s": 0.0, "latest_s": 0.01}
        for name, lowest in least.items():
            value = getattr(self, name)
            if not lowest <= value < float("inf"):
                raise YardmasterError(f"{name} is {value:g}; it must be at least {lowest:g}.")
        for name in ("updates_per_tick", "updates_per_minute"):
            if getattr(self, name) < 0:
                raise YardmasterError(f"{name} is {getattr(self, name)}; it must not be negative.")
        if self.requeue is not None:
            self.requeue.check()
            if self.allowed.admits_all:
                raise YardmasterError(
                    "--preempt-requeue stops jobs: say whose, by --partition, --user or --account."
                )


def check_rights(capabilities: Capabilities, settings: Settings) -> None:
    """Refuse to change an order that must not be changed.

    Raises:
        YardmasterError: naming every reason.
    """
    refusals = capabilities.refusals_for(settings.max_advance_s)
    if settings.mode == "apply" and refusals:
        raise YardmasterError(
            "The order of this Slurm must not be changed:\n"
            + "\n".join(f"  - {reason}" for reason in refusals)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """What a tick saw and did; `skipped` says why it did nothing."""

    observation: Observation | None = None
    decision: Decision | None = None
    plan: Plan | None = None
    outcomes: Sequence[Outcome] = ()
    skipped: str = ""
    stops: Sequence[Outcome] = ()


class SlurmDriver:
    """A scheduler beside Slurm."""

    def __init__(  # noqa: PLR0917 - the parts, each of its own type
        self,
        slurm: Slurm,
        decider: Decider,
        capabilities: Capabilities,
        settings: Settings,
        folder: LiveFolder,
        audit: AuditLog,
        *,
        began_unix_s: float,
        believe: Believe | None = None,
    ) -> None:
        """Join the parts.

        Raises:
            YardmasterError: if the order is to be changed and must not be, naming every reason, or
                the settings make no sense.
        """
        settings.check()
        check_rights(capabilities, settings)
        self._slurm, self._decider, self._believe = slurm, decider, believe
        self._capabilities, self.settings = capabilities, settings
        self._folder, self._audit = folder, audit
        self.ledger = Ledger(folder.path)
        self.happenings = Happenings(slurm, began_unix_s)
        self.stops = Stops(folder.path)
        self._requeuer = (
            Requeuer(slurm, decider, settings.requeue, self.stops)
            if settings.requeue is not None and decider.stops_jobs
            else None
        )
        self._told_stops: set[tuple[str, str]] = set()
        self._decision: Decision | None = None
        self._seen = ""
        self._sent: deque[tuple[float, int]] = deque()
        self.number, self.failures = 0, 0

    @property
    def pause_s(self) -> float:
        """Seconds until the next tick: the interval, doubled for every failure in a row."""
        pause_s = self.settings.interval_s * 2.0 ** min(self.failures, 10)
        return min(pause_s, max(LONGEST_PAUSE_S, self.settings.interval_s))

    def tick(self) -> Tick:
        """Look once and do what is to be done; whatever goes wrong, nothing is touched."""
        self.number += 1
        try:
            tick = self._tick()
        except Exception as error:  # noqa: BLE001 - beside a cluster at work, no failure is ours to die of
            kind = "" if isinstance(error, YardmasterError) else f"{type(error).__name__}: "
            tick = Tick(skipped=f"{kind}{error}")
        if tick.skipped:
            self.failures += 1
            self._decision = None
            self._audit.write("skip", tick=self.number, reason=tick.skipped)
        else:
            self.failures = 0
        self.beat()
        return tick

    def beat(self) -> None:
        """Give a sign of life, also while pausing: cron takes our factors away without one."""
        self._folder.beat(tick=self.number, failures=self.failures)

    def _tick(self) -> Tick:
        began = time.perf_counter()
        observation = self.observe()
        self.ledger.seen(observation.row_of)
        for line in self.happenings.since_last(observation):
            self._audit.write("job", **line)
        if self._requeuer is not None:
            self._requeuer.see(observation)
        decision = self._decide(observation)
        if decision is None:
            return Tick(observation)
        late_s = time.perf_counter() - began - self.settings.latest_s
        if late_s > 0:
            return Tick(observation, decision, skipped=f"the decision came {late_s:.1f} s too late")
        check_decision(observation, decision)
        if not self._capabilities.counts_age:
            return Tick(observation, decision)
        plan = self.plan(observation, decision)
        if self.settings.mode == "shadow":
            return Tick(observation, decision, plan, stops=self._make_room(observation, decision))
        changes: list[Change] = [*plan.changes, *self._wishes(observation, decision)]
        outcomes = self._carry_out(changes)
        stops = self._make_room(observation, decision)
        return Tick(observation, decision, plan, outcomes, stops=stops)

    def observe(self) -> Observation:
        """Read the present; jobs whose factor is not ours count as held."""
        return observe(
            self._slurm, self.settings.allowed, believe=self._believe, is_ours=self.ledger.is_ours
        )

    def plan(self, observation: Observation, decision: Decision) -> Plan:
        """Return the changes that make the order follow a decision."""
        scale = self._capabilities.scale(self.settings.max_advance_s)
        return plan_changes(
            observation, decision, scale, ages_always=self._capabilities.ages_always
        )

    def _decide(self, observation: Observation) -> Decision | None:
        """Return a decision; the last one if the situation is the same and it is not old."""
        state = observation.state
        digest = state.digest()
        last = self._decision
        is_new = digest != self._seen
        self._seen = digest
        if is_new:
            self._audit.write(
                "observe", tick=self.number, digest=digest, waiting=len(state.waiting),
                running=len(state.running), held=int(state.is_held.sum()),
                free_gpus=state.free_gpus.tolist(), took_ms=round(1000 * observation.took_s, 3),
            )  # fmt: skip
        if not len(state.orderable):
            self._decision = None
            return None
        is_known = last is not None and last.digest == digest
        if last is not None and is_known and state.time_s - last.time_s < DECIDE_AGAIN_S:
            return last
        self._decision = self._decider.decide(state)
        if not is_known:
            self._audit.write("decide", tick=self.number, **self._decision.record(state))
        return self._decision

    def _wishes(self, observation: Observation, decision: Decision) -> Sequence[SetPrefer]:
        if not self.settings.prefer or not decision.starts:
            return ()
        wishes, named = read_wishes(self._slurm)
        return plan_wishes(observation, decision, wishes, named, self.ledger.is_our_wish)

    def _carry_out(self, wanted: Sequence[Change]) -> list[Outcome]:
        changes = wanted[: self._allowance()]
        if self.settings.dry_run:
            outcomes = [skipped(change, "dry run") for change in changes]
        else:
            self.ledger.intend(changes)
            # Counted before: one scontrol of several may fail after the others have sent theirs.
            self._sent.append((time.monotonic(), len(changes)))
            outcomes = apply_changes(self._slurm, changes)
        self._log(outcomes, len(wanted) - len(changes))
        return outcomes

    def _make_room(self, observation: Observation, decision: Decision) -> list[Outcome]:
        """Requeue whom the rules let be requeued; in shadow mode and a dry run say who it were."""
        if self._requeuer is None:
            return []
        pretends = "shadow mode" if self.settings.mode == "shadow" else "dry run"
        is_real = self.settings.mode == "apply" and not self.settings.dry_run
        exchanges = self._requeuer.plan(observation, decision, is_first=is_real)
        if not exchanges:
            return []
        if is_real:
            self.stops.intend([one.stopped() for one in exchanges])
            done = self._stop(exchanges)
        else:
            done = [skipped(one.stop, pretends) for one in exchanges]
        outcomes = []
        for one, outcome in zip(exchanges, done, strict=True):
            outcomes.append(replace(outcome, detail=f"{outcome.detail}, {one.why}"))
            told = (one.stop.job, one.waiting)
            if is_real or told not in self._told_stops:
                self._audit.write("apply", tick=self.number, **asdict(outcomes[-1]))
            self._told_stops.add(told)
        return outcomes

    def _stop(self, exchanges: Sequence[Exchange]) -> list[Outcome]:
        """Requeue jobs; where Slurm does not answer, they may be stopped or not: so it is said."""
        try:
            return apply_changes(self._slurm, [one.stop for one in exchanges], may_requeue=True)
        except SlurmError as error:
            return [
                Outcome("requeue", one.stop.job, "failed", f"perhaps stopped: {error}")
                for one in exchanges
            ]

    def _allowance(self) -> int:
        """Return how many changes may be sent now."""
        horizon = time.monotonic() - 60.0
        while self._sent and self._sent[0][0] < horizon:
            self._sent.popleft()
        spent = sum(count for _, count in self._sent)
        left = self.settings.updates_per_minute - spent
        return max(min(self.settings.updates_per_tick, left), 0)

    def _log(self, outcomes: Sequence[Outcome], put_off: int) -> None:
        for outcome in outcomes[:LOGGED_CHANGES]:
            self._audit.write("apply", tick=self.number, **asdict(outcome))
        more = outcomes[LOGGED_CHANGES:]
        if more:
            failed = sum(outcome.outcome == "failed" for outcome in more)
            self._audit.write(
                "apply", tick=self.number, operation="factor",
                outcome="failed" if failed else more[0].outcome,
                detail=f"{len(more)} more factors, {failed} of them failed",
            )  # fmt: skip
        if put_off:
            self._audit.write(
                "apply", tick=self.number, operation="factor", outcome="skipped",
                detail=f"{put_off} factors put off by the rate limit",
            )  # fmt: skip


def factors_to_zero(
    sites: dict[str, int], ledger: Ledger, *, unweighed: Sequence[str] = (), everyone: bool = False
) -> list[SetFactor]:
    """Return the changes that take our factors away.

    Args:
        sites: SiteFactor of each waiting job that Slurm has weighed.
        ledger: what we gave.
        unweighed: waiting jobs that sprio is silent about, such as held ones.
        everyone: take away other people's factors too.
    """
    ours = [
        job for job, points in sites.items() if points and (everyone or ledger.is_ours(job, points))
    ]
    silent = [job for job in unweighed if job in ledger.jobs]
    return [SetFactor(job, 0) for job in (*ours, *silent)]


def about(settings: Settings) -> dict[str, Any]:
    """Return the settings as `live.json` holds them."""
    return asdict(settings)
