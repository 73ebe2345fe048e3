"""`yardmaster demo`: the main job on built-in data, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.compare import compare
from yardmaster.cli.console import remark
from yardmaster.cli.options import QuietOption

QUICK_SCHEDULERS = "fifo+easy~estimate,sjf+easy,saf+easy,qssf+skip"


def demo(
    *,
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Run directory to write, replaced if it exists.")
    ] = Path("demo"),
    quick: Annotated[
        bool,
        Parameter(
            negative="",
            help="Four schedulers on four workloads of 500 jobs: seconds, as nothing is compiled.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Compare a dozen schedulers, and policies that come along, on eight generated workloads.

    The workloads look like those of a real GPU cluster (Helios Venus, April to July 2020): 2,000
    jobs each, on 16 nodes of 8 GPUs at 90 % load. A report is written too.
    """
    if quick:
        compare(
            schedulers=QUICK_SCHEDULERS,
            workload="venus-like",
            cluster="demo",
            seeds=4,
            jobs=500,
            out=out,
            overwrite=True,
            quiet=quiet,
        )
        return
    if not quiet:
        from yardmaster.experiments.line_up import DEFAULT_SCHEDULERS
        from yardmaster.schedulers.learned.catalogue import shipped_names

        count = len(DEFAULT_SCHEDULERS) + len(shipped_names())
        remark(f"Comparing {count} schedulers on 8 workloads of 2,000 jobs, on 16 nodes × 8 GPUs …")
    compare(
        workload="venus-like",
        cluster="demo",
        out=out,
        overwrite=True,
        quiet=quiet,
    )
