"""Hypothesis strategies for environments, and episodes of jobs that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from yardmaster.engine.picking.places import Features, Lookahead, NoOp, Pace, Term
from yardmaster.engine.picking.sight import INFORMATION, Sight, names_of
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.rewards import Reward
from yardmaster.envs.task import Task
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Site
from yardmaster.model.workload import Workload
from yardmaster.testing.strategies import GPU_TYPES, TICKS_S

WINDOW_ORDERS = (
    "fifo",
    "sjf",
    "largest-first",
    "edf",
    "static-priority",
    "wfp3",
    "slurm-multifactor",
)
BLIND_ORDERS = ("fifo", "largest-first", "edf", "static-priority")
RANKS = ((), (), ("sjf",), ("fifo", "saf", "largest-first"))

EVERY_TERM = Reward(
    "some of everything",
    {term.name.lower(): 0.25 * (term + 1) * (-1.0) ** term for term in Term},
    unit_s=2.0,
)


class GivenEpisodes(Episodes):
    """Episodes of given jobs: number `n` is the `n`-th workload, again and again."""

    def __init__(self, task: Task, workloads: Sequence[Workload]) -> None:
        self.given = list(workloads)
        super().__init__(
            replace(task, workload=self.given[0], measured_unit=False, episodes=len(self.given))
        )

    def workload(self, number: int) -> Workload:
        """Return the jobs of an episode."""
        jobs = self.given[number % len(self.given)]
        return jobs.starting_at(float(jobs.submit_s[0]))


def given_batch(
    task: Task, *workloads: Workload, compiled: bool = False, autoreset: bool = False
) -> EnvironmentBatch:
    """Return environments at the beginning of one given episode each."""
    batch = EnvironmentBatch(
        GivenEpisodes(task, workloads),
        len(workloads),
        compiled=compiled,
        autoreset=autoreset,
        draw=lambda rows: rows,
    )
    batch.begin(np.arange(len(workloads)))
    return batch


def same_speed_clusters() -> st.SearchStrategy[Cluster]:
    """Draw pools and clusters of a few nodes whose types all run at one speed."""
    sizes = st.one_of(st.integers(1, 8), st.sampled_from((1, 2, 4, 4, 8, 33)))
    groups = st.builds("{}:{}".format, st.sampled_from(GPU_TYPES), sizes)
    nodes = st.lists(groups, min_size=1, max_size=5).map(
        lambda names: Cluster.of(*names).under(Site(equal_speeds=True))
    )
    return st.one_of(nodes, sizes.map(Cluster.pool))


def mixed_speed_clusters() -> st.SearchStrategy[Cluster]:
    """Draw clusters of nodes of two types that run at different speeds."""
    sizes = st.sampled_from((1, 2, 4, 8))
    return st.lists(sizes, min_size=2, max_size=4).map(
        lambda gpus: Cluster.of(
            *(f"{GPU_TYPES[node % 2]}:{count}" for node, count in enumerate(gpus))
        )
    )


@st.composite
def episode_workloads(draw: st.DrawFn, max_jobs: int = 16) -> Workload:
    """Draw jobs of an episode on few distinct moments, some short, some that never fit."""
    tick_s = draw(st.sampled_from(TICKS_S))
    job = st.fixed_dictionaries(
        {
            "submit_s": st.integers(0, 12).map(lambda ticks: ticks * tick_s),
            "duration_s": st.one_of(st.integers(0, 12), st.integers(5, 40)).map(
                lambda ticks: ticks * tick_s
            ),
            "estimate_s": st.integers(1, 30).map(lambda ticks: ticks * tick_s),
            "gpus": st.one_of(st.integers(1, 8), st.integers(1, 8), st.integers(9, 40)),
            "max_gpus_per_node": st.sampled_from((0, 0, 0, 2, 3)),
            "gpu_types": st.sampled_from((*(None,) * 5, *GPU_TYPES, "V100|A100")),
            "priority": st.sampled_from((0.0, 1.0, -2.0, 5.0)),
            "deadline_s": st.sampled_from((float("nan"), 1.0, 10.0, 30.0)),
            "tenant": st.sampled_from((None, "a", "b")),
        }
    )
    rows: list[dict[str, Any]] = draw(st.lists(job, min_size=1, max_size=max_jobs))
    # Somebody can run anywhere, so that no episode is without work.
    fits_all = {"submit_s": 0.0, "duration_s": tick_s, "gpus": 1, "gpu_types": None}
    rows.append(rows[0] | fits_all)
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    return Workload.of(**columns)


@st.composite
def sights(
    draw: st.DrawFn,
    features: Sequence[str] = names_of(Features),
    paces: Sequence[str] = names_of(Pace),
) -> Sight:
    """Draw what a policy sees, with everything that can be chosen."""
    kind = draw(st.sampled_from(features))
    shows_run_times = kind in {"gpu_optimizer", "drl_scheduler"}
    information = draw(st.sampled_from(INFORMATION[:2] if shows_run_times else INFORMATION))
    orders = BLIND_ORDERS if information == "blind" else WINDOW_ORDERS
    may_rank = kind == "standard" and information != "blind"
    return Sight(
        window=draw(st.sampled_from((1, 2, 3, 5, 30))),
        window_order=draw(st.sampled_from(orders)),
        features=kind,
        information=information,
        lookahead=draw(st.sampled_from(names_of(Lookahead))),
        gpu_slots=draw(st.sampled_from((0, 1, 3, 8))),
        ranks=draw(st.sampled_from(RANKS)) if may_rank else (),
        reservation=draw(st.sampled_from((True, True, False))),
        noop=draw(st.sampled_from(names_of(NoOp))),
        pace=draw(st.sampled_from(paces)),
        time_unit_s=draw(st.sampled_from((1.0, 7.0))),
        longest_s=draw(st.sampled_from((8.0, 20.0))),
        tick_s=draw(st.sampled_from((0.5, 1.0, 3.0))),
        masked=draw(st.sampled_from((True, True, True, False))),
    )


@st.composite
def tasks(draw: st.DrawFn, seen: st.SearchStrategy[Sight] | None = None) -> Task:
    """Draw a task with limits, rewarded by some of every term."""
    return Task(
        cluster=draw(same_speed_clusters()),
        reward=replace(
            EVERY_TERM,
            score=draw(st.sampled_from(("bounded_slowdown", "wait", "turnaround", "utilisation"))),
        ),
        sight=draw(sights() if seen is None else seen),
        time_limit_s=draw(st.sampled_from((None, None, 0.5, 6.0, 25.0))),
        horizon_factor=draw(st.sampled_from((None, None, 1.3))),
        max_steps=draw(st.sampled_from((60, 60, 3))),
        measured_unit=False,
    )
