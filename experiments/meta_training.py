"""Trains the choosers of the study, many at a time.

    python experiments/meta_training.py inputs
    python experiments/meta_training.py standards
    python experiments/meta_training.py train OUT [WORD]
    python experiments/meta_training.py train OUT WORD --device cuda --envs 4096 --limit-s 500

The first draws the episodes, the second finds what each is measured by (else every training finds
it again), the third trains all, or those whose name has the word. Training needs NumPy, Numba and
torch alone (with `--device cuda` numba-cuda too), so it can run on a bare machine with many cores.
What is finished is not made again. The best network by its gap on the validation episodes is
written as a chooser, with the curve beside it. With a time limit, schedules are stretched over what
will be done by then. `meta_results.py` judges choosers on jobs that no training saw.
"""

from __future__ import annotations

import argparse
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
FAILED = ": failed, "
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
    | {"gamma": 0.99, "n_step": 10, "hold": 4.0, "lr_end": 0.05}
    | {"network": {"hidden": (128, 128), "dim": 32}},
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
PPO_STEPS = {("rlmetadqn", "p95"): 400_000} | {
    ("gangs", objective): 4_000_000 for objective in OBJECTIVES
}
PPO_SEEDS = {"rlmetadqn": 1, "gangs": SEEDS}
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
                ppo: dict[str, Any] = {"learner": "ppo", "settings": PPO_SETTINGS | network}
                ppo |= {"steps": PPO_STEPS[study, objective]}
                found += [
                    job | ppo | {"name": f"{study}-{objective}-ppo{seed or ''}", "seed": seed}
                    for seed in range(PPO_SEEDS[study])
                ]
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


def find_standards() -> None:
    """Find what the episodes are measured by, for every objective."""
    from meta_inputs import write_standards

    from yardmaster.envs.choosing.task import CHOOSING_TASKS

    for study, name in TASKS.items():
        tasks = {
            job["metric"]: CHOOSING_TASKS[name].changed(**job["task"])
            for job in trainings()
            if job["study"] == study
        }
        write_standards(INPUTS / f"{study}.pickle.gz", list(tasks.values()))


@dataclasses.dataclass(frozen=True)
class How:
    """Where and for how long to train."""

    device: str = "cpu"
    envs: int = 64
    steps: int = 0
    """Environment steps; 0: as the study says."""
    limit_s: float = 0.0
    """Seconds after which a training, with all it takes to begin, comes to its end; 0: never."""
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the learner that are changed."""


class Clock:
    """How much of a training is done: by steps, or by time if that is shorter."""

    def __init__(self, steps: int, limit_s: float) -> None:
        self.begun = time.monotonic()
        self.steps, self._limit_s = steps, limit_s or np.inf
        self._ready_s = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the training was begun."""
        return time.monotonic() - self.begun

    def ready(self) -> None:
        """Note that all is laid out and compiled."""
        self._ready_s = self.seconds

    def done(self, steps: int) -> float:
        """Return the share that is done after so many steps."""
        by_time = (self.seconds - self._ready_s) / max(self._limit_s - self._ready_s, 1.0)
        return max(steps / self.steps, by_time)


def open_for(how: How, episodes: Any) -> Any:
    """Open the environments of a training."""
    if how.device == "cpu":
        from yardmaster.envs.choosing.batch import ChoosingBatch

        return ChoosingBatch(episodes, how.envs)
    from yardmaster.agents.tensors import ResidentBatch
    from yardmaster.envs.choosing.gpu_batch import ChoosingGpuBatch

    return ResidentBatch(ChoosingGpuBatch(episodes, how.envs))


def settings_for(job: dict[str, Any], how: How) -> Any:
    """Return the settings of a training's learner."""
    from yardmaster.agents.learners import LEARNERS
    from yardmaster.agents.networks import NetworkSettings

    network: dict[str, Any] = {"arch": "regime", "hidden": (64, 64), "dim": 16, "noop_bias": 0.0}
    network |= job["settings"].get("network", {})
    preset = LEARNERS[job["learner"]].preset("default")
    settings = job["settings"] | {"total_steps": job["steps"]}
    if how.device != "cpu":
        # Of thousands of environments each must still be followed for some decisions.
        many = {"steps_per_update": 32 * how.envs}
        if job["learner"] != "ppo":
            many = {
                "steps_per_update": how.envs,
                "memory_size": max(preset.memory_size, 256 * how.envs),
                "warmup_steps": max(preset.warmup_steps, 16 * how.envs),
            }
        settings |= many
    settings |= how.settings | {"network": NetworkSettings(**network)}
    return dataclasses.replace(preset, **settings)


