"""What is studied: tasks, learners, budgets and the heuristics they are held against.

All of it is settings; a budget that is too small shows as a loss, never as an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yardmaster.experiments.trainings.lookahead import (
    ARCHITECTURES,
    EVAL_EPISODES,
    EVALUATIONS,
    PPO,
    PPO_TRAIN,
    STEPS,
)
from yardmaster.experiments.trainings.lookahead import MODES as LOOKAHEADS

LEARNERS = ("ppo", "d3qn", "rainbow", "sac")
PUBLISHED_RULE = "largest-shortest"
PUBLISHED_BAR = 0.646
"""Return of largest GPU count first, shortest on ties, on gpu-optimizer's own REPORT draws."""

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One way to learn, trained once per seed."""

    name: str
    learner: str
    steps: int
    """Environment steps of a training."""
    task: Table = field(default_factory=dict)
    """What differs from the study's task."""
    settings: Table = field(default_factory=dict)
    """What differs from the learner's default settings."""
    train: Table = field(default_factory=dict)
    """What differs from the default of how to train."""


@dataclass(frozen=True)
class Study:
    """One task, everybody who learns it, and everybody they are compared with."""

    name: str
    title: str
    about: str
    task: Table
    metric: str
    baselines: tuple[str, ...]
    cells: tuple[Cell, ...]
    trace: str = ""
    """Trace that `prepare` turns into the task's workload; none if jobs are generated."""
    bar: float | None = None
    """A published number to beat."""

    def cell(self, name: str) -> Cell:
        """Return a cell by name."""
        return next(cell for cell in self.cells if cell.name == name)

    def tables(
        self, cell: Cell, seed: int, workload: str | None, steps: int | None, device: str = "cpu"
    ) -> Table:
        """Return the configuration of one training, as the tables of a file for `train`.

        Args:
            cell: the way to learn.
            seed: of the training.
            workload: file of the prepared trace, if the study has one.
            steps: another budget than the cell's.
            device: where PPO's networks are; the others' stay on the CPU.
        """
        budget = steps or cell.steps
        task = {**self.task, **cell.task}
        if workload is not None:
            task["workload"] = workload
        train = {
            "steps": budget,
            "seed": seed,
            "metric": self.metric,
            "against": [],
            "eval_every": max(budget // EVALUATIONS, 1),
            "eval_episodes": EVAL_EPISODES,
            "checkpoint_every": "60s",
            "threads": 1,
            "tensorboard": False,
            "device": device if cell.learner == "ppo" else "cpu",
        }
        learner = {"name": cell.learner, **cell.settings}
        return {"task": task, "learner": learner, "train": {**train, **cell.train}}


def learners(
    steps: Mapping[str, int],
    settings: Mapping[str, Table] | None = None,
    train: Mapping[str, Table] | None = None,
) -> tuple[Cell, ...]:
    """Return one cell per learner, with budgets and settings by name."""
    return tuple(
        Cell(
            name,
            name,
            steps[name],
            settings=(settings or {}).get(name, {}),
            train=(train or {}).get(name, {}),
        )
        for name in LEARNERS
    )


# One core does 10,000 steps of PPO in a second, 1,000 of D3QN, 500 of Rainbow and SAC; a GPU does
# 100,000 of PPO.
BUDGETS = {"ppo": 1_000_000, "d3qn": 80_000, "rainbow": 50_000, "sac": 50_000}
SLOW_TO_LEARN = {**BUDGETS, "ppo": 1_500_000}

TAUGHT: Table = {**PPO_TRAIN, "warm_start": "smallest-first", "device": "cpu"}
"""Who knows no run times begins as the best heuristic that does not either."""

GPU_OPTIMIZER = (
    "fifo", "sjf", "random-feasible", "saf", "static-priority", "largest-first", "largest-shortest",
)  # fmt: skip
CLAIRVOYANT = (
    "fifo", "sjf", "saf", "f1", "f2", "f3", "f4", "wfp3", "unicep", "smallest-first",
    "largest-first", "fifo+easy", "sjf+easy", "saf+easy", "f1+easy", "wfp3+easy",
    "fifo+conservative", "sjf+conservative",
)  # fmt: skip
BLIND = (
    "fifo", "lifo", "random-feasible", "smallest-first", "largest-first", "slurm-multifactor",
    "fifo+strict",
)  # fmt: skip

_WINDOWS = {"load": 1.0, "jobs": 256, "reward": "bounded_slowdown", "window": 64}

STUDIES: Mapping[str, Study] = {
    study.name: study
    for study in (
        Study(
            "gpu-optimizer-original",
            "gpu-optimizer's environment, as published",
            "One event per decision: after every arrival and every completion at most one job"
            " starts. Jobs are drawn as gpu-optimizer draws them, from seeds of our own, so the"
            " published returns are those of other draws of the same distribution.",
            {"preset": "gpu-optimizer-original"},
            "returns",
            GPU_OPTIMIZER,
            learners(SLOW_TO_LEARN, {"ppo": PPO}, {"ppo": PPO_TRAIN}),
            bar=PUBLISHED_BAR,
        ),
        Study(
            "gpu-optimizer",
            "gpu-optimizer's environment, several starts at one instant",
            "The same jobs, observation and reward; a decision whenever a job fits, so that nobody"
            " idles because of the environment. Returns cannot be compared with published ones.",
            {"preset": "gpu-optimizer"},
            "returns",
            GPU_OPTIMIZER,
            learners(BUDGETS, {"ppo": PPO}, {"ppo": PPO_TRAIN}),
        ),
        Study(
            "lublin",
            "Lublin-256: windows of 256 jobs, bounded slowdown",
            "10,000 jobs of the Lublin-Feitelson model on 256 processors. It has no estimates: who"
            " reads run times reads the true ones. Times are stretched from a load of 1.06 to 1.0."
            " Trained on the first 60 % of the jobs, validated"
            " on the next 20 %, reported on the last 20 %.",
            {**_WINDOWS, "cluster": "pool:256", "window_order": "sjf"},
            "bounded_slowdown",
            CLAIRVOYANT,
            learners(BUDGETS, {"ppo": PPO}, {"ppo": PPO_TRAIN}),
            trace="lublin",
        ),
        Study(
            "venus",
            "Helios Venus: windows of 256 jobs on 24 nodes, bounded slowdown, run times known",
            "77,574 jobs of four months of 2020. The whole cluster never queues on 256 jobs; 24"
            " nodes of 8 GPUs do, and hold every job. The trace offers them 2.49 times what they"
            " can do, so times are stretched to a load of 1.0. Policies and heuristics read true"
            " run times. Trained on the first 60 % of the jobs, reported on the last 20 %.",
            {**_WINDOWS, "cluster": "24x V100:8", "window_order": "sjf"},
            "bounded_slowdown",
            CLAIRVOYANT,
            learners(BUDGETS, {"ppo": PPO}, {"ppo": PPO_TRAIN}),
            trace="venus",
        ),
        Study(
            "venus-blind",
            "Helios Venus: the same windows, run times unknown",
            "Jobs, machines and times as above. The trace has no estimates, so the honest case is"
            " to know nothing of run times.",
            {**_WINDOWS, "cluster": "24x V100:8", "information": "blind", "noop": "never"},
            "bounded_slowdown",
            BLIND,
            learners(BUDGETS, {"ppo": PPO}, {"ppo": TAUGHT}),
            trace="venus",
        ),
        Study(
            "lookahead",
            "What lookahead and architecture are worth",
            "PPO on gpu-optimizer's jobs, several starts at one instant: what the GPU slots tell,"
            " by network.",
            {"preset": "gpu-optimizer"},
            "returns",
            GPU_OPTIMIZER,
            tuple(
                Cell(
                    f"{arch}_{lookahead}",
                    "ppo",
                    STEPS,
                    task={"lookahead": lookahead},
                    settings={**PPO, "network": {"arch": arch}},
                    train=PPO_TRAIN,
                )
                for arch in ARCHITECTURES
                for lookahead in LOOKAHEADS
            ),
        ),
    )
}
