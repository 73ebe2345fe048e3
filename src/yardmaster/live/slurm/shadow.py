"""What would have been gained: what a scheduler wished, what Slurm did, a rehearsal of both.

The jobs of a run are played again on the same nodes, each as long as it really ran, by the run's
scheduler and by a plain stand-in for Slurm. Both know only what was believed then. The difference
between those two is the gain; that between the stand-in and Slurm's own waits tells how far to
trust it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import read_lines
from yardmaster.live.decision import Decider
from yardmaster.live.folder import ABOUT, AUDIT, read_json
from yardmaster.live.rehearsal import rehearse
from yardmaster.live.slurm.observing import cluster_of
from yardmaster.live.slurm.reading import NodeRow
from yardmaster.live.slurm.restoring import check_folder
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import FloatArray
from yardmaster.model.workload import Workload

FEW = 30
"""Below so many jobs a mean wait is chance, and the report says so."""
FAR = 0.15
"""If the stand-in's mean wait differs from Slurm's by more than this share, the report says so."""


class TooEarlyError(YardmasterError):
    """No job has started and ended while a run watched: there is nothing to compare yet.

    Attributes:
        waiting: jobs that wait as far as the log knows.
        running: jobs that run.
    """

    def __init__(self, waiting: int, running: int) -> None:
        """Say so, with how many wait and run."""
        super().__init__(
            f"0 jobs so far, {waiting} wait, {running} run; a report needs jobs that start and end"
            " while watched."
        )
        self.waiting, self.running = waiting, running


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What would have been gained; waits in seconds, means over the jobs compared.

    Attributes:
        scheduler: who would have decided.
        baseline: what stands for Slurm in simulation.
        jobs: jobs that were submitted, started and ended while the run watched, or waited before.
        looks: decisions in the log.
        slurm_wait_s: as Slurm did it.
        baseline_wait_s: as the stand-in does it.
        scheduler_wait_s: as the scheduler does it.
        agreed: share of Slurm's starts of jobs that were first among equals in our order: no job
            that asked for as many GPUs stood before them.
        starts: how many starts of Slurm that is a share of: those of jobs in our last order.
        skipped: ticks in which nothing was decided.
        was_applied: whether the run changed Slurm's order, so that Slurm's waits are not its own.
    """

    scheduler: str
    baseline: str
    jobs: int
    looks: int
    slurm_wait_s: float
    baseline_wait_s: float
    scheduler_wait_s: float
    agreed: float
    starts: int
    skipped: int
    was_applied: bool = False

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    def in_words(self) -> str:
        """Return it for people."""
        stops = Decider(self.scheduler, may_stop=True).stops_jobs
        gain = 1.0 - self.scheduler_wait_s / self.baseline_wait_s if self.baseline_wait_s else 0.0
        less = f"({100 * gain:.1f} % less than the stand-in)"
        agreed = (
            f"Of {self.starts} starts of Slurm, {100 * self.agreed:.0f} % were of the job that"
            " stood first of its size in our order."
            if self.starts
            else "Slurm has started no job that stood in our order."
        )
        how = "under Slurm with our factors" if self.was_applied else "as it was under Slurm"
        lines = [
            f"{self.jobs} jobs, {self.looks} decisions, {self.skipped} ticks skipped.",
            f"Mean wait {how + ':':<30} {self.slurm_wait_s:10.1f} s",
            f"Rehearsed with {self.baseline + ':':<25} {self.baseline_wait_s:10.1f} s",
            f"Rehearsed with {self.scheduler + ':':<25} {self.scheduler_wait_s:10.1f} s   {less}",
            agreed,
        ]
        if self.jobs < FEW:
            lines.append(
                f"{self.jobs} jobs are few: below {FEW} such means are mostly chance. Watch longer."
            )
        if stops:
            lines.append(
                "The rehearsal stops no job: what requeueing would gain or lose is not in it; the"
                " audit log says who would have been requeued."
            )
        off = abs(self.baseline_wait_s - self.slurm_wait_s)
        if self.was_applied:
            lines.append(
                "The run changed Slurm's order (--apply): those waits are not Slurm's own, and the"
                " stand-in need not come near them."
            )
        elif off > max(FAR * self.slurm_wait_s, 1.0):
            lines.append(
                "The stand-in waits differently from Slurm itself: partitions, limits, fair share"
                " or nodes that the rehearsal does not know. Take the gain with care."
            )
        return "\n".join(lines)


