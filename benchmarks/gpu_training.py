"""Environments and PPO on a GPU: decisions per second, and that they are those of the CPU.

Run on a machine with an NVIDIA GPU, numba-cuda and torch: `PYTHONPATH=src python
benchmarks/gpu_training.py`. Without a GPU, `NUMBA_ENABLE_CUDASIM=1` and `--sizes 32 --steps 4` show
that the same code runs.

The environments have a window of 64 jobs, 64 GPUs in 8 nodes and gangs of up to 16 GPUs; jobs are
drawn on the GPU. *Full window*: more work comes than the cluster can do, so that nearly always 64
jobs or more wait. Rates of the environments are with actions drawn at random among the legal ones,
also on the GPU. PPO's are of whole updates: collecting, judging, two passes of learning.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from yardmaster.engine.gpu import lanes
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.gpu_batch import DrawnBatch, KeptBatch
from yardmaster.envs.scenes import Scene, SceneTask
from yardmaster.envs.task import Task
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

SIZES = {1: 0.55, 2: 0.15, 4: 0.12, 8: 0.14, 16: 0.04}
LOADS = {"load 1.0": (1.0, 1.0), "full window": (4.0, 4.0)}
TOLERANCE = 1e-6
"""Observations of GPU and CPU may differ by this much: a GPU multiplies and adds in one go."""


def task(load: tuple[float, float], jobs: int) -> SceneTask:
    """Return the task that is measured."""
    scene = Scene(name="gangs", cluster=Cluster.of("8x V100:8"), sizes=SIZES, load=load)
    return SceneTask(scenes=(scene,), jobs=jobs, sight=Sight(window_order="sjf"))


def check(steps: int, size: int) -> str:
    """Play the same episodes on both, with the same actions; return what was compared.

    Raises:
        AssertionError: if masks, rewards, ends or observations differ.
    """
    dice = np.random.default_rng(7)
    trace = Workload.of(
        submit_s=np.sort(np.floor(dice.uniform(0, 40_000, 600))),
        duration_s=np.ceil(dice.lognormal(6, 1.5, 600)),
        gpus=dice.choice([1, 1, 2, 4, 8, 16], 600),
    )
    played = Task(
        workload=trace,
        cluster=Cluster.of("4x V100:8"),
        jobs=64,
        episodes=32,
        sight=Sight(window=16),
    )
    episodes = Episodes(played, "train")
    here, there = EnvironmentBatch(episodes, size), KeptBatch(episodes, size)
    here.reset(3)
    there.reset(3)
    worst = 0.0
    for _ in range(steps):
        seen = lanes.by_environment(there.observations.copy_to_host())
        np.testing.assert_allclose(seen, here.observations, atol=TOLERANCE)
        worst = max(worst, float(np.abs(seen - here.observations).max()))
        legal = lanes.by_environment(there.legal.copy_to_host())
        np.testing.assert_array_equal(legal.astype(bool), here.masks)
        np.testing.assert_array_equal(there.episode_numbers.copy_to_host(), here.episode_numbers)
        actions = np.where(here.masks, dice.random(here.masks.shape), -1.0).argmax(axis=1)
        here.step(actions)
        there.step(there.to_gpu(actions))
        np.testing.assert_allclose(there.rewards.copy_to_host(), here.rewards, rtol=1e-5, atol=1e-6)
        ended = here.terminated + 2 * here.truncated
        np.testing.assert_array_equal(there.ends.copy_to_host(), ended)
    return f"{steps} steps of {size} environments: the same decisions, worst difference {worst:.2g}"


def environment_rate(name: str, size: int, steps: int, jobs: int) -> str:
    """Return the rate of the environments alone."""
    played = task(LOADS[name], jobs)
    batch = DrawnBatch(played.rows(), played, size)
    begun = time.perf_counter()
    batch.reset(0)
    batch.step_at_random(0, 0)
    batch.ends.copy_to_host()
    first_s = time.perf_counter() - begun
    for moment in range(2 * jobs):
        batch.step_at_random(0, moment + 1)
    batch.ends.copy_to_host()
    rates = []
    for part in range(5):
        begun = time.perf_counter()
        for moment in range(steps):
            batch.step_at_random(1, part * steps + moment)
        batch.ends.copy_to_host()
        rates.append(size * steps / (time.perf_counter() - begun))
    waiting = lanes.by_environment(batch.book.copy_to_host())[:, 0]
    return (
        f"{name:<12} {size:>8,} environments: {statistics.median(rates):.3g} steps/s"
        f" ({min(rates):.3g} to {max(rates):.3g}); {waiting.mean():.0f} jobs wait;"
        f" first step {first_s:.1f} s"
    )


def learning_rate(size: int, jobs: int, **changes: Any) -> str:
    """Return the rate of PPO, collecting and learning."""
    from yardmaster.agents.ppo import PPO, PPOSettings
    from yardmaster.agents.tensors import ResidentBatch

    played = task(LOADS["load 1.0"], jobs)
    batch = ResidentBatch(DrawnBatch(played.rows(), played, size))
    settings = PPOSettings(
        total_steps=10**9, epochs=2, target_kl=None, learning_rate=1e-3, **changes
    )
    begun = time.perf_counter()
    learner = PPO(batch, settings, seed=0, device=batch.device.type)
    learner.update()
    first_s = time.perf_counter() - begun
    rates = []
    for _ in range(6):
        begun = time.perf_counter()
        scalars = learner.update()
        rates.append(scalars["steps"] / (time.perf_counter() - begun))
    words = ", ".join(f"{name} {value}" for name, value in changes.items())
    return (
        f"PPO, {size:,} environments, {words}: {statistics.median(rates):.3g} steps/s with 2"
        f" passes; first update {first_s:.1f} s"
    )


def main() -> None:
    """Check, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[16_384, 65_536, 262_144, 524_288])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=256)
    parser.add_argument("--loads", nargs="+", choices=tuple(LOADS), default=list(LOADS))
    asked = parser.parse_args()
    print(check(min(asked.steps, 200), 32 if asked.sizes[0] < 1024 else 2048), flush=True)
    for name in asked.loads:
        for size in asked.sizes:
            print(environment_rate(name, size, asked.steps, asked.jobs), flush=True)
    for size in asked.sizes[:2]:
        for precision in ("float32", "bfloat16"):
            for minibatches in (4, 8):
                print(
                    learning_rate(
                        *(size, asked.jobs),
                        steps_per_update=size * (16 if asked.steps > 10 else 2),
                        minibatches=minibatches,
                        precision=precision,
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
