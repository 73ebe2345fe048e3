"""`yardmaster check`: is what I wrote, or my cluster, what I think it is?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import say, say_json, width
from yardmaster.cli.options import JsonOption


def check(
    what: Annotated[
        str,
        Parameter(
            help="What to check, as module:name, path/to/file.py:name or by its name: an order, a"
            " trace format, a reward, a learner; a recipe's .toml file; a placement as @name; or"
            " a cluster by name or .toml file."
        ),
    ],
    /,
    *,
    sample: Annotated[
        list[Path] | None,
        Parameter(help="A small file in the trace format that is checked; may be given again."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Try a plug-in rule by rule, or say a cluster's rules in words.

    Exit code 1 if a rule is broken.
    """
    if sample is None and _is_cluster(what):
        _check_cluster(what, json=json)
        return
    from yardmaster.testing.targets import judge

    found = judge(what, sample or ())
    if json:
        say_json(found.to_dict())
    else:
        for line in found.lines():
            say(line)
        verdict = "conforms" if found.conforms else "does not conform"
        use = f"; use it wherever an order is named, such as {what}+easy"
        is_order = found.kind == "order" and found.conforms and "+" not in what
        say(f"{what}: {verdict} ({found.kind}){use if is_order else ''}")
    if not found.conforms:
        sys.exit(1)


def _is_cluster(what: str) -> bool:
    """Whether a cluster is meant: by name, or by a file that says what machines there are."""
    from yardmaster.model.catalogue import cluster_names

    if what.casefold() in cluster_names():
        return True
    if not what.lower().endswith(".toml"):
        return False
    path = Path(what)
    if not path.is_file():
        return True  # which says that there is no such file
    from yardmaster.model.documents import read_toml
    from yardmaster.workloads.recipes.parameters import parameters_of
    from yardmaster.workloads.recipes.recipe import PROCESSES, Recipe

    of_recipes = {"preset", "demands", *PROCESSES, *parameters_of(Recipe)} - {"name", "description"}
    keys = set(read_toml(path))
    return "nodes" in keys or not of_recipes & keys


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
