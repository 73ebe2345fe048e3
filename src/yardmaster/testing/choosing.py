"""Hypothesis strategies for menus of schedulers, and choosers that do as they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.envs.choosing.batch import ChoosingBatch
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.standards import Standards, standards
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.meta.chooser_file import ChooserFile
from yardmaster.schedulers.meta.choosers import BanditChooser
from yardmaster.schedulers.meta.driving import drive_chooser
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.environments import mixed_speed_clusters, same_speed_clusters
from yardmaster.testing.strategies import GPU_TYPES, TICKS_S

FIXED_ORDERS = ("fifo", "sjf", "srpt", "largest-first", "edf", "static-priority", "saf")
AGEING_ORDERS = ("wfp3", "sexp", "slurm-multifactor", "dynamic-heuristic")
OTHER_ORDERS = ("qssf", "random-feasible")
"""By the user's history, and drawn anew at every pass."""
DISCIPLINES = ("strict", "skip", "commit", "easy")
PLACEMENTS = ("pack", "pack", "first", "spread", "random")
REAL_PLACEMENTS = (*PLACEMENTS, "tier", "defrag", "loadbalance", "fgd", "power", "fastest")
"""Those behind `random` need the core for real clusters, wherever they are."""


class Told:
    """A bandit that pulls the arms it is told to, in turn, and learns nothing."""

    def __init__(self, arms: Sequence[int]) -> None:
        self.arms = arms
        self.pulls = 0
        self.seen: list[FloatArray] = []
        """What it saw at every decision."""

    def choose(self, seen: FloatArray) -> int:
        """Return the next arm of the list, again and again."""
        self.seen.append(seen)
        self.pulls += 1
        return self.arms[(self.pulls - 1) % len(self.arms)]

    def learn(self, reward: float) -> None:
        """Learn nothing."""


def replay_as_told(
    workload: Workload,
    cluster: Cluster,
    sight: ChoiceSight,
    arms: Sequence[int],
    *,
    seed: int = 0,
    until_s: float = np.inf,
    compiled: bool = False,
    called: str = "told",
) -> Schedule:
    """Simulate a chooser that puts these places of its menu to work in turn."""
    chooser = BanditChooser(called, sight, lambda *_: Told(arms))
    schedule, _ = drive_chooser(
        workload, cluster, chooser, called=called, seed=seed, until_s=until_s, compiled=compiled
    )
    return schedule


def random_chooser(sight: ChoiceSight, seed: int = 0, units: int = 8) -> ChooserFile:
    """Return a chooser whose network was never trained: its preferences change with all it sees."""
    dice = np.random.default_rng(seed)
    layout = sight.layout()
    sizes = {"hidden.0": (layout.length, units), "head.0": (units, layout.actions)}
    if sight.past:
        sizes = {
            "past.0": (len(layout.past_features), units),
            "hidden.0": (len(layout.now_features) + units, units),
            "head.0": (units, layout.actions),
        }
    weights = {}
    for name, shape in sizes.items():
        weights[f"{name}.weight"] = dice.normal(size=shape).astype(np.float32)
        weights[f"{name}.bias"] = dice.normal(size=shape[1]).astype(np.float32)
    return ChooserFile(sight, weights, {"learner": "nobody"})


class GivenChoices(ChoosingEpisodes):
    """Episodes of given jobs on given machines: number `n` is the `n`-th, again and again."""

    def __init__(self, task: ChoosingTask, *situations: tuple[Workload, Cluster]) -> None:
        self.given = situations
        super().__init__(
            replace(task, measured_unit=False, episodes=len(situations), randomised=False)
        )

    def situation(self, number: int) -> tuple[Workload, Cluster]:
        """Return the jobs and the machines of an episode; the first job comes at second 0."""
        jobs, machines = self.given[number % len(self.given)]
        return jobs.starting_at(float(jobs.submit_s[0])), machines

    def standards(self, number: int) -> Standards:
        """Return what the menu's schedulers make of an episode, without compiling anything."""
        if number not in self._standards:
            schedules = [
                simulate(*self.situation(number), member, seed=number, compile_core="never")
                for member in self.task.sight.menu
            ]
            self._standards[number] = standards(schedules, self.reward, self.task.tail)
        return self._standards[number]


