"""`yardmaster workload describe`: what is in a workload."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from yardmaster.cli.console import remark, say_json
from yardmaster.cli.options import JobsOption, JsonOption, LoadOption, QuietOption, SeedOption

if TYPE_CHECKING:
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.workload import BoolArray, Workload
    from yardmaster.workloads.description.summary import Description


def describe(
    source: Annotated[str, Parameter(help="A file (.parquet, .csv, .swf, .swf.gz) or a preset.")],
    /,
    *,
    cluster: Annotated[
        str | None,
        Parameter(
            name=["--cluster", "-c"],
            help="Tell the load against this cluster: a name, a .toml file, '8x A100:8' or"
            " 'pool:512'.",
        ),
    ] = None,
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"], help="Folder for a page with figures, and the numbers as JSON."
        ),
    ] = None,
    overwrite: Annotated[
        bool, Parameter(negative="", help="Replace a page that is there already.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what is in a workload: load, arrivals, sizes, run times, users, and what is missing."""
    from yardmaster.cli.workload.inputs import load_source
    from yardmaster.experiments.run_directory import command_line
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.report.workload_page import (
        numbers_of,
        refuse_to_replace_page,
        write_workload_page,
    )
    from yardmaster.workloads.description.summary import describe as description_of
    from yardmaster.workloads.tables import read_account

    if out is not None:
        refuse_to_replace_page(out, overwrite=overwrite)
    machines = None if cluster is None else load_cluster(cluster)
    workload = load_source(source, cluster=machines, jobs=jobs, load=load, seed=seed, quiet=quiet)
    fits, reasons = (None, ()) if machines is None else _fits(workload, machines)
    about = description_of(workload, cluster=machines, fits=fits, reasons=reasons)
    account = read_account(source)
    if out is not None:
        write_workload_page(workload, about, out, account=account, command=command_line())
    if json:
        say_json(numbers_of(about, account))
    else:
        _print(about, account)
    if out is not None and not quiet:
        remark(f"Page: {out / 'report.html'}")


def _fits(workload: Workload, machines: Cluster) -> tuple[BoolArray | None, tuple[str, ...]]:
    """Return which jobs the empty cluster could hold, and why not the others.

    None if it does not know their GPU types.
    """
    from yardmaster.engine.requests import shapes_of
    from yardmaster.engine.unplaceable import unplaceable_reasons
    from yardmaster.errors import UnknownNameError

    try:
        shapes = shapes_of(workload, machines)
    except UnknownNameError as error:
        remark(f"Which jobs fit is unknown: {error}")
        return None, ()
    return shapes.of_job >= 0, unplaceable_reasons(workload, machines, shapes)


def _print(about: Description, account: Mapping[str, Any] | None) -> None:
    from yardmaster.cli.console import say
    from yardmaster.cli.printing import print_table
    from yardmaster.report.workload_tables import (
        account_table,
        overview_table,
        owner_table,
        size_table,
    )

    tables = [
        overview_table(about),
        size_table(about),
        owner_table(about, "tenants"),
        owner_table(about, "users"),
        None if account is None else account_table(account),
    ]
    for place, table in enumerate(table for table in tables if table is not None):
        if place:
            say("")
        print_table(table, "table", whole="--json")
