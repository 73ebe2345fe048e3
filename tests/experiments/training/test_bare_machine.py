"""Training runs where little more than NumPy, Numba and torch is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from pathlib import Path
ABSENT = (
    "polars pydantic gymnasium cyclopts tensorboardX rich tomli_w simpy matplotlib optuna highspy"
)
sys.modules |= dict.fromkeys(ABSENT.split())
from yardmaster.experiments.training import read_config, train
config = read_config(Path("mine.toml"))
first = train(config, out=Path("run"), stop_when=lambda found: found.steps >= 128)
result = train(config, out=Path("run"), resume=True)
print(first.status, result.status, *result.heuristics)
"""
CONFIG = """
[task]
cluster = "pool:8"
jobs = 24
window = 4
episodes = 4
[learner]
steps_per_update = 128
epochs = 1
network.hidden = [4]
[train]
steps = 256
envs = 8
eval_every = 128
eval_episodes = 2
threads = 1
warm_start = "sjf"
warm_start_steps = 256
"""


def test_training_needs_little(tmp_path: Path):
    """A run from a TOML file, with a warm start and a resumption, needs no other library."""
    (tmp_path / "mine.toml").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "stopped", "early", "finished", "fifo", "sjf", "fifo+easy", "largest-first",
    ]  # fmt: skip
    assert (tmp_path / "run" / "policy.npz").is_file()
    assert not (tmp_path / "run" / "tensorboard").exists()
