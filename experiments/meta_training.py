"""Trains choosers for the study, many at a time: `python experiments/meta_training.py JOBS OUT`.

JOBS is a JSON list of trainings; each has a `name`, the `family` whose inputs it learns on, a
`learner` (`meta-dqn`, `ppo`), a `seed`, and changes of the task (`task`) and of the learner's
settings (`settings`). Finished ones are not made again. The best network by `metric` on the
validation episodes is written as a chooser, with the curve beside it.
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
EVALUATIONS = 24


def train_one(job: dict[str, Any], out: Path) -> str:
    """Carry out one training."""
    os.environ["NUMBA_NUM_THREADS"] = "1"
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
    kept = read_inputs(INPUTS / f"{job['family']}.pickle.gz")
    names = {"rlmetadqn": "regimes", "hard": "hard-regimes", "drift": "drifting-regimes"}
    task = CHOOSING_TASKS[names[job["family"]]].changed(
        episodes=sum(key[0] == "train" for key in kept if isinstance(key, tuple)), **job["task"]
    )
    batch = ChoosingBatch(KeptEpisodes(task, "train", kept), 64)
    batch.reset(job["seed"])
    validation = KeptEpisodes(task, "val", kept)
    count = sum(key[0] == "val" for key in kept if isinstance(key, tuple))
    kind = LEARNERS[job["learner"]]
    settings = dict(job["settings"])
    preset = kind.preset("default")
    if "network" in settings:
        settings["network"] = NetworkSettings(**settings["network"])
    elif job["learner"] == "ppo":
        settings["network"] = NetworkSettings(arch="regime", hidden=(64, 64), dim=16, noop_bias=0.0)
    learner: Any = kind.build(
        batch, dataclasses.replace(preset, total_steps=job["steps"], **settings), job["seed"]
    )
    curve: list[dict[str, float]] = []
    best = np.inf
    set_up_s = time.monotonic() - begun
    steps, due = 0, 0
    while steps < job["steps"]:
        steps += int(learner.update()["steps"])
        if steps >= due or steps >= job["steps"]:
            due += job["steps"] // EVALUATIONS
            found = evaluate(validation, count, greedy(learner.network))
            curve.append({"steps": steps, "seconds": time.monotonic() - begun} | found)
            if found[job["metric"]] < best:
                best = found[job["metric"]]
                about = {"name": job["name"], "steps": steps, job["metric"]: best, "job": job}
                file = chooser_of(learner.network, batch.task.sight, about)
                write_chooser(out / f"{job['name']}.npz", file)
    record = {"job": job, "set_up_s": set_up_s, "best": best, "curve": curve}
    (out / f"{job['name']}.json").write_text(json.dumps(record))
    last = curve[-1]
    shown = {name: round(last[name], 4) for name in ("jct_gap", "p95_gap", "mixed_gap", "switches")}
    return f"{job['name']}: best {job['metric']} {best:.4f}; last {shown}; {last['seconds']:.0f} s"


def evaluate(episodes: Any, count: int, choose: Any) -> dict[str, float]:
    """Return the mean scores of a policy over the validation episodes."""
    from yardmaster.envs.choosing.batch import SCORES, ChoosingBatch

    batch = ChoosingBatch(episodes, count, autoreset=False, draw=lambda rows: rows)
    batch.begin(np.arange(count))
    done = np.zeros(count, dtype=np.bool_)
    found = {name: np.zeros(count) for name in (*SCORES, "returns")}
    while not done.all():
        batch.step(choose(batch))
        ended = (batch.terminated | batch.truncated) & ~done
        for name in SCORES:
            found[name][ended] = batch.scores[name][ended]
        found["returns"][ended] = batch.episode_returns[ended]
        done |= ended
    return {name: float(values.mean()) for name, values in found.items()}


def _carry_out(arguments: tuple[dict[str, Any], str]) -> str:
    job, out = arguments
    try:
        return train_one(job, Path(out))
    except Exception as error:  # noqa: BLE001  (the others go on)
        import traceback

        return f"{job['name']}: FAILED {error!r} {traceback.format_exc()[-600:]}"


def main() -> None:
    """Carry out all trainings that are not done yet."""
    jobs = json.loads(Path(sys.argv[1]).read_text())
    out = Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    todo = [job for job in jobs if not (out / f"{job['name']}.json").exists()]
    workers = int(os.environ.get("WORKERS", os.cpu_count() or 1))
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(_carry_out, [(job, str(out)) for job in todo]):
            print(line, flush=True)


if __name__ == "__main__":
    main()
