"""Train RLlib's PPO to pick jobs, with masks. Needs `pip install "ray[rllib]"`.

RLlib hands a network the observation alone, so a wrapper puts the mask into it, and RLlib's own
masking module takes it out again.

python examples/train_with_rllib.py --iterations 20
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

# The prefix makes every worker process of RLlib import, and so register, the environment.
NAME = "yardmaster.envs.registration:yardmaster/PickJob-v0"
SETTINGS: dict[str, Any] = {"cluster": "2x V100:8", "jobs": 64, "window": 16, "gpu_slots": 16}


class WithMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations as a dictionary of the numbers and the mask."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        shape = (spaces.flatdim(env.action_space),)
        mask = spaces.Box(0.0, 1.0, shape, np.float32)
        self.observation_space = spaces.Dict(
            {"observations": env.observation_space, "action_mask": mask}
        )

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(**kwargs)
        return self._masked(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._masked(observation, info), reward, terminated, truncated, info

    @staticmethod
    def _masked(observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        return {"observations": observation, "action_mask": info["action_mask"].astype(np.float32)}


def main(iterations: int) -> float:
    """Train for so many iterations; return the mean return of the last one's episodes."""
    register_env("pick-job", lambda _: WithMask(gymnasium.make(NAME, **SETTINGS)))
    config = (
        PPOConfig()
        .environment("pick-job")
        .env_runners(num_env_runners=0)  # more of them: more worker processes
        .training(train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=4, gamma=1.0)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    mean = float("nan")
    for number in range(iterations):
        mean = float(algorithm.train()["env_runners"]["episode_return_mean"])
        print(f"iteration {number + 1}: mean return {mean:.3f}")
    algorithm.stop()
    return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20, help="of 2048 environment steps")
    main(parser.parse_args().iterations)
