"""The single environment: Gymnasium's contract, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from yardmaster.envs import registration
from yardmaster.envs.experts import expert
from yardmaster.envs.pick_job import PickJobEnv
from yardmaster.envs.playing import play
from yardmaster.envs.task import TASKS
from yardmaster.errors import UnknownNameError, YardmasterError

SMALL: dict[str, Any] = {
    "compiled": False,
    "cluster": "2x V100:8",
    "jobs": 24,
    "episodes": 4,
    "window": 6,
    "gpu_slots": 5,
    "load": 2.0,
}
"""Of a size at which plain Python is quick."""

TASK_NAMES = sorted(TASKS)


def small(name: str = "default", **changes: Any) -> dict[str, Any]:
    """Return the settings of a small version of a task; other programs' keep their machines."""
    settings = SMALL | {"task": name} | changes
    if TASKS[name].sight.features != "standard":
        for kept in ("cluster", "gpu_slots", "load"):
            settings.pop(kept)
    return settings


def random_walk(
    env: PickJobEnv, seed: int
) -> Iterator[tuple[Any, float, bool, bool, dict[str, Any]]]:
    """Yield every step of an episode of random legal actions, the first look included."""
    dice = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    yield observation, 0.0, False, False, info
    is_over = False
    while not is_over:
        action = dice.choice(np.flatnonzero(info["action_mask"]))
        observation, reward, terminated, truncated, info = env.step(action)
        is_over = terminated or truncated
        yield observation, reward, terminated, truncated, info


@pytest.mark.parametrize("kind", ["flat", "dict"])
@pytest.mark.parametrize("name", TASK_NAMES)
def test_gymnasiums_checker_is_content(name: str, kind: str):
    """Gymnasium's checker finds nothing to complain or warn about in any task."""
    env = gymnasium.make(registration.PICK_JOB, observation=kind, **small(name))
    check_env(env.unwrapped)


@pytest.mark.parametrize("name", TASK_NAMES)
def test_observations_and_masks_keep_their_promises(name: str):
    """All along an episode observations lie in their space, and something is legal."""
    env = PickJobEnv(**small(name, max_steps=150))
    for observation, _, terminated, truncated, info in random_walk(env, 1):
        assert observation in env.observation_space
        mask = info["action_mask"]
        assert (mask.dtype, mask.shape) == (np.int8, (env.action_space.n,))
        assert mask.any()
        assert np.array_equal(mask, env.action_masks())
        if not terminated and not truncated:
            assert mask[env.action_space.sample(mask)] == 1


@pytest.mark.parametrize("mode", ["off", "per_gpu", "sorted", "cdf"])
@pytest.mark.parametrize("information", ["clairvoyant", "blind"])
def test_bounds_hold_whatever_the_slots_say(mode: str, information: str):
    """Shares of GPUs that are no powers of two stay within the bounds, rounding included."""
    env = PickJobEnv(**small(cluster="pool:12", lookahead=mode, information=information))
    shapes = set()
    for observation, *_ in random_walk(env, 2):
        assert observation in env.observation_space
        shapes.add(observation.shape)
    assert shapes == {(6 * 13 + 5 + 6,)}


@pytest.mark.parametrize("name", ["default", "gpu-optimizer", "drl-scheduler", "rltune"])
def test_a_dictionary_says_the_same(name: str):
    """The parts of a dictionary are those of the flat observation, step by step."""
    flat = PickJobEnv(**small(name, max_steps=60))
    parted = PickJobEnv(observation="dict", **small(name, max_steps=60))
    layout = flat.batch.layout
    for one, other in zip(random_walk(flat, 3), random_walk(parted, 3), strict=True):
        parts = other[0]
        assert np.array_equal(layout.jobs(one[0]), parts["jobs"])
        if layout.gpu_slots:
            assert np.array_equal(layout.gpus(one[0]), parts["gpus"])
        if layout.global_features:
            assert np.array_equal(layout.globals(one[0]), parts["globals"])
        assert len(parts) == 1 + bool(layout.gpu_slots) + bool(layout.global_features)


def test_a_seed_decides_all_episodes():
    """The same seed gives the same sequence of episodes; others give others."""
    env = PickJobEnv(**small(episodes=1000))

    def numbers(seed: int) -> list[int]:
        first = env.reset(seed=seed)[1]["episode_number"]
        return [first, *(env.reset()[1]["episode_number"] for _ in range(4))]

    assert numbers(7) == numbers(7)
    assert len({tuple(numbers(seed)) for seed in range(5)}) == 5
    assert len(set(numbers(7))) == 5


def test_the_first_episode_without_a_seed_is_drawn():
    """Without a seed, two environments begin with different episodes, and huge seeds are seeds."""
    some = {PickJobEnv(**small(episodes=100_000)).reset()[1]["episode_number"] for _ in range(4)}
    assert len(some) > 1
    assert PickJobEnv(**small()).reset(seed=2**80)[1]["now_s"] == 0.0


def test_an_episode_can_be_asked_for_by_number():
    """`options` begins a certain episode, whatever the seed, and the sequence goes on after it."""
    env = PickJobEnv(**small(episodes=1000))
    one, info = env.reset(seed=1, options={"episode": 3})
    other, _ = env.reset(seed=2, options={"episode": 3})
    assert info["episode_number"] == 3
    assert np.array_equal(one, other)
    env.reset(seed=1)
    env.reset(options={"episode": 3})
    following = env.reset()[1]["episode_number"]
    env.reset(seed=1)
    assert env.reset()[1]["episode_number"] == following


