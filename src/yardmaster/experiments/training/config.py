"""What a training run is asked to do, from TOML and from options.

```toml
[task]              # what is scheduled where: `envs.task.Task` and its `Sight`, or
                    # `envs.choosing.task.ChoosingTask` and its `ChoiceSight`
preset = "default"
[learner]           # who learns, and how: the settings of the learner
name = "ppo"
preset = "default"
[learner.network]
arch = "kernel"
[train]             # how long, on what, judged how: `TrainSettings`
steps = 1_000_000
[[scenes]]          # several workloads, clusters and loads in place of the task's: `scenes`
workload = "lognormal"
cluster = ["4x V100:8", "8x V100:8"]
```
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.experiments.training.evaluation import ANY_HIGHER_IS_BETTER
from yardmaster.experiments.training.kinds import KINDS, SCENES, TaskKind, kind_named, kind_of
from yardmaster.experiments.training.scenes import SAID_BY_SCENES, mix_from, refuse_missing
from yardmaster.experiments.training.tables import (
    NONE,
    checked,
    filled,
    read_tables,
    table_of,
)
from yardmaster.names import did_you_mean

if TYPE_CHECKING:
    from yardmaster.envs.choosing.task import ChoosingTask
    from yardmaster.envs.scene_mix import SceneMix
    from yardmaster.envs.task import Task

    AnyTask = Task | SceneMix | ChoosingTask

TABLES = ("task", "learner", "train")
SCENE_TABLES = "scenes"
"""The array of tables with a scene each."""
COMMAND = "yardmaster train"
DEFAULT_TASK = "default"
BUDGET = "total_steps"
"""The learners' setting that says for how many environment steps they will be trained."""
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*s")


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How long to train, on what, and how to judge it."""

    steps: int = 1_000_000
    """Environment steps in all."""
    envs: int = 64
    """Environments that step together."""
    seed: int = 0
    """Of the network's weights, the exploration and the training episodes."""
    warm_start: str | None = None
    """Heuristic to imitate before learning begins."""
    warm_start_steps: int = 50_000
    """Decisions of that heuristic to learn from."""
    eval_every: int = 50_000
    """Environment steps between evaluations on the validation episodes."""
    eval_episodes: int = 32
    """Validation episodes, always the same; with scenes so many of each, by default 8."""
    metric: str = "returns"
    """What the best policy is chosen by: returns, jct_s, wait_s, bounded_slowdown or unfinished;
    for picking jobs also slowdown, utilisation or makespan_s; for choosing schedulers also jct_gap,
    p95_gap, mixed_gap, p95_jct_s or late."""
    against: tuple[str, ...] | None = None
    """Heuristics that play the validation episodes too; by default the well-known ones that can
    play the task, or the schedulers of the menu."""
    patience: int | None = None
    """Stop after so many evaluations in a row without a new best."""
    checkpoint_every: int | str = "300s"
    """Environment steps between checkpoints, or seconds, written "300s"."""
    threads: int | None = None
    """Threads of torch and of the environments; none: one per core. For choosing schedulers, and
    with scenes, one unless said otherwise."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the network is. With `cuda` the environments are there too, in multiples of 32: PPO's,
    and MetaDQN's with its memory."""
    tensorboard: bool | None = None
    """Whether to write event files; by default where tensorboardX is installed."""

    def __post_init__(self) -> None:
        """Refuse settings that make no sense.

        Raises:
            InvalidConfigError: with every mistake.
        """
        counts = ("steps", "envs", "warm_start_steps", "eval_every", "eval_episodes")
        least = dict.fromkeys(counts, 1) | {"patience": 1, "threads": 1, "seed": 0}
        mistakes = [
            f"{name}: must be at least {low}, got {value}"
            for name, low in least.items()
            if (value := getattr(self, name)) is not None and value < low
        ]
        if self.metric not in ANY_HIGHER_IS_BETTER:
            mistakes.append(_no_metric(self.metric, ANY_HIGHER_IS_BETTER))
        if self.checkpoint_steps is None and not self.checkpoint_s:
            mistakes.append(
                "checkpoint_every: must be a number of steps above 0, or seconds such as '300s',"
                f" got {self.checkpoint_every!r}"
            )
        if mistakes:
            raise InvalidConfigError("train", mistakes)

    @property
    def checkpoint_steps(self) -> int | None:
        """Environment steps between checkpoints, if they are counted in steps."""
        every = str(self.checkpoint_every)
        return int(every) if every.isdecimal() and int(every) > 0 else None

    @property
    def checkpoint_s(self) -> float | None:
        """Seconds between checkpoints, if they are counted in seconds."""
        found = _INTERVAL.fullmatch(str(self.checkpoint_every))
        return float(found[1]) if found else None


