"""What is usual in a scene: by it rewards are worth the same everywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.rewards import reward_of
from yardmaster.envs.scenes import Scene, SceneTask, drawn, workload_of
from yardmaster.envs.usual import (
    GAP,
    USUAL_WINDOWS,
    quiet_scenes,
    refuse_unscaled,
    usual_terms,
    with_usual,
)
from yardmaster.errors import YardmasterError
from yardmaster.metrics import per_job
from yardmaster.schedulers.simulation import simulate

SIGHT = Sight(window=4, gpu_slots=4, window_order="sjf")
BUSY = Scene(name="busy", cluster="2x V100:4", sizes={1: 1.0, 4: 1.0}, load=(1.2, 1.4))
IDLE = Scene(name="idle", cluster="8x V100:8", sizes={1: 1.0}, load=(0.01, 0.02))


def task_of(**settings) -> SceneTask:
    return SceneTask(scenes=(BUSY, IDLE), jobs=24, sight=SIGHT, **settings)


def test_the_best_heuristic_says_what_is_usual():
    """It is the least mean wait of the rivals over windows of the scene; never next to nothing."""
    task = task_of()
    rows = task.rows()
    rivals = ("fifo+skip", "sjf+skip")
    found = usual_terms(task, rows, rivals, ("waiting",), unit_s=60.0)
    windows = []
    number = 0
    while len(windows) < USUAL_WINDOWS:
        one = drawn(rows, task.rules(), number)
        if one.scene == 0:
            windows.append(workload_of(one.ints, one.reals))
        number += 1
    waits = [
        np.mean([per_job.wait_s(simulate(jobs, BUSY.machines(), name)).mean() for jobs in windows])
        for name in rivals
    ]
    assert found["busy"]["waiting"] == pytest.approx(min(waits) / 60.0)
    assert found["busy"][GAP] == pytest.approx(
        np.mean([np.diff(w.submit_s).mean() for w in windows])
    )
    assert found["idle"]["waiting"] == 30.0 / 60.0


def test_a_scene_that_hardly_ever_comes_up_is_measured_too(monkeypatch):
    """Nobody waits for it to be drawn; the windows of the others stay the same."""
    monkeypatch.setattr("yardmaster.envs.usual.MOST_DRAWN", 60)
    rare = replace(IDLE, share=1e-12, load=(1.2, 1.4))
    task = SceneTask(scenes=(BUSY, rare), jobs=24, sight=SIGHT)
    found = usual_terms(task, task.rows(), ("fifo+skip",), ("in_system",))
    alone = SceneTask(scenes=(BUSY,), jobs=24, sight=SIGHT)
    assert found["busy"] == usual_terms(alone, alone.rows(), ("fifo+skip",), ("in_system",))["busy"]
    assert found["idle"]["in_system"] > 0


def test_terms_are_those_of_the_reward():
    """Nothing else is measured; what is a share anyway is left alone."""
    task = task_of(reward={"in_system": -1.0, "idle": -0.5, "finished": 1.0, "waiting": 0.0})
    usual, gaps_s = with_usual(task, task.rows())
    assert all(set(terms) == {"in_system", "idle"} for terms in usual.values())
    assert min(value for terms in usual.values() for value in terms.values()) > 0
    assert gaps_s.shape == (2,)


def test_scenes_in_which_nobody_waits_are_named():
    """There is nothing to learn in them; the others are not named."""
    task = task_of(reward="wait")
    usual, _gaps = with_usual(task, task.rows())
    assert quiet_scenes(replace(task, usual=usual)) == ["idle"]


def test_terms_that_scenes_do_not_have_are_refused():
    """Drawn jobs have no deadlines, and nobody plays them beforehand."""
    refuse_unscaled(reward_of("utilisation"))
    with pytest.raises(YardmasterError, match="scenes have no fairness, energy, late; terms"):
        refuse_unscaled(reward_of("balanced"))
    with pytest.raises(YardmasterError, match="scenes have no relative"):
        refuse_unscaled(reward_of("relative_wait"))
