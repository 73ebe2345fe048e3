"""Conversions of public traces that are common in research repositories, one entry each.

All are tables with a header line, so an entry is a map as users write it for `csv`, and what is
known about the conversion besides: when its second 0 was, at which run time its maker cut jobs off,
which rows its maker does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.mapped_csv import MappedTable, draft_of, read_mapped
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import epoch_s
from yardmaster.workloads.traces.reading.delimited import Reason
from yardmaster.workloads.traces.reading.draft import DAY_S, Draft, dropped_where
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion.

    Attributes:
        name: what users call it.
        reads: which files these are.
        source: where the jobs come from.
        columns: our column → `column` or `column:unit`; all of these columns identify the file.
        also: further columns that identify it.
        zone: what its local clock is.
        second_0: local date and time of its second 0, if it counts seconds and this is known.
        named: what a file's name must hold for `second_0` to be right.
        first_job: the only job of the first day after `second_0`; with others there, a table has
            been put on a clock of its own.
        in_comments: pattern that finds the date of second 0 in the comments above the header.
        counted_from: local date before which its maker does not count jobs.
        cut_at_s: run time at which its maker cut jobs off.
        reasons: why rows are no jobs.
        remarks: what else the reader must know.
    """

    name: str
    reads: str
    source: str
    columns: Mapping[str, str]
    also: tuple[str, ...] = ()
    zone: str = ""
    second_0: str = ""
    named: str = ""
    first_job: str = ""
    in_comments: str = ""
    counted_from: str = ""
    cut_at_s: float | None = None
    reasons: tuple[Reason, ...] = ()
    remarks: tuple[str, ...] = ()


PHILLY = "Microsoft Philly, 2017 (Jeon et al., ATC 2019; CC-BY-4.0)"
HELIOS = "SenseTime Helios, 2020 (Hu et al., SC 2021; CC-BY-4.0)"
CHINA = "local time (China, no daylight saving)"

CONVERSIONS = (
    Conversion(
        name="philly-rfold",
        reads="a table of job id, arrival time, topology, shape, size and duration",
        source=PHILLY,
        columns={
            "id": "job id", "submit_s": "arrival time (sec)", "gpus": "size",
            "duration_s": "duration (sec)",
        },
        also=("topology", "shape"),
        zone="Pacific, daylight saving as in August",
        second_0="2017-08-14 23:27:00",
        first_job="0",
    ),
    Conversion(
        name="philly-pollux",
        reads="a table of timestamp, duration, num_gpus, gpu_time and cluster",
        source=PHILLY,
        columns={
            "submit_s": "timestamp", "duration_s": "duration", "gpus": "num_gpus",
            "tenant": "cluster",
        },
        also=("gpu_time",),
        zone="Pacific, as written",
        remarks=("a subset: jobs that the conversion left out are not counted here",),
    ),
    Conversion(
        name="helios-arrivals",
        reads="a table of job_id, arrival_s, service_sec and gpu_count",
        source=HELIOS,
        columns={
            "id": "job_id", "submit_s": "arrival_s", "duration_s": "service_sec",
            "gpus": "gpu_count",
        },
        zone=CHINA,
        second_0="2020-03-18 04:01:39",
        named="venus",
        first_job="363167#0",
        counted_from="2020-04-01 00:00:00",
        cut_at_s=172_800.0,
    ),
    Conversion(
        name="fleetsim",
        reads="a table of job_id, user, tenant, class, submit_time, num_chips and final_status",
        source="fleetsim's slices of Helios and others (see the file's own comments)",
        columns={
            "id": "job_id", "user": "user", "tenant": "tenant", "kind": "class",
            "submit_s": "submit_time:us", "gpus": "num_chips", "gpu_types": "chip_type",
            "duration_s": "duration_s", "status": "final_status",
        },
        zone=CHINA,
        in_comments=r"window (\d{4}-\d\d-\d\d)\b.*re-based to window start",
        remarks=(
            "walltime_limit_s is no estimate: it repeats the true run time, which no user knew",
        ),
    ),
    Conversion(
        name="drl-scheduler-csv",
        reads="a table of arrival_time, runtime, gpus and priority",
        source="GPU-Cluster-Scheduler-RL's files, made from Alibaba PAI 2020 (CC-BY-4.0)",
        columns={
            "submit_s": "arrival_time", "duration_s": "runtime", "gpus": "gpus",
            "priority": "priority",
        },
        reasons=(Reason("ran 1 s or less: its makers leave it out", pl.col("runtime") <= 1),),
        remarks=("priorities follow from the GPUs in these files",),
    ),
    Conversion(
        name="tiresias",
        reads="*_job.csv: job_id, num_gpu, submit_time, iterations, model_name and duration",
        source="the simulator of Tiresias (Gu et al., NSDI 2019)",
        columns={
            "id": "job_id", "gpus": "num_gpu", "submit_s": "submit_time",
            "duration_s": "duration", "kind": "model_name",
        },
        also=("iterations",),
    ),
)  # fmt: skip


