"""Environments on a GPU; what they do is tested where there is one, or where Numba plays one."""

from __future__ import annotations

import pytest

from yardmaster.engine.gpu import availability
from yardmaster.engine.gpu.availability import GpuStatus
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.gpu_batch import KeptBatch
from yardmaster.envs.task import TASKS
from yardmaster.errors import YardmasterError


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_kept_episodes.py", "test_drawn_episodes.py"])
def test_environments_on_a_played_gpu(name: str, passes_on_played_gpu):
    """Step by step they do as on the CPU."""
    assert passes_on_played_gpu(name)


def test_without_a_gpu_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    """The reason, and what to do instead."""
    nothing = GpuStatus(is_usable=False, device="", why="No driver.")
    monkeypatch.setattr(availability, "gpu_status", lambda: nothing)
    episodes = Episodes(TASKS["default"].changed(jobs=4, episodes=1, cluster="2x V100:4"), "train")
    with pytest.raises(YardmasterError, match=r"No driver\. Use --device cpu, or see.*doctor"):
        KeptBatch(episodes, 32)
