"""A training goes on only with the jobs and machines that it began with."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.scene_mix import SceneEntry, SceneMix
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.training import TrainConfig, read_config, train
from yardmaster.experiments.training.folder import RunFolder
from yardmaster.experiments.training.sources import sources_of

CLUSTER = """
[[nodes]]
count = 2
gpu_type = "V100"
gpus = 4
"""


def log(path: Path, jobs: int = 100, run_s: int = 60) -> Path:
    """Write so many jobs."""
    rows = [f"{10 * n},{run_s + n % 7},{1 + n % 4}" for n in range(jobs)]
    path.write_text("\n".join(["submit_s,duration_s,gpus", *rows]) + "\n")
    return path


@pytest.fixture
def scenes(tmp_path: Path) -> TrainConfig:
    """Return a training on a log and on generated jobs."""
    text = f"""
    [task]
    jobs = 8
    window = 4
    gpu_slots = 4
    [[scenes]]
    name = "from the log"
    workload = "{log(tmp_path / "log.csv")}"
    cluster = "2x V100:4"
    [[scenes]]
    workload = "mm"
    cluster = "2x V100:4"
    [learner]
    steps_per_update = 64
    epochs = 1
    minibatches = 2
    network.hidden = [8]
    [train]
    steps = 128
    envs = 8
    eval_every = 64
    eval_episodes = 1
    threads = 1
    checkpoint_every = 64
    against = ["fifo"]
    tensorboard = false
    """
    (tmp_path / "mine.toml").write_text(text)
    return read_config(tmp_path / "mine.toml")


def test_a_changed_log_is_not_trained_on(scenes: TrainConfig, out: Path):
    """It is refused by name and scene, and nothing is changed; once put back, training goes on."""
    train(scenes, out=out, stop_when=lambda seen: seen.steps >= 64)
    place = Path(scenes.task.entries[0].workload)
    before = place.read_bytes(), RunFolder(out).about.read_bytes()
    log(place, run_s=90)
    with pytest.raises(YardmasterError, match=r"log\.csv \(scene 'from the log'\) has changed"):
        train(scenes, out=out, resume=True)
    assert RunFolder(out).about.read_bytes() == before[1]
    place.write_bytes(before[0])
    assert train(scenes, out=out, resume=True).status == "finished"


@pytest.mark.usefixtures("toy")
def test_the_log_of_a_task_must_be_the_same(small, out: Path, tmp_path: Path):
    """So it is without scenes; a checkpoint that does not know its log is taken as it is."""
    place = log(tmp_path / "log.csv")
    asked = small(task={"workload": str(place)})
    train(asked, out=out, stop_when=lambda seen: seen.steps >= 512)
    log(place, jobs=101)
    with pytest.raises(YardmasterError, match=r"(?s)log\.csv has changed.*--out"):
        train(asked, out=out, resume=True)
    saved = read_checkpoint(RunFolder(out).last)
    old = {key: value for key, value in saved.standing.items() if key != "sources"}
    write_checkpoint(RunFolder(out).last, Checkpoint(saved.learner, saved.config, saved.state, old))
    assert train(asked, out=out, resume=True).status == "finished"
    # From then on it knows.
    assert read_checkpoint(RunFolder(out).last).standing["sources"] == sources_of(asked.task)


def test_files_of_jobs_and_machines_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Presets and clusters by name have no file, not even where a folder is called so."""
    monkeypatch.chdir(tmp_path)
    for name in ("lognormal", Task().cluster):
        (tmp_path / name).mkdir()
    (tmp_path / "machines.toml").write_text(CLUSTER)
    log(tmp_path / "log.csv")
    assert sources_of(Task()) == {}
    assert sources_of(ChoosingTask()) == {}
    assert list(sources_of(Task(workload="log.csv", cluster="machines.toml"))) == [
        "log.csv",
        "machines.toml",
    ]
    entries = (
        SceneEntry(workload="log.csv", cluster=("machines.toml", "2x V100:4")),
        SceneEntry(workload="lognormal", cluster="2x V100:4"),
    )
    assert list(sources_of(SceneMix(entries=entries))) == ["log.csv", "machines.toml"]
