"""Scenes as people name them: sources of jobs, clusters and loads, as plain values.

A `SceneMix` is to many scenes what `envs.task.Task` is to one workload: a TOML file can hold it.
`envs.scene_parts` reads the jobs and lays everything out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from yardmaster.engine.picking.sight import Sight, check_kinds
from yardmaster.envs.rewards import reward_of
from yardmaster.envs.scenes import WINDOW_KEYS, Range
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.names import unknown

GENERATED_LOAD: Range = (0.8, 1.2)
"""Loads of generated jobs where nobody says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneEntry:
    """A source of jobs, and the clusters it is played on."""

    workload: str
    """A preset, a recipe, or a file, whose windows are the episodes."""
    cluster: str | tuple[str, ...]
    """The machines; of several, each is a scene of its own."""
    name: str | None = None
    """What it is called; by default after its jobs and its machines."""
    load: float | tuple[float, float] | None = None
    """Offered load of every episode, or two between which each draws one; None: a file keeps its
    own times, generated jobs have between 0.8 and 1.2."""
    share: float = 1.0
    """How often, compared with the other entries; several clusters share it."""

    def __post_init__(self) -> None:
        check_kinds(self)
        if not self.clusters:
            raise YardmasterError("cluster: there must be one at least.")
        if not 0.0 < self.share < float("inf"):
            raise YardmasterError(f"share must be positive, got {self.share}.")
        loads = self.load if isinstance(self.load, tuple) else (self.load or 1.0,) * 2
        if self.load == 0 or not 0.0 < loads[0] <= loads[1] < float("inf"):
            raise YardmasterError(
                f"load must be above 0, or two such numbers, the lower first, got {self.load}."
            )

    @property
    def clusters(self) -> tuple[str, ...]:
        """The machines, a scene each."""
        return (self.cluster,) if isinstance(self.cluster, str) else tuple(self.cluster)

    def to_table(self) -> dict[str, Any]:
        """Return plain values; what is left open is left out."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        plain = {key: list(one) if isinstance(one, tuple) else one for key, one in values.items()}
        return {key: value for key, value in plain.items() if value is not None}


class Place(NamedTuple):
    """One scene: a source of jobs on one cluster."""

    name: str
    workload: str
    cluster: str
    load: Range | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneMix:
    """Many scenes, and what is the same in all: episodes, what a policy sees, its reward."""

    entries: tuple[SceneEntry, ...]
    jobs: int = 256
    """Jobs of an episode."""
    reward: str | Mapping[str, float] = "wait"
    """A name of `REWARDS`, or weights of terms; each is divided by what is usual in the scene."""
    sight: Sight = Sight()  # noqa: RUF009 - frozen: safe to share

    def __post_init__(self) -> None:
        from yardmaster.envs.usual import refuse_unscaled

        check_kinds(self)
        refuse_unscaled(reward_of(self.reward))
        if self.jobs < 2:
            raise YardmasterError(f"jobs must be at least 2, got {self.jobs}.")
        refuse_sight(self.sight)
        names = [place.name for place in self.places]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise YardmasterError(f"Two scenes are called {twice[0]!r}; give them names.")

    @classmethod
    def of(cls, task: Task, entries: Iterable[SceneEntry]) -> SceneMix:
        """Return scenes that are seen and rewarded as a task; its jobs and machines go."""
        reward = task.reward
        if not isinstance(reward, str | Mapping):
            raise YardmasterError("The reward must have a name, or be weights of terms.")
        return cls(entries=tuple(entries), jobs=task.jobs, reward=reward, sight=task.sight)

    @property
    def places(self) -> tuple[Place, ...]:
        """The scenes, one after another."""
        return tuple(
            Place(
                _name(entry, cluster), entry.workload, cluster, _loads(entry),
                entry.share / len(entry.clusters),
            )
            for entry in self.entries
            for cluster in entry.clusters
        )  # fmt: skip

    def changed(self, **changes: Any) -> SceneMix:
        """Return it with some values changed; those of its sight by their own names.

        Raises:
            UnknownNameError: if a name is neither its own nor its sight's.
        """
        own = [item.name for item in fields(self) if item.name != "entries"]
        seen = [item.name for item in fields(Sight)]
        for name in changes:
            if name not in own and name not in seen:
                raise unknown("setting of scenes", name, [*own, *seen])
        sight = changes.pop("sight", self.sight)
        in_sight = {name: changes.pop(name) for name in list(changes) if name in seen}
        if "ranks" in in_sight:
            in_sight["ranks"] = tuple(in_sight["ranks"])
        return replace(self, sight=replace(sight, **in_sight), **changes)

    def to_table(self) -> dict[str, Any]:
        """Return what is the same in all scenes as plain values."""
        reward = self.reward if isinstance(self.reward, str) else dict(self.reward)
        sight = asdict(self.sight) | {"ranks": list(self.sight.ranks)}
        return {"jobs": self.jobs, "reward": reward} | sight

    def scene_tables(self) -> list[dict[str, Any]]:
        """Return the scenes as plain values."""
        return [entry.to_table() for entry in self.entries]

    @classmethod
    def from_tables(cls, table: Mapping[str, Any], scenes: Iterable[Mapping[str, Any]]) -> SceneMix:
        """Read back what `to_table` and `scene_tables` gave, as a policy file holds it.

        Raises:
            YardmasterError: if a value makes no sense.
        """
        values = {key: value for key, value in table.items() if key != "task"}
        return cls(entries=tuple(map(_read, scenes))).changed(**values)

    def task_at(self, place: Place) -> Task:
        """Return one scene as a task; its load, perhaps a range, is not part of it."""
        return Task(
            workload=place.workload,
            cluster=place.cluster,
            jobs=self.jobs,
            reward=self.reward,
            sight=self.sight,
            measured_unit=False,
        )

    def words(self) -> str:
        """Say which scenes there are."""
        names = [place.name for place in self.places]
        return f"{len(names)} scene{'s' if len(names) > 1 else ''}: {', '.join(names)}"


def refuse_sight(sight: Sight) -> None:
    """Complain about what cannot be seen in scenes.

    Raises:
        YardmasterError: naming it, and what can.
    """
    if sight.window_order not in WINDOW_KEYS:
        raise unknown("window order of scenes", sight.window_order, WINDOW_KEYS)
    for name, wanted in (("features", "standard"), ("pace", "decision"), ("ranks", ())):
        if getattr(sight, name) != wanted:
            raise YardmasterError(
                f"{name} must be {wanted or 'empty'} with scenes, got {getattr(sight, name)}."
            )


def _read(table: Mapping[str, Any]) -> SceneEntry:
    """Return the entry that `SceneEntry.to_table` wrote."""
    known = [item.name for item in fields(SceneEntry)]
    for key in table:
        if key not in known:
            raise unknown("setting of a scene", key, known)
    for key in ("workload", "cluster"):
        if key not in table:
            raise YardmasterError(f"A scene has no {key}.")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    return SceneEntry(**values)


def _name(entry: SceneEntry, cluster: str) -> str:
    if entry.name is not None and len(entry.clusters) == 1:
        return entry.name
    return f"{entry.name or Path(entry.workload).name} on {cluster}"


def _loads(entry: SceneEntry) -> Range | None:
    from yardmaster.workloads.sources import is_generated

    if entry.load is None:
        return GENERATED_LOAD if is_generated(entry.workload) else None
    return entry.load if isinstance(entry.load, tuple) else (entry.load, entry.load)
