"""Trains the choosers of the study, many at a time.

    python experiments/meta_training.py inputs
    python experiments/meta_training.py train OUT [WORD]

The first draws the episodes, the second trains all, or those whose name has the word. Training
needs NumPy, Numba and torch alone, so it can run on a bare machine with many cores. What is
finished is not made again. The best network by its gap on the validation episodes is written as a
chooser, with the curve beside it. `meta_results.py` judges them on jobs that no training saw.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

INPUTS = Path("runs/meta-inputs")
EVALUATIONS = 16
"""Looks at the validation episodes during a training."""
SEEDS = 5
OBJECTIVES = ("jct", "p95", "mixed")
TASKS = {"rlmetadqn": "regimes", "gangs": "hard-and-drifting"}
"""Study → its task; `gangs` is the hard and the drifting families together."""
_COMMON = {"gradient_steps": 32, "batch_size": 512, "learning_rate": 7e-4}
SETTINGS: dict[str, dict[str, Any]] = {
    "rlmetadqn": _COMMON | {"gamma": 0.995, "n_step": 20, "hold": 8.0},
    "gangs": _COMMON
    | {"gamma": 0.99, "n_step": 10, "hold": 4.0, "network": {"hidden": (128, 128), "dim": 32}},
}
"""Chosen by trying a dozen on the validation episodes, one seed each."""
EVERY_S = {
    "rlmetadqn": dict.fromkeys(OBJECTIVES, 180.0),
    "gangs": {"jct": 900.0, "p95": 1800.0, "mixed": 1800.0},
}
STEPS = {
    "rlmetadqn": dict.fromkeys(OBJECTIVES, 220_000),
    "gangs": dict.fromkeys(OBJECTIVES, 1_750_000),
}
TASK_CHANGES: dict[tuple[str, str], dict[str, Any]] = {
    ("rlmetadqn", "p95"): {"tail": (0.85, 1.1)},
    ("gangs", "mixed"): {
        "reward": {"in_system": -0.45, "tail": -0.45, "late": -0.1, "energy": -0.05}
    },
}
"""Where a task is not played as it is called."""
PPO_STEPS = {("rlmetadqn", "p95"): 400_000, ("gangs", "jct"): 2_500_000}
PPO_SETTINGS = {"gamma": 0.995, "gae_lambda": 0.98, "learning_rate": 1e-3, "entropy": 0.01}


def trainings() -> list[dict[str, Any]]:
    """Return every training of the study."""
    found: list[dict[str, Any]] = []
    for study, every_s in EVERY_S.items():
        for objective in OBJECTIVES:
            task: dict[str, Any] = {"reward": objective, "every_s": every_s[objective]}
            task |= TASK_CHANGES.get((study, objective), {})
            job = {"study": study, "metric": f"{objective}_gap", "task": task}
            dqn = {"learner": "meta-dqn", "settings": SETTINGS[study]}
            found += [
                job
                | dqn
                | {"name": f"{study}-{objective}-{seed}", "seed": seed}
                | {"steps": STEPS[study][objective]}
                for seed in range(SEEDS)
            ]
            if (study, objective) in PPO_STEPS:
                network = {"network": SETTINGS[study].get("network", {})}
                ppo = {"learner": "ppo", "seed": 0, "settings": PPO_SETTINGS | network}
                steps = {"steps": PPO_STEPS[study, objective]}
                found.append(job | ppo | steps | {"name": f"{study}-{objective}-ppo"})
    return found


def draw_inputs() -> None:
    """Draw the episodes; those that need the core for real clusters are left out of training."""
    from meta_inputs import write_inputs

    from yardmaster.envs.choosing.episodes import ChoosingEpisodes
    from yardmaster.envs.choosing.task import CHOOSING_TASKS
    from yardmaster.schedulers.meta.menu import prepare_choice

    for study, name in TASKS.items():
        task = CHOOSING_TASKS[name]
        plain = tuple(
            regime.name
            for regime in ChoosingEpisodes(task).regimes
            if not prepare_choice(regime.jobs(1), regime.machines(), task.sight).is_real
        )
        each = {"train": 20, "val": 4} if study == "rlmetadqn" else {"train": 16, "val": 4}
        sets: Any = {split: count * len(plain) for split, count in each.items()}
        write_inputs(INPUTS / f"{study}.pickle.gz", task.changed(regimes=plain), sets)


def train_one(job: dict[str, Any], out: Path) -> str:
    """Carry out one training."""
    import torch
    from meta_inputs import KeptEpisodes, read_inputs

    from yardmaster.agents.export import chooser_of
    from yardmaster.agents.learners import LEARNERS, greedy
    from yardmaster.agents.networks import NetworkSettings
    from yardmaster.envs.choosing.batch import ChoosingBatch
    from yardmaster.envs.choosing.task import CHOOSING_TASKS
    from yardmaster.schedulers.meta.chooser_file import write_chooser

    torch.set_num_threads(1)
    begun = time.monotonic()
    kept = read_inputs(INPUTS / f"{job['study']}.pickle.gz")
    counts = {split: sum(key[0] == split for key in kept["episodes"]) for split in ("train", "val")}
    task = CHOOSING_TASKS[TASKS[job["study"]]].changed(episodes=counts["train"], **job["task"])
    batch = ChoosingBatch(KeptEpisodes(task, "train", kept), 64)
    batch.reset(job["seed"])
    validation = KeptEpisodes(task, "val", kept)
    kind = LEARNERS[job["learner"]]
    network = {"arch": "regime", "hidden": (64, 64), "dim": 16, "noop_bias": 0.0}
    settings = job["settings"] | {
        "network": NetworkSettings(**(network | job["settings"].get("network", {})))
    }
    changed = dataclasses.replace(kind.preset("default"), total_steps=job["steps"], **settings)
    learner: Any = kind.build(batch, changed, job["seed"])
    curve: list[dict[str, float]] = []
    best = np.inf
    steps, due = 0, 0
    while steps < job["steps"]:
        steps += int(learner.update()["steps"])
        if steps >= due or steps >= job["steps"]:
            due += job["steps"] // EVALUATIONS
            found = evaluate(validation, counts["val"], greedy(learner.network))
            curve.append({"steps": steps, "seconds": time.monotonic() - begun} | found)
            if found[job["metric"]] < best:
                best = found[job["metric"]]
                about = {"steps": steps, job["metric"]: best, "training": job}
                file = chooser_of(learner.network, batch.task.sight, about)
                write_chooser(out / f"{job['name']}.npz", file)
    record = {"job": job, "best": best, "curve": curve}
    (out / f"{job['name']}.json").write_text(json.dumps(record))
    return f"{job['name']}: best {job['metric']} {best:.4f}, {curve[-1]['seconds']:.0f} s"


def evaluate(episodes: Any, count: int, choose: Any) -> dict[str, float]:
    """Return the mean scores of a policy over the validation episodes."""
    from yardmaster.envs.choosing.batch import SCORES, ChoosingBatch

    batch = ChoosingBatch(episodes, count, autoreset=False, draw=lambda rows: rows)
    batch.begin(np.arange(count))
    done = np.zeros(count, dtype=np.bool_)
    found = {name: np.zeros(count) for name in SCORES}
    while not done.all():
        batch.step(choose(batch))
        ended = (batch.terminated | batch.truncated) & ~done
        for name in SCORES:
            found[name][ended] = batch.scores[name][ended]
        done |= ended
    return {name: float(values.mean()) for name, values in found.items()}


def _carry_out(arguments: tuple[dict[str, Any], str]) -> str:
    job, out = arguments
    try:
        return train_one(job, Path(out))
    except Exception as error:  # noqa: BLE001  (the others go on)
        return f"{job['name']}: failed, {error!r}"


def train_all(out: Path, word: str) -> None:
    """Carry out all trainings that are not done yet, as many at a time as there are cores."""
    out.mkdir(parents=True, exist_ok=True)
    todo = [
        job
        for job in trainings()
        if word in job["name"] and not (out / f"{job['name']}.json").exists()
    ]
    workers = int(os.environ.get("WORKERS", os.cpu_count() or 1))
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(_carry_out, [(job, str(out)) for job in todo]):
            print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "inputs":
        draw_inputs()
    else:
        train_all(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