def _no_metric(metric: str, known: Mapping[str, bool]) -> str:
    hint = did_you_mean(metric, known)
    return f"metric: unknown metric {metric!r}.{hint} Known: {', '.join(known)}"


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Everything a training run is asked to do, resolved."""

    task: AnyTask
    learner: str
    """Name of the learner."""
    settings: Any
    """The learner's settings; its budget is `train.steps`."""
    train: TrainSettings = TrainSettings()
    preset: str = "default"
    """What the settings were called before any of them was changed, for people."""
    task_preset: str = DEFAULT_TASK
    """The same of the task."""

    @property
    def kind(self) -> TaskKind:
        """What kind of task it is."""
        return kind_of(self.task)

    def tables(self) -> dict[str, Any]:
        """Return it as tables that `config_from` reads to the same effect."""
        settings = table_of(self.settings)
        del settings[BUDGET]  # said once, by train.steps
        scenes = self.scene_tables()
        return {
            "task": {"preset": self.task_preset} | _task_table(self.kind, self.task),
            **({SCENE_TABLES: scenes} if scenes else {}),
            "learner": {"name": self.learner, "preset": self.preset} | settings,
            "train": table_of(self.train),
        }

    @property
    def short_name(self) -> str:
        """What the task is called in the names of folders."""
        return SCENE_TABLES if self.kind is SCENES else self.task_preset

    def scene_tables(self) -> list[dict[str, Any]]:
        """Return the scenes as tables; there are none where there is but one workload."""
        from yardmaster.envs.scene_mix import SceneMix

        return self.task.scene_tables() if isinstance(self.task, SceneMix) else []

    def about_task(self) -> dict[str, Any]:
        """Return what a policy file says of what it was trained on."""
        from yardmaster.envs.scene_mix import SceneMix

        about: dict[str, Any] = {"task": {"task": self.task_preset} | self.task.to_table()}
        if isinstance(self.task, SceneMix):
            about |= {"scenes": self.scene_tables(), "trained_on": self.task.words()}
        return about

    def with_train(self, **changes: Any) -> TrainConfig:
        """Return it with other `train` settings; the learner's budget follows `steps`."""
        train = dataclasses.replace(self.train, **changes)
        settings = dataclasses.replace(self.settings, **{BUDGET: train.steps})
        return dataclasses.replace(self, train=train, settings=settings)


@dataclass(frozen=True, slots=True)
class Layer:
    """Tables from one place: a file, or the options of a command."""

    tables: Mapping[str, Any]
    where: str
    """The place, for messages."""

    def table(self, name: str) -> dict[str, Any]:
        """Return one of its tables, empty if it has none."""
        return dict(self.tables.get(name, {}))


def read_config(path: Path | None, options: Mapping[str, Any] | None = None) -> TrainConfig:
    """Read a configuration from a file, from a command's options, or both; options win.

    Args:
        path: a TOML file.
        options: tables like those of the file.

    Raises:
        InvalidConfigError: with every mistake of a place.
        UnknownNameError: for a task, learner or preset that does not exist.
    """
    from yardmaster.envs.scene_mix import SceneMix

    layers = [] if path is None else [Layer(read_tables(path), str(path))]
    config = config_from([*layers, Layer(options or {}, COMMAND)])
    if isinstance(config.task, SceneMix):
        refuse_missing(config.task, COMMAND if path is None else str(path))
    return config


