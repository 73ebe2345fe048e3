"""What goes wrong: jobs that come or run otherwise than usual, and machines that are away.

A perturbation changes a workload or a cluster and nothing else about a regime, so that a scheduler
can be compared with itself on the undisturbed jobs. What people said stays as they said it:
estimates and, where run times change, deadlines. Where submissions move, a deadline keeps its
distance from the submission.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from yardmaster.errors import InvalidClusterError
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.site import Outage, Sharing
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.names import Registry
from yardmaster.workloads.arguments import finite_number, whole_number

Dice = np.random.Generator

BURST_WINDOWS = 24
"""Equal windows of the span of submissions; those busier than the mean are bursts."""
DIPS = 3
"""Capacity dips, each within its own part of the span of submissions."""
SHORTEST_S = 1.0
"""No distorted run time is shorter, unless it was so before."""


@dataclass(frozen=True, slots=True)
class PerturbationKind:
    """One way in which things go wrong.

    Attributes:
        name: what users write.
        meaning: what it does, in one line.
        unit: what a severity is.
        severities: the four that are studied, mildest first.
        most: severities above this make no sense.
        above: severities must be larger than this.
        disturb: does it.
    """

    name: str
    meaning: str
    unit: str
    severities: tuple[float, float, float, float]
    most: float
    disturb: Callable[[Workload, Cluster, float, Dice], tuple[Workload, Cluster]]
    above: float = 0.0


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One thing that goes wrong, and how badly.

    Raises:
        UnknownNameError: if there is no such kind.
        YardmasterError: if the severity makes no sense for it.
    """

    kind: str
    severity: float

    def __post_init__(self) -> None:
        known = PERTURBATIONS[self.kind]
        name = f"severity of {self.kind}"
        severity = finite_number(name, self.severity, above=known.above, largest=known.most)
        object.__setattr__(self, "severity", severity)

    def __str__(self) -> str:
        return f"{self.kind}:{self.severity:g}"


def severities(kind: str) -> tuple[Perturbation, ...]:
    """Return the perturbations of a kind that are studied, mildest first.

    Raises:
        UnknownNameError: if there is no such kind.
    """
    return tuple(Perturbation(kind, severity) for severity in PERTURBATIONS[kind].severities)


def perturbed(
    workload: Workload, cluster: Cluster, perturbation: Perturbation | None, seed: int
) -> tuple[Workload, Cluster]:
    """Return the jobs and the machines after something went wrong; None changes nothing.

    The same seed gives the same noise at every severity, only stronger.

    Raises:
        InvalidWorkloadError: if the seed makes no sense.
        InvalidClusterError: if the machines cannot be perturbed so.
    """
    seed = whole_number("seed", seed, smallest=0)
    if perturbation is None:
        return workload, cluster
    kind = PERTURBATIONS[perturbation.kind]
    # The name is part of the seed: the noise of one kind says nothing about that of another.
    dice = np.random.default_rng([seed, zlib.crc32(kind.name.encode())])
    jobs, machines = kind.disturb(workload, cluster, perturbation.severity, dice)
    return jobs.renamed(workload.name, f"perturbed: {perturbation}, seed {seed}"), machines


def _arrival_noise(
    workload: Workload, cluster: Cluster, severity: float, dice: Dice
) -> tuple[Workload, Cluster]:
    """Scale every gap by a factor of mean 1; the span, and with it the load, stays."""
    gaps_s = np.diff(workload.submit_s) * _factors(dice, len(workload) - 1, severity)
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    passed_s = np.concatenate(([0.0], np.cumsum(gaps_s)))
    if passed_s[-1] > 0:
        passed_s *= span_s / passed_s[-1]
    return _resubmitted(workload, workload.submit_s[0] + passed_s), cluster


def _duration_distortion(
    workload: Workload, cluster: Cluster, severity: float, dice: Dice
) -> tuple[Workload, Cluster]:
    """Scale every run time by a factor of mean 1; estimates and deadlines stay."""
    distorted = workload.duration_s * _factors(dice, len(workload), severity)
    if _are_whole(workload.duration_s):
        distorted = np.round(distorted)
    shortest_s = np.minimum(workload.duration_s, SHORTEST_S)
    return workload.with_columns(duration_s=np.maximum(distorted, shortest_s)), cluster


def _phase_shift(
    workload: Workload, cluster: Cluster, severity: float, dice: Dice
) -> tuple[Workload, Cluster]:
    """Turn submissions round by a share of their span: those at the end come first."""
    del dice
    first_s = workload.submit_s[0]
    span_s = float(workload.submit_s[-1] - first_s)
    # After the last job one mean gap passes before the first one comes again.
    cycle_s = span_s * len(workload) / max(len(workload) - 1, 1)
    if cycle_s == 0:
        return workload, cluster
    turned_s = np.mod(workload.submit_s - first_s + severity * cycle_s, cycle_s)
    return _resubmitted(workload, first_s + turned_s), cluster


