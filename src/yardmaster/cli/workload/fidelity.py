"""`yardmaster workload fidelity`: how close do simulations come to what was recorded?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import colours, progress, remark, say, say_json, width
from yardmaster.cli.options import JsonOption, QuietOption, SeedOption

if TYPE_CHECKING:
    from yardmaster.experiments.fidelity.study import Fidelity
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.workload import Workload

DAY_S = 86_400.0


def fidelity(
    trace: Annotated[
        str,
        Parameter(help="A file with recorded waits: .swf, .swf.gz, or a job table."),
    ],
    *,
    cluster: Annotated[
        str | None,
        Parameter(
            name=["--cluster", "-c"],
            help="The machines the jobs ran on, as elsewhere; by default those that the trace's"
            " header states, as one pool.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        Parameter(
            name=["--scheduler", "-s"],
            help="The policy behind the record, such as fifo+easy~estimate, or several separated"
            " by commas; by default common ones are tried and ranked.",
        ),
    ] = None,
    warm_up_days: Annotated[
        float | None,
        Parameter(
            help="Days left out of the verdict at the beginning, when the real machine was not"
            " empty (default 7, at most a fifth of the trace)."
        ),
    ] = None,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Folder to write: report.html, figures, numbers."),
    ] = None,
    overwrite: Annotated[
        bool, Parameter(negative="", help="Replace the result of an earlier run at --out.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate recorded jobs; say how far their waits are from the recorded ones, and why."""
    from yardmaster.cli.planning import split_names
    from yardmaster.errors import YardmasterError
    from yardmaster.experiments.fidelity.study import measure_fidelity
    from yardmaster.experiments.run_directory import command_line
    from yardmaster.report.fidelity import fidelity_record
    from yardmaster.report.fidelity_page import refuse_to_replace, write_fidelity
    from yardmaster.workloads.sources import is_generated, load_workload

    if out is not None:
        refuse_to_replace(out, overwrite=overwrite)
    if is_generated(trace):
        raise YardmasterError(f"{trace} is generated: nobody ever waited in it, so name a trace.")
    jobs = load_workload(trace)
    machines = _machines(cluster, jobs)
    with progress(quiet=quiet) as report:
        found = measure_fidelity(
            jobs,
            machines,
            None if scheduler is None else split_names(scheduler),
            warm_up_s=None if warm_up_days is None else warm_up_days * DAY_S,
            seed=seed,
            progress=report,
            announce=None if quiet else remark,
        )
    if out is not None:
        write_fidelity(found, out, command=command_line(), overwrite=overwrite)
    if json:
        say_json(fidelity_record(found))
    else:
        _print(found)
    if out is not None and not quiet:
        remark(f"Report: {out / 'report.html'}")


def _machines(cluster: str | None, jobs: Workload) -> Cluster:
    """Return the cluster that was named, or the one the trace states."""
    from yardmaster.errors import YardmasterError
    from yardmaster.experiments.fidelity.assumptions import recorded_machine
    from yardmaster.model.catalogue import load_cluster

    if cluster is not None:
        return load_cluster(cluster)
    stated = recorded_machine(jobs)
    if stated is None:
        raise YardmasterError(
            f"{jobs.name} does not say what it ran on; name the machines with --cluster, such as"
            " '8x A100:8' or pool:512."
        )
    return stated


def _print(found: Fidelity) -> None:
    """Print both tables, the verdict, and every cause."""
    import textwrap

    from yardmaster.report.fidelity import distance_table, ranking_table, sides_table
    from yardmaster.report.fidelity_words import (
        causes_found,
        causes_not_found,
        caution,
        headline,
    )
    from yardmaster.report.renderers import to_terminal

    for table in (ranking_table(found), sides_table(found), distance_table(found)):
        say(to_terminal(table, width=width(), colour=colours()))
        say("")
    paragraphs = [headline(found), caution(found)]
    paragraphs += [f"{title}. {text}" for title, text in causes_found(found)]
    paragraphs.append(causes_not_found(found))
    say("\n\n".join(textwrap.fill(text, width()) for text in paragraphs if text))
