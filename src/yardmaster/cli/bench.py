"""`yardmaster bench`: how fast is replay here?"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import colours, remark, say, say_json
from yardmaster.cli.options import JsonOption, QuietOption


def bench(
    *,
    quick: Annotated[
        bool, Parameter(negative="", help="At most 10,000 jobs, half a minute; else five minutes.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure replay beside the SimPy reference, at growing numbers of jobs.

    In a source checkout a plain heap loop in Python runs beside them.
    """
    from yardmaster.experiments.benchmark import checkout_rivals, measure
    from yardmaster.experiments.benchmark_tables import to_record, to_text
    from yardmaster.experiments.measurements import FULL, QUICK

    def report(label: str, fraction: float) -> None:
        if not quiet:
            remark(f"[{fraction:4.0%}] {label}")

    result = measure(QUICK if quick else FULL, rivals=checkout_rivals(), progress=report)
    if json:
        say_json(to_record(result))
    else:
        say(to_text(result, colour=colours()))
