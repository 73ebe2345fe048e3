"""`yardmaster rerun`: a run directory reproduces itself."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import progress, remark, say, say_json
from yardmaster.cli.options import JsonOption, QuietOption


def rerun(
    run: Annotated[Path, Parameter(help="The run directory.")],
    /,
    *,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a run again from its own directory and check that every result is the same.

    Exits with 0 if all files are identical byte for byte, with 1 otherwise.
    """
    from yardmaster.experiments.execution import run_comparison, run_simulation
    from yardmaster.experiments.run_directory import (
        differences,
        new_run_directory,
        read_inputs,
        recorded_command,
    )
    from yardmaster.report.html import write_report

    plan, workloads = read_inputs(run)
    announce = None if quiet else remark
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / "again"
        with new_run_directory(again) as folder:
            if plan.command == "simulate":
                run_simulation(plan, workloads[0], folder, announce=announce)
            else:
                with progress(quiet=quiet) as report:
                    result = run_comparison(
                        plan, workloads, folder, progress=report, announce=announce
                    )
                write_report(result, folder / "report.html", command=recorded_command(run))
        changed = differences(run, again)
    if json:
        say_json({"run": str(run), "identical": not changed, "different": changed})
    elif changed:
        say(f"{run}: NOT reproduced; these differ: {', '.join(changed)}")
    else:
        say(f"{run}: reproduced, byte for byte")
    if changed:
        sys.exit(1)
