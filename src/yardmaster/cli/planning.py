"""From options to a plan: mistakes in options read like mistakes in a file."""

from __future__ import annotations

from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.plan import Plan
from yardmaster.metrics.catalogue import metric
from yardmaster.model.documents import validate
from yardmaster.schedulers.language import parse_scheduler


def make_plan(**options: Any) -> Plan:
    """Check the options of a command and return the plan they state.

    Raises:
        InvalidConfigError: with every mistake.
        UnknownNameError: for schedulers and metrics that do not exist.
    """
    if not options["schedulers"]:
        raise YardmasterError("No schedulers were named; write names separated by commas.")
    given = {key: value for key, value in options.items() if value is not None}
    plan = validate(Plan, given, f"yardmaster {options['command']}")
    metric(plan.objective)
    for scheduler in (*plan.schedulers, *([plan.baseline] if plan.baseline else [])):
        parse_scheduler(scheduler)
    return plan


def split_names(text: str) -> tuple[str, ...]:
    """Split `fifo, sjf+easy` into names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
