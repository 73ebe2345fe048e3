"""The picture in text."""

from __future__ import annotations

from typing import Any

import numpy as np

from yardmaster.envs.pick_job import PickJobEnv

SMALL: dict[str, Any] = {
    "compiled": False,
    "cluster": "2x V100:8",
    "jobs": 40,
    "episodes": 2,
    "window": 12,
    "load": 3.0,
    "render_mode": "ansi",
}


def busy_env(**changes: Any) -> PickJobEnv:
    """Return an environment in the middle of an episode."""
    env = PickJobEnv(**(SMALL | changes))
    _, info = env.reset(seed=0)
    for _ in range(20):
        *_, info = env.step(int(np.argmax(info["action_mask"])))
    return env


def test_marks_are_gpus():
    """There is a mark per GPU, `#` for those in use, and a line per waiting job."""
    env = busy_env()
    text = env.render()
    assert text is not None
    in_use = 16 - int(env.batch.free_gpus(0).sum())
    assert 0 < in_use < 16
    assert (text.count("#"), text.count(".") - text.count("….")) == (in_use, 16 - in_use)
    assert f"{in_use} of 16 GPUs in use, {env.batch.waiting[0]} waiting" in text
    assert text.count(", fits") + text.count("does not fit") == min(env.batch.waiting[0], 8)


def test_a_blind_policys_picture_shows_no_run_times():
    """Run times are drawn only if the policy may know them."""
    assert ", runs " in str(busy_env().render())
    assert "runs" not in str(busy_env(information="blind").render())


def test_where_everything_is_legal_nothing_is_said_of_fitting():
    """Without a mask the picture does not say what fits."""
    text = str(busy_env(masked=False, pace="tick", tick_s=600.0).render())
    assert "waited" in text
    assert "fit" not in text


def test_long_lists_are_cut():
    """Of many nodes and jobs, the first are drawn and the others counted."""
    env = PickJobEnv(**(SMALL | {"cluster": "20x V100:1", "jobs": 80, "load": 9.0}))
    _, info = env.reset(seed=0)
    for _ in range(40):
        *_, info = env.step(int(np.argmax(info["action_mask"])))
    text = str(env.render())
    assert "… 4 more nodes" in text
    assert f"… {env.batch.waiting[0] - 8} more jobs" in text


def test_nothing_is_drawn_unless_asked_for():
    """Without a render mode there is no picture."""
    assert busy_env(render_mode=None).render() is None