def config_from(layers: Sequence[Layer]) -> TrainConfig:
    """Resolve a configuration; later layers win over earlier ones.

    Raises:
        InvalidConfigError: with every mistake of the first layer that has any.
        UnknownNameError: for a task, learner or preset that does not exist.
    """
    for layer in layers:
        _refuse_unknown_tables(layer)
    task_preset = _chosen(layers, "task", "preset", DEFAULT_TASK)
    kind, task = _begun(layers, task_preset)
    learner = _chosen(layers, "learner", "name", kind.default_learner)
    preset = _chosen(layers, "learner", "preset", "default")
    settings = kind.learner_settings(learner, preset)
    train = TrainSettings(
        steps=settings.total_steps, eval_episodes=kind.eval_episodes, threads=kind.threads
    )
    for layer in layers:
        mistakes: list[str] = []
        task = _task_filled(kind, task, _without(layer.table("task"), "preset"), mistakes)
        own = _without(layer.table("learner"), "name", "preset")
        if BUDGET in own:
            mistakes.append(f"learner.{BUDGET}: is said by train.steps")
            del own[BUDGET]
        settings = filled(settings, own, "learner", mistakes)
        judged = _with_known_metric(kind, layer.table("train"), mistakes)
        train = filled(train, judged, "train", mistakes)
        if mistakes:
            raise InvalidConfigError(layer.where, mistakes)
    config = TrainConfig(task, learner, settings, train, preset, task_preset)
    return config.with_train()


def completed(tables: Mapping[str, Any], settings: type) -> dict[str, Any]:
    """Return the tables of an earlier version with the learner's settings that it did not know.

    They count as they are by default; a preset may have come to say otherwise since.
    """
    plain = table_of(settings())
    del plain[BUDGET]
    return dict(tables) | {"learner": plain | dict(tables["learner"])}


def _begun(layers: Sequence[Layer], task_preset: str) -> tuple[TaskKind, AnyTask]:
    """Return the kind of task and the ready task, in the scenes of the last layer that has any."""
    kind = kind_named(task_preset)
    ready = kind.tasks()[task_preset]
    having = [layer for layer in layers if SCENE_TABLES in layer.tables]
    if not having:
        return kind, ready
    layer = having[-1]
    if kind is not KINDS[0]:
        raise InvalidConfigError(
            layer.where, [f"scenes: in {task_preset} schedulers are chosen; they have no scenes"]
        )
    return SCENES, mix_from(ready, task_preset, layer.tables[SCENE_TABLES], layer.where)


def _with_known_metric(
    kind: TaskKind, table: Mapping[str, Any], mistakes: list[str]
) -> Mapping[str, Any]:
    """Return a `train` table without a metric that this kind of task does not have."""
    metric = table.get("metric")
    if not isinstance(metric, str) or metric in kind.higher_is_better:
        return table
    mistakes.append(f"train.{_no_metric(metric, kind.higher_is_better)}")
    return _without(table, "metric")


def _task_filled(
    kind: TaskKind, base: Any, table: Mapping[str, Any], mistakes: list[str]
) -> AnyTask:
    if kind is SCENES:
        twice = [key for key in SAID_BY_SCENES if key in table]
        mistakes += [f"task.{key}: every scene has its own; say it there" for key in twice]
        table = _without(table, *twice)
    values = checked(table, kind.setting_kinds(), "task", mistakes)
    try:
        changed: AnyTask = base.changed(**values)
    except YardmasterError as error:
        mistakes.append(f"task: {error}")
        changed = base
    return changed


def _task_table(kind: TaskKind, task: AnyTask) -> dict[str, Any]:
    """Return a task as a table, what it leaves open included."""
    return dict.fromkeys(kind.setting_kinds(), NONE) | task.to_table()


def _chosen(layers: Sequence[Layer], table: str, key: str, default: str) -> str:
    """Return the last name that a layer gives."""
    name = default
    for layer in layers:
        given = layer.table(table).get(key, name)
        if not isinstance(given, str):
            raise InvalidConfigError(layer.where, [f"{table}.{key}: must be text, got {given!r}"])
        name = given
    return name


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _refuse_unknown_tables(layer: Layer) -> None:
    known = (*TABLES, SCENE_TABLES)
    allowed = ", ".join(f"[{name}]" for name in TABLES) + f", [[{SCENE_TABLES}]]"
    mistakes = []
    for key, value in layer.tables.items():
        if key not in known:
            mistakes.append(f"{key}: unknown table.{did_you_mean(key, known)} Allowed: {allowed}")
        elif key == SCENE_TABLES:
            if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
                mistakes.append(f"{key}: must be tables, each under [[{SCENE_TABLES}]]")
        elif not isinstance(value, Mapping):
            mistakes.append(f"{key}: must be a table")
    if mistakes:
        raise InvalidConfigError(layer.where, mistakes)
