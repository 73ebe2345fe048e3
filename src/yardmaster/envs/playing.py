"""Playing episodes to their end: the same ones, in order, whoever plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking import places as at
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.episodes import Episodes, Split
from yardmaster.envs.task import Task
from yardmaster.model.workload import FloatArray, IntArray

Choose = Callable[[Any], npt.NDArray[np.int64]]
"""Batch → the action of each environment."""


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What came of episodes 0, 1, … of a set; all arrays have one entry per episode.

    Means are over the jobs that finished; how many did not is beside them.
    """

    returns: FloatArray
    wait_s: FloatArray
    jct_s: FloatArray
    bounded_slowdown: FloatArray
    slowdown: FloatArray
    utilisation: FloatArray
    """GPU-seconds of finished jobs by all GPUs until the last end."""
    makespan_s: FloatArray
    unfinished: IntArray
    decisions: IntArray
    noops: IntArray


def play(
    task: Task,
    choose: Choose,
    *,
    split: Split,
    episodes: int,
    size: int = 64,
    compiled: bool = True,
    prepared: Episodes | None = None,
    announce: Callable[[str], None] | None = None,
) -> Played:
    """Play the first episodes of a set to their end.

    Args:
        task: what is played.
        choose: the player.
        split: set of episodes.
        episodes: how many, from number 0 on.
        size: environments at a time.
        compiled: False runs plain Python.
        prepared: the set, if it has been opened before.
        announce: told when the environment must be compiled first.
    """
    source = prepared or Episodes(task, split)
    line = iter(range(episodes))
    playing = np.full(min(size, episodes), -1, dtype=np.int64)

    def draw(rows: IntArray) -> IntArray:
        for row in rows.tolist():
            playing[row] = next(line, -1)
        return np.maximum(playing[rows], 0)

    batch = EnvironmentBatch(source, len(playing), compiled=compiled, draw=draw, announce=announce)
    batch.begin(np.arange(len(playing)))
    results = np.zeros((episodes, 10))
    left = episodes
    while left > 0:
        before = playing.copy()
        batch.step(choose(batch))
        for row in np.flatnonzero(batch.terminated | batch.truncated).tolist():
            if before[row] >= 0:
                results[before[row]] = _result(batch, row)
                left -= 1
    return _played(results, source, episodes)


def _result(batch: EnvironmentBatch, row: int) -> list[float]:
    return [
        float(batch.episode_returns[row]),
        float(batch.episode_steps[row]),
        float(batch.episode_noops[row]),
        *batch.outcomes[row].tolist(),
    ]


def _played(results: FloatArray, source: Episodes, episodes: int) -> Played:
    wait, jct, bounded, slow, work, last, ended = results[:, 3:10].T
    count = np.maximum(ended, 1.0)
    jobs = np.array(
        [int(source.prepared(number).facts[at.PLACEABLE]) for number in range(episodes)]
    )
    return Played(
        returns=results[:, 0],
        wait_s=wait / count,
        jct_s=jct / count,
        bounded_slowdown=bounded / count,
        slowdown=slow / count,
        utilisation=work / np.maximum(last * source.cluster.gpus, 1e-9),
        makespan_s=last,
        unfinished=(jobs - ended).astype(np.int64),
        decisions=results[:, 1].astype(np.int64),
        noops=results[:, 2].astype(np.int64),
    )
