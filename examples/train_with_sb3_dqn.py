"""Train Stable-Baselines3's DQN to pick jobs, and compare it with shortest job first.

DQN knows no masks. The environment then takes an action that is not legal for the no-op: nothing
starts, and time passes. Learners that mask do better; see train_with_sb3_maskable_ppo.py.

python examples/train_with_sb3_dqn.py --steps 100000
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import DQN

import yardmaster.envs.registration
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import play
from yardmaster.envs.task import TASKS

gymnasium.register_envs(yardmaster.envs.registration)

# `max_steps` cuts episodes of a policy that waits and waits.
SETTINGS: dict[str, Any] = {
    "cluster": "2x V100:8",
    "jobs": 64,
    "window": 8,
    "gpu_slots": 16,
    "max_steps": 1000,
}


def mean_jct_s(model: DQN, episodes: int) -> float:
    """Play validation episodes 0, 1, … greedily and return their mean completion time, seconds."""
    env = gymnasium.make("yardmaster/PickJob-v0", split="val", **SETTINGS)
    found = []
    for number in range(episodes):
        observation, info = env.reset(seed=0, options={"episode": number})
        while "scores" not in info:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, _, _, info = env.step(action)
        found.append(info["scores"]["jct_s"])
    return float(np.mean(found))


def main(steps: int, episodes: int = 20) -> None:
    """Train for so many steps, then compare."""
    env = gymnasium.make("yardmaster/PickJob-v0", **SETTINGS)
    model = DQN(
        "MlpPolicy",
        env,
        learning_starts=min(1000, steps // 2),
        exploration_fraction=0.3,
        target_update_interval=500,
        seed=0,
        device="cpu",
    )
    model.learn(steps)

    task = TASKS["default"].changed(**SETTINGS)
    sjf = play(task, expert("sjf", task), split="val", episodes=episodes)
    print(f"mean completion time on {episodes} validation episodes")
    print(f"  DQN                 {mean_jct_s(model, episodes):8,.0f} s")
    print(f"  shortest job first  {sjf.jct_s.mean():8,.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps")
    main(parser.parse_args().steps)
