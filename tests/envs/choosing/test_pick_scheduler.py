"""The single environment of choosing: Gymnasium's contract, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from yardmaster.envs import registration
from yardmaster.envs.choosing.pick_scheduler import PickSchedulerEnv
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.errors import UnknownNameError, YardmasterError

SMALL: dict[str, Any] = {
    "compiled": False,
    "regimes": ["base-low-2", "bursty-low-4"],
    "episodes": 4,
    "past": 2,
}
"""Of a size at which plain Python is quick."""


def small(**changes: Any) -> dict[str, Any]:
    return SMALL | changes


def random_walk(
    env: PickSchedulerEnv, seed: int
) -> Iterator[tuple[Any, float, bool, bool, dict[str, Any]]]:
    """Yield every step of an episode of random actions, the first look included."""
    dice = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    yield observation, 0.0, False, False, info
    is_over = False
    while not is_over:
        step = env.step(int(dice.integers(env.action_space.n)))
        is_over = step[2] or step[3]
        yield step


@pytest.mark.parametrize("kind", ["flat", "dict"])
@pytest.mark.parametrize("changes", [{}, {"past": 0, "ages": False}, {"information": "blind"}])
def test_gymnasiums_checker_is_content(kind: str, changes: dict[str, Any]):
    """Gymnasium's checker finds nothing to complain or warn about."""
    env = gymnasium.make(registration.PICK_SCHEDULER, observation=kind, **small(**changes))
    check_env(env.unwrapped)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"labelled": True, "reward": "mixed"},
        {"task": "hard-regimes", "regimes": ["gangs-busy"], "max_steps": 40},
        {"task": "drifting-regimes", "regimes": ["drift-tight-loose-8"], "max_steps": 40},
    ],
    ids=["regimes", "labelled", "hard", "drift"],
)
def test_observations_and_masks_keep_their_promises(changes: dict[str, Any]):
    """All along an episode observations lie in their space, and everything is legal."""
    env = PickSchedulerEnv(**small(**changes))
    for observation, _, _, _, info in random_walk(env, 1):
        assert observation in env.observation_space
        mask = info["action_mask"]
        assert (mask.dtype, mask.shape) == (np.int8, (env.action_space.n,))
        assert mask.all()
        assert np.array_equal(mask, env.action_masks())


def test_a_dictionary_says_the_same():
    """The parts of a dictionary are those of the flat observation, step by step."""
    flat, parted = PickSchedulerEnv(**small()), PickSchedulerEnv(observation="dict", **small())
    border = len(flat.batch.layout.now_features)
    for one, other in zip(random_walk(flat, 3), random_walk(parted, 3), strict=True):
        assert np.array_equal(one[0][:border], other[0]["now"])
        assert np.array_equal(one[0][border:].reshape(2, -1), other[0]["past"])
    without = PickSchedulerEnv(observation="dict", **small(past=0)).reset(seed=0)[0]
    assert list(without) == ["now"]


def test_a_seed_decides_all_episodes():
    """The same seed gives the same sequence of episodes; others give others."""
    env = PickSchedulerEnv(**small(episodes=1000, randomised=False))

    def numbers(seed: int) -> list[int]:
        first = env.reset(seed=seed)[1]["episode_number"]
        return [first, *(env.reset()[1]["episode_number"] for _ in range(3))]

    assert numbers(7) == numbers(7)
    assert len({tuple(numbers(seed)) for seed in range(4)}) == 4


def test_an_episode_can_be_asked_for_by_number():
    """`options` begins a certain episode, whatever the seed, in the regime whose turn it is."""
    env = PickSchedulerEnv(**small(episodes=1000))
    one, info = env.reset(seed=1, options={"episode": 3})
    other, _ = env.reset(seed=2, options={"episode": 3})
    assert (info["episode_number"], info["regime"]) == (3, 1)
    assert np.array_equal(one, other)
    with pytest.raises(YardmasterError, match="episode must be a whole number"):
        env.reset(options={"episode": -1})


