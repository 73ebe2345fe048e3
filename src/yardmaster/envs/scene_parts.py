"""Scenes with their jobs: what is trained on, and the windows that are held out.

Of a file, jobs are divided by submission as `envs.episodes` does, before those too large for a
cluster are left out: what is for training in one scene is so in all. Generated jobs are logs of
their own for training, validation and report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.engine.layout import Simulation
from yardmaster.engine.picking import places as picking
from yardmaster.envs.episodes import FIRST_SEED, PARTS, Split, window_begins
from yardmaster.envs.scene_batch import DrawnEpisode
from yardmaster.envs.scene_mix import refuse_sight
from yardmaster.envs.scenes import Scene, SceneRows, SceneTask, drawn, scene_rows, workload_of
from yardmaster.envs.usual import with_usual
from yardmaster.errors import YardmasterError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Workload

if TYPE_CHECKING:
    from yardmaster.engine.picking.sight import Sight
    from yardmaster.envs.scene_mix import Place, SceneMix
    from yardmaster.envs.task import Task

GENERATED_JOBS = 20_000
"""Jobs of a generated log that windows are taken from."""
FIRST_HELD_OUT = 1_500_000_000
"""Number that the loads and estimates of held-out episodes are drawn by, from this one on."""


class Logs:
    """The jobs of scenes, read or generated once each."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._files: dict[str, Workload] = {}
        self._made: dict[tuple[str, int, int], Workload] = {}

    def part(self, place: Place, split: Split, number: int = 0) -> Workload:
        """Return the jobs of a part that fit on a scene's cluster.

        Args:
            place: the scene.
            split: the part.
            number: which log of generated jobs.

        Raises:
            YardmasterError: naming the scene, if there are too few.
        """
        try:
            gpus = load_cluster(place.cluster).gpus
            return self._part(place, split, number, gpus)
        except YardmasterError as error:
            raise YardmasterError(f"Scene {place.name!r}: {error}") from None

    def _part(self, place: Place, split: Split, number: int, gpus: int) -> Workload:
        from yardmaster.workloads.sources import is_generated, load_workload
        from yardmaster.workloads.synthetic import generate

        if is_generated(place.workload):
            key = (place.workload, gpus, FIRST_SEED[split] + number)
            if key not in self._made:
                length = max(GENERATED_JOBS, self._jobs)
                self._made[key] = generate(
                    place.workload, seed=key[2], jobs=length, gpus=gpus, load=1.0, max_gpus=gpus
                )
            return self._made[key]
        if place.workload not in self._files:
            self._files[place.workload] = load_workload(place.workload)
        log = self._files[place.workload]
        low, high = (int(share * len(log)) for share in PARTS[split])
        rows = np.arange(low, high)
        fitting = rows[(log.gpus[rows] >= 1) & (log.gpus[rows] <= gpus)]
        if len(fitting) < self._jobs:
            raise YardmasterError(
                f"the {split} part of {place.workload} has {len(fitting)} jobs that fit on"
                f" {place.cluster}, fewer than the {self._jobs} of an episode; use shorter episodes"
                " (jobs under [task]) or a longer log."
            )
        return log.select(fitting)

    def refuse_short(self, places: Iterable[Place], split: Split) -> None:
        """Complain about scenes of which a part has too few jobs; generated jobs have no end.

        Raises:
            YardmasterError: naming the first of them.
        """
        from yardmaster.workloads.sources import is_generated

        for place in places:
            if not is_generated(place.workload):
                self.part(place, split)

    def window(self, place: Place, split: Split, number: int) -> Workload:
        """Return consecutive jobs of a part; those of `val` and `report` share none while enough.

        Of generated jobs there are always enough: another log follows.
        """
        from yardmaster.workloads.sources import is_generated

        log = 0
        part = self.part(place, split)
        if is_generated(place.workload):
            log, number = divmod(number, len(part) // self._jobs)
            part = self.part(place, split, log)
        first = window_begins(split, number, low=0, high=len(part), jobs=self._jobs)
        return part.select(np.arange(first, first + self._jobs))


@dataclass(frozen=True, slots=True, eq=False)
class LaidOutScenes:
    """Scenes with their jobs, laid out for training, and what is usual in each."""

    mix: SceneMix
    task: SceneTask
    rows: SceneRows
    logs: Logs

    @property
    def sight(self) -> Sight:
        """What a policy sees."""
        return self.mix.sight

    def held_out(self, place: Place, split: Split, sight: Sight | None = None) -> HeldOut:
        """Return the episodes of one scene that nobody was trained on."""
        return HeldOut(self, place, split, sight or self.sight)


def lay_out(
    mix: SceneMix, announce: Callable[[str], None] | None = None, logs: Logs | None = None
) -> LaidOutScenes:
    """Read the jobs of all scenes, lay them out, and measure what is usual in each.

    Args:
        mix: the scenes.
        announce: told when the core must be compiled first.
        logs: their jobs, if some were read before.

    Raises:
        YardmasterError: naming the scene whose jobs or cluster cannot be used.
    """
    logs = logs or Logs(mix.jobs)
    scenes = tuple(
        Scene(
            name=place.name,
            cluster=place.cluster,
            trace=logs.part(place, "train"),
            load=place.load,
            share=place.share,
        )
        for place in mix.places
    )
    task = SceneTask(scenes=scenes, jobs=mix.jobs, reward=mix.reward, sight=mix.sight)
    rows = task.rows()
    usual, gaps_s = with_usual(task, rows, announce)
    task = replace(task, usual=usual, unit_s=dict(zip(rows.names, gaps_s.tolist(), strict=True)))
    return LaidOutScenes(mix, task, rows, logs)


class HeldOut:
    """The episodes of one scene and one set; what `envs.episodes.Episodes` is to a task.

    Episode `n` has the `n`-th window of the part, at a load that the scene draws for it.
    """

    def __init__(self, scenes: LaidOutScenes, place: Place, split: Split, sight: Sight) -> None:
        refuse_sight(sight)  # of a policy that was trained elsewhere, it may be any
        self.split = split
        self.cluster: Cluster = load_cluster(place.cluster)
        self.task: Task = replace(scenes.mix.task_at(place), sight=sight)
        self._scenes, self._place, self._sight = scenes, place, sight
        self._drawn: dict[int, tuple[DrawnEpisode, Workload]] = {}

    @cached_property
    def numbers(self) -> IntArray:
        """Episodes there are to draw from; further ones can be had by number."""
        return np.arange(1)

    def _episode(self, number: int) -> tuple[DrawnEpisode, Workload]:
        if number not in self._drawn:
            self._drawn[number] = self._draw(number)
        return self._drawn[number]

    def _draw(self, number: int) -> tuple[DrawnEpisode, Workload]:
        place = self._place
        window = self._scenes.logs.window(place, self.split, number)
        scene = Scene(name=place.name, cluster=self.cluster, trace=window, load=place.load)
        rows = scene_rows([scene], self._sight, self.task.jobs)
        one = drawn(rows, self.rules(), FIRST_HELD_OUT + number, 0)
        laid_out = DrawnEpisode(
            Simulation(one.ints, one.reals), one.facts, one.cards, rows.book_length,
            rows.purse_length,
        )  # fmt: skip
        jobs = workload_of(one.ints, one.reals)
        # What the policy is shown is an estimate only if it is shown estimates.
        is_shown = self._sight.information == "estimate"
        return laid_out, Workload.of(
            name=window.name,
            id=window.id,
            submit_s=jobs.submit_s,
            duration_s=jobs.duration_s,
            estimate_s=jobs.estimate_s if is_shown else window.estimate_s,
            gpus=jobs.gpus,
        )

    def workload(self, number: int) -> Workload:
        """Return the jobs of an episode; the first is submitted at second 0."""
        return self._episode(number)[1]

    def prepared(self, number: int) -> DrawnEpisode:
        """Return an episode laid out at its first instant."""
        return self._episode(number)[0]

    def cluster_of(self, number: int) -> Cluster:
        """Return the machines of an episode: here they are the same for all."""
        del number
        return self.cluster

    def rules(self) -> IntArray:
        """Return the row of integers that says what the task is."""
        return self._sight.rules(is_fixed=True)

    def scales(self) -> FloatArray:
        """Return the row of reals that says what the task is."""
        scales = self._sight.scales()
        first, last = picking.WEIGHT_AT, picking.WEIGHT_AT + picking.TERMS
        scales[first:last] = self._scenes.task.scales([self._place.name])[0, first:last]
        return scales
