"""PPO on a GPU with CUDA graphs and without: the same numbers, and how much time they save.

Run on a machine with an NVIDIA GPU, numba-cuda and torch: `PYTHONPATH=src python
benchmarks/gpu_graphs.py`; it takes about two minutes, half of it compiling. Without a GPU,
`NUMBA_ENABLE_CUDASIM=1` and `--toy` show that the same code runs.

The environments are those of `gpu_training.py` at load 1.0. *The same numbers*: learners with the
same seed, one with graphs and two without. Both of the latter differ too, since a GPU adds in any
order; what graphs change is to be judged by that. Differences are the length of the difference of
all weights, as a share of the way that they have gone in the update; every update begins for all
from where the first learner was, loaded as from a checkpoint. *Rates* are medians of whole updates
with two passes; parts are timed one by one, in updates of their own, with a wait for the GPU after
each.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
import warnings
from dataclasses import replace
from typing import Any

import torch

from gpu_training import LOADS, task
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.agents.tensors import ResidentBatch
from yardmaster.envs.gpu_batch import DrawnBatch

SHAPES = ((4_096, 64, 32), (4_096, 64, 64), (65_536, 16, 4))
"""Environments, steps of each in an update, minibatches of a pass."""
PRECISIONS = ("float32", "bfloat16")
PARTS = {"rollout": "_collect", "advantages": "_judge", "update": "_learn"}
CLOSE = {"float32": 0.02, "bfloat16": 0.2}
"""Share of the way gone in an update by which graphs may change where weights are."""


class Bench:
    """Environments of each size, opened once."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._batches: dict[int, ResidentBatch] = {}

    def learner(self, shape: tuple[int, int, int], precision: str, *, graphs: bool) -> PPO:
        """Return a fresh learner; always the same one."""
        size, steps, minibatches = shape
        if size not in self._batches:
            played = task(LOADS["load 1.0"], self.jobs)
            self._batches[size] = ResidentBatch(DrawnBatch(played.rows(), played, size))
        batch = self._batches[size]
        settings = PPOSettings(
            total_steps=10**9,
            steps_per_update=size * steps,
            epochs=2,
            minibatches=minibatches,
            target_kl=None,
            learning_rate=1e-3,
            precision=precision,
        )
        return PPO(batch, replace(settings, graphs=graphs), seed=0, device=batch.device.type)


def weights(learner: PPO) -> torch.Tensor:
    """Return all weights, in a row."""
    found: torch.Tensor = torch.nn.utils.parameters_to_vector(learner.network.parameters())
    return found.detach().clone().double()


def wait() -> None:
    """Let the GPU finish."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def tidy() -> None:
    """Give back the memory of learners that are gone."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def compare(bench: Bench, shape: tuple[int, int, int], precision: str, updates: int) -> bool:
    """Print how far learners with graphs and without are apart; return whether they agree."""
    begins: list[Any] = []
    places: list[torch.Tensor] = []
    runs: dict[str, list[tuple[torch.Tensor, dict[str, float]]]] = {}
    for name, graphs in (("off", False), ("off again", False), ("on", True)):
        learner = bench.learner(shape, precision, graphs=graphs)
        runs[name] = []
        for turn in range(updates):
            if name == "off":
                begins.append(learner.state())
                places.append(weights(learner))
            elif turn:
                learner.load(begins[turn])
            scalars = learner.update()
            runs[name].append((weights(learner), scalars))
        replays = learner.replays
        if replays is not None and torch.cuda.is_available() and not replays.is_capturing:
            print(f"{precision}: a capture failed, graphs are off")
        del learner
        tidy()
    shares: dict[str, list[float]] = {"off again": [], "on": []}
    for turn, (place, (gone, losses)) in enumerate(zip(places, runs["off"], strict=True)):
        for name, found in shares.items():
            apart, told = runs[name][turn][0] - gone, runs[name][turn][1]
            found.append(float(apart.norm() / (gone - place).norm()))
            words = ", ".join(
                f"{key} {told[key]:+.6f} (off: {losses[key]:+.6f})"
                for key in ("policy_loss", "value_loss")
            )
            print(
                f"{precision:<9} update {turn + 1}, {name:<9} against off: {found[-1]:.2e} of the"
                f" way, largest difference {apart.abs().max():.2e}; {words}"
            )
    is_close = max(shares["on"]) <= max(CLOSE[precision], 3.0 * max(shares["off again"]))
    print(f"{precision:<9} {'the same' if is_close else 'NOT THE SAME'}", flush=True)
    return is_close


def rates(learner: PPO, updates: int) -> tuple[float, float]:
    """Return the median of steps a second, and the seconds of the first two updates."""
    begun = time.perf_counter()
    for _ in range(2):  # graphs are captured in these
        learner.update()
    wait()
    first_s = time.perf_counter() - begun
    found = []
    for _ in range(updates):
        begun = time.perf_counter()
        scalars = learner.update()
        wait()
        found.append(scalars["steps"] / (time.perf_counter() - begun))
    return statistics.median(found), first_s


def parts(learner: PPO, updates: int) -> dict[str, float]:
    """Return the median milliseconds of each part of an update."""
    spent: dict[str, list[float]] = {name: [] for name in PARTS}

    def timed(name: str, function: Any) -> Any:
        def run(*given: Any) -> Any:
            wait()
            begun = time.perf_counter()
            result = function(*given)
            wait()
            spent[name].append(1e3 * (time.perf_counter() - begun))
            return result

        return run

    for name, method in PARTS.items():
        setattr(learner, method, timed(name, getattr(learner, method)))
    for _ in range(updates):
        learner.update()
    for method in PARTS.values():
        delattr(learner, method)
    return {name: statistics.median(found) for name, found in spent.items()}


def waits(learner: PPO) -> int:
    """Return how often torch waits for the GPU in an update; Numba's waits are not counted."""
    if not torch.cuda.is_available():
        return 0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            learner.update()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(one.message) for one in found)


def measure(bench: Bench, shape: tuple[int, int, int], precision: str, updates: int) -> None:
    """Print a line of the table for graphs off and on."""
    found = {}
    for graphs in (False, True):
        learner = bench.learner(shape, precision, graphs=graphs)
        rate, first_s = rates(learner, updates)
        spent = parts(learner, max(updates // 2, 1))
        found[graphs] = rate
        kept = 0 if learner.replays is None else learner.replays.count
        gain = f"{rate / found[False]:.2f}" if graphs else ""
        cells = [
            *(f"{number:,}" for number in shape),
            *(precision, "on" if graphs else "off", f"{rate:.3g}", gain),
            *(f"{value:.1f}" for value in spent.values()),
            *(str(waits(learner)), str(kept), f"{first_s:.1f}"),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
        del learner
        tidy()


def main() -> int:
    """Compare, measure, print; return 1 if graphs change what is learned."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=256)
    parser.add_argument("--toy", action="store_true", help="little of everything")
    asked = parser.parse_args()
    shapes = ((32, 2, 2),) if asked.toy else SHAPES
    jobs, updates = (8, 1) if asked.toy else (asked.jobs, asked.updates)
    bench = Bench(jobs)
    compared = shapes[0] if asked.toy else (4_096, 32, 16)
    agree = [compare(bench, compared, one, 1 if asked.toy else 3) for one in PRECISIONS]
    print(
        "| envs | steps | minibatches | precision | graphs | steps/s | gain | rollout ms"
        " | advantages ms | update ms | waits | graphs kept | first 2 updates s |"
    )
    print("|" + " --- |" * 13)
    for shape in shapes:
        for precision in PRECISIONS:
            measure(bench, shape, precision, updates)
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
