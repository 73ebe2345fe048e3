"""A run that is stopped, killed and resumed ends as one that never was: the real thing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from yardmaster.agents.checkpoint import read_checkpoint
from yardmaster.experiments.training import read_config, train

CONFIG = """
[task]
cluster = "pool:8"
jobs = 48
window = 8
episodes = 12
[learner]
steps_per_update = 256
epochs = 2
minibatches = 2
network.hidden = [8, 8]
[train]
steps = 5120
envs = 16
eval_every = 1024
eval_episodes = 4
threads = 1
checkpoint_every = 1024
against = ["sjf"]
tensorboard = false
"""


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "yardmaster", "train", *arguments],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_lines(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 240
    while time.monotonic() < end and process.poll() is None:
        if path.is_file() and path.read_text().count("\n") >= lines:
            return
        time.sleep(0.002)
    process.kill()
    raise AssertionError(process.communicate())


def test_ctrl_c_kill_9_and_resume(same_run, tmp_path: Path):
    """Stopped by Ctrl-C, resumed, killed between checkpoints, resumed: same weights and scalars."""
    (tmp_path / "mine.toml").write_text(CONFIG)
    train(read_config(tmp_path / "mine.toml"), out=tmp_path / "whole")
    halved = tmp_path / "halved"

    first = start("--config", "mine.toml", "--out", "halved", cwd=tmp_path)
    wait_for_lines(halved / "progress.jsonl", 2, first)
    first.send_signal(signal.SIGINT)
    out, error = first.communicate(timeout=60)
    assert first.returncode == 130, error
    assert "halved: interrupted after" in out
    assert "Go on with: yardmaster train --resume halved" in error
    assert "Traceback" not in error
    assert (halved / "curve.png").is_file()
    lines = (halved / "progress.jsonl").read_text().count("\n")
    assert read_checkpoint(halved / "checkpoints" / "last.pt").standing["updates"] == lines < 20

    second = start("--resume", "halved", "--quiet", cwd=tmp_path)
    wait_for_lines(halved / "progress.jsonl", lines + 6, second)
    second.kill()
    second.communicate()
    assert second.returncode == -signal.SIGKILL

    result = train(read_config(halved / "config.toml"), out=halved, resume=True)
    assert (result.status, result.steps) == ("finished", 5120)
    same_run(tmp_path / "whole", halved)
