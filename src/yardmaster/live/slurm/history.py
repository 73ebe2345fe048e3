"""Slurm's accounts: the past for `workload import`, and what it teaches about run times.

Users ask for more time than they need; a time limit is what backfill goes by, not a prediction.
What alike jobs of the same user took is the better guess, and it is only a guess: limits are never
written.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from yardmaster.live.slurm.commands import Slurm
from yardmaster.live.slurm.observing import LIKE, UNKNOWN_LIMIT_S
from yardmaster.live.slurm.reading import NOWHERE, NodeRow, QueueRow
from yardmaster.model.gpus import gpu_types
from yardmaster.workloads.traces.slurm.fields import catalogued, tres

FIELDS = (
    "JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start",
    "End", "ElapsedRaw", "TimelimitRaw", "State", "ExitCode", "NNodes", "NCPUS", "ReqTRES",
    "AllocTRES", "NodeList", "Priority",
)  # fmt: skip
"""Constraints are left out: they hold bars, which is what separates the cells."""
LEAST_ALIKE, LEAST_OF_USER, LEAST_OF_ALL = 3, 3, 10
LATEST = 20
"""So many of the latest runs count."""
_RAN = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")


def read_history(slurm: Slurm, *, days: float) -> str:
    """Return what happened in the last days, as `sacct -P` prints it.

    `-D` keeps every run of a requeued job: without it true waits and lost work vanish.

    Raises:
        SlurmError: if the accounts do not answer.
    """
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 86_400.0 * days))
    return slurm.read(
        "sacct", "-D", "-X", "-a", "-P", "-S", since, "-E", "now", "-o", ",".join(FIELDS)
    )


def finished(text: str) -> tuple[int, int]:
    """Return how many runs in what `read_history` returned have started and ended, of how many.

    Only those can be simulated.
    """
    names, *lines = text.splitlines() or [""]
    columns = names.split("|")
    rows = [dict(zip(columns, line.split("|"), strict=False)) for line in lines]
    ended = sum(
        all(row.get(name, "").isdecimal() for name in ("Start", "End"))
        and row.get("ElapsedRaw", "0") != "0"
        for row in rows
    )
    return ended, len(rows)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Run times of the past, by who ran what.

    Attributes:
        alike: seconds, by user, GPUs and time limit.
        of_user: shares of the time limit that were used, by user.
        of_all: the same of everybody.
    """

    alike: Mapping[tuple[str, int, float], Sequence[float]] = field(default_factory=dict)
    of_user: Mapping[str, Sequence[float]] = field(default_factory=dict)
    of_all: Sequence[float] = ()

    @property
    def jobs(self) -> int:
        """How many runs were learnt from."""
        return len(self.of_all)

    def believe(self, rows: Sequence[QueueRow]) -> list[float]:
        """Return the run time believed of each job, in seconds; never more than its limit."""
        return [self._of(row) for row in rows]

    def _of(self, row: QueueRow) -> float:
        limit_s = row.limit_s or UNKNOWN_LIMIT_S
        alike = self.alike.get((row.user, row.gpus, limit_s), ())
        if len(alike) >= LEAST_ALIKE:
            return min(max(median(alike[-LATEST:]), 1.0), limit_s)
        shares = self.of_user.get(row.user, ())
        if len(shares) >= LEAST_OF_USER:
            return max(limit_s * min(median(shares[-LATEST:]), 1.0), 1.0)
        if len(self.of_all) >= LEAST_OF_ALL:
            return max(limit_s * min(median(self.of_all[-10 * LATEST :]), 1.0), 1.0)
        return limit_s


def run_times(text: str) -> RunTimes:
    """Learn run times from what `read_history` returned; rows that tell nothing are passed over."""
    names, *lines = text.splitlines() or [""]
    columns = {name: place for place, name in enumerate(names.split("|"))}
    alike: dict[tuple[str, int, float], list[float]] = defaultdict(list)
    of_user: dict[str, list[float]] = defaultdict(list)
    of_all: list[float] = []
    for line in lines:
        cells = line.split("|")
        if len(cells) != len(columns):
            continue
        row = {name: cells[place] for name, place in columns.items()}
        elapsed, limit = row["ElapsedRaw"], row["TimelimitRaw"]
        if row["State"].split(" ")[0] not in _RAN or not elapsed.isdecimal():
            continue
        gpus = (tres(row["AllocTRES"]).gpus or 0) if row["AllocTRES"].lower() not in NOWHERE else 0
        limit_s = 60.0 * float(limit) if limit.isdecimal() and limit != "0" else UNKNOWN_LIMIT_S
        seconds = float(elapsed)
        alike[row["User"], gpus, limit_s].append(seconds)
        of_user[row["User"]].append(seconds / limit_s)
        of_all.append(seconds / limit_s)
    return RunTimes(dict(alike), dict(of_user), of_all)


REQUEUE_S = 122
"""Seconds a requeued job waits before Slurm starts it again; 121–124 were measured."""


def cluster_toml(nodes: Sequence[NodeRow]) -> str:
    """Return the nodes as a cluster document, with what stopping a job costs on Slurm."""
    kinds = {node.gpu_type or "gpu": catalogued(node.gpu_type or "gpu") for node in nodes}
    known = {kind.name for kind in gpu_types()}
    unknown = [kind for kind, name in kinds.items() if name not in known]
    lines = ['name = "slurm"']
    for kind in unknown:
        lines += ["", f'[gpu_types."{kind}"]', f'like = "{LIKE}"  # not in the catalogue']
    groups = Counter((node.gpu_type or "gpu", node.gpus) for node in nodes)
    for (kind, gpus), count in groups.items():
        lines += ["", "[[nodes]]", f"count = {count}", f'gpu_type = "{kinds[kind]}"',
                  f"gpus = {gpus}"]  # fmt: skip
    lines += [
        "",
        "[checkpoints]",
        f"restore_s = {REQUEUE_S}  # Slurm lets a requeued job wait so long",
        "# on_preemption = false   # if jobs do not save their work when they are stopped",
    ]
    return "\n".join(lines) + "\n"
