"""Puts the best chooser of every study and objective into the package.

    python experiments/meta_shipping.py CHOOSERS

CHOOSERS is the folder that `meta_training.py` wrote. The best is the one with the least gap on
validation episodes, whoever learned it; the jobs that choosers are judged on have no part in it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from meta_training import OBJECTIVES, TASKS

from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.schedulers.meta.chooser_file import read_chooser, write_chooser
from yardmaster.schedulers.meta.choosers import SHIPPED

PREFIXES = {"rlmetadqn": "", "gangs": "gangs-"}
"""Study → how the names of its choosers begin."""


def best(choosers: Path, study: str, objective: str) -> dict[str, Any]:
    """Return the record of the training with the least gap on validation episodes."""
    records = choosers.glob(f"{study}-{objective}-*.json")
    found = [json.loads(file.read_text()) for file in records]
    if not found:
        raise SystemExit(f"{choosers} has no training of {study} for {objective}.")
    least: dict[str, Any] = min(found, key=lambda record: record["best"])
    return least


def told(record: dict[str, Any], study: str, objective: str) -> dict[str, Any]:
    """Return what a shipped chooser says of its training."""
    job = record["job"]
    task = CHOOSING_TASKS[TASKS[study]].changed(**job["task"])
    return {
        "learner": job["learner"],
        "task": TASKS[study],
        "reward": objective,
        "seed": job["seed"],
        "decisions": record.get("steps", job["steps"]),
        "gap_on_validation": round(record["best"], 5),
        "task_changes": job["task"] | {"tail": list(task.tail)},
        "settings": job["settings"],
    }


def main() -> None:
    """Choose and write."""
    choosers = Path(sys.argv[1])
    every = [(study, objective) for study in PREFIXES for objective in OBJECTIVES]
    found = [(*one, best(choosers, *one)) for one in every]  # all, before any takes a place
    for study, objective, record in found:
        name, training = f"{PREFIXES[study]}{objective}", record["job"]["name"]
        file = read_chooser(choosers / f"{training}.npz")
        shipped = replace(file, about=told(record, study, objective))
        write_chooser(SHIPPED / f"{name}.npz", shipped)
        print(f"meta:{name}: {training}, {record['best']:+.2%} on validation")


if __name__ == "__main__":
    main()
