"""Carrying out trainings and evaluations, many at once, each resumable.

Needs NumPy, Numba and torch, and nothing else.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning_inputs import read_arrays  # noqa: F401  (workers must know how to read traces)
from learning_studies import STUDIES, Study

from yardmaster.envs.episodes import Episodes, Split
from yardmaster.errors import YardmasterError
from yardmaster.experiments.evaluation import units_of
from yardmaster.experiments.players import played, player_of, read_policy, simulated, skipping
from yardmaster.experiments.training.evaluation import Scores
from yardmaster.experiments.training.folder import RunFolder, read_json, read_lines, write_json

SPLITS: tuple[Split, ...] = ("val", "report")
BASELINES = "baselines"


@dataclass(frozen=True)
class Job:
    """One training with its evaluation, or all heuristics of a study."""

    study: str
    cell: str
    """Name of a cell, or `BASELINES`."""
    seed: int
    out: Path
    steps: int | None = None
    episodes: int = 60
    device: str = "cpu"
    """Where PPO's networks are."""
    deadline: float = float("inf")
    """Second of the machine's clock after which to stop at the next evaluation."""

    @property
    def result(self) -> Path:
        """Where its result goes."""
        folder = self.out / "results" / self.study
        if self.cell == BASELINES:
            return folder / f"{BASELINES}.json"
        return folder / self.cell / f"seed-{self.seed}.json"

    @property
    def run(self) -> Path:
        """Folder of its training."""
        return self.out / "runs" / self.study / self.cell / f"seed-{self.seed}"

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return self.result.is_file()

    def __str__(self) -> str:
        return f"{self.study}/{self.cell}" + ("" if self.cell == BASELINES else f"/{self.seed}")


def jobs_of(
    studies: Sequence[Study],
    *,
    out: Path,
    seeds: int,
    only: Sequence[str] = (),
    steps: int | None = None,
    episodes: int = 60,
    device: str = "cpu",
    deadline: float = float("inf"),
) -> list[Job]:
    """Return everything there is to do, all first seeds before the second ones.

    Args:
        studies: which.
        out: folder of prepared inputs, runs and results.
        seeds: trainings of each cell.
        only: cells to train; empty for all.
        steps: another budget than the cells'.
        episodes: of each set, in the final evaluation.
        device: see `Job`.
        deadline: see `Job`.
    """
    fixed: dict[str, Any] = {
        "out": out, "episodes": episodes, "device": device, "deadline": deadline,
    }  # fmt: skip
    baselines = [Job(study.name, BASELINES, 0, **fixed) for study in studies]
    trainings = [
        Job(study.name, cell.name, seed, steps=steps, **fixed)
        for seed in range(seeds)
        for study in studies
        for cell in study.cells
        if not only or cell.name in only
    ]
    return baselines + trainings


def carry_out_all(jobs: Sequence[Job], workers: int, say: Callable[[str], None]) -> int:
    """Do what is not done yet in so many processes; return how many jobs are left."""
    todo = [job for job in jobs if not job.is_done]
    say(f"{len(jobs) - len(todo)} of {len(jobs)} done before; {len(todo)} to do.")
    if todo:
        _compile()
    left = 0
    begun = time.monotonic()
    for number, (job, outcome) in enumerate(_outcomes(todo, workers), 1):
        left += outcome != "done"
        say(f"[{time.monotonic() - begun:6.0f} s, {number}/{len(todo)}] {job}: {outcome}")
    return left


def _compile() -> None:
    """Make the machine code once, before every worker would."""
    from yardmaster.engine import compilation as core
    from yardmaster.engine.picking import compilation as picking

    core.compile_core(None)
    picking.compiled()


def _outcomes(todo: Sequence[Job], workers: int) -> Iterator[tuple[Job, str]]:
    if workers == 1:
        for job in todo:
            yield job, carry_out(job)
        return
    # Workers begin fresh: a forked process must not share the threads of torch.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_alone) as pool:
        running: dict[Future[str], Job] = {pool.submit(carry_out, job): job for job in todo}
        for future in as_completed(running):
            yield running[future], future.result()


def _alone() -> None:
    """Keep a worker to one core."""
    from yardmaster.agents.learners import use_threads

    use_threads(1)


def carry_out(job: Job) -> str:
    """Do one job; say how it ended. A mistake in one must not end the others."""
    if time.time() > job.deadline:
        return "no time left"
    try:
        return _baselines(job) if job.cell == BASELINES else _training(job)
    except YardmasterError as error:
        return f"failed: {error}"
    except Exception:  # noqa: BLE001  (told to the caller, job by job)
        return f"failed\n{traceback.format_exc()}"


def _config(job: Job) -> Any:
    from yardmaster.experiments.training import read_config

    study = STUDIES[job.study]
    workload = str(job.out / "inputs" / f"{study.trace}.npz") if study.trace else None
    return read_config(None, study.tables(_cell(job), job.seed, workload, job.steps, job.device))


def _cell(job: Job) -> Any:
    study = STUDIES[job.study]
    return study.cells[0] if job.cell == BASELINES else study.cell(job.cell)


def _baselines(job: Job) -> str:
    """Let every heuristic play the episodes of a study."""
    task = _config(job).task
    sets = {split: Episodes(task, split) for split in SPLITS}
    players = {}
    for name in STUDIES[job.study].baselines:
        scheduler = skipping(name)
        found = {split: player_of(name, episodes) for split, episodes in sets.items()}
        is_simulated = any(player is None for player in found.values())
        scores: dict[str, Scores] = {
            split: simulated(scheduler, episodes, job.episodes)
            if player is None
            else played(player, episodes, job.episodes)
            for (split, episodes), player in zip(sets.items(), found.values(), strict=True)
        }
        players[str(scheduler)] = {
            "how": "simulated" if is_simulated else "played",
            "information": scheduler.information.value,
            "scores": _plain(scores),
        }
    units = {split: units_of(episodes, job.episodes).tolist() for split, episodes in sets.items()}
    _write(job, {"episodes": job.episodes, "units": units, "players": players})
    return "done"


def _training(job: Job) -> str:
    """Train, or go on training; once that is over, play VAL and REPORT with the best policy."""
    from yardmaster.experiments.training import train

    folder, config = RunFolder(job.run), _config(job)
    result = train(
        config,
        out=job.run,
        resume=folder.is_run(),
        stop_when=lambda _: time.time() > job.deadline,
    )
    if result.status != "finished":
        return f"{result.status} at {result.steps:,} steps"
    policy = read_policy(job.run)
    scores: dict[str, Scores] = {
        split: played(policy.choose, Episodes(config.task, split), job.episodes) for split in SPLITS
    }
    about = read_json(folder.about)
    evaluations = read_lines(folder.evaluations)
    _write(
        job,
        {
            "information": policy.information.value,
            "scores": _plain(scores),
            "budget": config.train.steps,
            "curve": [[one["steps"], one["means"][one["metric"]]] for one in evaluations],
            **{key: about[key] for key in ("steps", "seconds", "best_steps", "versions")},
            "warnings": [warning["text"] for warning in about["warnings"]],
        },
    )
    folder.last.unlink(missing_ok=True)  # what was remembered to go on learning is large
    return "done"


def _plain(scores: dict[str, Scores]) -> dict[str, dict[str, list[float]]]:
    return {
        split: {metric: values.tolist() for metric, values in of_split.items()}
        for split, of_split in scores.items()
    }


def _write(job: Job, result: dict[str, Any]) -> None:
    job.result.parent.mkdir(parents=True, exist_ok=True)
    write_json(job.result, {"study": job.study, "cell": job.cell, "seed": job.seed} | result)
