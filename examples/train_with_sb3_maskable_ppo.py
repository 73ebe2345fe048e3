"""Train sb3-contrib's MaskablePPO to pick jobs, and compare it with shortest job first.

python examples/train_with_sb3_maskable_ppo.py --steps 100000
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from sb3_contrib import MaskablePPO

import yardmaster.envs.registration
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import play
from yardmaster.envs.task import TASKS

# Importing the module above is what registers the environment; Gymnasium's own way of saying so:
gymnasium.register_envs(yardmaster.envs.registration)

# A small cluster, so that a minute of training shows something. Any setting of a task can be
# changed here; docs/mdp.md lists them.
SETTINGS: dict[str, Any] = {"cluster": "2x V100:8", "jobs": 64, "window": 16, "gpu_slots": 16}


def mean_jct_s(model: MaskablePPO, episodes: int) -> float:
    """Play validation episodes 0, 1, … greedily and return their mean completion time, seconds."""
    env = gymnasium.make("yardmaster/PickJob-v0", split="val", **SETTINGS)
    found = []
    for number in range(episodes):
        observation, info = env.reset(seed=0, options={"episode": number})
        while "scores" not in info:
            action, _ = model.predict(
                observation, action_masks=info["action_mask"], deterministic=True
            )
            observation, _, _, _, info = env.step(action)
        found.append(info["scores"]["jct_s"])
    return float(np.mean(found))


def main(steps: int, episodes: int = 20) -> None:
    """Train for so many steps, then compare."""
    env = gymnasium.make("yardmaster/PickJob-v0", **SETTINGS)
    # MaskablePPO finds the masks by itself: it asks the environment for `action_masks()`.
    model = MaskablePPO("MlpPolicy", env, n_steps=512, batch_size=128, seed=0, device="cpu")
    model.learn(steps)

    # The same episodes, played by a heuristic.
    task = TASKS["default"].changed(**SETTINGS)
    sjf = play(task, expert("sjf", task), split="val", episodes=episodes)
    print(f"mean completion time on {episodes} validation episodes")
    print(f"  MaskablePPO         {mean_jct_s(model, episodes):8,.0f} s")
    print(f"  shortest job first  {sjf.jct_s.mean():8,.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps")
    main(parser.parse_args().steps)
