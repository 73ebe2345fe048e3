"""`yardmaster workload import`: a trace in its publisher's format becomes a job table."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say, say_json
from yardmaster.cli.options import JsonOption, OutFileOption, OverwriteFileOption, QuietOption
from yardmaster.errors import InvalidWorkloadError


def import_(
    trace: Annotated[
        list[str],
        Parameter(
            help="The format's name (see `workload list`; found out if left out), then the files:"
            " plain, gzipped, zipped, tarred, or folders.",
        ),
    ],
    /,
    *,
    out: OutFileOption,
    map: Annotated[  # noqa: A002  (the option's name)
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="For csv: canonical column = column of the file, such as gpus=gpu_num. A unit may"
            " follow: submit_s=when:ms, duration_s=hours:h.",
        ),
    ] = None,
    only: Annotated[
        str | None, Parameter(help="Read only files whose names hold this, such as Venus.")
    ] = None,
    time_zone: Annotated[
        str | None,
        Parameter(help="Zone of times written without one, such as America/Los_Angeles."),
    ] = None,
    slot_cores: Annotated[
        float | None,
        Parameter(help="Where jobs ask for cores only: so many cores are one slot (one GPU)."),
    ] = None,
    separator: Annotated[str, Parameter(help="For csv: what stands between cells.")] = ",",
    skip_bad_rows: Annotated[
        bool, Parameter(negative="", help="Drop and count rows that cannot be read.")
    ] = False,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn a trace in its publisher's format into a job table, with an account of every row."""
    from yardmaster.workloads.files import refuse_to_replace
    from yardmaster.workloads.tables import refuse_other_endings
    from yardmaster.workloads.traces.formats import import_trace, trace_formats
    from yardmaster.workloads.traces.reading.options import ImportOptions

    refuse_other_endings(out)
    refuse_to_replace(out, overwrite=overwrite)
    named = _names_format(trace, trace_formats())
    format_name = trace[0] if named else "csv" if map else None
    if map and format_name != "csv":
        raise InvalidWorkloadError(f"--map is for csv: {format_name} knows its columns.")
    options = ImportOptions(
        time_zone=time_zone,
        slot_cores=slot_cores,
        skip_bad_rows=skip_bad_rows,
        columns=_mapping(map or ()),
        separator=separator,
    )
    imported = import_trace(
        trace[1:] if named else trace,
        format_name,
        only=only,
        options=options,
    )
    imported.write(out, overwrite=overwrite)
    if json:
        say_json(imported.account.to_dict())
    else:
        say("\n".join(imported.account.lines()))
    jobs = imported.account.stages[-1]
    if 2 * jobs.kept < jobs.read:
        remark(
            f"Warning: {jobs.read - jobs.kept:,} of {jobs.read:,} jobs were dropped; what is left"
            " may not stand for the whole."
        )
    if not quiet:
        remark(f"Job table: {out}")


def _names_format(trace: list[str], known: Collection[str]) -> bool:
    """Tell whether the first word is a format, perhaps a misspelt one, and no file."""
    if Path(trace[0]).exists():
        return False
    is_word = len(trace) > 1 and not Path(trace[0]).suffix and "/" not in trace[0]
    return trace[0] in known or is_word


def _mapping(pairs: list[str] | tuple[str, ...]) -> dict[str, str]:
    """Read `gpus=gpu_num` pairs."""
    mapping: dict[str, str] = {}
    for pair in pairs:
        ours, sign, theirs = (part.strip() for part in pair.partition("="))
        if not sign or not ours or not theirs or ours in mapping:
            raise InvalidWorkloadError(
                f"--map: cannot read {pair!r}; write each column once, such as gpus=gpu_num."
            )
        mapping[ours] = theirs
    return mapping
