"""`yardmaster evaluate` as a user meets it: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from yardmaster.experiments.training import read_config, train

TABLES = {
    "task": {"cluster": "2x V100:4", "jobs": 20, "load": 1.2, "window": 8, "gpu_slots": 4},
    "learner": {"steps_per_update": 128, "epochs": 1, "network": {"hidden": [8]}},
    "train": {
        "steps": 128, "envs": 8, "eval_every": 128, "eval_episodes": 2, "against": [],
        "threads": 1, "tensorboard": False,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evaluate")
    train(read_config(None, TABLES), out=place / "tiny")
    return place


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "evaluate", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_run_is_judged_and_everything_is_written(folder: Path):
    """A run folder and its policy file tie; tables, sentences and files say the same."""
    done = run(
        "tiny", "tiny/policy.npz", "--against", "fifo, sjf+conservative", "--episodes", "4",
        "--metric", "wait_s", "-o", "out", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "VAL: 20 jobs of lognormal" in done.stdout
    assert "REPORT: 20 jobs of lognormal" in done.stdout
    assert "fifo+skip" in done.stdout
    assert "tiny does not differ clearly from" in done.stdout
    names = {path.name for path in (folder / "out").iterdir()}
    assert names == {"evaluation.json", "episodes.parquet", "evaluation.svg"}
    written = json.loads((folder / "out/evaluation.json").read_text())
    assert {row["how"] for row in written["rows"]} == {"policy", "played", "simulated"}
    same = [row for row in written["rows"] if row["player"] == "tiny/policy"]
    assert [row["difference of tiny"] for row in same] == [0.0, 0.0]
    assert [row["verdict on tiny"] for row in same] == ["no difference"] * 2
    again = run("tiny", "-o", "out", cwd=folder)
    assert again.returncode == 2
    assert "--overwrite replaces it" in again.stderr


def test_json_is_for_programs(folder: Path):
    """With --json, standard output is one document with every number and verdict."""
    done = run(
        "tiny/policy.npz", "--against", "fifo", "--splits", "report", "--episodes", "5", "--jobs",
        "12", "--json", "-q", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["metric"] == "returns"
    assert found["task"].startswith("12 jobs")
    rows = {row["player"]: row for row in found["rows"]}
    assert set(rows) == {"tiny/policy", "fifo+skip"}
    assert {row["set"] for row in found["rows"]} == {"report"}
    assert rows["fifo+skip"]["verdict on tiny/policy"] in {"better", "worse", "no difference"}
    assert "trained on other jobs" in found["notes"][0]
    assert done.stderr == ""
    assert next((folder / "runs").glob("evaluate-*")).is_dir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a policy"),
        (["tinny"], "No such file: tinny. Did you mean 'tiny'?"),
        (["tiny/config.toml"], "is no policy"),
        (["policy:slowdon-clairvoyant"], "Did you mean 'slowdown-clairvoyant'"),
        (["tiny/policy.npz", "--metric", "wait"], "Did you mean 'wait_s'?"),
        (["tiny/policy.npz", "--task", "defalt"], "Did you mean 'default'"),
        (["tiny/policy.npz", "--against", "sjff"], "Did you mean 'sjf'"),
    ],
    ids=["nobody", "missing", "kind", "shipped", "metric", "task", "scheduler"],
)
def test_mistakes_end_with_a_message(arguments: list[str], message: str, folder: Path, run_here):
    """Exit code 2, one sentence that helps, no traceback, nothing written."""
    done = run_here("evaluate", *arguments, "-o", "never", cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "never").exists()
