"""`yardmaster bench`: how fast is replay here?"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say, say_json
from yardmaster.cli.options import JsonOption


def bench(
    *,
    quick: Annotated[
        bool, Parameter(negative="", help="Up to 10,000 jobs, half a minute; else about ten.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure replay against the SimPy reference, side by side, at growing numbers of jobs.

    In a source checkout, `make bench` also measures a plain heap loop in Python.
    """
    raise NotImplementedError(quick, json, remark, say, say_json, Annotated, Parameter)
