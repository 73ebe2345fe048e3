"""Yardmaster simulates, compares and learns job schedulers for GPU clusters.

Everything a script needs is here; it is loaded when first used, so that importing the package
costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from yardmaster.envs import registration as _registration  # noqa: F401  (Gymnasium's ids)

if TYPE_CHECKING:
    from yardmaster.errors import YardmasterError
    from yardmaster.experiments.compare import compare
    from yardmaster.experiments.comparison import Comparison
    from yardmaster.metrics.summary import summarise
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.schedule import Schedule
    from yardmaster.model.workload import Workload
    from yardmaster.report.html import write_report
    from yardmaster.report.text import table
    from yardmaster.schedulers.orders import order
    from yardmaster.schedulers.simulation import simulate
    from yardmaster.schedulers.views import JobsView
    from yardmaster.testing.conformance import check_order
    from yardmaster.testing.learners import check_learner
    from yardmaster.testing.placements import check_placement
    from yardmaster.testing.recipes import check_recipe
    from yardmaster.testing.rewards import check_reward
    from yardmaster.testing.trace_formats import check_trace_format
    from yardmaster.workloads.recipes.recipe import Recipe
    from yardmaster.workloads.sources import load_workload
    from yardmaster.workloads.synthetic import generate
    from yardmaster.workloads.tables import write_table
    from yardmaster.workloads.traces.formats import import_trace

_HOME = {
    "Cluster": "yardmaster.model.cluster",
    "Comparison": "yardmaster.experiments.comparison",
    "JobsView": "yardmaster.schedulers.views",
    "Recipe": "yardmaster.workloads.recipes.recipe",
    "Schedule": "yardmaster.model.schedule",
    "Workload": "yardmaster.model.workload",
    "YardmasterError": "yardmaster.errors",
    "check_learner": "yardmaster.testing.learners",
    "check_order": "yardmaster.testing.conformance",
    "check_placement": "yardmaster.testing.placements",
    "check_recipe": "yardmaster.testing.recipes",
    "check_reward": "yardmaster.testing.rewards",
    "check_trace_format": "yardmaster.testing.trace_formats",
    "compare": "yardmaster.experiments.compare",
    "generate": "yardmaster.workloads.synthetic",
    "import_trace": "yardmaster.workloads.traces.formats",
    "load_cluster": "yardmaster.model.catalogue",
    "load_workload": "yardmaster.workloads.sources",
    "order": "yardmaster.schedulers.orders",
    "simulate": "yardmaster.schedulers.simulation",
    "summarise": "yardmaster.metrics.summary",
    "table": "yardmaster.report.text",
    "write_report": "yardmaster.report.html",
    "write_table": "yardmaster.workloads.tables",
}

__all__ = [
    "Cluster",
    "Comparison",
    "JobsView",
    "Recipe",
    "Schedule",
    "Workload",
    "YardmasterError",
    "check_learner",
    "check_order",
    "check_placement",
    "check_recipe",
    "check_reward",
    "check_trace_format",
    "compare",
    "generate",
    "import_trace",
    "load_cluster",
    "load_workload",
    "order",
    "simulate",
    "summarise",
    "table",
    "write_report",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'yardmaster' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
