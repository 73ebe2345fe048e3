r"""The job table of Slurm's accounting database, exported: `mysql --batch`, or CSV.

Times are Unix seconds (0 = never), limits minutes, states numbers. Resources are numbered too:
`1=20,2=170000,1002=2` is 20 cores, 170,000 MiB and two of something. What numbers from 1001 mean is
in the same database's `tres_table`; without that file they are taken for GPUs. Publishers that hide
who is who round the numbers of jobs and users (MIT Supercloud: 16051200000000.0); such numbers do
not name a job.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.slurm.fields import TRES_NAMES
from yardmaster.workloads.traces.slurm.lines import cells
from yardmaster.workloads.traces.slurm.records import Source

NAMES = {
    "JobIDRaw": "id_job", "User": "id_user", "Account": "account", "Partition": "partition",
    "State": "state", "TimelimitRaw": "timelimit", "Submit": "time_submit",
    "Eligible": "time_eligible", "Start": "time_start", "End": "time_end",
    "SuspendedRaw": "time_suspended", "NodeList": "nodelist", "NNodes": "nodes_alloc",
    "NCPUS": "cpus_alloc", "ReqCPUS": "cpus_req", "ReqTRES": "tres_req", "AllocTRES": "tres_alloc",
    "ReqGRES": "gres_req", "AllocGRES": "gres_alloc", "Priority": "priority", "Kind": "job_type",
}  # fmt: skip
"""`sacct`'s name of a column → the table's."""

EXPORT = (
    "Export the table of jobs, and that of resources, with:"
    " mysql --batch slurm_acct_db -e 'select * from CLUSTER_job_table' > jobs.tsv;"
    " mysql --batch slurm_acct_db -e 'select * from tres_table' > tres_table.tsv"
)
NUMBERS = ("id_array_job", "id_array_task", "het_job_id", "het_job_offset", "deleted")
NEEDED = ("id_job", "time_submit", "time_start", "time_end", "state")
_LARGEST_ID = 2**32
_NO_VALUE = 2**32 - 2


def separator_of(file: TraceFile) -> str | None:
    """Return what separates the columns of an exported job table; None if it is none."""
    for separator in (",", "\t", ";"):
        if file.has_columns(*NEEDED, separator=separator):
            return separator
    return None


def is_dump(file: TraceFile) -> bool:
    """Tell a dump in SQL, which is a program and not a table."""
    return file.head.startswith((b"-- MySQL dump", b"-- MariaDB dump", b"/*M!999999"))


def refuse_dump(file: TraceFile) -> None:
    """Say how to export a table instead.

    Raises:
        TraceFormatError: always.
    """
    raise TraceFormatError(f"{file.name} is a dump in SQL. {EXPORT}")


def is_tres_table(file: TraceFile) -> bool:
    """Tell the table that names the numbered resources."""
    wanted = ("creation_time", "id", "type", "name")
    return any(file.has_columns(*wanted, separator=separator) for separator in (",", "\t", ";"))


def tres_names(files: Sequence[TraceFile]) -> dict[str, str]:
    """Return what the numbers of resources mean, as far as the files say so."""
    names = dict(TRES_NAMES)
    for file in files:
        separator = next(s for s in (",", "\t", ";") if file.has_columns("id", "type", separator=s))
        for line in file.lines[file.header_line + 1 :]:
            row = next(csv.reader([line], delimiter=separator))
            cell = dict(zip(file.columns(separator), row, strict=False))
            kind, name = cell.get("type", ""), cell.get("name", "")
            has_name = name.strip().lower() not in ("", "null", "\\n")
            names[cell.get("id", "").strip()] = f"{kind}/{name}" if has_name else kind
    return names


def source_of(file: TraceFile, separator: str, names: Mapping[str, str]) -> Source:
    """Return the records of an exported job table.

    Args:
        file: the table.
        separator: what stands between its cells.
        names: what the numbers of resources mean.
    """
    source = Source(file, called=NAMES, tres_names=names, ids_may_be_rounded=True)
    source.batches = _batches(source, separator)
    return source


def _batches(source: Source, separator: str) -> Iterator[pl.DataFrame]:
    ours = {theirs: name for name, theirs in NAMES.items()}
    columns = [
        ours.get(name, name if name in NUMBERS else "") for name in source.file.columns(separator)
    ]
    gone = 0
    for table in cells(source, separator, columns):
        lacking = [name for name in NUMBERS if name not in table.columns]
        frame = table.with_columns(pl.lit(None, pl.String).alias(name) for name in lacking)
        kept = frame.filter(~(pl.col("deleted").str.strip_chars() == "1").fill_null(value=False))
        gone += len(frame) - len(kept)
        yield kept.with_columns(
            pl.col("^User$").str.replace(r"\.0*$", ""),
            JobID=_shown_id(),
            JobIDRaw=_own_id(pl.col("JobIDRaw")),
        ).drop(NUMBERS)
    source.dropped["marked as deleted in the database"] = gone


def _number(text: pl.Expr) -> pl.Expr:
    """Return whole numbers, null where there is none or the database's sign for none."""
    number = text.str.strip_chars().cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
    return pl.when(number < _NO_VALUE).then(number)


def _own_id(text: pl.Expr) -> pl.Expr:
    """Return the numbers of jobs; null where they were rounded, and garbage as it is."""
    number = text.str.strip_chars().cast(pl.Float64, strict=False)
    whole = number.cast(pl.Int64, strict=False).cast(pl.String)
    return pl.when(number >= _LARGEST_ID).then(None).otherwise(pl.coalesce(whole, text))


def _shown_id() -> pl.Expr:
    """Return the numbers of jobs as `sacct` shows them: 12_3 in an array, 13+0 in a group."""
    array, task = _number(pl.col("id_array_job")), _number(pl.col("id_array_task"))
    whole, part = _number(pl.col("het_job_id")), _number(pl.col("het_job_offset"))
    own = _own_id(pl.col("JobIDRaw"))
    of_array = pl.when((array > 0) & own.is_not_null()).then(
        pl.concat_str(array, pl.lit("_"), task)
    )
    of_group = pl.when((whole > 0) & own.is_not_null()).then(
        pl.concat_str(whole, pl.lit("+"), part)
    )
    return pl.coalesce(of_array, of_group, own)
