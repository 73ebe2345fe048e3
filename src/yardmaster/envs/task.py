"""Tasks: which jobs, on which machines, seen how, rewarded how.

A task is plain values, so that a TOML table or command-line flags can hold it. `TASKS` has ready
ones, among them those of other schedulers' programs; names that end in `-original` also make their
mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from yardmaster.engine.picking.sight import Sight, check_kinds
from yardmaster.envs.rewards import REWARDS, Reward, reward_of
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.names import Registry, unknown

MOST_EPISODES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Episodes of jobs on a cluster, what a policy sees of them, and what it is rewarded for."""

    workload: str | Workload = "lognormal"
    """A preset, a recipe, a trace (whose windows are the episodes), or a Workload."""
    cluster: str | Cluster = "8x V100:8"
    jobs: int = 256
    """Jobs of an episode."""
    load: float | None = None
    """Offered load of generated episodes; None: as the recipe says. Of a trace: stretched to it."""
    episodes: int = 512
    """Distinct training episodes; they are drawn again and again."""
    reward: str | Mapping[str, float] | Reward = "wait"
    """A name of `REWARDS`, or weights of terms."""
    baseline: str = "fifo+skip"
    """Scheduler that `relative` rewards compare with, and that `keep` judges episodes by."""
    keep: tuple[float, float] = (0.0, 1.0)
    """Train only on episodes between these quantiles of the baseline's score."""
    time_limit_s: float | None = None
    """Second at which an episode is cut; None: never."""
    horizon_factor: float | None = None
    """Cut at the last submission plus this many times the work divided by all GPUs."""
    max_steps: int = 0
    """Decisions after which an episode is cut; 0: never."""
    sight: Sight = field(default_factory=Sight)
    """What the policy sees."""
    measured_unit: bool = True
    """Whether the time unit is the mean run time of the first training episodes."""

    def __post_init__(self) -> None:
        reward_of(self.reward)
        check_kinds(self)
        for name in ("jobs", "episodes"):
            if getattr(self, name) < 1:
                raise YardmasterError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.episodes > MOST_EPISODES:
            raise YardmasterError(
                f"episodes must be at most {MOST_EPISODES:,}, got {self.episodes:,}: beyond that"
                " training would meet the seeds of validation."
            )
        if self.max_steps < 0:
            raise YardmasterError(f"max_steps must be 0 or more, got {self.max_steps}.")
        for name in ("load", "time_limit_s", "horizon_factor"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise YardmasterError(f"{name} must be positive, got {value}.")
        if len(self.keep) != 2:
            raise YardmasterError(f"keep must be two quantiles, got {self.keep}.")
        low, high = self.keep
        if not 0.0 <= low < high <= 1.0:
            raise YardmasterError(f"keep must be two quantiles, the lower first, got {self.keep}.")

    def changed(self, **changes: Any) -> Task:
        """Return the task with some values changed; those of its sight by their own names.

        A trace in place of generated jobs keeps its own times unless a load is given as well.

        Raises:
            UnknownNameError: if a name is neither the task's nor its sight's.
        """
        own = [item.name for item in fields(self)]
        seen = [item.name for item in fields(Sight)]
        for name in changes:
            if name not in own and name not in seen:
                raise unknown("setting of a task", name, [*own, *seen])
        if "workload" in changes and not _is_generated(changes["workload"]):
            changes.setdefault("load", None)
        sight = changes.pop("sight", self.sight)
        in_sight = {name: changes.pop(name) for name in list(changes) if name in seen}
        if isinstance(in_sight.get("ranks"), str):
            raise YardmasterError(f"ranks must be a list of orders, got {in_sight['ranks']!r}.")
        if "ranks" in in_sight:
            in_sight["ranks"] = tuple(in_sight["ranks"])
        if "keep" in changes:
            changes["keep"] = tuple(changes["keep"])
        if "time_unit_s" in in_sight:
            changes.setdefault("measured_unit", False)
        return replace(self, sight=replace(sight, **in_sight), **changes)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Task:
        """Read a task from plain values: `task` names a preset, everything else changes it.

        Without a preset, what is not given is as in `Task()`.

        Raises:
            UnknownNameError: for unknown names and settings.
        """
        values = dict(table)
        base = TASKS[values.pop("task")] if "task" in values else Task()
        return base.changed(**values)

    def to_table(self) -> dict[str, Any]:
        """Return plain values that `from_table` reads back.

        Raises:
            YardmasterError: if the task holds a workload or a cluster that has no name to load by.
        """
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        sight = asdict(values.pop("sight"))
        for name in ("workload", "cluster"):
            if not isinstance(values[name], str):
                raise YardmasterError(
                    f"The task's {name} is an object; give it by name or file to write it down."
                )
        if isinstance(self.reward, Reward):
            values["reward"] = _name_of(self.reward)
        elif not isinstance(self.reward, str):
            values["reward"] = dict(self.reward)
        table = values | sight | {"keep": list(self.keep), "ranks": list(self.sight.ranks)}
        return {name: value for name, value in table.items() if value is not None}


def _name_of(reward: Reward) -> str:
    """Return the name of a reward in the catalogue."""
    for name in REWARDS:
        if REWARDS[name] == reward:
            return name
    raise YardmasterError(
        "The task's reward is an object; give it by name, or as weights of terms, to write it down."
    )


def _is_generated(workload: str | Workload) -> bool:
    from yardmaster.workloads.sources import is_generated

    return isinstance(workload, str) and is_generated(workload)


TASKS: Registry[Task] = Registry("task")
TASKS.add("default", Task(load=1.0))
TASKS.add(
    "estimates",
    Task(load=1.0, sight=Sight(information="estimate")),
)
TASKS.add("blind", Task(load=1.0, sight=Sight(information="blind")))
TASKS.add(
    "gpu-optimizer",
    Task(
        workload="gpu-optimizer",
        cluster="pool:8",
        jobs=400,
        reward="gpu_optimizer",
        horizon_factor=1.3,
        max_steps=2000,
        measured_unit=False,
        sight=Sight(
            window=50,
            features="gpu_optimizer",
            gpu_slots=8,
            noop="always",
            time_unit_s=10_000.0,
            longest_s=10_000.0,
        ),
    ),
)
TASKS.add("gpu-optimizer-original", TASKS["gpu-optimizer"].changed(pace="event"))
TASKS.add(
    "drl-scheduler",
    Task(
        workload="drl-scheduler",
        cluster="1x A100:16, 1x V100:16, 1x T4:12, 1x RTX4090:12",
        jobs=2000,
        reward="drl_scheduler",
        time_limit_s=150_000.0,
        measured_unit=False,
        sight=Sight(
            window=16,
            window_order="static-priority",
            features="drl_scheduler",
            gpu_slots=0,
            noop="always",
            longest_s=15_000.0,
        ),
    ),
)
TASKS.add(
    "drl-scheduler-original",
    TASKS["drl-scheduler"].changed(pace="tick", masked=False, max_steps=2000),
)
TASKS.add(
    "rltune",
    Task(
        workload="venus-like",
        cluster="rltune-helios",
        jobs=256,
        load=2.0,
        reward="relative_bounded_slowdown",
        baseline="fifo+skip",
        sight=Sight(window=128, features="rltune", information="blind", gpu_slots=0, noop="never"),
    ),
)
TASKS.add("rltune-original", TASKS["rltune"].changed(pace="commit", baseline="fifo+commit"))
