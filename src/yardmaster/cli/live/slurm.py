"""`yardmaster live slurm`: decide beside a running Slurm; by default look and touch nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say
from yardmaster.cli.live.history import check_days
from yardmaster.cli.options import QuietOption
from yardmaster.errors import YardmasterError

if TYPE_CHECKING:
    from yardmaster.live.slurm.driving import Settings, Tick
    from yardmaster.live.slurm.observing import Observation
    from yardmaster.live.slurm.planning import Plan
    from yardmaster.live.slurm.probing import Capabilities
    from yardmaster.live.slurm.requeueing import Rules
    from yardmaster.live.slurm.session import Ending

AUDIT = "audit.jsonl"
LISTED = 10
"""So many planned changes are shown; the audit log has more."""
TELL_EVERY_S = 60.0
"""While nothing changes a line comes this often, as a sign of life."""

SchedulerOption = Annotated[
    str,
    Parameter(
        name=["--scheduler", "-s"],
        help="Who decides the order: any scheduler that stops no job (`list orders`); with"
        " --preempt-requeue srpt+preemptive.",
    ),
]
BoundOption = Annotated[
    float,
    Parameter(
        help="Starvation bound: nobody is passed by a job that has waited this much less. At most"
        " half of PriorityMaxAge."
    ),
]
PreferOption = Annotated[
    bool,
    Parameter(
        negative="",
        help="Let jobs that are to start now prefer a node, softly; nodes must have their own name"
        " as a feature. Jobs with a constraint or a list of nodes are left alone.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class RequeueOptions:
    """When running jobs may be requeued for waiting ones."""

    preempt_requeue: Annotated[
        bool,
        Parameter(
            negative="",
            help="Requeue running jobs for waiting ones where the scheduler would, seldom and by"
            " the rules below. Stopped jobs lose their work unless they save it, and cannot start"
            " again for two minutes. Needs --partition, --user or --account.",
        ),
    ] = False
    requeue_least_run_s: Annotated[
        float, Parameter(help="Requeue only jobs that have run for so long.")
    ] = 600.0
    requeue_least_gain: Annotated[
        float,
        Parameter(help="Requeue only if the waiting job gains so many times what others lose."),
    ] = 2.0
    requeues_per_tick: Annotated[int, Parameter(help="Most requeues in one look.")] = 1
    requeues_per_hour: Annotated[int, Parameter(help="Most requeues in an hour.")] = 6
    requeues_per_job: Annotated[
        int, Parameter(help="How often one job; its other restarts count too.")
    ] = 1

    def rules(self) -> Rules | None:
        """Return the rules; none where it was not asked for."""
        from yardmaster.live.slurm.requeueing import Rules

        if not self.preempt_requeue:
            return None
        return Rules(
            self.requeue_least_run_s, self.requeues_per_tick, self.requeues_per_hour,
            self.requeues_per_job, self.requeue_least_gain,
        )  # fmt: skip


def slurm(
    *,
    scheduler: SchedulerOption = "sjf+easy",
    out: Annotated[
        Path,
        Parameter(
            name=["--out", "-o"], help="Folder of this run; the same again to take it up again."
        ),
    ] = Path("runs/slurm"),
    apply: Annotated[
        bool,
        Parameter(
            negative="",
            help="Change Slurm's order, by SiteFactor. Without it: shadow mode, no touching.",
        ),
    ] = False,
    shadow: Annotated[
        bool,
        Parameter(negative="", help="Touch nothing: the default, for who wants to say it."),
    ] = False,
    dry_run: Annotated[
        bool, Parameter(negative="", help="With --apply: plan every change and send none.")
    ] = False,
    max_advance_s: BoundOption = 86_400.0,
    interval_s: Annotated[float, Parameter(help="Seconds between two looks.")] = 10.0,
    latest_s: Annotated[
        float, Parameter(help="A decision that takes longer is not used; the tick is skipped.")
    ] = 10.0,
    ticks: Annotated[
        int | None, Parameter(help="End after so many looks; by default never.")
    ] = None,
    partition: Annotated[
        tuple[str, ...], Parameter(help="Order only jobs of these partitions, on their nodes.")
    ] = (),
    user: Annotated[tuple[str, ...], Parameter(help="Order only jobs of these users.")] = (),
    account: Annotated[tuple[str, ...], Parameter(help="Order only jobs of these accounts.")] = (),
    prefer: PreferOption = False,
    updates_per_tick: Annotated[int, Parameter(help="Most changes in one look.")] = 1000,
    updates_per_minute: Annotated[int, Parameter(help="Most changes in a minute.")] = 3000,
    history_days: Annotated[
        float,
        Parameter(
            help="Learn run times from so many days of accounts; 0 believes the time limits."
        ),
    ] = 0.0,
    timeout_s: Annotated[float, Parameter(help="How long a Slurm command may take.")] = 20.0,
    requeue: RequeueOptions = RequeueOptions(),  # noqa: B008 - it cannot be changed
    quiet: QuietOption = False,
) -> None:
    """Decide beside a running Slurm.

    Shadow mode is the default: read, decide, log what Slurm did instead. `--apply` changes the
    order by an additive, bounded SiteFactor, and by nothing else (with `--preempt-requeue` it also
    requeues running jobs, seldom); when it ends (Ctrl-C,
    SIGTERM, SIGHUP, a failure) all factors are taken away again. After a crash
    `yardmaster live restore` does that.
    """
    from yardmaster.experiments.stopwatch import nothing_to_collect
    from yardmaster.live.slurm.commands import Slurm
    from yardmaster.live.slurm.driving import Settings
    from yardmaster.live.slurm.observing import Allowed
    from yardmaster.live.slurm.session import SlurmSession

    if shadow and apply:
        raise YardmasterError("--shadow touches nothing and --apply changes the order; name one.")
    _check_counts(ticks, history_days)
    settings = Settings(
        mode="apply" if apply else "shadow",
        dry_run=dry_run,
        interval_s=interval_s,
        max_advance_s=max_advance_s,
        latest_s=latest_s,
        updates_per_tick=updates_per_tick,
        updates_per_minute=updates_per_minute,
        allowed=Allowed(partition, user, account),
        prefer=prefer,
        requeue=requeue.rules(),
    )
    settings.check()
    session = SlurmSession(Slurm(timeout_s), scheduler, settings, out, history_days=history_days)
    if not quiet:
        _begin(session.capabilities, settings, out)
    for line in session.unknown_names():
        remark(f"Note: {line}.")
    with nothing_to_collect():  # a tick must not wait for that
        ending = session.run(ticks=ticks, report=None if quiet else Teller(settings, out))
    say(_ended(ending, out))


def _check_counts(ticks: int | None, history_days: float) -> None:
    if ticks is not None and ticks < 1:
        raise YardmasterError(f"--ticks is {ticks}; it must be at least 1.")
    if history_days:
        check_days("--history-days", history_days)


def _begin(capabilities: Capabilities, settings: Settings, out: Path) -> None:
    bound = capabilities.bound_in_words(settings.max_advance_s)
    doing = {
        ("shadow", False): "Shadow mode: nothing is touched",
        ("shadow", True): "Shadow mode: nothing is touched",
        ("apply", True): "Dry run: changes are planned, none is sent",
        ("apply", False): "The order is changed",
    }[settings.mode, settings.dry_run]
    remark(f"{doing}. Everything is written to {out}.")
    remark(bound if settings.mode == "apply" else f"With --apply: {bound}")
    refusals = capabilities.refusals_for(settings.max_advance_s)
    for line in (*refusals, *capabilities.remarks):
        remark(f"Note: {line}.")


class Teller:
    """Tells what looks saw and did: when that has changed, and at least once a minute."""

    def __init__(
        self, settings: Settings, out: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Tell of a run with these settings in this folder."""
        self._is_dry = settings.mode == "apply" and settings.dry_run
        self._out, self._clock = out, clock
        self._said, self._said_s = "", -TELL_EVERY_S
        self._listed: list[str] = []

    def __call__(self, tick: Tick) -> None:
        """Tell of one look."""
        for stop in tick.stops:
            remark(f"Job {stop.job} {stop.detail}: {stop.outcome}")
        if tick.skipped:
            remark(f"Skipped: {tick.skipped}")
            self._said = ""
        elif tick.observation is not None:
            state = tick.observation.state
            line = f"{len(state.waiting)} wait, {len(state.running)} run" + self._what(tick)
            is_news = line != self._said or bool(tick.outcomes and not self._is_dry)
            if is_news or self._clock() - self._said_s >= TELL_EVERY_S:
                remark(line)
                self._said, self._said_s = line, self._clock()
            if self._is_dry and tick.plan is not None:
                self._list(tick.observation, tick.plan)

    def _what(self, tick: Tick) -> str:
        """Return what a look led to."""
        if tick.plan is None:
            return ""
        wishes = sum(outcome.operation == "prefer" for outcome in tick.outcomes)
        out_of_place = len(tick.plan.changes)
        if self._is_dry:
            return f"; {out_of_place + wishes} planned, none sent"
        if tick.outcomes:
            failed = sum(outcome.outcome == "failed" for outcome in tick.outcomes)
            return f"; {out_of_place} out of place, {len(tick.outcomes)} sent, {failed} refused"
        return f"; {out_of_place} out of place, none sent" if out_of_place else "; all in place"

    def _list(self, observation: Observation, plan: Plan) -> None:
        """List what would be changed, unless that was the same the last time.

        Factors grow with the waiting jobs' age, so whom and where it is about decides that.
        """
        from yardmaster.live.slurm.driving import LOGGED_CHANGES

        ids = observation.state.jobs.id[plan.order].tolist()
        place = {str(job): number for number, job in enumerate(ids, 1)}
        first = plan.changes[:LISTED]
        whom = [f"{change.job} {place[change.job]}" for change in first]
        if not whom or whom == self._listed:
            return
        self._listed = whom
        for change in first:
            remark(f"  job {change.job}: +{change.points}, place {place[change.job]} of {len(ids)}")
        more = len(plan.changes) - len(first)
        of_many = f" (the first {LOGGED_CHANGES})" if len(plan.changes) > LOGGED_CHANGES else ""
        remark(f"  {f'{more} more' if more else 'the same'} in {self._out / AUDIT}{of_many}")


def _ended(ending: Ending, out: Path) -> str:
    text = f"{ending.ticks} looks, {ending.skipped} skipped, {ending.changes} changes; see {out}."
    if ending.restored is None:
        return text
    left = ending.restored.left
    return f"{text} {ending.restored.zeroed} factors taken away" + (
        f", {left} left: run `yardmaster live restore {out}`." if left else "."
    )