def given_choices(
    task: ChoosingTask, *situations: tuple[Workload, Cluster], compiled: bool = False
) -> ChoosingBatch:
    """Return environments at the first decision of one given episode each."""
    batch = ChoosingBatch(
        GivenChoices(task, *situations),
        len(situations),
        compiled=compiled,
        autoreset=False,
        draw=lambda rows: rows,
    )
    batch.begin(np.arange(len(situations)))
    return batch


@st.composite
def choosing_workloads(draw: st.DrawFn, min_jobs: int = 1, max_jobs: int = 18) -> Workload:
    """Draw jobs on few distinct moments with all that an order of a menu may read."""
    tick_s = draw(st.sampled_from(TICKS_S))
    job = st.fixed_dictionaries(
        {
            "submit_s": st.integers(0, 12).map(lambda ticks: ticks * tick_s),
            "duration_s": st.one_of(st.integers(0, 12), st.integers(5, 40)).map(
                lambda ticks: ticks * tick_s
            ),
            "estimate_s": st.integers(1, 30).map(lambda ticks: ticks * tick_s),
            "gpus": st.one_of(st.integers(1, 4), st.integers(1, 8), st.sampled_from((9, 40))),
            "max_gpus_per_node": st.sampled_from((0, 0, 0, 2)),
            "gpu_types": st.sampled_from((*(None,) * 5, *GPU_TYPES, "V100|A100")),
            "priority": st.sampled_from((0.0, 1.0, -2.0, 5.0)),
            "deadline_s": st.sampled_from((float("nan"), 1.0, 10.0, 30.0)),
            "user": st.sampled_from((None, "a", "b")),
        }
    )
    rows: list[dict[str, Any]] = draw(st.lists(job, min_size=min_jobs, max_size=max_jobs))
    # Somebody can run anywhere, so that no episode is without work.
    rows.append(rows[0] | {"submit_s": 0.0, "duration_s": tick_s, "gpus": 1, "gpu_types": None})
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    return Workload.of(**columns)


@st.composite
def failing_clusters(draw: st.DrawFn) -> Cluster:
    """Draw clusters of two speeds some of whose nodes are away for a while, at times at once."""
    cluster = draw(mixed_speed_clusters())
    free_from = [0.0] * cluster.nodes
    outages = []
    for node in draw(st.lists(st.integers(0, cluster.nodes - 1), min_size=1, max_size=4)):
        down_s = free_from[node] + draw(st.sampled_from((0.0, 0.5, 1.0, 3.0)))
        up_s = free_from[node] = down_s + draw(st.sampled_from((0.25, 2.0, 5.0)))
        outages.append(Outage(node, down_s, up_s))
    outages.sort(key=lambda outage: (outage.down_s, outage.node))
    return cluster.under(Site(failures=Failures(outages=tuple(outages))))


def choosing_clusters() -> st.SearchStrategy[Cluster]:
    """Draw plain clusters, clusters of several speeds, and some whose nodes fail."""
    return st.one_of(same_speed_clusters(), mixed_speed_clusters(), failing_clusters())


@st.composite
def menus(
    draw: st.DrawFn,
    placements: Sequence[str] = PLACEMENTS,
    run_times: Sequence[str] = ("", "~estimate"),
) -> tuple[str, ...]:
    """Draw one to five schedulers that can stand on a menu together."""
    source = draw(st.sampled_from(run_times))
    orders = st.sampled_from((*FIXED_ORDERS, *AGEING_ORDERS, *OTHER_ORDERS, *OTHER_ORDERS))
    member = st.builds(
        f"{{}}+{{}}@{{}}{source}".format,
        orders,
        st.sampled_from(DISCIPLINES),
        st.sampled_from(placements),
    )
    return tuple(draw(st.lists(member, min_size=1, max_size=5, unique=True)))


@st.composite
def choice_sights(
    draw: st.DrawFn, menu: st.SearchStrategy[tuple[str, ...]] | None = None
) -> ChoiceSight:
    """Draw a menu and what a chooser sees, with everything that can be chosen."""
    members = draw(menus() if menu is None else menu)
    shown = "estimate" if "~estimate" in members[0] else "clairvoyant"
    return ChoiceSight(
        menu=members,
        every_s=draw(st.sampled_from((0.0, 0.0, 2.0))),
        information=draw(st.sampled_from((shown, shown, "blind"))),
        ages=draw(st.booleans()),
        past=draw(st.sampled_from((0, 1, 3, 8))),
        past_span=draw(st.sampled_from((0.3, 1.0))),
        shows_choice=draw(st.booleans()),
        time_unit_s=draw(st.sampled_from((1.0, 7.0))),
    )
