"""What counting by decisions does to a policy that may wait at will.

`python experiments/discount_by_time.py` (six minutes): PPO on M/M/16 at load 0.95, rewarded for
short waits, with `noop = "always"`; γ counted by decisions or by time, and λ too. Nothing is ever
gained by waiting here, since every job fits wherever a GPU is free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from yardmaster.agents.learners import greedy
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.batch import open_batch
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import Played, play
from yardmaster.envs.task import Task

STEPS = 6_000_000
PARTS = 6
"""Looks at the policy during its training."""
SCHEDULED_STEPS = 6_000_000
"""Decisions that learning rate and entropy bonus fall over."""
EPISODES = 64
TASK = Task(
    workload="mm",
    cluster="2x V100:8",
    load=0.95,
    reward="wait",
    measured_unit=False,
    sight=Sight(window_order="sjf", noop="always"),
)


def main() -> None:
    """Train each way and print how the greedy policy does."""
    batch = open_batch(TASK, size=256)
    gap_s = float(np.mean(np.diff(batch.episodes.workload(0).submit_s)))
    player: Any = expert("sjf", TASK)
    tell("sjf", 0, play(TASK, player, split="val", episodes=EPISODES))
    ways = {"neither": (None, None), "γ": (gap_s, None), "γ and λ": (gap_s, gap_s)}
    for name, (discount_per_s, lambda_per_s) in ways.items():
        settings = PPOSettings(
            total_steps=SCHEDULED_STEPS,
            steps_per_update=16_384,
            epochs=2,
            minibatches=4,
            learning_rate=2e-3,
            lr_end=0.05,
            gamma=0.998,
            discount_per_s=discount_per_s,
            gae_lambda=0.97,
            lambda_per_s=lambda_per_s,
            entropy=0.003,
            entropy_end=0.0,
            target_kl=None,
        )
        learner = PPO(batch, settings, seed=0)
        for part in range(PARTS):
            while learner.steps < (part + 1) * STEPS // PARTS:
                learner.update()
            played = play(TASK, greedy(learner.network), split="val", episodes=EPISODES)
            tell(f"PPO, by time: {name}", learner.steps, played)


def tell(name: str, steps: int, played: Played) -> None:
    """Print how somebody did on the validation episodes."""
    print(
        f"{name:<24} {steps:>10,} decisions: mean JCT {played.jct_s.mean():,.0f} s,"
        f" {played.noops.mean():.0f} no-ops an episode",
        flush=True,
    )


if __name__ == "__main__":
    main()
