"""SenseTime Helios: `cluster_gpu_number.csv`, how many GPUs each virtual cluster had on each day.

A virtual cluster (VC) owns whole nodes of 8 GPUs; 0 means that it was not there that day. The
cluster of one day has as many nodes as its VCs together, and guarantees each VC what it owned.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from yardmaster.errors import InvalidClusterError, TraceFormatError
from yardmaster.workloads.machines.listing import (
    MachineFormat,
    MachineList,
    MachineOptions,
    StandIn,
)
from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import read_rows
from yardmaster.workloads.traces.reading.trace_files import TraceFile

NODE_GPUS = 8
TYPES = {
    "venus": "V100", "earth": "V100", "uranus": "Pascal", "saturn": "Pascal-or-Volta",
}  # fmt: skip
"""What is published about the GPUs of each cluster; lists themselves say nothing."""

STAND_INS = {
    "Pascal": StandIn("P100", "only the generation is published"),
    "Pascal-or-Volta": StandIn("P100", "Pascal and Volta in unpublished shares"),
    "Helios-GPU": StandIn("V100", "the list does not say which of the four clusters it is of"),
}


def recognises(file: TraceFile) -> bool:
    """Tell the list by its columns: a date, virtual clusters, their total."""
    first, *others = file.columns() or ("",)
    return first == "date" and "total" in others and others[0].startswith("vc")


def read(file: TraceFile, options: MachineOptions, ledger: Ledger) -> MachineList:
    """Read the GPUs of one day."""
    # Case matters: vcKeu and vckeu would be two clusters.
    text = file.head.decode("utf-8", "replace").splitlines()[file.header_line]
    names = [name.strip() for name in text.split(",")]
    vcs = [name for name in names if name and name.lower() not in {"date", "total"}]
    fields = [Field("date", Kind.TEXT), *(Field(name, Kind.COUNT) for name in (*vcs, "total"))]
    rows = read_rows(file, fields, ledger, options.rows)
    day = _chosen(file, rows, options.at, ledger)
    gpus = {name: int(day[name]) for name in vcs if day[name]}
    absent = Dropped(f"not there on {day['date']}", len(vcs) - len(gpus))
    ledger.stage("virtual clusters", len(vcs), len(gpus), [absent])
    total = sum(gpus.values())
    if total != day["total"]:
        ledger.remark(f"total is {day['total']}, but the virtual clusters have {total} together")
    ledger.remark(
        "every virtual cluster is guaranteed its GPUs, and others may borrow them; in Helios they"
        " could not: add limit_gpus to the [[tenants]] to keep them apart"
    )
    nodes, rest = divmod(total, NODE_GPUS)
    sizes = [NODE_GPUS] * nodes + ([rest] if rest else [])
    published = (kind for name, kind in TYPES.items() if name in file.name.lower())
    kind = options.stand_ins.get("") or next(published, "Helios-GPU")
    machines = pl.DataFrame({"gpus": sizes}, schema={"gpus": pl.Int64}).with_columns(
        gpu_type=pl.lit(kind), cpus=pl.lit(None, pl.Float64), memory_gib=pl.lit(None, pl.Float64)
    )
    return MachineList(machines, STAND_INS, guarantees=gpus)


def _chosen(
    file: TraceFile, rows: pl.DataFrame, at: str | None, ledger: Ledger
) -> dict[str, str | int]:
    """Return the row of the day asked for, by default the last."""
    days = rows["date"].to_list()
    if not days:
        raise TraceFormatError(f"{file.name}: the list has no days.")
    wanted = days[-1] if at is None else _written(at)
    if wanted not in days:
        raise InvalidClusterError(f"{file.name}: there is no {at}; it has {days[0]} to {days[-1]}.")
    if len(days) > 1:
        fewest, most = (int(n) for n in rows.select(pl.min("total"), most=pl.max("total")).row(0))
        ledger.remark(
            f"the list has {len(days)} days with {fewest:,} to {most:,} GPUs; this is"
            f" {wanted} (--date chooses another)"
        )
    return rows.row(days.index(wanted), named=True)


def _written(at: str) -> str:
    try:
        return date.fromisoformat(at).isoformat()
    except ValueError:
        raise InvalidClusterError(f"--date: {at!r} is not a date such as 2020-07-01.") from None


FORMAT = MachineFormat(
    name="helios",
    reads="cluster_gpu_number.csv of one cluster, plain or in data.zip (choose with --only Venus)",
    source="SenseTime Helios, 2020 (Hu et al., SC 2021; CC-BY-4.0)",
    recognises=recognises,
    read=read,
)
FORMATS = (FORMAT,)
