"""Machine lists of Alibaba's traces: PAI 2020, openb 2023 and spot 2026."""

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
from yardmaster.workloads.traces.reading.delimited import COMMAS, Layout, Reason, read_rows
from yardmaster.workloads.traces.reading.trace_files import TraceFile

UNDISCLOSED = "undisclosed by Alibaba"
STAND_INS = {
    # The named cluster `openb` takes the same: a small and a large GPU of the same years.
    "G1": StandIn("A10", UNDISCLOSED),
    "G2": StandIn("A10", UNDISCLOSED),
    "G3": StandIn("A100", UNDISCLOSED),
    "GPU-series-1": StandIn("A100", UNDISCLOSED),
    "GPU-series-2": StandIn("A100", UNDISCLOSED),
    "A800-SXM4-80GB": StandIn("A100", "an A100 with slower links between GPUs"),
}

# --- openb 2023 -----------------------------------------------------------------------------------

OPENB_FIELDS = (
    Field("sn", Kind.TEXT),
    Field("cpu_milli", Kind.AMOUNT, needed=False),
    Field("memory_mib", Kind.AMOUNT, needed=False),
    Field("gpu", Kind.COUNT),
    Field("model", Kind.TEXT, may_be_blank=True),
)


def read_openb(file: TraceFile, options: MachineOptions, ledger: Ledger) -> MachineList:
    """Read `openb_node_list_all_node.csv` or `openb_node_list_gpu_node.csv`."""
    reasons = [Reason(NO_GPU, pl.col("gpu") == 0)]
    rows = read_rows(file, OPENB_FIELDS, ledger, options.rows, reasons=reasons)
    machines = rows.select(
        gpu_type="model",
        gpus="gpu",
        cpus=pl.col("cpu_milli") / 1000.0,
        memory_gib=pl.col("memory_mib") / 1024.0,
    )
    return MachineList(machines, STAND_INS, sharing="mps")


OPENB = MachineFormat(
    name="alibaba-openb-2023",
    reads="openb_node_list_all_node.csv or openb_node_list_gpu_node.csv",
    source="Alibaba cluster-trace-gpu-v2023, 2023 (Weng et al., USENIX ATC 2023)",
    recognises=lambda file: file.has_columns("sn", "cpu_milli", "memory_mib", "gpu", "model"),
    read=read_openb,
)

# --- PAI 2020 -------------------------------------------------------------------------------------

PAI_NAMES = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
PAI_TYPES = frozenset({"CPU", "MISC", "T4", "P100", "V100", "V100M32"})
PAI_FIELDS = (
    Field("machine", Kind.TEXT),
    Field("gpu_type", Kind.TEXT, may_be_blank=True),
    Field("cap_cpu", Kind.AMOUNT, may_be_blank=True),
    Field("cap_mem", Kind.AMOUNT, may_be_blank=True),
    Field("cap_gpu", Kind.COUNT, may_be_blank=True),
)


def is_pai(file: TraceFile) -> bool:
    """Tell `pai_machine_spec` by its name, or by its five cells: it has no header."""
    name = file.short_name
    if name.endswith(".header"):
        return False
    rows = [line.split(",") for line in file.lines[:20]]
    by_cells = bool(rows) and all(len(row) == 5 and row[1] in PAI_TYPES for row in rows)
    return name.startswith("pai_machine_spec") or by_cells or file.columns() == PAI_NAMES


def read_pai(file: TraceFile, options: MachineOptions, ledger: Ledger) -> MachineList:
    """Read `pai_machine_spec`."""
    layout = COMMAS if file.columns() == PAI_NAMES else Layout(names=PAI_NAMES)
    reasons = [Reason(NO_GPU, pl.col("cap_gpu").fill_null(0) == 0)]
    rows = read_rows(file, PAI_FIELDS, ledger, options.rows, reasons=reasons, layout=layout)
    machines = rows.select("gpu_type", gpus="cap_gpu", cpus="cap_cpu", memory_gib="cap_mem")
    return MachineList(machines, STAND_INS, sharing="mps")


PAI = MachineFormat(
    name="alibaba-pai-2020",
    reads="pai_machine_spec (.csv or .tar.gz)",
    source="Alibaba cluster-trace-gpu-v2020, 2020 (Weng et al., NSDI 2022; CC-BY-4.0)",
    recognises=is_pai,
    read=read_pai,
)

# --- spot 2026 ------------------------------------------------------------------------------------

SPOT_FIELDS = (
    Field("gpu_model", Kind.TEXT, may_be_blank=True),
    Field("gpu_capacity_num", Kind.COUNT),
    Field("cpu_num", Kind.AMOUNT, needed=False),
)


def read_spot(file: TraceFile, options: MachineOptions, ledger: Ledger) -> MachineList:
    """Read `node_info_df.csv`, whose columns come in more than one order."""
    reasons = [Reason(NO_GPU, pl.col("gpu_capacity_num") == 0)]
    rows = read_rows(file, SPOT_FIELDS, ledger, options.rows, reasons=reasons)
    machines = rows.select(
        gpu_type="gpu_model",
        gpus="gpu_capacity_num",
        cpus="cpu_num",
        memory_gib=pl.lit(None, pl.Float64),
    )
    return MachineList(machines, STAND_INS, sharing="mps")


SPOT = MachineFormat(
    name="alibaba-spot-2026",
    reads="node_info_df.csv",
    source="Alibaba cluster-trace-v2026-spot-gpu, 2026 (Duan et al., ASPLOS 2026)",
    recognises=lambda file: file.has_columns("gpu_model", "gpu_capacity_num", "node_name"),
    read=read_spot,
)
FORMATS = (OPENB, PAI, SPOT)