def recognises(file: TraceFile, *, conversion: Conversion) -> bool:
    """Tell a conversion by its columns."""
    named = (column.partition(":")[0] for column in conversion.columns.values())
    return file.has_columns(*named, *conversion.also)


def read(
    files: Sequence[TraceFile],
    options: ImportOptions,
    ledger: Ledger,
    *,
    conversion: Conversion,
) -> Draft:
    """Read the tables of a conversion."""
    tables = [_read_table(file, options, ledger, conversion) for file in files]
    draft = draft_of(tables, options, ledger, zone=conversion.zone)
    for remark in conversion.remarks:
        ledger.remark(remark)
    frame = _without_warm_up(draft, options, conversion)
    return replace(draft, frame=_with_censoring(frame, ledger, conversion))


def _read_table(
    file: TraceFile, options: ImportOptions, ledger: Ledger, conversion: Conversion
) -> MappedTable:
    """Read one table, and put it on the calendar if its second 0 is known."""
    table = read_mapped(file, conversion.columns, options, ledger, reasons=conversion.reasons)
    second_0 = _second_0(file, table.frame, conversion)
    if table.dated:
        return table
    if not second_0:
        ledger.remark("the date of second 0 is not known: hours and weekdays mean nothing")
        return table
    ledger.remark(f"second 0 of the file is {second_0}")
    moment = pl.select(epoch_s(pl.lit(second_0), options)).item()
    return replace(table, frame=table.frame.with_columns(pl.col("submit_s") + moment), dated=True)


def _second_0(file: TraceFile, frame: pl.DataFrame, conversion: Conversion) -> str:
    """Return the date and time of second 0, "" if it is not known for this file."""
    if conversion.first_job:
        strangers = (pl.col("submit_s") < DAY_S) & (pl.col("id") != conversion.first_job)
        if frame.select(strangers.any()).item():
            return ""
    if conversion.in_comments:
        comments = "\n".join(line for line in file.lines if line.startswith("#"))
        found = re.search(conversion.in_comments, comments)
        return f"{found[1]} 00:00:00" if found else ""
    return conversion.second_0 if conversion.named in file.short_name else ""


def _without_warm_up(draft: Draft, options: ImportOptions, conversion: Conversion) -> pl.DataFrame:
    """Drop jobs from before the day its maker counts from."""
    if not conversion.counted_from or not draft.dated:
        return draft.frame
    from_s = pl.select(epoch_s(pl.lit(conversion.counted_from), options)).item()
    reason = f"submitted before {conversion.counted_from[:10]}, while the log was warming up"
    early = pl.col("submit_s") < from_s
    return dropped_where(draft.frame, "jobs", [(reason, early)], draft.ledger)


def _with_censoring(frame: pl.DataFrame, ledger: Ledger, conversion: Conversion) -> pl.DataFrame:
    """Mark run times that were cut off; a file with longer ones was not cut off."""
    cut_s = conversion.cut_at_s
    if cut_s is None or frame["duration_s"].max() != cut_s:
        return frame
    at_end = pl.col("duration_s") == cut_s
    count = int(frame.select(at_end.sum()).item())
    ledger.censor(f"ran {cut_s:,.0f} s or longer: the conversion cuts run times off there", count)
    word = pl.when(at_end).then(pl.lit("censored")).otherwise("status")
    return frame.with_columns(status=word)


FORMATS = tuple(
    TraceFormat(
        name=conversion.name,
        reads=conversion.reads,
        source=conversion.source,
        recognises=partial(recognises, conversion=conversion),
        read=partial(read, conversion=conversion),
    )
    for conversion in CONVERSIONS
)
