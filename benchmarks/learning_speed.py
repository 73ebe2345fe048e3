"""How quickly PPO learns beside sb3-contrib's MaskablePPO, and how long one decision takes.

`python benchmarks/learning_speed.py` (three minutes). Both learn on the same environment
(`yardmaster/PickJob-v0`, task `default`, 64 environments) with networks of the same size, on one
thread. *Same numbers* means rollouts of 8,192 steps, minibatches of 1,024 and 4 passes for both.
All episodes are laid out before times count, as they are after the first minute of a training.
A decision is what a deployed policy computes from an observation: the compiled forward pass, and
the choice of the best legal action.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch

from yardmaster.agents.export import policy_of
from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.engine.picking import compilation
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.batch import EnvironmentBatch, open_batch
from yardmaster.envs.task import TASKS
from yardmaster.schedulers.learned.packing import pack

ENVIRONMENTS = 64
ROLLOUT = 8_192
ROUNDS = 7
HIDDEN = (64, 64)
TASK = TASKS["default"].changed(episodes=8)
"""With few episodes: every one of the other's environments lays out its own."""


def theirs(*, batch_size: int, n_epochs: int) -> Callable[[], object]:
    """Return one update of MaskablePPO."""
    import gymnasium
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    def made() -> Any:
        env = gymnasium.make("yardmaster.envs.registration:yardmaster/PickJob-v0", task=TASK)
        _lay_out(env.unwrapped.batch)  # type: ignore[attr-defined]
        return env

    learner = MaskablePPO(
        "MlpPolicy",
        DummyVecEnv([made] * ENVIRONMENTS),
        policy_kwargs={"net_arch": list(HIDDEN)},
        n_steps=ROLLOUT // ENVIRONMENTS,
        device="cpu",
        seed=0,
        batch_size=batch_size,
        n_epochs=n_epochs,
    )
    return lambda: learner.learn(ROLLOUT, reset_num_timesteps=False)


def ours(arch: str) -> Callable[[], object]:
    """Return one update of our PPO."""
    network = NetworkSettings(arch=arch, hidden=HIDDEN)
    settings = PPOSettings(target_kl=None, epochs=4, minibatches=8, network=network)
    batch = open_batch(TASK, size=ENVIRONMENTS)
    _lay_out(batch)
    return PPO(batch, settings, 0).update


def _lay_out(batch: EnvironmentBatch) -> None:
    """Lay out every episode."""
    for number in batch.episodes.numbers.tolist():
        batch.episodes.prepared(number)


def compare_learners() -> None:
    """Time updates in turn, so that all meet the same disturbances."""
    updates = {
        "MaskablePPO, MLP 64×64, same numbers": theirs(batch_size=1024, n_epochs=4),
        "MaskablePPO, MLP 64×64, its defaults (64, 10 passes)": theirs(batch_size=64, n_epochs=10),
        "ours, MLP 64×64, same numbers": ours("mlp"),
        "ours, kernel 64×64, same numbers": ours("kernel"),
    }
    for update in updates.values():
        update()
    found: dict[str, list[float]] = {name: [] for name in updates}
    for _ in range(ROUNDS):
        for name, update in updates.items():
            begun = time.process_time()
            update()
            found[name].append(ROLLOUT / (time.process_time() - begun))
    for name, rates in found.items():
        print(f"{name:<55} {median(rates):>9,.0f} steps per CPU second")


def time_decisions() -> None:
    """Time the compiled forward pass for a window of 64 jobs."""
    sight = Sight()
    layout = sight.layout()
    score_one = compilation.compiled().score_one
    dice = np.random.default_rng(0)
    view = dice.random(layout.length, dtype=np.float32)
    scores = np.zeros(layout.actions, dtype=np.float32)
    for hidden in ((32, 32), (64, 64)):
        network = actor_critic(NetworkSettings(hidden=hidden), layout, 0)
        packed = pack(policy_of(network, layout, sight.to_table(), {}))
        scratch = packed.scratch()
        for legal_jobs in (8, 64):
            legal = np.zeros(layout.actions, dtype=np.int8)
            legal[:legal_jobs] = 1

            def decide(packed: Any = packed, legal: Any = legal, scratch: Any = scratch) -> None:
                score_one(packed.net, packed.weights, view, legal, scores, scratch)
                scores.argmax()

            took = _microseconds(decide)
            print(f"kernel {hidden}, {legal_jobs:2} of 64 jobs can start: {took:5.1f} µs")


def _microseconds(act: Callable[[], None]) -> float:
    act()
    rounds = []
    for _ in range(30):
        begun = time.perf_counter()
        for _ in range(200):
            act()
        rounds.append((time.perf_counter() - begun) / 200)
    return 1e6 * median(rounds)


if __name__ == "__main__":
    torch.set_num_threads(1)
    compare_learners()
    time_decisions()
