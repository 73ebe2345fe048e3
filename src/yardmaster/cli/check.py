"""`yardmaster check`: is my order, or my cluster, what I think it is?"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import say, say_json, width
from yardmaster.cli.options import JsonOption


def check(
    what: Annotated[
        str,
        Parameter(
            help="An order by name, or module:name, or path/to/file.py:name; or a cluster by name"
            " or .toml file."
        ),
    ],
    /,
    *,
    json: JsonOption = False,
) -> None:
    """Test an order against what the engine relies on, or say a cluster's rules in words."""
    from yardmaster.model.catalogue import cluster_names

    if what.endswith(".toml") or what.casefold() in cluster_names():
        _check_cluster(what, json=json)
        return
    from yardmaster.testing.conformance import check_order

    check_order(what)
    if json:
        say_json({"order": what, "conforms": True})
    else:
        say(f"{what}: conforms; use it wherever an order is named, such as {what}+easy")


def _check_cluster(name: str, *, json: bool) -> None:
    """Read a cluster and say what would be simulated on it."""
    import textwrap

    from yardmaster.model.catalogue import load_cluster
    from yardmaster.report.rules import rules_in_words

    rules = rules_in_words(load_cluster(name))
    if json:
        say_json(dict(rules))
        return
    margin = max(len(topic) for topic, _ in rules) + 2
    for topic, text in rules:
        first, *rest = textwrap.wrap(text, width() - margin)
        say("\n".join([f"{topic:<{margin}}{first}", *(" " * margin + line for line in rest)]))
