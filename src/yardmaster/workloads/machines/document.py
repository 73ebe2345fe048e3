"""From a list of machines to a cluster document, with an account of what was taken over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from yardmaster.errors import InvalidClusterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import gpu_type, is_gpu_type, type_key
from yardmaster.names import did_you_mean
from yardmaster.workloads.files import whole_file
from yardmaster.workloads.machines.listing import (
    MachineFormat,
    MachineList,
    MachineOptions,
    StandIn,
)
from yardmaster.workloads.traces.reading.account import Account, Ledger

UNNAMED = "unnamed-GPU"
ANY_STAND_IN = StandIn("A100")
"""For types nobody has heard of; the account says so, and the user may name another."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ImportedCluster:
    """A list of machines as a cluster, and the account of how it came about.

    Attributes:
        document: what the cluster file holds.
        cluster: the same as a cluster.
        account: machines read, kept and dropped, and every assumption.
    """

    document: Mapping[str, Any]
    cluster: Cluster
    account: Account

    def lines(self) -> list[str]:
        """Return the account as people read it, one fact per line."""
        lines = [f"{self.account.format}: {', '.join(self.account.files)}"]
        for stage in self.account.stages:
            lines.append(f"{stage.read:,} {stage.what} read, {stage.kept:,} kept")
            for entry in stage.dropped:
                places = f" ({', '.join(entry.examples)})" if entry.examples else ""
                lines.append(f"  dropped {entry.count:,}: {entry.reason}{places}")
        missing = ", ".join(self.account.missing_columns)
        lines += [f"columns missing: {missing}"] if missing else []
        lines += [f"note: {remark}" for remark in self.account.remarks]
        return [*lines, self.cluster.describe()]

    def to_dict(self) -> dict[str, Any]:
        """Return the account in plain lists and dictionaries, for JSON."""
        account = self.account.to_dict()
        wanted = ("format", "files", "stages", "missing_columns", "remarks")
        size = {"nodes": self.cluster.nodes, "gpus": self.cluster.gpus}
        return {key: account[key] for key in wanted} | size

    def write(self, path: Path, *, overwrite: bool) -> None:
        """Write the cluster file, whole or not at all.

        Raises:
            InvalidWorkloadError: if the file may not be replaced or cannot be written.
        """
        import tomli_w

        about = "".join(f"# {_UNPRINTABLE.sub(' ', line)}\n" for line in self.lines())
        text = f"# Made by `yardmaster cluster import`.\n{about}\n{tomli_w.dumps(self.document)}"
        with whole_file(path, overwrite=overwrite) as unfinished:
            unfinished.write_text(text, encoding="utf-8")


def made_into_cluster(
    listed: MachineList, entry: MachineFormat, options: MachineOptions, ledger: Ledger, name: str
) -> ImportedCluster:
    """Turn a list of machines into a cluster document and check it as any other is checked.

    Raises:
        InvalidClusterError: if no machine is left, or a stand-in is for a type that needs none.
        UnknownNameError: if a stand-in is not in the catalogue.
        InvalidConfigError: if the cluster makes no sense, such as one of a billion GPUs.
    """
    from yardmaster.model.cluster_document import ClusterDocument
    from yardmaster.model.documents import validate

    if listed.machines.is_empty():
        raise InvalidClusterError(f"{', '.join(ledger.files)}: no machine with a GPU is left.")
    machines = listed.machines.with_columns(pl.col("gpu_type").fill_null(UNNAMED))
    own = _own_types(machines, listed, options, ledger)
    document = {
        "description": f"{name}: {len(machines):,} nodes, {machines['gpus'].sum():,} GPUs",
        "source": entry.source,
        **({"equal_speeds": True} if listed.equal_speeds else {}),
        "gpu_types": own,
        "nodes": _groups(machines, listed),
        "tenants": [
            {"name": tenant, "guaranteed_gpus": gpus} for tenant, gpus in listed.guarantees.items()
        ],
    }
    document = {key: value for key, value in document.items() if value}
    cluster = validate(ClusterDocument, document, where=name).cluster(name)
    return ImportedCluster(document, cluster, ledger.closed(time_zone="", begins=""))


def _own_types(
    machines: pl.DataFrame, listed: MachineList, options: MachineOptions, ledger: Ledger
) -> dict[str, dict[str, Any]]:
    """Return the GPU types that the catalogue does not know, each with its stand-in."""
    counts = machines.group_by("gpu_type", maintain_order=True).agg(pl.col("gpus").sum())
    unknown = {name: gpus for name, gpus in counts.iter_rows() if not is_gpu_type(name)}
    _refuse_needless(options.stand_ins, unknown)
    own: dict[str, dict[str, Any]] = {}
    for name, gpus in unknown.items():
        stand_in = listed.stand_ins.get(name, ANY_STAND_IN)
        chosen = _named(options.stand_ins, name) or options.stand_ins.get("")
        like = gpu_type(chosen or stand_in.like).name
        reason = f"{stand_in.because}; the figures of {like} stand in"
        ledger.remark(
            f"{name} ({gpus:,} GPUs): {reason}"
            + ("" if chosen else f" (--gpu-type {name}=TYPE takes another's)")
        )
        memory = {} if stand_in.memory_gib is None else {"memory_gib": stand_in.memory_gib}
        own[name] = {"like": like, **memory, "source": reason}
    return own


def _named(stand_ins: Mapping[str, str], name: str) -> str | None:
    keys = {type_key(theirs): ours for theirs, ours in stand_ins.items() if theirs}
    return keys.get(type_key(name))


def _refuse_needless(stand_ins: Mapping[str, str], unknown: Mapping[str, int]) -> None:
    """Complain about stand-ins for types that are not there or need none: typing mistakes."""
    keys = {type_key(name) for name in unknown}
    for theirs in filter(None, stand_ins):
        if type_key(theirs) not in keys:
            wanting = ", ".join(unknown) or "none of them"
            raise InvalidClusterError(
                f"--gpu-type {theirs}=…: no such type needs a stand-in."
                f"{did_you_mean(theirs, unknown)} Types the catalogue does not know: {wanting}."
            )


def _groups(machines: pl.DataFrame, listed: MachineList) -> list[dict[str, Any]]:
    """Return equal machines as groups of nodes, in the order in which they are listed."""
    alike = machines.group_by("gpu_type", "gpus", "cpus", "memory_gib", maintain_order=True).len()
    groups = []
    for kind, gpus, cpus, memory_gib, count in alike.iter_rows():
        group = {
            "count": count,
            "gpu_type": gpu_type(kind).name if is_gpu_type(kind) else kind,
            "gpus": gpus,
            "cpus": cpus,
            "memory_gib": memory_gib,
            "sharing": listed.sharing if listed.sharing != "none" else None,
        }
        groups.append({key: value for key, value in group.items() if value})
    return groups