def train_one(job: dict[str, Any], out: Path, how: How = How()) -> str:  # noqa: B008  (frozen)
    """Carry out one training."""
    import torch
    from meta_inputs import KeptEpisodes, read_inputs

    from yardmaster.agents.learners import LEARNERS, greedy
    from yardmaster.envs.choosing.task import CHOOSING_TASKS

    torch.set_num_threads(1)
    job = job | {"steps": how.steps or job["steps"]}
    clock = Clock(job["steps"], how.limit_s)
    kept = read_inputs(INPUTS / f"{job['study']}.pickle.gz")
    counts = {split: sum(key[0] == split for key in kept["episodes"]) for split in ("train", "val")}
    task = CHOOSING_TASKS[TASKS[job["study"]]].changed(episodes=counts["train"], **job["task"])
    batch = open_for(how, KeptEpisodes(task, "train", kept))
    validation = KeptEpisodes(task, "val", kept)
    settings = settings_for(job, how)
    learner: Any = LEARNERS[job["learner"]].build(batch, settings, job["seed"], device=how.device)
    curve: list[dict[str, float]] = []
    steps, due, done, best = 0, 0.0, 0.0, np.inf
    while done < 1.0:
        steps += int(learner.update()["steps"])
        if not curve:
            clock.ready()
        done = clock.done(steps)
        if done >= due or done >= 1.0:
            due += 1.0 / EVALUATIONS
            found = evaluate(validation, counts["val"], greedy(learner.network))
            curve.append({"steps": steps, "seconds": clock.seconds} | found)
            if found[job["metric"]] < best:
                best = found[job["metric"]]
                keep(out, job, learner.network, batch, {"steps": steps, job["metric"]: best})
        if how.limit_s and 0.0 < done < 1.0:
            total = min(job["steps"], max(int(steps / done), steps + 1))
            learner.settings = dataclasses.replace(learner.settings, total_steps=total)
    about = dataclasses.asdict(how)
    record = {"job": job, "how": about, "best": best, "steps": steps, "curve": curve}
    (out / f"{job['name']}.json").write_text(json.dumps(record))
    return (
        f"{job['name']}: best {job['metric']} {best:.4f}, {steps:,} steps,"
        f" {curve[-1]['seconds']:.0f} s"
    )


def keep(out: Path, job: dict[str, Any], network: Any, batch: Any, about: dict[str, Any]) -> None:
    """Write a network as a chooser."""
    from yardmaster.agents.export import chooser_of
    from yardmaster.schedulers.meta.chooser_file import write_chooser

    file = chooser_of(network, batch.task.sight, about | {"training": job})
    write_chooser(out / f"{job['name']}.npz", file)


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


def _carry_out(arguments: tuple[dict[str, Any], str, How]) -> str:
    job, out, how = arguments
    try:
        return train_one(job, Path(out), how)
    except Exception as error:  # noqa: BLE001  (the others go on)
        return f"{job['name']}{FAILED}{error!r}"


def _compile(job: dict[str, Any]) -> None:
    """Play one validation episode: what is compiled for it is kept for the others."""
    from meta_inputs import KeptEpisodes, read_inputs

    from yardmaster.envs.choosing.task import CHOOSING_TASKS

    kept = read_inputs(INPUTS / f"{job['study']}.pickle.gz")
    task = CHOOSING_TASKS[TASKS[job["study"]]].changed(**job["task"])
    evaluate(KeptEpisodes(task, "val", kept), 1, lambda _: np.zeros(1, dtype=np.int64))


def train_all(out: Path, word: str, how: How, workers: int) -> None:
    """Carry out all trainings that are not done yet, as many at a time as there are workers."""
    out.mkdir(parents=True, exist_ok=True)
    todo = [
        job
        for job in trainings()
        if word in job["name"] and not (out / f"{job['name']}.json").exists()
    ]
    if not todo:
        return
    spawned = multiprocessing.get_context("spawn")
    begun = time.monotonic()
    with spawned.Pool(1) as pool:
        pool.apply(_compile, (todo[0],))
    if how.limit_s:
        how = dataclasses.replace(how, limit_s=how.limit_s - (time.monotonic() - begun))
    with spawned.Pool(min(workers, len(todo)), maxtasksperchild=1) as pool:
        arguments = [(job, str(out), how) for job in todo]
        failed = 0
        for line in pool.imap_unordered(_carry_out, arguments, chunksize=1):
            print(line, flush=True)
            failed += FAILED in line
    if failed:
        sys.exit(f"{failed} of {len(todo)} trainings failed.")


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("inputs", help="draw the episodes")
    commands.add_parser("standards", help="find what they are measured by")
    train = commands.add_parser("train", help="train choosers")
    train.add_argument("out", type=Path)
    train.add_argument("word", nargs="?", default="", help="those whose name has it")
    train.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    train.add_argument("--envs", type=int, default=64, help="environments of each training")
    train.add_argument("--steps", type=int, default=0, help="decisions of each training")
    train.add_argument("--limit-s", type=float, default=0.0, help="seconds for each training")
    train.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=JSON")
    workers = int(os.environ.get("WORKERS", os.cpu_count() or 1))
    train.add_argument("--workers", type=int, default=workers, help="trainings at a time")
    given = parser.parse_args()
    if given.command == "inputs":
        draw_inputs()
    elif given.command == "standards":
        find_standards()
    else:
        how = How(given.device, given.envs, given.steps, given.limit_s, dict(given.set))
        train_all(given.out, given.word, how, given.workers)


if __name__ == "__main__":
    main()
