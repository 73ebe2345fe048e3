"""Choosers are trained as policies are: same folder, same guarantees, another environment."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from yardmaster.agents.learners import LEARNERS
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import CHOOSING_TASKS, ChoosingTask
from yardmaster.envs.episodes import FIRST_SEED
from yardmaster.errors import InvalidConfigError, UnknownNameError, YardmasterError
from yardmaster.experiments.players import read_policy
from yardmaster.experiments.training import TrainConfig, read_config, train
from yardmaster.experiments.training.choosing import ChoosingValidation, play_choosing
from yardmaster.experiments.training.evaluation import CHOOSERS_HIGHER_IS_BETTER
from yardmaster.experiments.training.folder import RunFolder, read_lines
from yardmaster.experiments.training.kinds import kind_named, kind_of
from yardmaster.experiments.training.tables import to_toml
from yardmaster.metrics.per_job import jct_s
from yardmaster.schedulers.meta.chooser_file import read_chooser
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.regimes import regimes

REGIMES = ("base-low-2", "bursty-high-4")


def tiny(learner: dict | None = None, train: dict | None = None, task: dict | None = None):
    quick = {"steps_per_update": 256, "network": {"hidden": [8], "dim": 4}}
    who = {"name": "meta-dqn"} | (learner or {})
    if who["name"] != "ppo":
        quick |= {"gradient_steps": 2, "batch_size": 32, "warmup_steps": 300, "memory_size": 1000}
    tables = {
        "task": {"preset": "regimes", "regimes": list(REGIMES), "episodes": 6} | (task or {}),
        "learner": quick | who,
        "train": {
            "steps": 1_280, "envs": 8, "eval_every": 512, "eval_episodes": 3, "threads": 1,
            "tensorboard": False, "checkpoint_every": 512,
        } | (train or {}),
    }  # fmt: skip
    return read_config(None, tables)


@pytest.fixture(scope="module")
def task() -> ChoosingTask:
    return CHOOSING_TASKS["regimes"].changed(regimes=REGIMES, episodes=6)


@pytest.mark.parametrize("name", list(CHOOSING_TASKS))
@pytest.mark.parametrize("learner", ["meta-dqn", "ppo", "d3qn", "sac"])
def test_a_resolved_configuration_reads_back(learner: str, name: str, tmp_path: Path):
    """Tasks of choosing survive being written as TOML and read, weights of rewards included."""
    options = {"learner": {"name": learner}, "task": {"preset": name, "reward": {"late": -1.0}}}
    config = read_config(None, options)
    (tmp_path / "config.toml").write_text(to_toml(config.tables()))
    assert read_config(tmp_path / "config.toml") == config
    assert kind_of(config.task) is kind_named(name)


def test_defaults_of_choosing():
    """Who learns, with what network, and how it is judged follow from the kind of task."""
    config = read_config(None, {"task": {"preset": "regimes"}})
    assert config.learner == "meta-dqn"
    assert (config.train.eval_episodes, config.train.threads) == (96, 1)
    assert config.settings.network == LEARNERS["meta-dqn"].preset("default").network
    for learner in ("ppo", "d3qn"):
        other = read_config(None, {"task": {"preset": "regimes"}, "learner": {"name": learner}})
        assert (other.settings.network.arch, other.settings.network.noop_bias) == ("regime", 0.0)
    told = {"task": {"preset": "regimes"}, "learner": {"name": "ppo", "network": {"arch": "mlp"}}}
    assert read_config(None, told).settings.network.arch == "mlp"
    assert read_config(None, {}).learner == "ppo"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"train": {"metric": "utilisation"}}, r"train\.metric: unknown metric 'utilisation'"),
        ({"task": {"workload": "x"}}, r"task\.workload: unknown key"),
        ({"task": {"menu": "srpt"}}, r"task\.menu: must be an array"),
        ({"task": {"reward": "jctt"}}, r"Did you mean 'jct'\?"),
    ],
)
def test_mistakes_are_those_of_the_kind(options: dict, complaint: str):
    """Metrics and settings of picking jobs are mistakes here, and the message says what is not."""
    with pytest.raises(InvalidConfigError, match=complaint):
        read_config(None, {"task": {"preset": "regimes"} | options.pop("task", {})} | options)


def test_unknown_tasks_are_looked_for_everywhere():
    """A misspelt task is compared with the tasks of both kinds."""
    with pytest.raises(UnknownNameError, match="hard-regimes"):
        read_config(None, {"task": {"preset": "hard-regime"}})
    with pytest.raises(UnknownNameError, match="gpu-optimizer"):
        read_config(None, {"task": {"preset": "gpu-optimiser"}})


def test_what_choosers_cannot_be_taught(tmp_path: Path):
    """Imitation and distributions of values are refused before anything is opened or written."""
    for config, complaint in (
        (tiny(train={"warm_start": "sjf"}), "--warm-start imitates a heuristic that picks jobs"),
        (read_config(None, {"task": {"preset": "regimes"}, "learner": {"name": "rainbow"}}),
         "rainbow learns distributions"),
    ):  # fmt: skip
        with pytest.raises(YardmasterError, match=complaint):
            train(config, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_opponents_are_the_menu_kept_all_the_time(task: ChoosingTask):
    """Each scheduler of the menu, played in the environment, does as it does in a simulation."""
    validation = ChoosingValidation(task, episodes=3, size=2)
    by_name = {one.name: one for one in regimes("rlmetadqn")}
    for name in task.sight.menu[:2]:
        scores = validation.play(validation.player(name))
        assert set(scores) == set(CHOOSERS_HIGHER_IS_BETTER)
        for number in range(3):
            regime = by_name[REGIMES[number % 2]]
            jobs = regime.jobs(FIRST_SEED["val"] + number // 2)
            schedule = simulate(jobs, regime.machines(), name, seed=number)
            assert scores["jct_s"][number] == pytest.approx(jct_s(schedule).mean())
    with pytest.raises(UnknownNameError, match="scheduler of the menu"):
        validation.player("fifo")


def test_scores_do_not_depend_on_how_many_play_at_once(task: ChoosingTask):
    """Episodes come in a line: one environment or many, each gives the same numbers."""
    episodes = ChoosingEpisodes(task, "val")

    def second(batch):
        return np.ones(batch.size, dtype=np.int64)

    one, many = (play_choosing(episodes, second, episodes=5, size=size) for size in (1, 4))
    for name, values in one.items():
        np.testing.assert_array_equal(values, many[name])


@pytest.mark.parametrize("learner", ["meta-dqn", "ppo", "d3qn"])
def test_an_interrupted_training_goes_on_as_if_nothing_had_happened(
    learner: str, same_run, tmp_path: Path
):
    """Ctrl-C and resume give the files and the state of a run in one go."""
    config = tiny({"name": learner})
    whole = train(config, out=tmp_path / "whole")
    assert list(whole.heuristics) == list(config.task.sight.menu)

    def press(progress):
        if progress.steps == 768:
            os.kill(os.getpid(), signal.SIGINT)

    first = train(config, out=tmp_path / "halved", on_progress=press)
    assert (first.status, first.steps) == ("interrupted", 768)
    assert train(config, out=tmp_path / "halved", resume=True).status == "finished"
    same_run(tmp_path / "whole", tmp_path / "halved")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainConfig, Path]:
    """A chooser that is told its regimes, judged by a gap."""
    out = tmp_path_factory.mktemp("trained") / "run"
    config = tiny(train={"metric": "jct_gap"}, task={"labelled": True})
    train(config, out=out)
    return config, out


def test_the_best_is_written_as_a_chooser(trained):
    """`policy.npz` has the sight that was trained with, its time unit measured."""
    config, out = trained
    chooser = read_chooser(RunFolder(out).policy)
    episodes = ChoosingEpisodes(config.task, "train")
    assert chooser.sight == episodes.task.sight
    assert chooser.about["learner"] == "meta-dqn"
    scores = [one["means"]["jct_gap"] for one in read_lines(RunFolder(out).evaluations)]
    assert chooser.about["jct_gap"] == min(scores)


def test_a_chooser_does_in_simulations_what_it_did_in_validation(trained):
    """`meta:RUN` on the validation jobs, labels included, has the scores of the best evaluation."""
    _, out = trained
    by_name = {one.name: one for one in regimes("rlmetadqn")}
    found = []
    for number in range(3):
        regime = by_name[REGIMES[number % 2]]
        jobs = regime.jobs(FIRST_SEED["val"] + number // 2)
        schedule = simulate(jobs, regime.machines(), f"meta:{out}", seed=number)
        found.append(jct_s(schedule).mean())
    best = [one for one in read_lines(RunFolder(out).evaluations) if one["is_best"]][-1]
    assert np.mean(found) == pytest.approx(best["means"]["jct_s"])


def test_a_chooser_that_is_told_its_regime_refuses_strangers(trained):
    """Jobs of no known regime have no labels to tell."""
    _, out = trained
    stranger = regimes("rlmetadqn")[1]
    with pytest.raises(YardmasterError, match="'base-low-4' is none of them"):
        simulate(stranger.jobs(1), stranger.machines(), f"meta:{out}")


def test_evaluate_says_where_choosers_are_compared(trained):
    """A run, a checkpoint or a file of a chooser is no policy that picks jobs."""
    _, out = trained
    folder = RunFolder(out)
    for path in (out, folder.best, folder.policy):
        with pytest.raises(YardmasterError, match="yardmaster compare --schedulers"):
            read_policy(path)
