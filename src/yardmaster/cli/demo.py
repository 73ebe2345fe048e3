"""`yardmaster demo`: the main job on built-in data, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.compare import compare
from yardmaster.cli.console import remark
from yardmaster.cli.options import QuietOption


def demo(
    *,
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Run directory to write, replaced if it exists.")
    ] = Path("demo"),
    quiet: QuietOption = False,
) -> None:
    """Compare a dozen schedulers on eight generated workloads and write a report.

    The workloads look like those of a real GPU cluster (Helios Venus, April to July 2020): 2,000
    jobs each, on 16 nodes of 8 GPUs at 90 % load.
    """
    if not quiet:
        remark("Comparing 12 schedulers on 8 workloads of 2,000 jobs, on 16 nodes × 8 GPUs …")
    compare(
        workload="venus-like",
        cluster="demo",
        out=out,
        overwrite=True,
        quiet=quiet,
    )
