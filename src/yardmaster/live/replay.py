"""From a live run back into simulation: what the simulator would have said, against what happened.

The jobs of a log are rehearsed (see `rehearsal`) with run times as they were measured, or as they
were believed. What is left of a difference is what the simulator does not know: how long starting
takes, retries, and whatever else a machine does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import read_lines
from yardmaster.live.decision import Decider
from yardmaster.live.folder import ABOUT, AUDIT, read_json
from yardmaster.live.local.slots import type_named
from yardmaster.live.rehearsal import rehearse
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.columns import FloatArray, Labels
from yardmaster.model.workload import Workload
from yardmaster.names import unknown

RUN_TIMES = ("measured", "believed")


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """One job of a log that ended; times in seconds of the run."""

    id: str
    submit_s: float
    start_s: float
    """Of the first attempt."""
    end_s: float
    """Of the last attempt."""
    run_s: float
    """Seconds it ran, all attempts together; waiting for another try is no part of it."""
    gpus: int
    believed_s: float
    attempts: int
    exit_code: int
    kind: str = ""
    user: str = ""
    tenant: str = ""
    priority: float = 0.0
    deadline_s: float = math.nan

    @property
    def jct_s(self) -> float:
        """Seconds from submission to the end."""
        return self.end_s - self.submit_s


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """What a live run's folder says of its jobs."""

    scheduler: str
    cluster: Cluster
    seed: int
    jobs: tuple[LoggedJob, ...]
    """Jobs that ended, by submission."""
    unfinished: int
    weights: str
    """Hash of a trained scheduler's weights, as they were then; empty if it has none."""
    decisions_ms: FloatArray
    """(decisions,) observing and deciding together, milliseconds."""


def read_log(folder: Path) -> Log:
    """Read what a live run did that started its jobs itself: on one node, or on a Ray cluster.

    Raises:
        YardmasterError: if it is no such run, or nothing has ended in it.
    """
    about = read_json(folder / ABOUT) if (folder / ABOUT).exists() else {}
    if about.get("kind") not in {"local", "ray"}:
        raise YardmasterError(f"{folder} is not the folder of a live local run, or one on Ray.")
    jobs: dict[str, dict[str, Any]] = {}
    observed: dict[int, float] = {}
    decided: list[float] = []
    for line in read_lines(folder / AUDIT):
        if line["what"] == "job":
            _note(jobs, line)
        elif line["what"] == "observe":
            observed[line["tick"]] = line["took_ms"]
        elif line["what"] == "decide":
            decided.append(line["took_ms"] + observed.get(line["tick"], 0.0))
    ended = [job for job in jobs.values() if "end_s" in job and "start_s" in job]
    if not ended:
        raise YardmasterError(f"No job has ended in {folder}.")
    logged = [
        LoggedJob(
            id=job["id"], submit_s=job["submit_s"], start_s=job["start_s"], end_s=job["end_s"],
            run_s=job["run_s"], gpus=job["gpus"], believed_s=job["estimate_s"],
            attempts=job["attempts"], exit_code=job["exit_code"], **job["more"],
        )
        for job in ended
    ]  # fmt: skip
    groups = [
        NodeGroup(count=1, gpu_type=type_named(node["gpu_type"]), gpus=int(node["gpus"]))
        for node in about["nodes"]
    ]
    return Log(
        scheduler=about["scheduler"],
        cluster=from_groups(groups, name=about["nodes"][0]["name"]),
        seed=int(about["settings"].get("seed", 0)),
        jobs=tuple(sorted(logged, key=lambda job: job.submit_s)),
        unfinished=len(jobs) - len(ended),
        weights=str(about["settings"].get("weights", "")),
        decisions_ms=np.array(decided),
    )


