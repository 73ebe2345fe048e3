"""One environment as plain Python: what actions do, and how time passes.

It knows nodes of one or more GPU types, with their speeds, gangs within and across nodes, and the
placement `pack`; not shared GPUs, cores and memory, quotas, failures, checkpoints and power caps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.conditions import Conditions, conditions_of
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.picking.places import Term
from yardmaster.engine.reference.placements import packed
from yardmaster.engine.reference.rules import Gang, Rules, neutral_conditions
from yardmaster.engine.requests import UNLIMITED, shapes_of
from yardmaster.engine.state import OrderKind
from yardmaster.envs.reference.earnings import Earnings
from yardmaster.envs.reference.machines import Machines, Reservation, Running
from yardmaster.envs.reference.views import look
from yardmaster.envs.rewards import reward_of
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.picking import keys_of, known_run_times

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


class ReferencePickJob:
    """One environment: `reset(workload)`, then `step(action)` until the episode is over.

    Action `i` starts the job at place `i` of the window; action `window` is the no-op. `mask` says
    which actions are legal; one that is not counts as the no-op.
    """

    def __init__(self, task: Task, cluster: Cluster) -> None:
        """Take a task with its time unit (`Episodes.task`) and the machines to play it on."""
        if task.sight.placement != "pack":
            raise YardmasterError("The reference environment places jobs by `pack` only.")
        self.task = task
        self.sight = task.sight
        self.cluster = cluster
        self.reward = reward_of(task.reward)
        self.weights: list[float] = self.reward.row(self.sight.time_unit_s).tolist()

    # An episode from its beginning to its end.

    def reset(self, workload: Workload, *, baseline: float = math.nan) -> Floats:
        """Begin an episode of these jobs; return the first observation.

        Args:
            workload: the jobs; the first is submitted at second 0.
            baseline: score of the scheduler that a relative reward compares with.
        """
        self.workload = workload
        self._read_jobs(workload)
        self.now_s = 0.0
        self.coming = list(range(len(workload)))
        """Jobs not submitted yet."""
        self.line: list[int] = []
        """Jobs waiting, in the order of the window."""
        self.running: dict[int, Running] = {}
        self.machines = Machines(self.rules)
        self.steps = self.noops = 0
        self.over = ""
        self.earnings = Earnings(self, baseline)
        self.reservation: Reservation | None = None
        self.beside: list[int] = []
        """(nodes,) GPUs that are free now and not needed by the reservation."""
        if self.sight.pace == "event":
            self._go_on()
        else:
            self._advance_to_decision()
        return self._look()

    def _read_jobs(self, workload: Workload) -> None:
        """Look up what is known of the jobs from the start."""
        cluster, sight = self.cluster, self.sight
        shapes = shapes_of(workload, cluster)
        conditions = conditions_of(workload, cluster, shapes)
        _refuse_what_is_unknown(conditions)
        self.rules = Rules(conditions or neutral_conditions(cluster, shapes), cluster, shapes)
        kinds: list[int] = shapes.of_job.tolist()
        self.gangs: dict[int, Gang] = {
            row: self.rules.gangs[kind] for row, kind in enumerate(kinds) if kind >= 0
        }
        """What each job asks for that can ever run."""
        self.submit_s: list[float] = workload.submit_s.tolist()
        self.run_s: list[float] = workload.duration_s.tolist()
        known = known_run_times(workload, sight)
        self.known_s: list[float] | None = None if known is None else known.tolist()
        """Run times the policy is shown; None if it is blind."""
        self.expected_s: list[float] = self.run_s if self.known_s is None else self.known_s
        self.priority: list[float] = np.nan_to_num(workload.priority).tolist()
        self.deadline_s: list[float] = workload.deadline_s.tolist()
        self.tenants = workload.tenant.values()
        self.keys = keys_of(sight.window_order, workload, cluster, known)
        if self.keys.kind not in {OrderKind.FIXED, OrderKind.AGEING}:
            raise YardmasterError(f"The reference cannot keep {sight.window_order!r} in order.")
        self.rank_keys = [
            keys_of(name, workload, cluster, known).offset.tolist() for name in sight.ranks
        ]
        work_gpu_s = sum(self.run_s[row] * gang.gpus for row, gang in self.gangs.items())
        self.work_gpu_s = max(work_gpu_s, 1e-9)
        self.horizon_s = self._horizon(workload)
        is_original = sight.features == "gpu_optimizer"
        factor = sight.span_factor if is_original else 2.0
        usual_s = max(self.submit_s[-1] + factor * self.work_gpu_s / cluster.gpus, 1.0)
        is_known = math.isfinite(self.horizon_s) and not is_original
        self.span_s = self.horizon_s if is_known else usual_s

    def _horizon(self, workload: Workload) -> float:
        limit_s, factor = self.task.time_limit_s, self.task.horizon_factor
        horizon_s = math.inf if limit_s is None else limit_s
        if factor is not None:
            work_s = float((workload.duration_s * workload.gpus).sum()) / self.cluster.gpus
            horizon_s = min(horizon_s, self.submit_s[-1] + factor * work_s)
        return horizon_s

    def step(self, action: int) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Carry out an action; return observation, reward, terminated, truncated and more."""
        earnings = self.earnings
        earnings.begin_step()
        self.steps += 1
        noop = self.sight.window
        is_legal = 0 <= action <= noop and bool(self.mask[action])
        is_pick = is_legal and action < len(self.window)
        if not is_pick and not (is_legal and action == noop):
            earnings.earned[Term.INVALID] += 1.0
        if is_pick:
            self._pick(self.line[action])
        else:
            self._wait()
        if not self.over and 0 < self.task.max_steps <= self.steps:
            self.over = "cut"
        if self.over:
            earnings.note_over()
        self._look()
        more = {
            "action_mask": self.mask,
            "elapsed_s": earnings.elapsed_s,
            "terms": dict(earnings.earned),
        }
        reward = earnings.reward(self.weights)
        return self.observation, reward, self.over == "done", self.over == "cut", more

    @property
    def window(self) -> list[int]:
        """The jobs that can be picked, in order."""
        return self.line[: self.sight.window]

    # What a policy sees and may do.

    def _look(self) -> Floats:
        """See what fits, who is blocked and what is legal now."""
        free = self.free
        self.fitting = {row: self.gangs[row].fits(free) for row in self.window}
        blocked = [row for row, fits in self.fitting.items() if not fits]
        self.head: int | None = blocked[0] if blocked else None
        self.reservation, self.beside = None, free
        if self.sight.reserves and self.head is not None:
            self.reservation = self.machines.reserve(
                self.gangs[self.head], self.running.values(), self.now_s
            )
            self.beside = self.machines.beside(self.reservation)
        self.mask = self._legal()
        self.observation = look(self)
        return self.observation

    @property
    def free(self) -> list[int]:
        """(nodes,) GPUs that nobody holds."""
        return self.machines.free

    def ends_in_time(self, row: int, reservation: Reservation) -> bool:
        """Whether a job that starts now is expected to end before the reservation."""
        gang = self.gangs[row]
        rate = self.rules.rate(gang, packed(gang, self.free))
        return self.expected_s[row] <= (reservation.shadow_s - self.now_s) * rate

    def _legal(self) -> Bools:
        """Which actions are legal: jobs that fit, and the no-op if waiting can mean something."""
        sight = self.sight
        mask = np.zeros(sight.window + 1, dtype=np.bool_)
        if self.over and not self._is_asked():
            mask[-1] = True
            return mask
        for place, fits in enumerate(self.fitting.values()):
            mask[place] = fits or sight.pace == "commit"
        if not sight.masked:
            mask[:-1] = True
        mask[-1] = self._may_wait()
        return mask

    def _may_wait(self) -> bool:
        sight = self.sight
        if sight.pace != "decision":
            return sight.pace != "commit"
        if not any(self.fitting.values()):
            return True
        can_happen = bool(self.running or self.coming)
        if sight.noop == "when_blocked":
            fits = list(self.fitting.values())
            return can_happen and False in fits and True in fits[fits.index(False) :]
        return can_happen and sight.noop == "always"

    # Actions.

    def _pick(self, row: int) -> None:
        """Start a job, now or, if the policy commits itself, when it fits."""
        is_started = self._start(row)
        while self.sight.pace == "commit" and not is_started:
            if not self._advance():
                return
            is_started = self._start(row)
        if is_started or self.sight.pace != "decision" or self._advance():
            self._go_on()

    def _wait(self) -> None:
        """Start nothing; if nothing could ever happen then, start the first job that fits."""
        self.noops += 1
        if True in self.fitting.values():
            self.earnings.note_holding_back()
            if self.sight.pace == "decision" and self._next_instant() == math.inf:
                self._pick(next(row for row, fits in self.fitting.items() if fits))
                return
        if self.sight.pace in {"event", "tick"} or self._advance():
            self._go_on()

    def _start(self, row: int) -> bool:
        """Start a job if it fits; one that outlasts the reservation goes beside it if it can."""
        gang = self.gangs[row]
        if not gang.fits(self.free):
            return False
        plan = packed(gang, self.beside if self._goes_beside(row) else self.free)
        gpus = self.machines.take(plan)
        rate = self.rules.rate(gang, plan)
        self.line.remove(row)
        self.running[row] = Running(
            row,
            plan,
            gpus,
            end_s=self.now_s + self.run_s[row] / rate,
            expected_end_s=self.now_s + self.expected_s[row] / rate,
        )
        self.earnings.note_start(row)
        return True

    def _goes_beside(self, row: int) -> bool:
        """Whether a job must and can leave alone what is reserved."""
        held = self.reservation
        if held is None or self.sight.pace != "decision":
            return False
        return self.gangs[row].fits(self.beside) and not self.ends_in_time(row, held)

    # Time.

    def _go_on(self) -> None:
        """Let time pass until the policy is asked again."""
        if self.sight.pace == "event":
            self._pop_event()
        elif self.sight.pace == "tick":
            self._tick()
        else:
            self._advance_to_decision(is_asked=self._is_asked())
            return
        if self._next_instant() == math.inf and not self.line:
            self.over = "done"
        elif self.now_s >= self.horizon_s:
            self.over = "cut"

    def _advance_to_decision(self, *, is_asked: bool = False) -> None:
        while not is_asked and self._advance():
            is_asked = self._is_asked()

    def _is_asked(self) -> bool:
        """Whether there is anything to decide."""
        if self.sight.pace == "decision":
            free = self.free
            return any(self.gangs[row].fits(free) for row in self.window)
        return self.sight.pace != "commit" or bool(self.line)

    def _next_instant(self) -> float:
        """Return the second of the next arrival or completion."""
        ends_s = [job.end_s for job in self.running.values()]
        return min([*ends_s, *(self.submit_s[row] for row in self.coming[:1])], default=math.inf)

    def _advance(self) -> bool:
        """Go to the next instant; False if the episode is over."""
        moment = self._next_instant()
        if moment == math.inf:
            self.over = "cut" if self.line else "done"
        elif moment >= self.horizon_s:
            self._pass(self.horizon_s)
            self.over = "cut"
        else:
            self._go_to(moment)
        return not self.over

    def _go_to(self, moment: float) -> None:
        """Let everything happen that happens at the next instant: completions, then arrivals."""
        self._pass(moment)
        for row in sorted(row for row, job in self.running.items() if job.end_s <= moment):
            self._end(row)
        while self.coming and self.submit_s[self.coming[0]] <= moment:
            self._admit()
        self._sort()

    def _pop_event(self) -> None:
        """Let one arrival or completion happen; arrivals come first."""
        moment = self._next_instant()
        if moment == math.inf:
            self.over = "cut"  # a policy that waits for nothing leaves the jobs behind
            return
        self._pass(moment)
        if self.coming and self.submit_s[self.coming[0]] == moment:
            self._admit()
        else:
            self._end(min(self.running, key=lambda row: (self.running[row].end_s, row)))
        self._sort()

    def _tick(self) -> None:
        """Let one tick go by, whatever happens in it."""
        until_s = self.now_s + self.sight.tick_s
        while (moment := self._next_instant()) <= until_s:
            self._go_to(moment)
        if self.line or moment < math.inf:
            self._pass(until_s)
            self._sort()

    def _pass(self, moment: float) -> None:
        """Let the clock go on to a moment before which nothing happens."""
        self.earnings.pass_time(moment - self.now_s)
        self.now_s = moment

    def _admit(self) -> None:
        """Let the next job join the line, unless it can never run."""
        row = self.coming.pop(0)
        if row in self.gangs:
            self.line.append(row)

    def _sort(self) -> None:
        self.line.sort(key=lambda row: (_key(self.keys, row, self.now_s), row))

    def _end(self, row: int) -> None:
        """End a running job."""
        self.machines.give_back(self.running.pop(row).gpus)
        self.earnings.note_end(row)


def _key(keys: OrderKeys, row: int, now_s: float) -> float:
    """Return a waiting job's key; the lowest stands first."""
    if keys.rate is None or keys.since is None:
        return float(keys.offset[row])
    low, high = keys.clip_s
    age_s = min(max(now_s - float(keys.since[row]), low), high)
    return float(keys.offset[row]) + float(keys.rate[row]) * age_s


def _refuse_what_is_unknown(conditions: Conditions | None) -> None:
    """Refuse clusters and jobs that the reference does not model."""
    if conditions is not None and (
        conditions.node_sharing.any()
        or conditions.cpu_milli.any()
        or conditions.host_mib.any()
        or len(conditions.guaranteed_gpus)
        or conditions.outages
        or conditions.cap_watts < UNLIMITED
        or math.isfinite(conditions.every_s)
    ):
        raise YardmasterError(
            "The reference environment knows GPU types and gangs; not shared GPUs, cores, memory,"
            " quotas, failures, checkpoints and power caps."
        )