def test_scores_and_seconds_of_an_episode():
    """Only the last step has scores: those of the batch; seconds add up to the clock."""
    env = PickSchedulerEnv(**small())
    steps = list(random_walk(env, 5))
    infos = [info for *_, info in steps]
    assert ["scores" in info for info in infos] == [False] * (len(infos) - 1) + [True]
    assert steps[-1][2:4] == (True, False)
    assert sum(info["elapsed_s"] for info in infos) == pytest.approx(infos[-1]["now_s"])
    scores = infos[-1]["scores"]
    assert scores["decisions"] == len(steps) - 1
    assert scores["unfinished"] == 0
    assert scores["return"] == pytest.approx(sum(step[1] for step in steps))
    # Rewards of `jct` are the share by which completion times lie above the best scheduler's.
    assert scores["return"] == pytest.approx(-scores["jct_gap"])
    assert 0 < scores["switches"] < scores["decisions"]


def test_keeping_to_one_scheduler_switches_never():
    """The first choice is no switch, whichever it is, and nobody is at work before it."""
    env = PickSchedulerEnv(**small())
    for member in range(env.action_space.n):
        observation, _ = env.reset(seed=3)
        names = env.batch.layout.now_features
        is_at_work = [name.startswith("is_") for name in names]
        assert not observation[: len(names)][is_at_work].any()
        info: dict[str, Any] = {}
        while "scores" not in info:
            *_, info = env.step(member)
        assert info["scores"]["switches"] == 0


def test_limits_cut():
    """A limit on decisions cuts the episode: truncated, not terminated."""
    steps = list(random_walk(PickSchedulerEnv(**small(max_steps=7)), 6))
    assert len(steps) == 1 + 7
    assert steps[-1][2:4] == (False, True)
    assert steps[-1][4]["scores"]["unfinished"] > 0


def test_an_episode_that_is_over_must_be_begun_anew():
    """Stepping before the first reset or after the end is refused."""
    env = PickSchedulerEnv(**small(max_steps=1))
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"everys": 8}, "setting of a task 'everys'. Did you mean 'every_s'"),
        ({"task": "regime"}, "task 'regime'. Did you mean 'regimes'"),
        ({"split": "vall"}, "Did you mean 'val'"),
        ({"observation": "dictt"}, "Did you mean 'dict'"),
        ({"render_mode": "ansii"}, "Did you mean 'ansi'"),
        ({"reward": "jctt"}, "Did you mean 'jct'"),
        ({"regimes": ["base-low-3"]}, "Did you mean 'base-low-"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_misspelt_is_refused_with_a_hint(settings: dict[str, Any], hint: str):
    """A setting, task, set, observation, picture, reward or regime that is misspelt is named."""
    with pytest.raises(UnknownNameError, match=hint):
        PickSchedulerEnv(**small(**settings))


def test_a_task_of_ones_own_and_its_picture():
    """A task may be given in place of a name and changed on the way; a line says how it stands."""
    task = CHOOSING_TASKS["regimes"].changed(regimes=["base-low-2"], menu=["fifo", "sjf", "edf"])
    env = PickSchedulerEnv(task=task, menu=["fifo", "sjf"], compiled=False, render_mode="ansi")
    assert env.action_space.n == 2
    env.reset(options={"episode": 0})
    assert "second 0 of episode 0 (base-low-2): 0 of 2 GPUs in use, 1 waiting" in env.render()
    assert "at work: nobody yet" in env.render()
    env.step(1)
    assert "at work: sjf" in env.render()
    env.close()


def test_compiled_and_plain_agree():
    """The compiled environment does what the plain one does, step by step."""
    plain, compiled = PickSchedulerEnv(**small()), PickSchedulerEnv(**small(compiled=True))
    for one, other in zip(random_walk(plain, 10), random_walk(compiled, 10), strict=True):
        assert np.allclose(one[0], other[0], atol=1e-6)
        assert one[1] == pytest.approx(other[1], abs=1e-12)
        assert one[2:4] == other[2:4]
    assert one[4]["scores"] == pytest.approx(other[4]["scores"], abs=1e-9)


def test_stable_baselines_trains_on_it():
    """DQN of Stable-Baselines3 trains on the environment as it is, and chooses from the menu."""
    import torch
    from stable_baselines3 import DQN

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    env = gymnasium.make(registration.PICK_SCHEDULER, **small(compiled=True))
    learner = DQN("MlpPolicy", env, learning_starts=50, buffer_size=500, seed=0)
    learner.learn(200)
    observation, _ = env.reset(seed=0)
    assert learner.predict(observation, deterministic=True)[0] in env.action_space
    assert learner.num_timesteps == 200
    torch.set_num_threads(threads)