@pytest.mark.parametrize("number", [-1, 0.5, "first", [1, 2]])
def test_numbers_of_episodes_that_make_no_sense_are_refused(number: Any):
    """An episode's number is a whole number from 0 on."""
    with pytest.raises(YardmasterError, match="episode must be a whole number"):
        PickJobEnv(**small()).reset(options={"episode": number})


@pytest.mark.parametrize("split", ["train", "val", "report"])
def test_scores_are_those_of_playing(split: str):
    """The last step's scores are what `play` finds for the same player on the same episode."""
    task = TASKS["default"].changed(**{k: v for k, v in SMALL.items() if k != "compiled"})
    played = play(task, expert("sjf", task), split=split, episodes=3, compiled=False)
    env = PickJobEnv(**small(split=split))
    choose = expert("sjf", task)
    _, info = env.reset(options={"episode": 2})
    total = 0.0
    while "scores" not in info:
        _, reward, _, _, info = env.step(choose(env.batch)[0])
        total += reward
    scores = info["scores"]
    assert scores.pop("return") == played.returns[2] == pytest.approx(total)
    assert scores == {name: getattr(played, name)[2] for name in scores}
    assert len(scores) == 9


def test_rewards_add_up_to_the_mean_completion_time():
    """With the reward `jct`, an episode's return is minus the mean JCT in the time unit."""
    env = PickJobEnv(**small(reward="jct"))
    *_, last = random_walk(env, 4)
    unit_s = env.batch.task.sight.time_unit_s
    scores = last[4]["scores"]
    assert scores["return"] * unit_s == pytest.approx(-scores["jct_s"])
    assert scores["unfinished"] == 0


def test_seconds_that_passed_add_up():
    """The seconds of all steps add up to the clock, and only the last step has scores."""
    env = PickJobEnv(**small(window=3))
    steps = list(random_walk(env, 5))
    infos = [info for *_, info in steps]
    assert sum(info["elapsed_s"] for info in infos) == pytest.approx(infos[-1]["now_s"])
    assert ["scores" in info for info in infos] == [False] * (len(infos) - 1) + [True]
    assert max(info["waiting"] for info in infos) > env.batch.layout.window
    assert steps[-1][2:4] == (True, False)


def test_limits_cut():
    """A limit on decisions cuts the episode: truncated, not terminated."""
    env = PickJobEnv(**small(max_steps=7))
    steps = list(random_walk(env, 6))
    assert len(steps) == 1 + 7
    assert steps[-1][2:4] == (False, True)
    assert steps[-1][4]["scores"]["decisions"] == 7
    assert steps[-1][4]["scores"]["unfinished"] > 0


def test_what_is_not_legal_counts_as_the_no_op():
    """An action that is not legal does what the no-op does, and the term `invalid` counts it."""
    settings = small(reward={"invalid": -1.0}, noop="always")
    one, other = PickJobEnv(**settings), PickJobEnv(**settings)
    _, info = one.reset(seed=8)
    other.reset(seed=8)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    seen, reward, *_ = one.step(illegal)
    expected, nothing, *_ = other.step(6)
    assert np.array_equal(seen, expected)
    assert (reward, nothing) == (-1.0, 0.0)


def test_an_episode_that_is_over_must_be_begun_anew():
    """Stepping before the first reset or after the end is refused."""
    env = PickJobEnv(**small(max_steps=1))
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)


def test_what_is_handed_out_is_not_written_to():
    """Observations, masks and `action_masks()` of a step stay as they are in the next."""
    env = PickJobEnv(**small())
    observation, info = env.reset(seed=9)
    masks = env.action_masks()
    kept = (observation.copy(), info["action_mask"].copy())
    is_changed = False
    for _ in range(15):
        env.step(int(env.action_masks().argmax()))
        is_changed |= not np.array_equal(env.action_masks(), masks)
    assert is_changed
    assert np.array_equal(observation, kept[0])
    assert np.array_equal(info["action_mask"], kept[1])
    assert np.array_equal(masks, kept[1])


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"windw": 8}, "setting of a task 'windw'. Did you mean 'window'"),
        ({"task": "defualt"}, "task 'defualt'. Did you mean 'default'"),
        ({"split": "vall"}, "Did you mean 'val'"),
        ({"observation": "dictt"}, "Did you mean 'dict'"),
        ({"render_mode": "ansii"}, "Did you mean 'ansi'"),
        ({"reward": "wiat"}, "Did you mean 'wait'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_misspelt_is_refused_with_a_hint(settings: dict[str, Any], hint: str):
    """A setting, task, set, observation, picture or reward that is misspelt is named."""
    with pytest.raises(UnknownNameError, match=hint):
        PickJobEnv(**({"compiled": False} | settings))


def test_an_unknown_option_is_refused_with_a_hint():
    """A misspelt option of `reset` is named."""
    with pytest.raises(UnknownNameError, match="Did you mean 'episode'"):
        PickJobEnv(**small()).reset(options={"episodes": 3})


def test_a_task_of_ones_own():
    """A Task may be given in place of a name, and changed on the way."""
    task = TASKS["default"].changed(jobs=5, window=3)
    env = PickJobEnv(task=task, window=2, compiled=False)
    assert env.action_space.n == 3
    *_, last = random_walk(env, 0)
    assert last[4]["scores"]["decisions"] >= 5


def test_compiled_and_plain_agree():
    """The compiled environment does what the plain one does, step by step."""
    plain, compiled = PickJobEnv(**small()), PickJobEnv(**small(compiled=True))
    walks = zip(random_walk(plain, 10), random_walk(compiled, 10), strict=True)
    for one, other in walks:
        assert np.allclose(one[0], other[0], atol=1e-6)
        assert one[1] == pytest.approx(other[1])
        assert one[2:4] == other[2:4]
    assert one[4]["scores"] == pytest.approx(other[4]["scores"])