def _note(jobs: dict[str, dict[str, Any]], line: dict[str, Any]) -> None:
    """Add one line about a job to what is known of it."""
    job = jobs.setdefault(line["job"], {"id": line["job"], "attempts": 0, "run_s": 0.0})
    if line["event"] == "submitted":
        job |= {name: line[name] for name in ("submit_s", "gpus", "estimate_s")}
        deadline_s = line.get("deadline_s")
        job["more"] = {name: line.get(name, "") for name in ("kind", "user", "tenant")} | {
            "priority": line.get("priority", 0.0),
            "deadline_s": math.nan if deadline_s is None else deadline_s,
        }
    elif line["event"] == "started":
        job["attempts"] += 1
        job.setdefault("start_s", line["start_s"])
    elif line["event"] == "ended":
        job |= {"end_s": line["end_s"], "exit_code": line["exit_code"]}
        job["run_s"] += line["end_s"] - line["start_s"]
    elif line["event"] == "retrying":
        job.pop("end_s", None)


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """Predicted against measured, job by job."""

    log: Log
    run_times: str
    overhead_s: float
    predicted_start_s: FloatArray
    predicted_end_s: FloatArray
    is_same: bool
    """Whether who decided then is who decided in the rehearsal, weights and all."""

    @property
    def measured_jct_s(self) -> FloatArray:
        """(jobs,) seconds from submission to the end, as it was."""
        return np.array([job.jct_s for job in self.log.jobs])

    @property
    def predicted_jct_s(self) -> FloatArray:
        """(jobs,) the same, as the simulator says."""
        submit_s = np.array([job.submit_s for job in self.log.jobs])
        return np.asarray(self.predicted_end_s - submit_s)

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the whole run."""
        measured, predicted = self.measured_jct_s, self.predicted_jct_s
        error = predicted - measured
        return {
            "scheduler": self.log.scheduler,
            "same_scheduler": self.is_same,
            "run_times": self.run_times,
            "overhead_s": self.overhead_s,
            "jobs": len(measured),
            "unfinished": self.log.unfinished,
            "measured_mean_jct_s": float(measured.mean()),
            "predicted_mean_jct_s": float(predicted.mean()),
            "mean_error_percent": float(100.0 * (predicted.mean() / measured.mean() - 1.0)),
            "mean_absolute_error_s": float(np.abs(error).mean()),
            "median_absolute_error_percent": float(np.median(100.0 * np.abs(error) / measured)),
            "largest_absolute_error_s": float(np.abs(error).max()),
            "median_decision_ms": float(np.median(self.log.decisions_ms))
            if len(self.log.decisions_ms)
            else None,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per job."""
        table = zip(
            self.log.jobs, self.predicted_start_s, self.predicted_jct_s, self.measured_jct_s,
            strict=True,
        )  # fmt: skip
        return [
            {
                "job": job.id,
                "gpus": job.gpus,
                "submit_s": round(job.submit_s, 3),
                "measured_start_s": round(job.start_s, 3),
                "predicted_start_s": round(float(start), 3),
                "measured_jct_s": round(float(measured), 3),
                "predicted_jct_s": round(float(predicted), 3),
                "error_s": round(float(predicted - measured), 3),
                "attempts": job.attempts,
                "exit_code": job.exit_code,
            }
            for job, start, predicted, measured in table
        ]


def replay_log(
    folder: Path,
    *,
    run_times: str = "measured",
    overhead_s: float = 0.0,
    scheduler: str | None = None,
) -> Likeness:
    """Rehearse what a folder logged and set it beside what happened.

    Args:
        folder: the live run.
        run_times: `measured` takes each job's run time from the log, so that only the waiting is
            predicted; `believed` takes what was believed before it ran.
        overhead_s: what starting adds to every job that is believed to run so long.
        scheduler: who decides; by default the one that did.

    Raises:
        YardmasterError: if it is no such run, or an option is unknown.
    """
    if run_times not in RUN_TIMES:
        raise unknown("source of run times", run_times, RUN_TIMES)
    if not 0 <= overhead_s < math.inf:
        raise YardmasterError(f"The overhead must be 0 s or more, got {overhead_s}.")
    log = read_log(folder)
    believed_s = [job.believed_s for job in log.jobs]
    believed: Workload = Workload.of(
        name=folder.name,
        id=np.array([job.id for job in log.jobs], dtype=np.str_),
        submit_s=[job.submit_s for job in log.jobs],
        duration_s=believed_s,
        estimate_s=believed_s,
        gpus=[job.gpus for job in log.jobs],
        priority=[job.priority for job in log.jobs],
        deadline_s=[job.deadline_s for job in log.jobs],
        kind=Labels.of([job.kind for job in log.jobs]),
        user=Labels.of([job.user for job in log.jobs]),
        tenant=Labels.of([job.tenant for job in log.jobs]),
    )
    run_s = np.array(
        [job.run_s if run_times == "measured" else job.believed_s + overhead_s for job in log.jobs]
    )
    decider = Decider(scheduler or log.scheduler, seed=log.seed, picks=0)
    start_s, end_s = rehearse(believed, run_s, log.cluster, decider)
    is_same = (decider.name, decider.fingerprint) == (log.scheduler, log.weights)
    return Likeness(log, run_times, overhead_s, start_s, end_s, is_same)
