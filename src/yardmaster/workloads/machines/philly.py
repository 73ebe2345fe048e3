"""Microsoft Philly: `cluster_machine_list`, which names the memory of GPUs but not their model."""

from __future__ import annotations

import polars as pl

from yardmaster.workloads.machines.listing import (
    NO_GPU,
    MachineFormat,
    MachineList,
    MachineOptions,
    StandIn,
)
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.judging import judged
from yardmaster.workloads.traces.reading.trace_files import TraceFile

GPUS, MEMORY = "number of GPUs", "single GPU mem"
FIELDS = (
    Field("machineId", Kind.TEXT),
    Field(GPUS, Kind.COUNT),
    Field(MEMORY, Kind.TEXT),
)
SIZE = r"^(\d{1,4}(?:\.\d+)?) ?Gi?B?$"
UNREADABLE = Reason("its GPU memory is not a size such as 24GB", ~pl.col(MEMORY).str.contains(SIZE))
STAND_IN = "P100"
"""What the named cluster `philly` takes for every GPU: a difference in speed would be invented."""


def read(file: TraceFile, options: MachineOptions, ledger: Ledger) -> MachineList:
    """Read the machine list."""
    rows = read_rows(file, FIELDS, ledger, options.rows)
    kept = judged(
        rows,
        "machines",
        mistakes=[UNREADABLE],
        reasons=[Reason(NO_GPU, pl.col(GPUS) == 0)],
        named_by="machineId",
        options=options.rows,
        ledger=ledger,
    )
    size = pl.col(MEMORY).str.extract(SIZE).cast(pl.Float64)
    machines = kept.select(
        gpu_type=pl.format("GPU-{}G", size.cast(pl.String).str.strip_suffix(".0")),
        gpus=GPUS,
        cpus=pl.lit(None, pl.Float64),
        memory_gib=pl.lit(None, pl.Float64),
        gpu_memory=size,
    )
    sizes = dict(machines.select("gpu_type", "gpu_memory").unique().iter_rows())
    stand_ins = {
        name: StandIn(STAND_IN, "model not published", memory_gib=size or None)
        for name, size in sizes.items()
    }
    return MachineList(machines.drop("gpu_memory"), stand_ins)


FORMAT = MachineFormat(
    name="philly",
    reads="cluster_machine_list",
    source="Microsoft Philly, 2017 (Jeon et al., USENIX ATC 2019; CC-BY-4.0)",
    recognises=lambda file: file.has_columns("machineid", GPUS.lower(), MEMORY.lower()),
    read=read,
)
FORMATS = (FORMAT,)
