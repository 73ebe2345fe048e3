"""Who plays: policies read from files, and schedulers in the environment or simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.players import (
    compiled_choice,
    played,
    player_of,
    read_policy,
    simulated,
    skipping,
)
from yardmaster.experiments.training import read_config, train
from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.learned.policy import load_policy

SIGHT = Sight(window=40, gpu_slots=4, reservation=False)
TASK = Task(cluster="2x V100:4", jobs=40, load=1.3, sight=SIGHT)
TABLES = {
    "task": {"cluster": "2x V100:4", "jobs": 20, "load": 1.2, "window": 8, "gpu_slots": 4},
    "learner": {"steps_per_update": 128, "epochs": 1, "network": {"hidden": [8]}},
    "train": {
        "steps": 128, "envs": 8, "eval_every": 128, "eval_episodes": 2, "against": [],
        "threads": 1, "tensorboard": False,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train(read_config(None, TABLES), out=folder)
    return folder


@pytest.mark.parametrize("name", ["sjf", "fifo", "saf", "largest-first", "wfp3"])
def test_playing_and_simulating_are_the_same_game(name: str):
    """With the whole queue in the window, a scheduler scores the same either way."""
    episodes = Episodes(TASK, "val")
    player = player_of(name, episodes)
    assert player is not None
    inside, outside = played(player, episodes, 4), simulated(skipping(name), episodes, 4)
    assert np.isnan(outside["returns"]).all()
    for metric in set(inside) - {"returns"}:
        np.testing.assert_allclose(inside[metric], outside[metric], rtol=1e-9, err_msg=metric)


def test_a_simulation_is_cut_where_the_environment_is():
    """A limit on time leaves the same jobs unfinished, and the same completion times."""
    episodes = Episodes(replace(TASK, time_limit_s=20_000.0), "report")
    player = player_of("sjf", episodes)
    assert player is not None
    inside, outside = played(player, episodes, 4), simulated(skipping("sjf"), episodes, 4)
    assert inside["unfinished"].sum() > 0
    for metric in ("unfinished", "jct_s", "bounded_slowdown", "makespan_s"):
        np.testing.assert_allclose(inside[metric], outside[metric], rtol=1e-9, err_msg=metric)


def test_an_order_alone_passes_over_what_does_not_fit():
    """`sjf` plays as `sjf+skip`; other disciplines are kept."""
    assert str(skipping("sjf")) == "sjf+skip"
    assert str(skipping("sjf+strict")) == "sjf+strict"
    assert str(skipping("sjf@spread")) == "sjf+skip@spread"


@pytest.mark.parametrize(
    ("name", "sight", "plays"),
    [
        ("sjf", SIGHT, True),
        ("sjf@spread", SIGHT, False),
        ("sjf+conservative", SIGHT, False),
        ("srpt+preemptive", SIGHT, False),
        ("fifo+strict", SIGHT, True),
        ("sjf+strict", SIGHT, False),
        ("fifo+strict", replace(SIGHT, noop="never"), False),
        ("sjf+strict", replace(SIGHT, noop="always"), True),
        ("sjf+easy", replace(SIGHT, window_order="sjf", reservation=True), True),
        ("sjf+easy", SIGHT, False),
        ("fair-share", SIGHT, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_who_can_do_what_it_wants_plays(name: str, sight: Sight, plays: bool):  # noqa: FBT001
    """A scheduler plays only where its every decision is among the actions."""
    assert (player_of(name, Episodes(replace(TASK, sight=sight), "val")) is not None) == plays


def test_a_run_its_checkpoint_and_its_file_are_one_policy(run: Path):
    """Folder, checkpoint and portable file see and do the same, whether compiled or plain."""
    found = [read_policy(path) for path in (run, run / "checkpoints/best.pt", run / "policy.npz")]
    assert [policy.name for policy in found] == ["tiny", "tiny/best", "tiny/policy"]
    first = found[0]
    assert first.information == "clairvoyant"
    assert first.task is not None
    episodes = Episodes(first.task, "val")
    assert all(policy.sight == episodes.task.sight for policy in found)
    assert all(policy.task == first.task for policy in found)
    choices = [policy.choose for policy in found]
    choices.append(compiled_choice(load_policy(run / "policy.npz"), compiled=False))
    results = [played(choose, episodes, 5)["returns"].tolist() for choose in choices]
    assert all(result == results[0] for result in results)


def test_the_last_policy_of_a_run_can_play_too(run: Path):
    """A checkpoint with everything in it is as good as one with the network alone."""
    policy = read_policy(run / "checkpoints/last.pt")
    assert policy.name == "tiny/last"
    assert policy.task is not None
    assert len(played(policy.choose, Episodes(policy.task, "val"), 2)["returns"]) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.pt", r"No such file.*Did you mean 'something.pt'"),
        ("something.pt", "damaged, or not a checkpoint"),
        ("something.npz", "no policy file"),
        ("something.txt", "is no policy: name the folder"),
        ("empty", "not the folder of a training run"),
    ],
)
def test_what_is_no_policy_is_refused_with_a_reason(name: str, message: str, tmp_path: Path):
    """Missing, damaged and other files end with a message, never with a traceback."""
    (tmp_path / "empty").mkdir()
    for ending in ("pt", "npz", "txt"):
        (tmp_path / f"something.{ending}").write_text("no policy")
    with pytest.raises(YardmasterError, match=message):
        read_policy(tmp_path / name)


def test_a_run_without_a_best_policy_is_refused(run: Path, tmp_path: Path):
    """A run that was killed before its first evaluation has nothing to show."""
    for name in ("config.toml", "run.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    with pytest.raises(YardmasterError, match="no best policy yet"):
        read_policy(tmp_path)


def test_weights_of_another_network_are_refused(run: Path, tmp_path: Path):
    """A checkpoint whose weights do not fit says so in a sentence."""
    from yardmaster.agents.checkpoint import read_checkpoint, write_checkpoint

    found = read_checkpoint(run / "checkpoints/best.pt")
    weights = dict(found.state["network"])
    weights.popitem()
    write_checkpoint(tmp_path / "other.pt", replace(found, state={"network": weights}))
    with pytest.raises(YardmasterError, match="do not fit its network"):
        read_policy(tmp_path / "other.pt")


def test_policies_that_come_along_are_read_by_name():
    """`policy:NAME` is the shipped file, and is called as schedulers call it."""
    named = read_policy(Path("policy:slowdown-clairvoyant"))
    assert named.name == "policy:slowdown-clairvoyant"
    assert named.information == "clairvoyant"
    episodes = Episodes(replace(TASK, sight=named.sight, measured_unit=False), "val")
    inside = played(named.choose, episodes, 2)
    outside = simulated(parse_scheduler(named.name), episodes, 2)
    np.testing.assert_allclose(inside["jct_s"], outside["jct_s"])
