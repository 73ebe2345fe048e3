"""The examples run as they are, with small budgets."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on several threads, above all beside other tests."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def numbers_after(words: str, text: str) -> list[float]:
    found = re.findall(rf"{words}\s+([\d,.]+) s", text)
    return [float(number.replace(",", "")) for number in found]


@pytest.mark.parametrize(
    ("name", "learner"),
    [("train_with_sb3_maskable_ppo", "MaskablePPO"), ("train_with_sb3_dqn", "DQN")],
)
def test_stable_baselines_train(name: str, learner: str, capsys: pytest.CaptureFixture[str]):
    """Stable-Baselines3 and sb3-contrib train on the environment as it is, and are compared."""
    runpy.run_path(str(FOLDER / f"{name}.py"))["main"](steps=512, episodes=2)
    text = capsys.readouterr().out
    (learned_s,) = numbers_after(learner, text)
    (shortest_s,) = numbers_after("shortest job first", text)
    assert 0.0 < shortest_s < 10.0 * learned_s


def test_our_ppo_trains(capsys: pytest.CaptureFixture[str]):
    """Our PPO trains and is compared with heuristics on the same episodes."""
    example = runpy.run_path(str(FOLDER / "train_with_our_ppo.py"))
    example["main"](steps=8192, episodes=2, environments=16)
    text = capsys.readouterr().out
    assert "8,192 steps, return" in text
    (ours_s,), (sjf_s,), (fifo_s,) = (numbers_after(who, text) for who in ("PPO", "sjf", "fifo"))
    assert min(ours_s, sjf_s, fifo_s) > 0.0
    assert sjf_s < fifo_s


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or importlib.util.find_spec("tree") is None,
    reason='RLlib is not installed; pip install "ray[rllib]" to run this',
)
def test_rllib_trains():
    """RLlib's PPO trains on the environment, with masks."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "train_with_rllib.py"), "--iterations", "1"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
    )
    assert done.returncode == 0, done.stderr
    (mean,) = re.findall(r"iteration 1: mean return (\S+)", done.stdout)
    assert float(mean) < 0.0
