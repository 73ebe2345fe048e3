"""Who holds which GPUs, and what will be free when: the machines of the reference environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from yardmaster.engine.reference.placements import packed
from yardmaster.engine.reference.rules import Gang, Plan, Rules


@dataclass(frozen=True, slots=True)
class Running:
    """A job on its GPUs."""

    row: int
    plan: Plan
    gpus: tuple[int, ...]
    """Numbers of the GPUs it holds."""
    end_s: float
    expected_end_s: float
    """When the policy expects it to end, going by the run times it is shown."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The earliest moment for a job that does not fit yet."""

    shadow_s: float
    extra: list[int]
    """(nodes,) GPUs free at that moment beyond what the job will take."""


class Machines:
    """The nodes and the GPUs that nobody holds."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.idle: list[list[int]] = []
        """Numbers of the free GPUs of every node, ascending."""
        for first, gpus in zip(rules.node_first_gpu, rules.node_gpus, strict=True):
            self.idle.append(list(range(first, first + gpus)))

    @property
    def free(self) -> list[int]:
        """(nodes,) GPUs that nobody holds."""
        return [len(gpus) for gpus in self.idle]

    def take(self, plan: Plan) -> tuple[int, ...]:
        """Take the lowest-numbered free GPUs of the planned nodes; return their numbers."""
        taken: list[int] = []
        for node, count in plan.items():
            taken += self.idle[node][:count]
            del self.idle[node][:count]
        return tuple(taken)

    def give_back(self, gpus: Iterable[int]) -> None:
        """Give GPUs back."""
        for gpu in gpus:
            node = self.rules.gpu_node[gpu]
            self.idle[node] = sorted([*self.idle[node], gpu])

    def reserve(self, gang: Gang, running: Iterable[Running], now_s: float) -> Reservation:
        """Let running jobs end as expected until a job fits; see what it leaves over then.

        A job that has outlived its expected end is expected to end at once.
        """

        def end_s(job: Running) -> float:
            return max(job.expected_end_s, now_s)

        free = self.free
        for moment, jobs in groupby(sorted(running, key=end_s), key=end_s):
            for job in jobs:
                for node, gpus in job.plan.items():
                    free[node] += gpus
            if gang.fits(free):
                for node, gpus in packed(gang, free).items():
                    free[node] -= gpus
                return Reservation(moment, free)
        raise AssertionError("a job that fits an empty cluster fits when everybody has left")

    def beside(self, reservation: Reservation) -> list[int]:
        """(nodes,) GPUs that are free now and not needed by the reservation."""
        return [min(pair) for pair in zip(self.free, reservation.extra, strict=True)]
