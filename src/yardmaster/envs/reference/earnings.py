"""What a step earns, as plain Python; see `envs.rewards` for what each term is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.engine.picking.places import SHORT_S, Score, Term

if TYPE_CHECKING:
    from yardmaster.envs.reference.environment import ReferencePickJob

JOULES_PER_KWH = 3.6e6


class Earnings:
    """What the current step has earned of each term, and what became of the jobs so far."""

    def __init__(self, env: ReferencePickJob, baseline: float) -> None:
        self.env = env
        self.baseline = baseline
        self.earned = dict.fromkeys(Term, 0.0)
        self.elapsed_s = 0.0
        self.waits_s: dict[int, float] = {}
        """Of jobs that have started."""
        self.ends_s: dict[int, float] = {}
        """Of jobs that have finished."""

    def begin_step(self) -> None:
        """Forget what the last step earned."""
        self.earned = dict.fromkeys(Term, 0.0)
        self.elapsed_s = 0.0

    def reward(self, weights: list[float]) -> float:
        """Return the weighted sum of what this step earned."""
        return sum(weights[term] * amount for term, amount in self.earned.items())

    def pass_time(self, seconds: float) -> None:
        """Earn what accrues while nothing changes for so many seconds from now."""
        env, earned, jobs = self.env, self.earned, len(self.env.gangs)
        middle_s = env.now_s + seconds / 2.0
        crowd = len(env.line) + len(env.running)
        busy = sum(len(job.gpus) for job in env.running.values()) / env.cluster.gpus
        self.elapsed_s += seconds
        earned[Term.WAITING] += len(env.line) * seconds / jobs
        earned[Term.IN_SYSTEM] += crowd * seconds / jobs
        for row in env.line:
            earned[Term.BOUNDED_SLOWDOWN] += seconds / max(env.run_s[row], SHORT_S) / jobs
            earned[Term.SLOWDOWN] += seconds / max(env.run_s[row], 1.0) / jobs
            earned[Term.QUEUE_WAIT] += (middle_s - env.submit_s[row]) * seconds
        earned[Term.BUSY] += busy * seconds
        earned[Term.IDLE] += (1.0 - busy) * seconds
        earned[Term.CROWD] += crowd * seconds
        earned[Term.ENERGY] += self._watts() * seconds / JOULES_PER_KWH
        share_left = self._work_left(middle_s) / env.work_gpu_s
        earned[Term.WORK_LEFT] += share_left * seconds / env.span_s

    def _watts(self) -> float:
        """Watts of all GPUs now."""
        watts = 0.0
        rules, free = self.env.rules, self.env.free
        for built, idle, kind in zip(rules.node_gpus, free, rules.node_type, strict=True):
            gpu = self.env.cluster.gpu_types[kind]
            watts += idle * gpu.idle_w + (built - idle) * gpu.busy_w
        return watts

    def _work_left(self, at_s: float) -> float:
        """GPU-seconds submitted and not done by a moment before the next event."""
        running = self.env.running.values()
        return self._work(self.env.line) + sum(
            len(job.gpus) * (job.end_s - at_s) for job in running
        )

    def _work(self, rows: list[int]) -> float:
        """GPU-seconds of jobs that can run."""
        env = self.env
        return sum(env.run_s[row] * env.gangs[row].gpus for row in rows if row in env.gangs)

    def note_holding_back(self) -> None:
        """Earn what it costs to wait although a job fits."""
        self.earned[Term.HELD_BACK] += self._work_left(self.env.now_s) / self.env.work_gpu_s

    def note_start(self, row: int) -> None:
        """Earn what a job's start brings."""
        run_s, wait_s = self.env.run_s[row], self.env.now_s - self.env.submit_s[row]
        self.waits_s[row] = wait_s
        if run_s < SHORT_S:
            # It accrued from the first second, but is counted only beyond ten.
            grown = max((wait_s + run_s) / SHORT_S - 1.0, 0.0)
            correction = (grown - wait_s / SHORT_S) / len(self.env.gangs)
            self.earned[Term.BOUNDED_SLOWDOWN] += correction

    def note_end(self, row: int) -> None:
        """Earn what a job's end brings."""
        env, earned, jobs = self.env, self.earned, len(self.env.gangs)
        self.ends_s[row] = env.now_s
        earned[Term.FINISHED] += 1.0 / jobs
        earned[Term.WORK_DONE] += self._work([row]) / env.work_gpu_s
        earned[Term.PRIORITY_DONE] += env.priority[row]
        earned[Term.LATE] += (env.now_s > env.deadline_s[row]) / jobs

    def note_over(self) -> None:
        """Earn what the end of an episode brings."""
        env = self.env
        if env.over == "done":
            self.earned[Term.OUTCOME] += (env.span_s - env.now_s) / env.span_s
        else:
            left = self._work_left(env.now_s) + self._work(env.coming)
            self.earned[Term.OUTCOME] -= left / env.work_gpu_s
        self.earned[Term.FAIRNESS] += self._jain()
        if not math.isnan(self.baseline):
            self.earned[Term.RELATIVE] += self._relative()

    def jct_s(self, row: int) -> float:
        """Seconds a finished job was in the system."""
        return self.ends_s[row] - self.env.submit_s[row]

    def bounded_slowdown(self, row: int) -> float:
        """Bounded slowdown of a finished job."""
        return max(self.jct_s(row) / max(self.env.run_s[row], SHORT_S), 1.0)

    def _jain(self) -> float:
        """Jain index over tenants' mean bounded slowdown; 1 if there are no tenants."""
        tenants = self.env.tenants
        if all(name is None for name in tenants):
            return 1.0
        fates: dict[str | None, list[float]] = {}
        for row in self.ends_s:
            fates.setdefault(tenants[row], []).append(self.bounded_slowdown(row))
        means = [float(np.mean(values)) for values in fates.values()]
        squares = sum(mean**2 for mean in means)
        return sum(means) ** 2 / (len(means) * squares) if means else 1.0

    def score(self, kind: Score) -> float:
        """What the finished jobs score so far."""
        env, rows = self.env, list(self.ends_s)
        if kind is Score.UTILISATION:
            wall_s = max(self.ends_s.values(), default=0.0) - env.submit_s[0]
            return self._work(rows) / max(wall_s * env.cluster.gpus, 1e-9)
        each = {
            Score.WAIT: lambda row: self.waits_s[row],
            Score.TURNAROUND: self.jct_s,
            Score.SLOWDOWN: lambda row: self.jct_s(row) / max(env.run_s[row], 1.0),
            Score.BOUNDED_SLOWDOWN: self.bounded_slowdown,
        }[kind]
        return sum(map(each, rows)) / max(len(rows), 1)

    def _relative(self) -> float:
        """How much better than the baseline, as a share of the larger of the two."""
        kind = Score[self.env.reward.score.upper()]
        ours, theirs = self.score(kind), self.baseline
        if kind is Score.UTILISATION:
            return (ours - theirs) / max(ours, theirs, 1e-9)
        return (theirs - ours) / max(ours, theirs, 1.0)
