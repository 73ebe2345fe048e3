"""Google ClusterData 2011: `machine_events`, machines without GPUs that come, change and go.

Capacities are fractions of the largest machine. A machine becomes as many slots as fit into its
cores, and a slot, of the same size as for the jobs, counts as a GPU. Events at microsecond 0 are
what was there before the trace.
"""

from __future__ import annotations

import math
import re

import polars as pl

from yardmaster.errors import InvalidClusterError
from yardmaster.workloads.machines.listing import (
    MachineFormat,
    MachineList,
    MachineOptions,
    StandIn,
)
from yardmaster.workloads.traces.borg_jobs import slot_share
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Layout, read_rows
from yardmaster.workloads.traces.reading.draft import dropped_where
from yardmaster.workloads.traces.reading.trace_files import TraceFile

NAMES = ("time", "machine_id", "event_type", "platform_id", "cpus", "memory")
FIELDS = (
    Field("time", Kind.AMOUNT),
    Field("machine_id", Kind.WHOLE),
    Field("event_type", Kind.COUNT),
    Field("cpus", Kind.AMOUNT, may_be_blank=True),
)
REMOVE = 1
SLOT_TYPE = "CPU-slot"
STAND_INS = {SLOT_TYPE: StandIn("P4", "a slot of cores and no GPU")}
_ROW = re.compile(r"\d+,\d+,[012],[^,]*,(?:0(?:\.\d+)?|1(?:\.0+)?)?,(?:0(?:\.\d+)?|1(?:\.0+)?)?")


def recognises(file: TraceFile) -> bool:
    """Tell the events by their folder's or file's name, or by their six cells."""
    if "machine_events" in file.name.replace("!", "/").lower():
        return len((file.lines or [""])[0].split(",")) == len(NAMES)
    return bool(file.lines) and all(_ROW.fullmatch(line) for line in file.lines[:20])


def read(file: TraceFile, options: MachineOptions, ledger: Ledger) -> MachineList:
    """Read which machines are there at one moment, by default when the trace begins."""
    slot = slot_share(options.rows)
    at_s = _second(options.at)
    events = read_rows(file, FIELDS, ledger, options.rows, layout=Layout(names=NAMES))
    slots = (pl.col("cpus") / slot + 1e-9).floor()
    latest = _latest(events, at_s).with_columns(slots=slots)
    there = pl.col("event").is_not_null() & (pl.col("event") != REMOVE)
    kept = dropped_where(
        latest,
        "machines",
        [
            (f"not there at second {at_s:g}", ~there),
            ("no capacity recorded", pl.col("cpus").is_null()),
            (f"smaller than one slot, {slot:g} of the largest machine", pl.col("slots") < 1),
        ],
        ledger,
    )
    ledger.remark(
        f"machines have no GPUs: {slot:g} of the largest machine's cores are one slot, which counts"
        " as a GPU; use the same --slot-cores for the jobs"
    )
    machines = kept.select(
        gpu_type=pl.lit(SLOT_TYPE),
        gpus=pl.col("slots").cast(pl.Int64),
        cpus=pl.lit(None, pl.Float64),
        memory_gib=pl.lit(None, pl.Float64),
    )
    return MachineList(machines, STAND_INS, equal_speeds=True)


def _latest(events: pl.DataFrame, at_s: float) -> pl.DataFrame:
    """Return each machine's last event and capacity up to a second, null if there is none yet."""
    happened = pl.col("time") <= at_s * 1e6
    return (
        events.sort("time", maintain_order=True)
        .group_by("machine_id", maintain_order=True)
        .agg(
            event=pl.col("event_type").filter(happened).last(),
            cpus=pl.col("cpus").filter(happened).drop_nulls().last(),
        )
    )


def _second(at: str | None) -> float:
    try:
        second = float(at or 0.0)
    except ValueError:
        second = math.nan
    if not 0.0 <= second < math.inf:
        raise InvalidClusterError(f"--date: this list counts seconds, such as 86400; got {at!r}.")
    return second


FORMAT = MachineFormat(
    name="google-2011",
    reads="machine_events/part-00000-of-00001.csv.gz",
    source="Google ClusterData2011-2 (CC-BY-4.0)",
    recognises=recognises,
    read=read,
)
FORMATS = (FORMAT,)
