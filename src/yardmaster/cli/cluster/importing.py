"""`yardmaster cluster import`: a publisher's list of machines becomes a cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say, say_json
from yardmaster.cli.options import JsonOption, OverwriteFileOption, QuietOption
from yardmaster.errors import InvalidClusterError


def import_(
    machines: Annotated[
        list[str],
        Parameter(
            help="The format's name (philly, helios, alibaba-openb-2023, alibaba-pai-2020,"
            " alibaba-spot-2026, google-2011; found out if left out), then the file: plain,"
            " gzipped, zipped, tarred, or in a folder.",
        ),
    ],
    /,
    *,
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Cluster file to write, ending in .toml.")
    ],
    gpu_type: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="For GPU types the catalogue does not know: whose figures they take, such as"
            " G2=A10; A10 alone is for all of them, and for lists that name no type.",
        ),
    ] = None,
    date: Annotated[
        str | None,
        Parameter(
            name=["--date", "--at"],
            help="Moment of a list that changes: a day (helios) or a second (google-2011).",
        ),
    ] = None,
    slot_cores: Annotated[
        float | None,
        Parameter(help="For google-2011: share of the largest machine that is one slot (one GPU)."),
    ] = None,
    only: Annotated[
        str | None, Parameter(help="Read only files whose names hold this, such as Venus.")
    ] = None,
    skip_bad_rows: Annotated[
        bool, Parameter(negative="", help="Drop and count rows that cannot be read.")
    ] = False,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn a publisher's list of machines into a cluster file, with an account of every row."""
    from yardmaster.workloads.files import refuse_to_replace
    from yardmaster.workloads.machines.formats import import_machines, machine_formats
    from yardmaster.workloads.machines.listing import MachineOptions
    from yardmaster.workloads.traces.reading.options import ImportOptions

    if out.suffix.lower() != ".toml":
        raise InvalidClusterError(f"{out}: a cluster file ends in .toml.")
    refuse_to_replace(out, overwrite=overwrite)
    named = machines[0] in machine_formats() and not Path(machines[0]).exists()
    options = MachineOptions(
        stand_ins=_stand_ins(gpu_type or []),
        at=date,
        rows=ImportOptions(slot_cores=slot_cores, skip_bad_rows=skip_bad_rows),
    )
    imported = import_machines(
        machines[1:] if named else machines,
        machines[0] if named else None,
        only=only,
        options=options,
    )
    imported.write(out, overwrite=overwrite)
    if json:
        say_json(imported.to_dict())
    else:
        say("\n".join(imported.lines()))
    if not quiet:
        remark(f"Cluster file: {out}; use it with --cluster {out}")


def _stand_ins(pairs: list[str]) -> dict[str, str]:
    """Read `G2=A10` pairs; a type alone stands in for everything."""
    stand_ins: dict[str, str] = {}
    for pair in pairs:
        theirs, sign, ours = (part.strip() for part in pair.rpartition("="))
        if not ours or (sign and not theirs) or theirs in stand_ins:
            raise InvalidClusterError(
                f"--gpu-type: cannot read {pair!r}; write each type once, such as G2=A10."
            )
        stand_ins[theirs] = ours
    return stand_ins