def shadow_report(
    folder: Path, *, scheduler: str | None = None, baseline: str = "fifo+easy"
) -> ShadowReport:
    """Compare what a run's scheduler wished with what Slurm did.

    Args:
        folder: the run.
        scheduler: who decides in the rehearsal; by default the run's.
        baseline: what stands for Slurm.

    Raises:
        YardmasterError: if it is no such run.
        TooEarlyError: if no job has started and ended in it so far.
    """
    check_folder(folder)
    about = read_json(folder / ABOUT)
    jobs, lines = _jobs(folder)
    whole = [job for job in jobs.values() if {"submit_s", "start_s", "end_s"} <= set(job)]
    compared = np.array([job["start_s"] >= 0.0 for job in whole], dtype=np.bool_)
    if not compared.any():
        raise TooEarlyError(*_left(jobs))
    name = scheduler or str(about["scheduler"])
    # Who waited when the run began could not have been started before; who ran, runs.
    submit_s = np.array(
        [max(job["submit_s"], 0.0) if job["start_s"] >= 0 else job["start_s"] for job in whole]
    )
    order = np.argsort(submit_s, kind="stable")
    whole = [whole[row] for row in order.tolist()]
    submit_s, compared = submit_s[order], compared[order]
    started_s = np.array([job["start_s"] for job in whole])
    cluster = _cluster(about)
    agreed, starts = _agreed(lines, jobs)

    def mean_wait(who: str) -> float:
        waits = _rehearsed(whole, submit_s, cluster, who) - submit_s
        return float(waits[compared].mean())

    return ShadowReport(
        scheduler=name,
        baseline=baseline,
        jobs=int(compared.sum()),
        looks=sum(line["what"] == "decide" for line in lines),
        slurm_wait_s=float((started_s - submit_s)[compared].mean()),
        baseline_wait_s=mean_wait(baseline),
        scheduler_wait_s=mean_wait(name),
        agreed=agreed,
        starts=starts,
        skipped=sum(line["what"] == "skip" for line in lines),
        was_applied=any(_is_change(line) for line in lines),
    )


def _is_change(line: Mapping[str, Any]) -> bool:
    """Whether a line of the log says that a factor was given."""
    what = (line["what"], line.get("operation"), line.get("outcome"))
    return what == ("apply", "factor", "done")


def _jobs(folder: Path) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Return what is known of each job, and the lines of the log."""
    lines = list(read_lines(folder / AUDIT))
    jobs: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line["what"] == "job":
            job = jobs.setdefault(line["job"], {"id": line["job"]})
            names = ("submit_s", "start_s", "end_s", "gpus", "estimate_s")
            job |= {name: line[name] for name in names if line.get(name) is not None}
    return jobs, lines


def _left(jobs: Mapping[str, Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many jobs wait and run as far as the log knows."""
    left = [job for job in jobs.values() if "end_s" not in job]
    running = sum("start_s" in job for job in left)
    return len(left) - running, running


def _cluster(about: Mapping[str, Any]) -> Cluster:
    nodes = [
        NodeRow(node["name"], "idle", int(node["gpus"]), node["gpu_type"], 0, ())
        for node in about["nodes"]
    ]
    return cluster_of(nodes)


def _rehearsed(
    jobs: list[dict[str, Any]], submit_s: FloatArray, cluster: Cluster, scheduler: str
) -> FloatArray:
    """Return when each job starts if this scheduler decides."""
    believed_s = np.maximum([job["estimate_s"] for job in jobs], 1.0)
    run_s = np.array([max(job["end_s"] - job["start_s"], 0.001) for job in jobs])
    workload = Workload.of(
        id=np.array([job["id"] for job in jobs], dtype=np.str_),
        submit_s=submit_s - submit_s.min(),
        duration_s=believed_s,
        estimate_s=believed_s,
        gpus=[job["gpus"] for job in jobs],
    )
    # Job tables begin at second 0 at the earliest.
    starts, _ = rehearse(workload, run_s, cluster, Decider(scheduler, picks=0, may_stop=True))
    return np.asarray(starts + submit_s.min(), dtype=np.float64)


def _agreed(
    lines: list[dict[str, Any]], jobs: Mapping[str, Mapping[str, Any]]
) -> tuple[float, int]:
    """Return the share of starts in which nobody of the same size stood first, of how many."""
    order: list[str] = []
    agreed = starts = 0
    for line in lines:
        if line["what"] == "decide":
            order = line["order"]
        elif line["what"] == "job" and line["event"] == "started" and line["job"] in order:
            starts += 1
            gpus = jobs[line["job"]].get("gpus")
            before = order[: order.index(line["job"])]
            agreed += all(jobs.get(job, {}).get("gpus") != gpus for job in before)
            order = [job for job in order if job != line["job"]]
    return agreed / starts if starts else 1.0, starts
