"""Options that several commands share, stated once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

WorkloadOption = Annotated[
    str,
    Parameter(
        name=["--workload", "-w"],
        help="A preset (see `workload list`), a recipe (.toml), a job table (.csv, .parquet), or a"
        " trace in any format that `workload import` reads.",
    ),
]
ClusterOption = Annotated[
    str,
    Parameter(
        name=["--cluster", "-c"],
        help="A named cluster (see `list clusters`), a .toml file, groups such as"
        " '8x A100:8, 4x T4:4', or 'pool:512'.",
    ),
]
JobsOption = Annotated[
    int | None, Parameter(help="Jobs to generate (default 2000), or to keep of a file.")
]
LoadOption = Annotated[
    float | None,
    Parameter(
        help="Offered load: 0.9 keeps 90 % of the GPUs busy (default for presets); a file's"
        " submissions are stretched in time to offer it."
    ),
]
SeedOption = Annotated[
    int, Parameter(help="Seed of the generated workload and of random orders and placements.")
]
UntilOption = Annotated[
    float | None,
    Parameter(name="--until-s", help="Cut the simulation after this second of the workload."),
]
EngineOption = Annotated[
    Literal["core", "simpy"],
    Parameter(help="The fast core, or the readable SimPy reference (the same results)."),
]
CompatibilityOption = Annotated[
    Literal["none", "rlscheduler"],
    Parameter(help="Move time as another system does, to reproduce its published tables."),
]
OutOption = Annotated[
    Path | None,
    Parameter(name=["--out", "-o"], help="Run directory to write; by default a new one in runs/."),
]
OutFileOption = Annotated[
    Path,
    Parameter(
        name=["--out", "-o"], help="Job table to write: .parquet (keeps everything) or .csv."
    ),
]
OverwriteFileOption = Annotated[bool, Parameter(negative="", help="Replace a file that exists.")]
OverwriteOption = Annotated[
    bool, Parameter(negative="", help="Replace an existing run directory at --out.")
]
QuietOption = Annotated[
    bool, Parameter(name=["--quiet", "-q"], negative="", help="No progress, no remarks.")
]
FormatOption = Annotated[
    Literal["table", "markdown", "csv", "latex", "json"],
    Parameter(help="How the result is printed; --json is short for --format json."),
]
JsonOption = Annotated[bool, Parameter(negative="", help="Print the result as JSON.")]
