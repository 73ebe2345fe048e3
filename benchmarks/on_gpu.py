"""The same core on a GPU: thousands of simulations, one per thread, checked against the CPU.

Run on a machine with an NVIDIA GPU and numba-cuda: `PYTHONPATH=src python benchmarks/on_gpu.py`.
Every kernel of the core becomes a CUDA device function unchanged. The states of all simulations
stand side by side, simulation-minor, so that neighbouring threads read neighbouring words.

`--real` simulates a cluster of two GPU types with checkpoints, outages and preemption instead of
equal GPUs. Without a GPU, `NUMBA_ENABLE_CUDASIM=1` and `--simulations 2 --checks 2` show that the
same code runs.
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
from yardmaster.engine.conditions import conditions_of
from yardmaster.engine.core import events
from yardmaster.engine.layout import Simulation
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.setup import lay_out
from yardmaster.engine.state import Discipline, Placement, Status
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Outage, Site
from yardmaster.model.workload import Workload

cuda: Any = importlib.import_module("numba.cuda")

JOBS = 64
THREADS = 128
PLAIN = Cluster.of("8x V100:8")
REAL = Cluster.of("4x V100:8", "4x A100:8").under(
    Site(
        checkpoints=Checkpoints(every_s=600.0, save_s=10.0, restore_s=30.0),
        failures=Failures(
            outages=tuple(
                Outage(node, 500.0 + 700.0 * node, 1500.0 + 700.0 * node) for node in range(8)
            )
        ),
        quantum_s=300.0,
    )
)
DISCIPLINES = {
    False: (Discipline.STRICT, Discipline.SKIP, Discipline.EASY),
    True: (Discipline.EASY, Discipline.PREEMPTIVE),
}


def simulation(seed: int, discipline: Discipline, cluster: Cluster) -> Simulation:
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
    shapes = shapes_of(workload, cluster)
    conditions = conditions_of(workload, cluster, shapes)
    options = Options(discipline, Placement.PACK, None, conditions=conditions)
    laid_out = lay_out(workload, cluster, shapes, keys, options)
    if conditions is not None:  # a thread cannot ask for more room for segments
        for _ in range(2):
            laid_out.make_room()
    return laid_out


def cuda_kernel(*, is_real: bool) -> Any:
    """Turn the core into device functions and return a kernel that replays one per thread."""
    made = compilation.copies(
        lambda function, _: cuda.jit(device=True)(function), is_real=is_real, replaced={}
    )
    run = made["events.run"]

    def replay_all(ints: Any, reals: Any, status: Any) -> None:
        number = cuda.grid(1)
        if number < ints.shape[1]:
            status[number] = run(ints[:, number], reals[:, number], math.inf)

    return cuda.jit(replay_all)


def replayed(sample: Simulation) -> Simulation:
    """Return the state after the same simulation on the CPU."""
    end = Simulation(sample.ints.copy(), sample.reals.copy())
    run: Any = events.run
    np.testing.assert_equal(run(end.ints.data, end.reals.data, math.inf), Status.DONE)
    return end


def measure(samples: list[Simulation], kernel: Any, count: int, checks: int) -> tuple[float, float]:
    """Replay the samples again and again on the GPU; return seconds of the first and best run.

    Raises:
        AssertionError: if a state differs from the CPU's.
    """
    number = np.arange(count) % len(samples)
    ints = np.ascontiguousarray(np.stack([s.ints for s in samples], axis=1)[:, number])
    reals = np.ascontiguousarray(np.stack([s.reals for s in samples], axis=1)[:, number])
    durations = []
    for _ in range(4):
        on_device = cuda.to_device(ints), cuda.to_device(reals)
        status = cuda.to_device(np.full(count, -1, dtype=np.int64))
        cuda.synchronize()
        begun = time.perf_counter()
        kernel[-(-count // THREADS), THREADS](*on_device, status)
        cuda.synchronize()
        durations.append(time.perf_counter() - begun)
    np.testing.assert_array_equal(status.copy_to_host(), Status.DONE)
    found_ints, found_reals = on_device[0].copy_to_host(), on_device[1].copy_to_host()
    for column, sample in enumerate(samples[: min(checks, count)]):
        wanted = replayed(sample)
        # Work was done, and not by copying: every job has run at least once.
        np.testing.assert_array_less(JOBS - 1, int(wanted.ints[at.SEGMENTS]))
        np.testing.assert_array_equal(found_ints[:, column], wanted.ints)
        np.testing.assert_array_equal(found_reals[:, column], wanted.reals)
    return durations[0], min(durations[1:])


def main() -> None:
    """Replay many simulations on the GPU, compare some with the CPU, print the rate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=65_536)
    parser.add_argument("--checks", type=int, default=64, help="states compared with the CPU's")
    parser.add_argument("--real", action="store_true", help="two GPU types, outages, preemption")
    asked = parser.parse_args()
    kernel = cuda_kernel(is_real=asked.real)
    distinct = min(512, asked.simulations)
    for discipline in DISCIPLINES[asked.real]:
        cluster = REAL if asked.real else PLAIN
        samples = [simulation(seed, discipline, cluster) for seed in range(distinct)]
        first_s, best_s = measure(samples, kernel, asked.simulations, asked.checks)
        print(
            f"{discipline.name:<10} {asked.simulations:,} simulations × {JOBS} jobs:"
            f" {best_s * 1e3:.1f} ms, {asked.simulations * JOBS / best_s:.3g} jobs/s;"
            f" first call {first_s:.1f} s; {min(asked.checks, distinct)} states identical to the"
            " CPU's in every integer and real"
        )


if __name__ == "__main__":
    main()
