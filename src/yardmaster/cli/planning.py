"""From options to a plan: mistakes in options read like mistakes in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.line_up import parse_schedulers
from yardmaster.experiments.plan import Plan
from yardmaster.metrics.catalogue import metric
from yardmaster.model.documents import validate


def make_plan(**options: Any) -> Plan:
    """Check the options of a command and return the plan they state.

    Raises:
        InvalidConfigError: with every mistake.
        UnknownNameError: for a metric that does not exist, and with all schedulers that do not.
    """
    if not options["schedulers"]:
        raise YardmasterError("No schedulers were named; write names separated by commas.")
    given = _without_none(options)
    plan = validate(Plan, given, f"yardmaster {options['command']}")
    metric(plan.objective)
    parse_schedulers([*plan.schedulers, *([plan.baseline] if plan.baseline else [])])
    return plan


def _without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given: a document has no word for none."""
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in options.items()
        if value is not None
    }


def split_names(text: str) -> tuple[str, ...]:
    """Split `fifo, sjf+easy` into names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
