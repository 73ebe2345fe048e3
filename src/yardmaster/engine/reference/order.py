"""The SimPy reference: whose turn it is, by tenant, key and row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference.dice import dice
from yardmaster.engine.reference.progress import Job, Run
from yardmaster.engine.reference.rules import Gang, Rules
from yardmaster.engine.requests import UNLIMITED
from yardmaster.engine.state import OrderKind


class Tenants:
    """Who holds how much, who may hold how much, and who has used how much so far."""

    def __init__(self, rules: Rules) -> None:
        conditions = rules.conditions
        self.guaranteed: list[int] = conditions.guaranteed_gpus.tolist()
        self.limit: list[int] = conditions.limit_gpus.tolist()
        self.totals = (
            sum(rules.node_gpus),
            _known_total(conditions.node_cpu_milli.tolist()),
            _known_total(conditions.node_mib.tolist()),
        )
        """GPUs, thousandths of cores and MiB of host memory of the whole cluster."""
        self.used = [[0, 0, 0] for _ in self.guaranteed]
        """The same, held by each tenant now."""
        self.usage_gpu_s = [0.0] * len(self.guaranteed)

    def book(self, gang: Gang, gpus: int, sign: int = 1) -> None:
        """Count what a job takes, or gives back (sign −1)."""
        if self.guaranteed:
            amounts = (gpus, gpus * gang.cpu_milli, gpus * gang.host_mib)
            for resource, amount in enumerate(amounts):
                self.used[gang.tenant][resource] += sign * amount

    def pass_time(self, seconds: float) -> None:
        """Count what everybody has held for so long."""
        for tenant, (gpus, *_) in enumerate(self.used):
            self.usage_gpu_s[tenant] += gpus * seconds

    def used_gpus(self, gang: Gang) -> int:
        """GPUs held now by the tenant of this job."""
        return self.used[gang.tenant][0]

    def class_of(self, gang: Gang, gpus: int) -> int | None:
        """0 within the tenant's guarantee, 1 if it borrows, None if the job is held back."""
        if not self.guaranteed:
            return 1
        used = self.used_gpus(gang) + gpus
        if used <= self.guaranteed[gang.tenant]:
            return 0
        return 1 if used <= self.limit[gang.tenant] else None

    def borrowed_gpus(self, gang: Gang) -> int:
        """GPUs that the job's tenant holds beyond its guarantee; negative if it holds fewer."""
        return self.used_gpus(gang) - self.guaranteed[gang.tenant]

    def spare_gpus(self, gang: Gang) -> int:
        """GPUs that the tenant may still add."""
        return self.limit[gang.tenant] - self.used_gpus(gang) if self.guaranteed else UNLIMITED

    def share(self, gang: Gang) -> float:
        """The tenant's part of the resource of which it holds the largest part."""
        if not self.guaranteed:
            return 0.0
        amounts = zip(self.used[gang.tenant], self.totals, strict=True)
        return max(used / total for used, total in amounts if total)

    def usage(self, gang: Gang) -> float:
        """GPU-seconds the tenant has used so far, by what it is guaranteed."""
        if not self.guaranteed:
            return 0.0
        return self.usage_gpu_s[gang.tenant] / max(self.guaranteed[gang.tenant], 1)


def _known_total(amounts: list[int]) -> int:
    return sum(amount for amount in amounts if amount != UNLIMITED)


class Order:
    """The key of every job; the lowest goes first, ties by row."""

    def __init__(
        self,
        keys: OrderKeys,
        seed: int,
        tenants: Tenants,
        levels_s: Iterable[float],
        *,
        by_rounds: bool,
    ) -> None:
        self.keys = keys
        self.seed = seed
        self.tenants = tenants
        self.levels_s = list(levels_s)
        self.by_rounds = by_rounds
        """Whether jobs take turns, whatever the keys say."""
        self.offset: list[float] = keys.offset.tolist()
        self.history: dict[int | None, tuple[float, int]] = {}
        """Run time and number of finished jobs by group; of all jobs under None."""
        reads_tenants = keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
        self.keeps_moving = reads_tenants or keys.kind in {OrderKind.AGEING, OrderKind.SHUFFLED}
        """Whether keys of waiting jobs change while they wait."""
        self.moves_within_a_pass = bool(tenants.guaranteed)
        """Whether starting a job may change whose turn it is next."""
        self.passes = 0

    def on_arrival(self, gang: Gang) -> None:
        """Look up what the job's group has run so far: the key is GPUs × mean run time."""
        if self.keys.kind == OrderKind.HISTORY and self.keys.group is not None:
            of_all = self.history.get(None, (0.0, 1))
            total_s, jobs = self.history.get(int(self.keys.group[gang.row]), of_all)
            self.offset[gang.row] = gang.gpus * (total_s / jobs)

    def on_completion(self, job: Job) -> None:
        """Remember how long the job ran, all its segments together."""
        if self.keys.group is not None:
            for group in (int(self.keys.group[job.gang.row]), None):
                total_s, jobs = self.history.get(group, (0.0, 0))
                self.history[group] = total_s + job.held_s, jobs + 1

    def begin_pass(self, waiting: Iterable[int], now_s: float) -> None:
        """Count the pass, and ask a Python order for the keys of the waiting jobs."""
        self.passes += 1
        rows = np.array(sorted(waiting), dtype=np.int64)
        if self.keys.rekey is not None and len(rows):
            for row, key in zip(rows.tolist(), self.keys.rekey(rows, now_s), strict=True):
                self.offset[row] = float(key)

    def key(self, job: Job, run: Run | None, now_s: float) -> float:
        """Return the key of a waiting job, or of one that runs."""
        if self.by_rounds:
            return float(job.rounds)
        kind = self.keys.kind
        if kind == OrderKind.REMAINING:
            return job.expected_left_s(job.left_s if run is None else run.left_at(now_s))
        if kind == OrderKind.ATTAINED:
            return self._attained(job, run, now_s)
        if kind == OrderKind.SHARE:
            return self.tenants.share(job.gang)
        if kind == OrderKind.USAGE:
            return self.tenants.usage(job.gang)
        return self._of_row(job.gang.row, now_s)

    def _attained(self, job: Job, run: Run | None, now_s: float) -> float:
        """Service so far, or the number of thresholds that it has passed."""
        service = job.held_s if run is None else job.held_s + (now_s - run.start_s)
        if self.keys.weighted:
            service = service * job.gang.gpus
        if not self.levels_s:
            return service
        return float(sum(level <= service for level in self.levels_s))

    def _of_row(self, row: int, now_s: float) -> float:
        """Return a key that does not depend on whether and how long the job has run."""
        if self.keys.kind == OrderKind.SHUFFLED:
            return float(dice(self.seed, self.passes, row))
        if self.keys.rate is None or self.keys.since is None:
            return self.offset[row]
        low, high = self.keys.clip_s
        age_s = min(max(now_s - float(self.keys.since[row]), low), high)
        return self.offset[row] + float(self.keys.rate[row]) * age_s
