"""Train Yardmaster's own PPO on many environments at once, and compare it with heuristics.

It learns on the compiled environments directly, without Gymnasium in between. The command
`yardmaster train` does the same with a progress line, checkpoints and evaluation.

python examples/train_with_our_ppo.py --steps 500000
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
import torch

from yardmaster.agents.masking import greedy
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.envs.batch import open_batch
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import Choose, play
from yardmaster.envs.protocol import Batch
from yardmaster.envs.task import TASKS

TASK = TASKS["default"].changed(cluster="2x V100:8", jobs=64, window=16, gpu_slots=16)


def player(learner: PPO) -> Choose:
    """Return the policy as a player: in every environment the legal action it likes best."""

    def choose(batch: Batch) -> npt.NDArray[np.int64]:
        with torch.no_grad():
            logits = learner.network.logits(torch.from_numpy(batch.observations))
            return greedy(logits, torch.from_numpy(batch.masks)).numpy()

    return choose


def main(steps: int, episodes: int = 20, environments: int = 64) -> None:
    """Train for so many steps, then compare."""
    torch.set_num_threads(1)  # networks this small are slower on several
    batch = open_batch(TASK, size=environments)
    settings = PPOSettings(
        total_steps=steps, steps_per_update=4096, network=NetworkSettings(arch="kernel")
    )
    learner = PPO(batch, settings, seed=0)
    while learner.steps < steps:
        scalars = learner.update()
        if "episode_return" in scalars:
            print(f"{learner.steps:9,} steps, return {scalars['episode_return']:7.3f}")

    print(f"mean completion time on {episodes} validation episodes")
    players: dict[str, Choose] = {
        "our PPO": player(learner),
        "sjf": expert("sjf", TASK),
        "fifo": expert("fifo", TASK),
    }
    for name, choose in players.items():
        played = play(TASK, choose, split="val", episodes=episodes)
        print(f"  {name:8s}{played.jct_s.mean():8,.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500_000, help="environment steps")
    main(parser.parse_args().steps)
