"""`yardmaster list`: every name that can be used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from yardmaster.cli.console import say, say_json
from yardmaster.cli.options import JsonOption

if TYPE_CHECKING:
    from yardmaster.model.cluster import Cluster

Topic = Literal[
    "orders",
    "disciplines",
    "placements",
    "workloads",
    "clusters",
    "gpus",
    "kinds",
    "metrics",
    "columns",
    "regimes",
    "perturbations",
    "choosers",
    "policies",
]
TOPICS: tuple[Topic, ...] = (
    "orders",
    "disciplines",
    "placements",
    "workloads",
    "clusters",
    "gpus",
    "kinds",
    "metrics",
    "columns",
    "regimes",
    "perturbations",
    "choosers",
    "policies",
)
Rows = list[dict[str, object]]
KIND_GPUS = ("V100", "A100", "H100", "T4")
"""GPU types whose speeds are listed for every kind."""


def listing(
    topic: Annotated[Topic | None, Parameter(help="What to list; everything by default.")] = None,
    name: Annotated[
        str | None, Parameter(help="A policy of the list, to read its model card.")
    ] = None,
    /,
    *,
    json: JsonOption = False,
) -> None:
    """Show every name that can be used, by topic."""
    if name is not None:
        _show_card(topic, name, json=json)
        return
    chosen = (topic,) if topic else TOPICS
    found = {each: rows_of(each) for each in chosen}
    if json:
        say_json(found[topic] if topic else found)
        return
    for title, rows in found.items():
        print_rows(title, rows)
    if topic is None or topic in ("orders", "disciplines", "placements"):
        say(_LANGUAGE)
    if topic == "kinds":
        say(_KINDS)


_LANGUAGE = """\
A scheduler is ORDER+DISCIPLINE@PLACEMENT, such as sjf+easy@pack. Without a discipline it is strict (random-feasible:
skip, off-peak: easy), without a placement pack. Orders and disciplines that read run times read the true ones and are
clairvoyant; with ~estimate appended they read the jobs' estimates. Orders by progress (srpt, las, las-2d) show what
they can under +preemptive. In keys: s submit time, r run time, n GPUs, w waiting time, p priority, d deadline."""  # noqa: E501
_KINDS = """\
Speeds are relative to a V100, measured on V100 (and P100, K80) and estimated elsewhere. Spread: speed of a gang over
nodes of a rack, and over racks, beside one within a node. On c times its GPUs a job is c^scaling times as fast. Kinds
measured on one GPU only have the median of the others; a job of unknown kind runs at the ratio of peak FP32."""  # noqa: E501


def rows_of(topic: Topic) -> Rows:
    """Return all names of one topic, one row each."""
    return {
        "orders": _orders,
        "disciplines": _disciplines,
        "placements": _placements,
        "workloads": workload_rows,
        "clusters": _clusters,
        "gpus": _gpus,
        "kinds": _kinds,
        "metrics": _metrics,
        "columns": _columns,
        "regimes": _regimes,
        "perturbations": _perturbations,
        "choosers": _choosers,
        "policies": _policies,
    }[topic]()


def _orders() -> Rows:
    from yardmaster.schedulers.orders import ORDERS

    return [
        {
            "order": entry.name,
            "information": "clairvoyant" if entry.reads_run_time else "blind",
            "key (lowest first)": entry.formula,
            "source": entry.source,
        }
        for entry in ORDERS.values()
    ]


def _disciplines() -> Rows:
    from yardmaster.engine.state import Discipline
    from yardmaster.schedulers.language import DISCIPLINES, READS_RUN_TIMES

    return [
        {
            "discipline": name,
            "reads run times": "yes" if Discipline[name.upper()] in READS_RUN_TIMES else "no",
            "when a job does not fit": meaning,
        }
        for name, meaning in DISCIPLINES.items()
    ]


def _placements() -> Rows:
    from yardmaster.schedulers.language import PLACEMENTS

    return [{"placement": name, "a job goes to": text} for name, text in PLACEMENTS.items()]


def workload_rows() -> Rows:
    """Return the presets, one row each."""
    from yardmaster.workloads.synthetic import PRESETS

    return [
        {"workload": name, "what it is": preset.description} for name, preset in PRESETS.items()
    ]


def _clusters() -> Rows:
    from yardmaster.model.catalogue import cluster_descriptions, load_cluster

    return [
        {
            "cluster": name,
            "nodes": machines.nodes,
            "GPUs": machines.gpus,
            "what it is": text,
            "rules": ", ".join(_rules(machines)),
        }
        for name, text in cluster_descriptions().items()
        for machines in [load_cluster(name)]
    ]


def _rules(machines: Cluster) -> Iterator[str]:
    """Name what a cluster has beyond equal GPUs."""
    if len(machines.gpu_types) > 1 and not machines.site.equal_speeds:
        yield "speeds"
    if machines.node_sharing.any():
        yield "sharing"
    if machines.site.quotas:
        yield "quotas"
    if not all(map(math.isnan, machines.node_cpus.tolist())):
        yield "cores"


def _gpus() -> Rows:
    from yardmaster.model.gpus import gpu_types

    return [
        {
            "GPU type": kind.name,
            "memory (GiB)": kind.memory_gib,
            "fp32 (TFLOP/s)": kind.fp32_tflops,
            "fp16 (TFLOP/s)": kind.fp16_tflops,
            "idle (W)": kind.idle_w,
            "busy (W)": kind.busy_w,
        }
        for kind in gpu_types()
    ]


def _kinds() -> Rows:
    from yardmaster.model.gpus import gpu_type
    from yardmaster.model.speeds import kinds, locality, scaling, speed

    reference = gpu_type("V100")
    rows: Rows = []
    for name in kinds():
        row: dict[str, object] = {"kind of job": name}
        row |= {f"on {gpu}": speed(name, gpu_type(gpu), reference) for gpu in KIND_GPUS}
        row |= {"spread: nodes": locality(name).node, "racks": locality(name).rack}
        rows.append(row | {"scaling": scaling(name)})
    return rows


def _metrics() -> Rows:
    from yardmaster.metrics.catalogue import METRICS

    return [
        {
            "metric": entry.name,
            "unit": entry.unit,
            "better": entry.better,
            "definition": entry.definition,
        }
        for entry in METRICS
    ]


def _columns() -> Rows:
    from yardmaster.model.workload import COLUMNS

    return [
        {"column": c.name, "type": c.type, "missing": c.missing, "meaning": c.meaning}
        for c in COLUMNS
    ]


def _regimes() -> Rows:
    from yardmaster.workloads.regimes import FAMILIES, regimes

    return [
        {
            "regime": regime.name,
            "family": family,
            "GPUs": regime.labels["gpus"],
            "changes at (s)": ", ".join(f"{change_s:g}" for change_s in regime.changes_s),
            "what it is": regime.description,
        }
        for family in FAMILIES
        for regime in regimes(family)
    ]


def _perturbations() -> Rows:
    from yardmaster.workloads.regimes import PERTURBATIONS

    return [
        {
            "perturbation": kind.name,
            "severities": ", ".join(f"{severity:g}" for severity in kind.severities),
            "severity is": kind.unit,
            "what happens": kind.meaning,
        }
        for kind in PERTURBATIONS.values()
    ]


def _choosers() -> Rows:
    from yardmaster.schedulers.meta.bandits import BANDITS
    from yardmaster.schedulers.meta.chooser_file import read_chooser
    from yardmaster.schedulers.meta.choosers import chooser_path, load_chooser, shipped_names

    rows: Rows = []
    for name in shipped_names():
        about = read_chooser(chooser_path(name)).about
        rows.append(
            {
                "scheduler": f"meta:{name}",
                "what it does": f"trained ({about['learner']}) on the task {about['task']} for"
                f" {about['reward']}",
                "chooses among": " / ".join(load_chooser(name).sight.menu),
            }
        )
    for kind, bandit in BANDITS.items():
        rows.append(
            {
                "scheduler": f"bandit:{kind}",
                "what it does": bandit.summary,
                "chooses among": "RLMetaDQN's five rules, or bandit:NAME=SCHEDULER/SCHEDULER/…",
            }
        )
    return rows


def _policies() -> Rows:
    from yardmaster.schedulers.learned.catalogue import shipped_names

    return [_policy(name) for name in shipped_names()]


def _policy(name: str) -> dict[str, object]:
    from yardmaster.schedulers.learned.catalogue import describe_shipped

    policy = describe_shipped(name)
    return {
        "scheduler": f"policy:{policy.name}",
        "information": policy.information,
        "objective": policy.objective,
        "trained on": policy.trained_on,
        "steps": policy.steps,
    }


def _show_card(topic: str | None, name: str, *, json: bool) -> None:
    """Print the model card of a policy."""
    from yardmaster.errors import YardmasterError
    from yardmaster.schedulers.learned.catalogue import model_card

    if topic != "policies":
        raise YardmasterError(f"Only policies have cards: yardmaster list policies {name}.")
    own = name.removeprefix("policy:")
    card = model_card(own)
    if json:
        say_json(_policy(own) | {"card": card})
    else:
        say(card.rstrip())


def print_rows(title: str, rows: Rows) -> None:
    """Print rows as a table; all of them have the same columns."""
    if not rows:
        say(f"{title}: none\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from yardmaster.cli.console import colours, width

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for key, value in rows[0].items():
        numeric = isinstance(value, int | float)
        table.add_column(key, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_text(v) for v in row.values()))
    # Brackets in a source or a formula are brackets, not markup.
    console = Console(width=width(), no_color=not colours(), highlight=False, markup=False)
    console.print(table)


def _text(value: object) -> str:
    """Write a field; three digits of a measured number say all there is to know."""
    if isinstance(value, float) and value < 1_000:
        return f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
