"""A cluster and the rules of its site in words, so that their owner can check them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isinf

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import GpuType
from yardmaster.model.site import Checkpoints, Failures, Power, Quota, Sharing, Site
from yardmaster.model.speeds import speed
from yardmaster.report.values import duration_unit, number, plain

MOST_OUTAGES = 3
"""Listed outages told one by one; of more only the number."""
_SHARING = {
    Sharing.MPS: "share a GPU in thousandths (MPS) and slow each other down",
    Sharing.MIG: "share a GPU in sevenths (MIG) and leave each other alone",
}


def rules_in_words(cluster: Cluster) -> list[tuple[str, str]]:
    """Return (topic, sentences) of all that is simulated here, whether a rule is set or not."""
    site = cluster.site
    return [
        ("machines", " ".join(_machines(cluster))),
        ("speeds", " ".join(_speeds(cluster))),
        ("sharing", " ".join(_sharing(cluster))),
        ("tenants", " ".join(_tenants(site.quotas, cluster.gpus))),
        ("stopping jobs", " ".join(_stopping(site))),
        ("failures", " ".join(_failures(site.failures))),
        ("power", " ".join(_power(site.power, cluster))),
    ]


def _machines(cluster: Cluster) -> Iterator[str]:
    yield f"{plain(cluster.describe())}."
    racks = int(cluster.node_rack.max()) + 1
    if racks > 1:
        yield f"{racks} racks."
    known = [
        what
        for what, amounts in (
            ("cores", cluster.node_cpus),
            ("host memory", cluster.node_memory_gib),
        )
        if not np.isnan(amounts).all()
    ]
    if known:
        yield f"Jobs that say what they need share out {' and '.join(known)} of each node."


def _speeds(cluster: Cluster) -> Iterator[str]:
    site, kinds = cluster.site, cluster.gpu_types
    if site.equal_speeds:
        yield "All GPU types count as equally fast, and distance as free."
        return
    reference = _reference(cluster)
    if len(kinds) > 1:
        ratios = ", ".join(f"{each.name} {speed(None, each, reference):.2f}×" for each in kinds)
        yield (
            f"Durations count as measured on {reference.name}; a job of unknown kind runs on"
            f" {ratios} as fast, a known kind as measured (`list kinds`)."
        )
    else:
        yield f"Every job runs as fast as its duration says, on {kinds[0].name}."
    spread = "may be spread over nodes" if site.splits_gangs else "stay within one node if they fit"
    yield f"Gangs {spread}."


def _reference(cluster: Cluster) -> GpuType:
    from yardmaster.engine.conditions import reference_gpu

    return reference_gpu(cluster)


def _sharing(cluster: Cluster) -> Iterator[str]:
    for how, what in _SHARING.items():
        nodes = int(np.count_nonzero(cluster.node_sharing == how))
        if nodes:
            yield f"On {_count(nodes, 'node')}, jobs that ask for part of a GPU {what}."
    if not cluster.node_sharing.any():
        yield "None: a job that asks for part of a GPU holds a whole one."


def _tenants(quotas: Sequence[Quota], gpus: int) -> Iterator[str]:
    if not quotas:
        yield "No quotas: whoever is first in order may take everything."
        return
    total = sum(quota.guaranteed_gpus for quota in quotas)
    yield (
        f"{total:,} of {gpus:,} GPUs are guaranteed; jobs within their tenant's guarantee go before"
        " all others, and what is free may be borrowed."
    )
    for quota in quotas:
        limit = "" if quota.limit_gpus is None else f", at most {quota.limit_gpus:,}"
        yield f"{plain(quota.tenant)}: {quota.guaranteed_gpus:,} guaranteed{limit}."
    yield "Tenants without a quota are guaranteed nothing."


def _stopping(site: Site) -> Iterator[str]:
    saves = site.checkpoints
    if saves == Checkpoints() and not site.quantum_s:
        yield (
            "Nothing is said about checkpoints: stopping a job costs nothing if it is preempted,"
            " and all its work if its node fails."
        )
        return
    if isinf(saves.every_s):
        yield "No periodic checkpoints: a job whose node fails begins anew."
    else:
        share = saves.save_s / saves.every_s
        yield (
            f"Running jobs are saved every {_duration(saves.every_s)}, which takes"
            f" {_duration(saves.save_s)} ({number(share * 100, 1)} % of their time)."
        )
    kept = "saves itself first" if saves.on_preemption else "falls back to its last checkpoint"
    yield f"A job that must make room {kept}; starting again takes {_duration(saves.restore_s)}."
    if site.quantum_s:
        yield f"Nobody is stopped, moved or resized within {_duration(site.quantum_s)} of a start."


def _failures(failures: Failures) -> Iterator[str]:
    if isinf(failures.mtbf_h) and not failures.outages:
        yield "Nodes never fail."
        return
    if not isinf(failures.mtbf_h):
        yield (
            f"Each node fails every {_duration(failures.mtbf_h * 3600)} on average and is away for"
            f" {_duration(failures.mttr_h * 3600)}; when, is drawn by the seed."
        )
    else:
        yield f"{_count(len(failures.outages), 'outage')} listed."
    for outage in failures.outages[:MOST_OUTAGES]:
        yield (
            f"Node {outage.node} is away from {_duration(outage.down_s)} to"
            f" {_duration(outage.up_s)}."
        )
    if len(failures.outages) > MOST_OUTAGES:
        yield "And so on."
    again = (
        "always"
        if failures.retries is None
        else f"up to {_count(failures.retries, 'time')}, then given up as failed"
    )
    yield f"A job that loses a node is started again {again}."


def _power(power: Power, cluster: Cluster) -> Iterator[str]:
    idle = sum(
        int(gpus) * cluster.gpu_types[kind].idle_w
        for kind, gpus in zip(cluster.node_type.tolist(), cluster.node_gpus.tolist(), strict=True)
    )
    busy_w = {kind.name: kind.busy_w for kind in cluster.gpu_types}
    per_gpu = ", ".join(f"{name} {watts:g} W" for name, watts in busy_w.items())
    overhead = float(cluster.node_overhead_w.sum())
    yield f"Idle, it draws {(idle + overhead) / 1000:.1f} kW; a busy GPU draws {per_gpu}."
    if power.cap_w < inf:
        yield f"Running jobs may draw at most {power.cap_w / 1000:g} kW above that together."
    yield from _by_hour("A kilowatt-hour costs", power.price_per_kwh, "0.15, as no price is set")
    if power.carbon_g_per_kwh:
        yield from _by_hour("Grams of CO₂ per kilowatt-hour:", power.carbon_g_per_kwh, "")
    if not isinf(power.sleep_after_s):
        yield f"A node without a job sleeps after {_duration(power.sleep_after_s)}."


def _by_hour(what: str, figures: Sequence[float], otherwise: str) -> Iterator[str]:
    if len(set(figures)) > 1:
        low, high = min(figures), max(figures)
        yield (
            f"{what} from {low:g} (hour {figures.index(low)} of the day) to {high:g} (hour"
            f" {figures.index(high)})."
        )
    else:
        yield f"{what} {figures[0]:g}." if figures else f"{what} {otherwise}."


def _count(number_of: int, thing: str) -> str:
    return f"{number_of:,} {thing}{'' if number_of == 1 else 's'}"


def _duration(seconds: float) -> str:
    unit = duration_unit([seconds])
    return f"{round(seconds / unit.size, 2):g} {unit.symbol}"
