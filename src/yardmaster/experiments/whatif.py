"""Capacity questions: the same jobs under the same scheduler on a changed cluster.

Each change stands alone beside the cluster as it is. Differences are paired as in a comparison of
schedulers: over workloads, or over blocks of the only one (then only means over jobs have
intervals). Where a change makes other jobs unplaceable, means over jobs are compared over the jobs
that finish either way, and other metrics without interval; where jobs are cut off unfinished, there
are no intervals at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from yardmaster.errors import YardmasterError
from yardmaster.experiments.compare import COMPILE_ABOVE_JOB_RUNS, Progress
from yardmaster.experiments.comparison import Run
from yardmaster.experiments.line_up import (
    given_cluster,
    given_workloads,
    hardest,
    refuse_unfit,
)
from yardmaster.experiments.whatif_changes import Change, Sweep, Target, resizing, unit_of
from yardmaster.experiments.whatif_rows import (
    Outcome,
    Role,
    WhatIf,
    WhatIfRow,
    paired_units,
    per_job_columns,
    row_of,
)
from yardmaster.metrics.catalogue import metric
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.reshape import Nodes, most_common_nodes
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.simulation import Engine, simulate
from yardmaster.workloads.sources import with_load

AS_IT_IS = "as it is"
MOST_TIMES = 8
"""A target that is not met with so many times the nodes of today is given up."""


def whatif(
    workloads: Workload | Sequence[Workload],
    cluster: Cluster | str,
    scheduler: str | Scheduler,
    changes: Sequence[Change] = (),
    *,
    sweep: Sweep | None = None,
    target: Target | None = None,
    target_nodes: Nodes | None = None,
    objective: str = "mean_jct_s",
    seed: int = 0,
    until_s: float = math.inf,
    engine: Engine = "core",
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> WhatIf:
    """Run the same jobs on the cluster as it is and under every change.

    Args:
        workloads: the jobs; several to pair over.
        cluster: the machines as they are, or their name.
        scheduler: a name in the scheduler language.
        changes: changes, each for itself (see `whatif_changes.combined` for all together).
        sweep: changes of one kind, for a curve.
        target: what to reach with as few extra nodes as possible.
        target_nodes: the kind of those nodes, if not the commonest of the cluster.
        objective: the metric that differences and curves are shown for.
        seed: seed of random orders and placements.
        until_s: cut every simulation after this second.
        engine: `core` or `simpy`.
        progress: called before every simulation.
        announce: told when the core must be compiled first.

    Raises:
        YardmasterError: if nothing is asked, a change is impossible, or the scheduler cannot run
            on a changed cluster; all before the first simulation.
    """
    if not changes and sweep is None and target is None:
        raise YardmasterError("No change was named: add, remove or replace nodes, or sweep.")
    metric(objective)
    samples, cluster = given_workloads(workloads), given_cluster(cluster)
    chosen = parse_scheduler(scheduler)
    asked = [Change(AS_IT_IS, lambda same: same), *changes, *(sweep.changes if sweep else ())]
    for change in asked:
        refuse_unfit([chosen], hardest(samples), change.reshape(cluster), seed=seed)
    run = partial(
        simulate, scheduler=chosen, seed=seed, until_s=until_s, engine=engine,
        announce=announce,
    )  # fmt: skip
    inquiry = _Inquiry(samples, cluster, run, progress, len(asked) * len(samples))
    answer = ""
    inquiry.add("baseline", asked[0])
    for change in changes:
        inquiry.add("change", change)
    if sweep is not None:
        for change, amount in zip(sweep.changes, sweep.amounts, strict=True):
            inquiry.add("sweep", change, amount)
    if target is not None:
        answer = _search(inquiry, target, target_nodes or most_common_nodes(cluster))
    if progress is not None:
        progress("done", inquiry.done, inquiry.done)
    return WhatIf(
        workload=_names(samples),
        cluster=cluster.name,
        scheduler=str(chosen),
        information=chosen.information.value,
        objective=objective,
        units=_units_text(samples, inquiry.outcomes[0]),
        rows=tuple(inquiry.rows),
        notes=_notes(samples, inquiry.outcomes),
        runs=tuple(run for outcome in inquiry.outcomes for run in outcome.runs),
        axis=sweep.axis if sweep else "",
        target=str(target) if target else "",
        answer=answer,
    )


@dataclass(slots=True, eq=False)
class _Inquiry:
    """Simulates changes one after the other and sets each beside the first, the baseline."""

    workloads: list[Workload]
    cluster: Cluster
    run: Callable[..., Schedule]
    progress: Progress | None
    expected: int
    done: int = 0
    job_runs: int = 0
    rows: list[WhatIfRow] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, role: Role, change: Change, amount: float = math.nan) -> WhatIfRow:
        """Simulate a change on every workload and add its row."""
        cluster = change.reshape(self.cluster)
        runs: list[Run] = []
        schedules: list[Schedule] = []
        for workload in self.workloads:
            jobs = _with_factor(workload, self.cluster, change.load)
            schedule = self._simulated(jobs, cluster, f"{change.name} on {workload.name}")
            summary = summarise(schedule)
            runs.append(Run(change.name, workload.name, summary, schedule.fingerprint()))
            schedules.append(schedule)
        first = schedules[0]
        outcome = Outcome(
            change,
            cluster,
            runs,
            paired_units(runs, first),
            first.notes,
            per_job_columns(schedules),
        )
        self.outcomes.append(outcome)
        self.rows.append(row_of(outcome, self.outcomes[0], role, amount))
        return self.rows[-1]

    def _simulated(self, jobs: Workload, cluster: Cluster, label: str) -> Schedule:
        if self.progress is not None:
            self.progress(label, self.done, max(self.expected, self.done + 1))
        self.done += 1
        self.job_runs += len(jobs)
        pays = max(self.job_runs, self.expected * len(jobs)) > COMPILE_ABOVE_JOB_RUNS
        return self.run(jobs, cluster, compile_core="always" if pays else "auto")


def _search(inquiry: _Inquiry, target: Target, kind: Nodes) -> str:
    """Find by bisection the fewest extra nodes of a kind that meet a target.

    More nodes are taken to help, which scheduling does not promise: the answer is checked against
    one node fewer, not against all smaller numbers. Every number tried gets a row; returned is
    the answer in words.
    """
    tried: dict[int, WhatIfRow] = {0: inquiry.rows[0]}
    before, unit = len(inquiry.rows), unit_of(inquiry.cluster)
    is_pool = inquiry.cluster.is_pool

    def meets(nodes: int) -> bool:
        if nodes not in tried:
            tried[nodes] = inquiry.add("search", resizing(nodes, kind, unit), nodes)
        return target.is_met(tried[nodes].metrics[target.metric].mean)

    most = MOST_TIMES * (inquiry.cluster.gpus if is_pool else inquiry.cluster.nodes)
    found = fewest(meets, most)
    inquiry.rows[before:] = [
        replace(tried[nodes], is_answer=nodes == found) for nodes in sorted(tried) if nodes
    ]
    name = f"{unit}s of {kind.type_name}"
    name += f":{kind.gpus}" if kind.gpus and not is_pool else ""
    if found is None:
        return f"{target} is not met even with {most} more {name}."
    if found == 0:
        return f"{target} is met by the cluster as it is."
    return f"{target} needs {found} more {name}; {found - 1} are not enough."


def fewest(meets: Callable[[int], bool], most: int) -> int | None:
    """Return the least number from 0 to `most` that meets, where larger ones meet too.

    Doubles until a number meets, then bisects; None if `most` does not meet.
    """
    if meets(0):
        return 0
    low, high = 0, 1
    while high < most and not meets(high):
        low, high = high, high * 2
    high = min(high, most)
    if high <= low or not meets(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


def _with_factor(workload: Workload, cluster: Cluster, factor: float) -> Workload:
    """Return the same jobs submitted `factor` times as fast."""
    if factor == 1.0:
        return workload
    load = workload.load(cluster.gpus) * factor
    return with_load(workload, gpus=cluster.gpus, load=load)


def _units_text(samples: Sequence[Workload], baseline: Outcome) -> str:
    several = len(samples) > 1
    return f"{len(samples)} workloads" if several else (
        f"{len(baseline.units)} blocks of one workload"
    )  # fmt: skip


def _names(samples: Sequence[Workload]) -> str:
    stem, seeded, _ = samples[0].name.rpartition(", seed ")
    return f"{stem}, {len(samples)} seeds" if seeded else samples[0].name


def _notes(samples: Sequence[Workload], outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Say what the reader must know of the jobs, and which changes change who is counted."""
    notes = dict.fromkeys([*samples[0].notes, *outcomes[0].notes])
    if any(late for each in outcomes for late, _ in each.left_out()):
        notes[
            "some jobs failed or were cut off unfinished; averages cover finished jobs only, and"
            " differences have no intervals"
        ] = None
    odd = [each for each in outcomes if each.unplaceable() != outcomes[0].unplaceable()]
    if odd:
        names = ", ".join(each.change.name for each in odd)
        notes[
            f"other jobs than today's are unplaceable under {names}: there, averages are over other"
            " jobs, and Δ of means is over the jobs that finish either way"
        ] = None
    return tuple(notes)
