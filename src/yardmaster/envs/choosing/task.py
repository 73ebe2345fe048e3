"""Tasks of choosing: in which regimes, among which schedulers, rewarded for what.

A task is plain values, so that a TOML table or command-line flags can hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.picking.sight import check_kinds
from yardmaster.envs.choosing.rewards import choosing_reward_of
from yardmaster.errors import YardmasterError
from yardmaster.names import Registry, unknown

MOST_EPISODES = 1_000_000

GANG_MENU = tuple(
    f"{rule}+{discipline}~estimate"
    for rule in ("srpt", "edf", "static-priority", "static-equal", "dynamic-heuristic")
    for discipline in ("skip", "easy")
)
"""The five rules for jobs of several GPUs, where it matters what happens when one does not fit, and
for users who do not know how long their jobs will run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoosingTask:
    """Episodes in many regimes, a menu of schedulers, and what choosing well is."""

    families: tuple[str, ...] = ("rlmetadqn",)
    """Families of regimes that episodes come from, in turn; see `yardmaster list regimes`."""
    regimes: tuple[str, ...] = ()
    """Of those, only these; empty: all."""
    randomised: bool = True
    """Whether half of the training episodes are disturbed, each in another way: other arrivals,
    run times, bursts, hours of the day."""
    episodes: int = 960
    """Distinct training episodes; they are drawn again and again."""
    reward: str | Mapping[str, float] = "jct"
    """A name of `CHOOSING_REWARDS`, or weights of terms."""
    tail: tuple[float, float] = (0.85, 2.0)
    """Ages between which a job counts as old, by the best 95th percentile."""
    labelled: bool = False
    """Whether the chooser is told which regime it is in."""
    max_steps: int = 0
    """Decisions after which an episode is cut; 0: never."""
    sight: ChoiceSight = field(default_factory=ChoiceSight)
    """The menu, and what the chooser sees."""
    measured_unit: bool = True
    """Whether the time unit is the mean run time of the regimes' first training episodes."""

    def __post_init__(self) -> None:
        choosing_reward_of(self.reward)
        check_kinds(self)
        if not self.families:
            raise YardmasterError("families must name at least one family of regimes.")
        if not 1 <= self.episodes <= MOST_EPISODES:
            raise YardmasterError(f"episodes must be 1 to {MOST_EPISODES:,}, got {self.episodes}.")
        if self.max_steps < 0:
            raise YardmasterError(f"max_steps must be 0 or more, got {self.max_steps}.")
        if len(self.tail) != 2 or not 0.0 <= self.tail[0] < self.tail[1]:
            raise YardmasterError(f"tail must be two ages, the lower first, got {self.tail}.")

    def changed(self, **changes: Any) -> ChoosingTask:
        """Return the task with some values changed; those of its sight by their own names.

        Raises:
            UnknownNameError: if a name is neither the task's nor its sight's.
        """
        own = [item.name for item in fields(self)]
        seen = [item.name for item in fields(ChoiceSight)]
        for name in changes:
            if name not in own and name not in seen:
                raise unknown("setting of a task", name, [*own, *seen])
        for name in ("families", "regimes", "menu", "tail"):
            if isinstance(changes.get(name), str):
                raise YardmasterError(f"{name} must be a list, got {changes[name]!r}.")
            if name in changes:
                changes[name] = tuple(changes[name])
        sight = changes.pop("sight", self.sight)
        in_sight = {name: changes.pop(name) for name in list(changes) if name in seen}
        if "time_unit_s" in in_sight:
            changes.setdefault("measured_unit", False)
        return replace(self, sight=replace(sight, **in_sight), **changes)

    def to_table(self) -> dict[str, Any]:
        """Return plain values that `changed` reads back."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        sight = asdict(values.pop("sight"))
        if not isinstance(self.reward, str):
            values["reward"] = dict(self.reward)
        lists = {name: list(values[name]) for name in ("families", "regimes", "tail")}
        return values | lists | sight | {"menu": list(self.sight.menu)}


CHOOSING_TASKS: Registry[ChoosingTask] = Registry("task")
CHOOSING_TASKS.add("regimes", ChoosingTask(sight=ChoiceSight(every_s=180.0)))
_GANGS = ChoiceSight(menu=GANG_MENU, information="estimate", every_s=900.0)
CHOOSING_TASKS.add("hard-regimes", ChoosingTask(families=("hard",), sight=_GANGS))
CHOOSING_TASKS.add("drifting-regimes", ChoosingTask(families=("drift",), sight=_GANGS))
CHOOSING_TASKS.add("hard-and-drifting", ChoosingTask(families=("hard", "drift"), sight=_GANGS))
