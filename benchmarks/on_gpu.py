"""The same core on a GPU: thousands of simulations, one per thread, checked against the CPU.

Run on a machine with an NVIDIA GPU and numba-cuda: `PYTHONPATH=src python benchmarks/on_gpu.py`.
Every kernel of the core becomes a CUDA device function unchanged. The states of all simulations
stand side by side, simulation-minor, so that neighbouring threads read neighbouring words.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda still asks for what NumPy 2.5 removed
    setattr(np, "row_stack", np.vstack)  # noqa: B010  (unknown to its type stubs)

from yardmaster.engine import compilation
from yardmaster.engine import state as at
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.setup import Options, Simulation, lay_out
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

JOBS = 64
CLUSTER = Cluster.of("8x V100:8")


def simulation(seed: int, discipline: Discipline) -> Simulation:
    """Return the state of one small simulation: 64 jobs of fixed sizes, random times."""
    dice = np.random.default_rng(seed)
    # The same sizes in the same rows everywhere: equal shapes make equal layouts.
    gpus = np.resize([1, 1, 2, 8, 1, 4, 16, 1], JOBS)
    workload = Workload.of(
        submit_s=np.sort(np.floor(dice.uniform(0, 4000, JOBS))),
        duration_s=np.ceil(dice.lognormal(6, 1.5, JOBS)),
        gpus=gpus,
    )
    keys = OrderKeys.fixed(workload.duration_s)
    options = Options(discipline, Placement.PACK, None)
    return lay_out(workload, CLUSTER, shapes_of(workload, CLUSTER), keys, options)


def cuda_kernel() -> Any:
    """Turn the core into device functions and return a kernel that replays one per thread."""
    cuda: Any = importlib.import_module("numba.cuda")
    compilation.replace_kernels(lambda function, _: cuda.jit(device=True)(function))
    from yardmaster.engine.core import events

    run = events.run

    def replay_all(ints: Any, reals: Any) -> None:
        number = cuda.grid(1)
        if number < ints.shape[1]:
            run(ints[:, number], reals[:, number], math.inf)

    return cuda.jit(replay_all)


def main() -> None:
    """Replay many simulations on the GPU, compare some with the CPU, print the rate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=65_536)
    count = parser.parse_args().simulations
    from yardmaster.engine.core import events

    plain_replay: Any = events.run
    cuda: Any = importlib.import_module("numba.cuda")
    distinct, checks = 512, 64
    cases = {}
    for discipline in (Discipline.STRICT, Discipline.SKIP, Discipline.EASY):
        samples = [simulation(seed, discipline) for seed in range(distinct)]
        starts = []
        for sample in samples[:checks]:
            ints, reals = sample.ints.copy(), sample.reals.copy()
            plain_replay(ints.data, reals.data, math.inf)
            starts.append((ints, reals))
        cases[discipline] = (samples, starts)
    kernel = cuda_kernel()
    for discipline, (samples, expected) in cases.items():
        number = np.arange(count) % distinct
        ints = np.ascontiguousarray(np.stack([s.ints for s in samples], axis=1)[:, number])
        reals = np.ascontiguousarray(np.stack([s.reals for s in samples], axis=1)[:, number])
        blocks = -(-count // 128)
        durations = []
        for _ in range(4):
            on_device = cuda.to_device(ints), cuda.to_device(reals)
            cuda.synchronize()
            begun = time.perf_counter()
            kernel[blocks, 128](*on_device)
            cuda.synchronize()
            durations.append(time.perf_counter() - begun)
        found_ints, found_reals = on_device[0].copy_to_host(), on_device[1].copy_to_host()
        for column, (want_ints, want_reals) in enumerate(expected):
            segments = int(want_ints[at.SEGMENTS])
            np.testing.assert_equal((segments, found_ints[at.SEGMENTS, column]), (JOBS, JOBS))
            np.testing.assert_array_equal(found_ints[:, column], want_ints)
            np.testing.assert_array_equal(found_reals[:, column], want_reals)
        best = min(durations[1:])
        print(
            f"{discipline.name:<7} {count:,} simulations × {JOBS} jobs: {best * 1e3:.1f} ms,"
            f" {count * JOBS / best:.3g} jobs/s; first call {durations[0]:.1f} s;"
            f" {checks} states identical to the CPU's in every integer and real"
        )


if __name__ == "__main__":
    main()
