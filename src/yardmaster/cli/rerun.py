"""`yardmaster rerun`: a run directory reproduces itself."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import announce, progress, say, say_json
from yardmaster.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.experiments.compare import Progress
    from yardmaster.experiments.plan import Plan
    from yardmaster.model.workload import Workload


def rerun(
    run: Annotated[Path, Parameter(help="The run directory.")],
    /,
    *,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a run again from its own directory and check that every result is the same.

    Exits with 0 if all files are identical byte for byte, with 1 otherwise, and then says where
    text files part.
    """
    from yardmaster.experiments.run_directory import (
        differences,
        first_difference,
        new_run_directory,
        read_inputs,
        recorded_command,
    )

    plan, workloads = read_inputs(run)
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / "again"
        with new_run_directory(again) as folder, progress(quiet=quiet) as report:
            _carry_out(plan, workloads, folder, report, recorded_command(run), quiet=quiet)
        changed = differences(run, again)
        places = {name: first_difference(run / name, again / name) for name in changed}
    if json:
        say_json({"run": str(run), "identical": not changed, "different": changed})
    elif changed:
        say(f"{run}: NOT reproduced; these differ: {', '.join(changed)}")
        for name, place in places.items():
            if place:
                say(f"  {name}, {place}")
    else:
        say(f"{run}: reproduced, byte for byte")
    if changed:
        sys.exit(1)


def _carry_out(
    plan: Plan,
    workloads: list[Workload],
    folder: Path,
    report: Progress | None,
    command: str,
    *,
    quiet: bool,
) -> None:
    """Do what the plan says, as the command that made it did."""
    from yardmaster.experiments.execution import run_comparison, run_simulation
    from yardmaster.experiments.questions import run_eta, run_whatif
    from yardmaster.report.html import write_report
    from yardmaster.report.question_pages import write_eta_page, write_whatif_page

    told = None if quiet else announce
    match plan.command:
        case "simulate":
            run_simulation(plan, workloads[0], folder, announce=told)
        case "compare":
            result = run_comparison(plan, workloads, folder, progress=report, announce=told)
            write_report(result, folder / "report.html", command=command)
        case "whatif":
            found = run_whatif(plan, workloads, folder, progress=report, announce=told)
            write_whatif_page(found, folder, command=command)
        case "eta":
            moment, forecast = run_eta(plan, workloads, folder, progress=report)
            write_eta_page(moment, forecast, folder, command=command)
