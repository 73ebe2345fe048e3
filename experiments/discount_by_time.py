"""What a discount of every decision does to a policy that may wait at will.

`python experiments/discount_by_time.py` (two minutes): PPO on M/M/16 at load 0.95, rewarded for
short waits, with `noop = "always"`; discounted by decisions, and by time. Nothing is ever gained by
waiting here, since every job fits wherever a GPU is free.
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

STEPS = 3_000_000
PARTS = 3
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
    """Train both ways and print how the greedy policy does."""
    batch = open_batch(TASK, size=256)
    gap_s = float(np.mean(np.diff(batch.episodes.workload(0).submit_s)))
    player: Any = expert("sjf", TASK)
    tell("sjf", 0, play(TASK, player, split="val", episodes=EPISODES))
    for name, per_s in (("a decision", None), (f"{gap_s:.0f} s", gap_s)):
        settings = PPOSettings(
            total_steps=SCHEDULED_STEPS,
            steps_per_update=16_384,
            epochs=2,
            minibatches=4,
            learning_rate=2e-3,
            lr_end=0.05,
            gamma=0.998,
            discount_per_s=per_s,
            gae_lambda=0.97,
            entropy=0.003,
            entropy_end=0.0,
            target_kl=None,
        )
        learner = PPO(batch, settings, seed=0)
        for part in range(PARTS):
            while learner.steps < (part + 1) * STEPS // PARTS:
                learner.update()
            played = play(TASK, greedy(learner.network), split="val", episodes=EPISODES)
            tell(f"PPO, 0.998 {name}", learner.steps, played)


def tell(name: str, steps: int, played: Played) -> None:
    """Print how somebody did on the validation episodes."""
    print(
        f"{name:<24} {steps:>10,} decisions: mean JCT {played.jct_s.mean():,.0f} s,"
        f" {played.noops.mean():.0f} no-ops an episode",
        flush=True,
    )


if __name__ == "__main__":
    main()
