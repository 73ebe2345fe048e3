"""The same cluster with other machines or other quotas: what an owner could buy, sell or promise.

Nodes that stay keep everything: type, GPUs, rack, host, sharing, and the site's rules. Durations
stay those of the original cluster: where its rules name no reference GPU, its most numerous type
is written down as the reference, so that buying faster GPUs does not lengthen every job.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from yardmaster.errors import InvalidClusterError
from yardmaster.model.cluster import LARGEST_CLUSTER_GPUS, Cluster
from yardmaster.model.columns import BoolArray
from yardmaster.model.gpus import GpuType, gpu_type, type_key
from yardmaster.model.site import Outage, Quota, Site
from yardmaster.names import did_you_mean

_GROUP = re.compile(r"\s*(?:(\d{1,9})\s*[xX×]\s*)?([A-Za-z][\w.\-]*)\s*(?::\s*(\d{1,9}))?\s*")
_NODE_COLUMNS = (
    "node_type", "node_gpus", "node_rack", "node_cpus", "node_memory_gib", "node_overhead_w",
    "node_sharing",
)  # fmt: skip


class Nodes(NamedTuple):
    """So many nodes of a type, as a user writes them: `4x A100:8`."""

    number: int
    type_name: str
    gpus: int | None
    """GPUs in each node; None: not said."""


def parse_nodes(text: str) -> Nodes:
    """Read `4x A100:8`, `4x A100` or `A100:8`.

    Raises:
        InvalidClusterError: if the text is not of that form.
    """
    match = _GROUP.fullmatch(text)
    if not match or match[1] in {"0", "00"} or match[3] == "0":
        raise InvalidClusterError(
            f"Cannot read nodes {text!r}: write 'NODESx TYPE:GPUS', such as '4x A100:8'."
        )
    return Nodes(int(match[1] or 1), match[2], int(match[3]) if match[3] else None)


def add_nodes(cluster: Cluster, nodes: str | Nodes) -> Cluster:
    """Return the cluster with more nodes, in a rack of their own behind all others.

    A node of a type and size that the cluster has already gets the same host as the last such
    node. GPUs per node may be left out for a type the cluster has. A pool gets the nodes' GPUs.

    Raises:
        InvalidClusterError: if the GPUs per node are unknown, or a pool has another type.
        UnknownNameError: if nobody knows the GPU type.
    """
    wanted = parse_nodes(nodes) if isinstance(nodes, str) else nodes
    change = f"Cannot add {_text(wanted)} to {cluster.name}"
    if cluster.is_pool:
        return _resized_pool(cluster, wanted, 1, change)
    kind = _known_type(cluster, wanted.type_name)
    kinds = cluster.gpu_types if kind in cluster.gpu_types else (*cluster.gpu_types, kind)
    type_number = kinds.index(kind)
    gpus = wanted.gpus or _usual_gpus(cluster, type_number)
    if gpus is None:
        raise InvalidClusterError(
            f"{change}: say how many GPUs a node has, such as '{_text(wanted)}:8'."
        )
    if cluster.gpus + wanted.number * gpus > LARGEST_CLUSTER_GPUS:
        raise InvalidClusterError(f"{change}: more than {LARGEST_CLUSTER_GPUS:,} GPUs.")
    like = np.flatnonzero((cluster.node_type == type_number) & (cluster.node_gpus == gpus))
    new = _new_node(cluster, int(like[-1]) if len(like) else None)
    new |= {"node_type": type_number, "node_gpus": gpus}
    columns: dict[str, Any] = {
        name: np.append(
            getattr(cluster, name), np.full(wanted.number, new[name], getattr(cluster, name).dtype)
        )
        for name in _NODE_COLUMNS
    }
    grown = replace(cluster, gpu_types=kinds, name=f"{cluster.name} + {_text(wanted)}", **columns)
    return _with_reference(grown, cluster)


def remove_nodes(cluster: Cluster, nodes: str | Nodes) -> Cluster:
    """Return the cluster without the last nodes of a type; all others keep everything.

    A pool loses as many GPUs as the nodes have.

    Raises:
        InvalidClusterError: if there are not so many of that type, or nothing would be left.
    """
    wanted = parse_nodes(nodes) if isinstance(nodes, str) else nodes
    change = f"Cannot remove {_text(wanted)} from {cluster.name}"
    if cluster.is_pool:
        return _resized_pool(cluster, wanted, -1, change)
    names = [kind.name for kind in cluster.gpu_types]
    keys = [type_key(name) for name in names]
    if type_key(wanted.type_name) not in keys:
        hint = did_you_mean(wanted.type_name, names)
        raise InvalidClusterError(
            f"{change}: it has no {wanted.type_name}.{hint} It has {', '.join(names)}."
        )
    fits = cluster.node_type == keys.index(type_key(wanted.type_name))
    if wanted.gpus is not None:
        fits &= cluster.node_gpus == wanted.gpus
    found = np.flatnonzero(fits)
    if len(found) < wanted.number:
        kind = _text(wanted._replace(number=1)).removeprefix("1x ")
        raise InvalidClusterError(f"{change}: it has only {len(found)} nodes of {kind}.")
    if wanted.number == cluster.nodes:
        raise InvalidClusterError(f"{change}: nothing would be left.")
    stays = np.ones(cluster.nodes, dtype=np.bool_)
    stays[found[len(found) - wanted.number :]] = False
    return replace(_only(cluster, stays), name=f"{cluster.name} − {_text(wanted)}")


def replace_nodes(cluster: Cluster, old: str | Nodes, new: str | Nodes) -> Cluster:
    """Return the cluster with some nodes given up for others, such as 8x V100 for 4x H100:8.

    Raises:
        InvalidClusterError: as `add_nodes` and `remove_nodes` do.
    """
    # First added: a cluster may give up all its old nodes.
    return remove_nodes(add_nodes(cluster, new), old)


def most_common_nodes(cluster: Cluster) -> Nodes:
    """Return the kind of node there are most of, with their number; the first of equals.

    A pool has no node borders: there, a node is one GPU.
    """
    if cluster.is_pool:
        return Nodes(cluster.gpus, cluster.gpu_types[0].name, 1)
    kinds, first, counts = np.unique(
        np.stack([cluster.node_type, cluster.node_gpus]), axis=1,
        return_index=True, return_counts=True,
    )  # fmt: skip
    most = min(range(len(counts)), key=lambda place: (-counts[place], first[place]))
    number, gpus = kinds[:, most].tolist()
    return Nodes(int(counts[most]), cluster.gpu_types[number].name, gpus)


def resize(cluster: Cluster, nodes: int, like: Nodes | None = None) -> Cluster:
    """Return the cluster with `nodes` more (or, below zero, fewer) nodes of its commonest kind.

    Args:
        cluster: the cluster as it is.
        nodes: how many more; 0 returns the cluster itself.
        like: the kind of node, if not the commonest.

    Raises:
        InvalidClusterError: if more nodes go than there are.
    """
    if not nodes:
        return cluster
    kind = (like or most_common_nodes(cluster))._replace(number=abs(nodes))
    return add_nodes(cluster, kind) if nodes > 0 else remove_nodes(cluster, kind)


def with_quota(cluster: Cluster, quota: Quota, *, tenants: frozenset[str]) -> Cluster:
    """Return the cluster with one tenant's quota set; the others keep theirs.

    Args:
        cluster: the cluster as it is.
        quota: the tenant's new quota.
        tenants: tenants that submit jobs; those with a quota are known anyway.

    Raises:
        InvalidClusterError: for an unknown tenant, and numbers that make no sense.
    """
    known = tenants | {each.tenant for each in cluster.site.quotas}
    change = f"Cannot set the quota of tenant {quota.tenant!r} on {cluster.name}"
    if quota.tenant not in known:
        hint = did_you_mean(quota.tenant, known)
        there = f" Known: {', '.join(sorted(known))}." if known else " There are no tenants."
        raise InvalidClusterError(f"{change}: nobody is called that.{hint}{there}")
    if quota.guaranteed_gpus < 0:
        raise InvalidClusterError(f"{change}: {quota.guaranteed_gpus} GPUs cannot be guaranteed.")
    if quota.limit_gpus is not None and quota.limit_gpus < max(quota.guaranteed_gpus, 1):
        raise InvalidClusterError(
            f"{change}: its limit of {quota.limit_gpus} GPUs is below what is guaranteed."
        )
    by_tenant = {each.tenant: each for each in cluster.site.quotas} | {quota.tenant: quota}
    return cluster.under(replace(cluster.site, quotas=tuple(by_tenant.values())))


def _text(nodes: Nodes) -> str:
    size = "" if nodes.gpus is None else f":{nodes.gpus}"
    return f"{nodes.number}x {nodes.type_name}{size}"


def _resized_pool(cluster: Cluster, nodes: Nodes, sign: int, change: str) -> Cluster:
    """Return a pool with more GPUs (sign 1), or fewer (−1): it has no nodes to add them as."""
    own = cluster.gpu_types[0].name
    amount = nodes.number * (nodes.gpus or 1)
    if type_key(nodes.type_name) != type_key(own) or len(cluster.gpu_types) > 1:
        raise InvalidClusterError(
            f"{change}: a pool has GPUs of one type, here {own}, and no nodes. For {amount} "
            f"{'more' if sign > 0 else 'fewer'} of them write --nodes {sign * amount:+d}."
        )
    gpus = cluster.gpus + sign * amount
    if gpus < 1:
        raise InvalidClusterError(f"{change}: nothing would be left.")
    if gpus > LARGEST_CLUSTER_GPUS:
        raise InvalidClusterError(f"{change}: more than {LARGEST_CLUSTER_GPUS:,} GPUs.")
    name = f"{cluster.name} {'+' if sign > 0 else '−'} {amount} GPU{'s' * (amount != 1)}"
    return replace(cluster, node_gpus=np.array([gpus], cluster.node_gpus.dtype), name=name)


def _known_type(cluster: Cluster, name: str) -> GpuType:
    """Return the cluster's own type of that name, or the catalogue's."""
    own = {type_key(kind.name): kind for kind in cluster.gpu_types}
    return own.get(type_key(name)) or gpu_type(name)


def _usual_gpus(cluster: Cluster, type_number: int) -> int | None:
    """Return how many GPUs most nodes of a type have; None if there are no such nodes."""
    sizes = cluster.node_gpus[cluster.node_type == type_number]
    return int(np.bincount(sizes).argmax()) if len(sizes) else None


def _new_node(cluster: Cluster, like: int | None) -> dict[str, Any]:
    """Return the columns of a node like another one; of an unknown host if there is none."""
    rack = {"node_rack": int(cluster.node_rack.max()) + 1}
    if like is not None:
        return {name: getattr(cluster, name)[like] for name in _NODE_COLUMNS} | rack
    unknown = {"node_cpus": np.nan, "node_memory_gib": np.nan}
    return {"node_overhead_w": 0.0, "node_sharing": 0} | unknown | rack


def _only(cluster: Cluster, stays: BoolArray) -> Cluster:
    """Return the cluster with some of its nodes, and with the types and outages of those."""
    columns = {name: getattr(cluster, name)[stays] for name in _NODE_COLUMNS}
    present, columns["node_type"] = np.unique(columns["node_type"], return_inverse=True)
    kinds = tuple(cluster.gpu_types[number] for number in present)
    smaller = replace(cluster, gpu_types=kinds, **columns)
    site = replace(
        smaller.site,
        failures=replace(smaller.site.failures, outages=_renumbered(cluster.site, stays)),
    )
    return _with_reference(smaller.under(site), cluster)


def _renumbered(site: Site, stays: BoolArray) -> tuple[Outage, ...]:
    """Return the outages of the nodes that stay, under the nodes' new numbers."""
    number = np.cumsum(stays) - 1
    return tuple(
        replace(outage, node=int(number[outage.node]))
        for outage in site.failures.outages
        if stays[outage.node]
    )


def _with_reference(changed: Cluster, original: Cluster) -> Cluster:
    """Write down on which GPU durations were measured, where the change could move it."""
    site = changed.site
    if site.reference_gpu or (
        changed.gpu_types == original.gpu_types and len(changed.gpu_types) < 2
    ):
        return changed
    gpus = np.bincount(original.node_type, original.node_gpus, len(original.gpu_types))
    name = original.gpu_types[int(gpus.argmax())].name
    return changed.under(replace(site, reference_gpu=name))
