"""`yardmaster list`: every name that can be used."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from yardmaster.cli.console import say, say_json
from yardmaster.cli.options import JsonOption

Topic = Literal[
    "orders",
    "disciplines",
    "placements",
    "workloads",
    "clusters",
    "gpus",
    "metrics",
    "columns",
]
TOPICS: tuple[Topic, ...] = (
    "orders",
    "disciplines",
    "placements",
    "workloads",
    "clusters",
    "gpus",
    "metrics",
    "columns",
)
Rows = list[dict[str, object]]


def listing(
    topic: Annotated[Topic | None, Parameter(help="What to list; everything by default.")] = None,
    /,
    *,
    json: JsonOption = False,
) -> None:
    """Show orders, disciplines, placements, workloads, clusters, GPU types, metrics or columns."""
    chosen = (topic,) if topic else TOPICS
    found = {name: _rows(name) for name in chosen}
    if json:
        say_json(found[topic] if topic else found)
        return
    for name, rows in found.items():
        _print(name, rows)
    if topic is None or topic in ("orders", "disciplines", "placements"):
        say(
            "A scheduler is ORDER+DISCIPLINE@PLACEMENT, such as sjf+easy@pack; without a discipline"
            " it is strict (random-feasible:\nskip), without a placement pack. Orders that read run"
            " times, and easy and conservative, read the true ones and are\nclairvoyant; with"
            " ~estimate appended they read the jobs' estimates. In keys: s submit time, r run time,"
            " n GPUs,\nw waiting time, p priority, d deadline."
        )


def _rows(topic: Topic) -> Rows:
    return {
        "orders": _orders,
        "disciplines": _disciplines,
        "placements": _placements,
        "workloads": _workloads,
        "clusters": _clusters,
        "gpus": _gpus,
        "metrics": _metrics,
        "columns": _columns,
    }[topic]()


def _orders() -> Rows:
    from yardmaster.schedulers.orders import ORDERS

    return [
        {
            "order": entry.name,
            "information": "clairvoyant, estimate-based with ~estimate"
            if entry.reads_run_time
            else "blind",
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


def _workloads() -> Rows:
    from yardmaster.workloads.synthetic import PRESETS

    return [
        {"workload": name, "what it is": preset.description} for name, preset in PRESETS.items()
    ]


def _clusters() -> Rows:
    from yardmaster.model.catalogue import cluster_descriptions, load_cluster

    return [
        {
            "cluster": name,
            "nodes": load_cluster(name).nodes,
            "GPUs": load_cluster(name).gpus,
            "what it is": text,
        }
        for name, text in cluster_descriptions().items()
    ]


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


def _print(title: str, rows: Rows) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from yardmaster.cli.console import colours, width

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for key, value in rows[0].items():
        numeric = isinstance(value, int | float)
        table.add_column(key, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{v:g}" if isinstance(v, int | float) else str(v) for v in row.values()))
    Console(width=width(), no_color=not colours(), highlight=False, soft_wrap=False).print(table)
