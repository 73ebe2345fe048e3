"""`yardmaster check`: does my own order keep what the engine relies on?"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import say


def check(
    order: Annotated[
        str, Parameter(help="An order by name, or module:name, or path/to/file.py:name.")
    ],
    /,
) -> None:
    """Run the conformance test on an order and say whether it passed."""
    from yardmaster.testing.conformance import check_order

    check_order(order)
    say(f"{order}: conforms; use it wherever an order is named, such as {order}+easy")
