"""Scenes with their jobs: training and validation share nothing, windows have the scene's load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.scene_batch import EPISODES_PER_SCENE, SceneBatch, SceneEpisodes
from yardmaster.envs.scene_mix import SceneEntry, SceneMix
from yardmaster.envs.scene_parts import GENERATED_JOBS, Logs, lay_out
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import Workload
from yardmaster.workloads.tables import write_table

JOBS = 8
SIGHT = Sight(window=8, gpu_slots=4, window_order="sjf")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("logs") / "log.parquet"
    dice = np.random.default_rng(4)
    jobs = Workload.of(
        submit_s=np.cumsum(dice.integers(1, 60, 200)),
        duration_s=dice.integers(10, 4000, 200),
        gpus=dice.choice([1, 2, 4, 8], 200),
        id=np.arange(1000, 1200),
    )
    write_table(jobs, path)
    return str(path)


def mix_of(log: str, **sight) -> SceneMix:
    entries = (
        SceneEntry(workload=log, cluster=("1x V100:4", "2x V100:4"), load=(0.8, 1.4)),
        SceneEntry(workload="mm", cluster="2x V100:4", name="made"),
    )
    return SceneMix(entries=entries, jobs=JOBS, sight=SIGHT).changed(**sight)


def test_no_scene_validates_on_what_another_trains_on(log: str):
    """A file is divided before jobs too large are left out, so the border is one for all."""
    mix, logs = mix_of(log), Logs(JOBS)
    found = {
        split: {job for place in mix.places[:2] for job in logs.part(place, split).id.tolist()}
        for split in ("train", "val", "report")
    }
    assert max(map(int, found["train"])) < 1120 <= min(map(int, found["val"]))
    assert max(map(int, found["val"])) < 1160 <= min(map(int, found["report"]))
    assert logs.part(mix.places[0], "train").gpus.max() == 4
    assert logs.part(mix.places[1], "train").gpus.max() == 8


def test_held_out_windows_share_no_job_while_there_are_enough(log: str):
    """A file's stand side by side; of generated jobs there is always another log."""
    mix, logs = mix_of(log), Logs(JOBS)
    file, made = mix.places[1], mix.places[2]
    first = [set(logs.window(file, "val", number).id.tolist()) for number in range(5)]
    assert len(set.union(*first)) == 5 * JOBS
    beyond = GENERATED_JOBS // JOBS
    one, other = logs.window(made, "val", 0), logs.window(made, "val", beyond)
    assert one.fingerprint() != other.fingerprint()


def test_held_out_episodes_are_played_at_the_load_of_the_scene(log: str):
    """Jobs are those of the window, on a clock of their own; what is prepared says the same."""
    scenes = lay_out(mix_of(log))
    place = scenes.mix.places[1]
    held_out = scenes.held_out(place, "val")
    loads = [held_out.workload(number).load(8) for number in range(4)]
    assert 0.8 <= min(loads) < max(loads) <= 1.4
    window, jobs = scenes.logs.window(place, "val", 2), held_out.workload(2)
    assert (jobs.id.tolist(), jobs.gpus.tolist()) == (window.id.tolist(), window.gpus.tolist())
    np.testing.assert_array_equal(jobs.duration_s, window.duration_s)
    batch = EnvironmentBatch(held_out, 1, compiled=False, draw=lambda _rows: np.array([2]))
    batch.begin(np.zeros(1, dtype=np.int64))
    while not batch.terminated[0]:
        batch.step(batch.masks.argmax(axis=1))
    wait_s = batch.outcomes[0, 0] / JOBS
    usual = scenes.task.usual[place.name]["waiting"]
    assert wait_s > 0
    assert batch.episode_returns[0] == pytest.approx(-wait_s / 3600.0 / usual)


def test_jobs_without_estimates_get_wrong_ones(log: str):
    """Where estimates are shown and a file has none, they are drawn, the same ones every time."""
    scenes = lay_out(mix_of(log, information="estimate"))
    place = scenes.mix.places[0]
    jobs = scenes.held_out(place, "val").workload(0)
    assert not np.isnan(jobs.estimate_s).any()
    assert (jobs.estimate_s != jobs.duration_s).any()
    again = scenes.held_out(place, "val").workload(0)
    np.testing.assert_array_equal(jobs.estimate_s, again.estimate_s)


def test_a_policy_that_sees_what_scenes_do_not_show_is_refused(log: str):
    """One that was trained elsewhere would be shown something else than it knows."""
    scenes = lay_out(mix_of(log))
    with pytest.raises(YardmasterError, match="features must be standard with scenes, got rltune"):
        scenes.held_out(scenes.mix.places[0], "val", Sight(features="rltune"))


def test_training_episodes_tell_their_jobs_and_machines(log: str):
    """Who imitates a heuristic asks which job stands where, and on which cluster."""
    scenes = lay_out(mix_of(log))
    episodes = SceneEpisodes(scenes.rows, scenes.task)
    batch = SceneBatch(episodes, 3, compiled=False)
    batch.reset(0)
    assert batch.group_count == 3
    for scene, gpus in enumerate((4, 8, 8)):
        number = scene * EPISODES_PER_SCENE
        assert episodes.cluster_of(number).gpus == gpus
        assert len(episodes.workload(number)) == JOBS


def test_too_few_jobs_are_told_with_their_scene(log: str, tmp_path: Path):
    """The part, the file, the cluster and what to do stand in the message."""
    mix = mix_of(log).changed(jobs=39)
    why = r"Scene 'log.parquet on 1x V100:4': the val part of .*log.parquet has \d+ jobs that fit"
    with pytest.raises(YardmasterError, match=why):
        Logs(mix.jobs).window(mix.places[0], "val", 0)
    gone = SceneMix(
        entries=(SceneEntry(workload=str(tmp_path / "gone.csv"), cluster="pool:8", name="gone"),)
    )
    with pytest.raises(YardmasterError, match=r"Scene 'gone': .*gone\.csv"):
        lay_out(gone)