def _burst_amplification(
    workload: Workload, cluster: Cluster, severity: float, dice: Dice
) -> tuple[Workload, Cluster]:
    """Let jobs of bursts come so many times as fast, and the others over the time that is left."""
    del dice
    first_s, last_s = float(workload.submit_s[0]), float(workload.submit_s[-1])
    edges_s = np.linspace(first_s, last_s, BURST_WINDOWS + 1)
    counts, _ = np.histogram(workload.submit_s, edges_s) if last_s > first_s else ([0], None)
    is_burst = np.asarray(counts) > np.mean(counts)
    if not is_burst.any():
        return workload, cluster
    window_s = (last_s - first_s) / BURST_WINDOWS
    burst_s = window_s / severity
    quiet_s = (last_s - first_s - burst_s * is_burst.sum()) / (~is_burst).sum()
    lengths_s = np.where(is_burst, burst_s, quiet_s)
    moved_edges_s = np.concatenate(([first_s], first_s + np.cumsum(lengths_s)))
    return _resubmitted(workload, np.interp(workload.submit_s, edges_s, moved_edges_s)), cluster


def _capacity_dip(
    workload: Workload, cluster: Cluster, severity: float, dice: Dice
) -> tuple[Workload, Cluster]:
    """Take nodes away so that a share of the GPU time of the span of submissions is lost."""
    failures = cluster.site.failures
    if math.isfinite(failures.mtbf_h) or failures.outages:
        raise InvalidClusterError(
            f"{cluster.name}: has failures of its own, to which no dips can be added."
        )
    machines = _in_parts(cluster)
    first_s = float(workload.submit_s[0])
    part_s = float(workload.submit_s[-1] - first_s) / DIPS
    dips: list[Outage] = []
    for number in range(DIPS):
        nodes = _some_nodes(machines, dice)
        length_s = severity * part_s * machines.gpus / int(machines.node_gpus[nodes].sum())
        down_s = first_s + part_s * number + dice.random() * (part_s - length_s)
        up_s = down_s + length_s
        dips += [Outage(int(node), down_s, up_s) for node in nodes if up_s > down_s]
    site = replace(machines.site, failures=replace(failures, outages=tuple(dips)))
    return workload, machines.under(site)


def _some_nodes(cluster: Cluster, dice: Dice) -> IntArray:
    """Return random nodes, as few of them as hold at least half of the GPUs."""
    order = dice.permutation(cluster.nodes)
    held = np.cumsum(cluster.node_gpus[order])
    return np.sort(order[: int(np.searchsorted(held, cluster.gpus / 2)) + 1])


def _in_parts(cluster: Cluster) -> Cluster:
    """Return a pool as nodes of one GPU each, so that a part of it can be away."""
    if not cluster.is_pool:
        return cluster
    gpus = cluster.gpus
    group = NodeGroup(
        count=gpus,
        gpu_type=cluster.gpu_types[0],
        gpus=1,
        cpus=float(cluster.node_cpus[0]) / gpus,
        memory_gib=float(cluster.node_memory_gib[0]) / gpus,
        overhead_w=float(cluster.node_overhead_w[0]) / gpus,
        sharing=Sharing(int(cluster.node_sharing[0])),
    )
    return from_groups([group], name=cluster.name, site=cluster.site)


def _factors(dice: Dice, count: int, relative_sd: float) -> FloatArray:
    """Draw log-normal factors of mean 1 and this standard deviation."""
    sigma = math.sqrt(math.log1p(relative_sd**2))
    return np.exp(sigma * dice.standard_normal(count) - 0.5 * sigma**2)


def _resubmitted(workload: Workload, submit_s: FloatArray) -> Workload:
    """Move submissions, and deadlines with them; whole seconds stay whole."""
    if _are_whole(workload.submit_s):
        submit_s = np.round(submit_s)
    deadline_s = workload.deadline_s + (submit_s - workload.submit_s)
    return workload.with_columns(submit_s=submit_s, deadline_s=deadline_s, recorded_wait_s=None)


def _are_whole(seconds: FloatArray) -> bool:
    return bool((seconds == np.round(seconds)).all())


PERTURBATIONS: Registry[PerturbationKind] = Registry("perturbation")
"""Every kind of perturbation, by name."""

for _kind in (
    PerturbationKind(
        "arrival-noise",
        "every gap between submissions × a random factor of mean 1; the span stays",
        "standard deviation of the factor",
        (0.05, 0.10, 0.15, 0.20),
        10.0,
        _arrival_noise,
    ),
    PerturbationKind(
        "duration-distortion",
        "every run time × a random factor of mean 1; estimates and deadlines stay",
        "standard deviation of the factor",
        (0.25, 0.50, 0.75, 1.00),
        10.0,
        _duration_distortion,
    ),
    PerturbationKind(
        "phase-shift",
        "submissions turned round within their span: the last come first",
        "share of the span",
        (0.125, 0.25, 0.375, 0.50),
        1.0,
        _phase_shift,
    ),
    PerturbationKind(
        "burst-amplification",
        "jobs of bursts come so many times as fast, the others slower; the span stays",
        "factor on the rate in bursts",
        (1.5, 2.0, 2.5, 3.0),
        1e6,
        _burst_amplification,
        above=1.0,
    ),
    PerturbationKind(
        "capacity-dip",
        "half of the GPUs or a little more away, three times; jobs on them start again",
        "share of the GPU time lost",
        (0.05, 0.10, 0.15, 0.20),
        0.5,
        _capacity_dip,
    ),
):
    PERTURBATIONS.add(_kind.name, _kind)
