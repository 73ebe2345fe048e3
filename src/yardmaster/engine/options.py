"""How a simulation is to be run, besides on which jobs, machines and order."""

from __future__ import annotations

from dataclasses import dataclass

from yardmaster.engine.conditions import Conditions
from yardmaster.engine.decisions import Decide
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.workload import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Everything about a simulation besides jobs, machines and order."""

    discipline: Discipline
    placement: Placement
    expected_s: FloatArray | None
    """(jobs,) run times the scheduler believes; None for the true ones."""
    seed: int = 0
    one_arrival: bool = False
    records_gpus: bool = True
    conditions: Conditions | None = None
    """What a real cluster does to jobs; None for equal GPUs that never fail."""
    decide: Decide | None = None
    """A Python function that chooses jobs and nodes at every pass, in place of the discipline."""
    lists_queue: bool = False
    """Whether the waiting jobs are kept as one list, for a caller that looks at them itself."""

    def most_running(self, jobs: int, gpus: int) -> int:
        """Return how many jobs can run at once: each holds a GPU, unless GPUs are shared."""
        shares = self.conditions is not None and bool(self.conditions.node_sharing.any())
        return jobs if shares else min(jobs, gpus)
