"""What did the user name? An order, a trace format, a reward, a learner, a recipe, a placement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.names import did_you_mean
from yardmaster.testing.verdicts import Conformance


def judge(target: str, samples: Sequence[str | Path] = ()) -> Conformance:
    """Find out what is named, and try the rules for such a thing.

    Args:
        target: a name, `module:name`, `path/to/file.py:name`, a recipe's `.toml` file, or
            `@placement`.
        samples: files in a trace format, where the target is one.

    Raises:
        UnknownNameError: if nothing is called so.
        YardmasterError: if it is nothing that can be checked, or cannot be read.
    """
    if target.startswith("@"):
        from yardmaster.testing.placements import judge_placement

        return judge_placement(target)
    if target.lower().endswith(".toml"):
        from yardmaster.testing.recipes import judge_recipe

        return judge_recipe(target)
    return _of_object(target, samples) if ":" in target else _of_name(target, samples)


def _of_name(name: str, samples: Sequence[str | Path]) -> Conformance:
    """Judge what comes along by that name: orders first, as schedulers' names begin with them."""
    from yardmaster.envs.rewards import REWARDS
    from yardmaster.schedulers.language import PLACEMENTS
    from yardmaster.schedulers.orders import ORDERS
    from yardmaster.testing import conformance, placements, recipes, rewards
    from yardmaster.workloads.recipes.presets import PRESETS
    from yardmaster.workloads.traces.formats import trace_formats

    formats = trace_formats()
    if samples and name in formats:
        return _format(formats[name], samples)
    catalogues: list[tuple[Collection[str], Callable[[str], Conformance]]] = [
        (ORDERS, conformance.judge_order),
        (PLACEMENTS, placements.judge_placement),
        (REWARDS, rewards.judge_reward),
        (PRESETS, recipes.judge_recipe),
        (formats, lambda name: _format(formats[name], samples)),
        (_learners(), _learner),
    ]
    if "+" in name or "~" in name:
        return conformance.judge_order(name)
    for names, judge_one in catalogues:
        if name in names:
            return judge_one(name)
    if name.endswith(".py"):
        raise UnknownNameError(_names_in(name))
    known = [one for names, _ in catalogues for one in names]
    raise UnknownNameError(
        f"Nothing that can be checked is called {name!r}.{did_you_mean(name, known)} Yours is named"
        " by module:name or path/to/file.py:name."
    )


def _names_in(place: str) -> str:
    """Return which orders of a file could be meant."""
    from yardmaster.schedulers.language import load_module
    from yardmaster.schedulers.orders import ORDERS

    module = load_module(place, place)
    found = [one.name for one in ORDERS.values() if one.function.__module__ == module.__name__]
    orders = f" Its orders: {', '.join(f'{place}:{one}' for one in found)}." if found else ""
    return f"Which part of {place}? Write {place}:name.{orders}"


def _learners() -> Sequence[str]:
    """Return the names of learners; none where torch is absent."""
    try:
        from yardmaster.agents.learners import LEARNERS
    except ImportError:
        return ()
    return list(LEARNERS)


def _of_object(target: str, samples: Sequence[str | Path]) -> Conformance:
    """Judge what a module or a file has by that name."""
    from yardmaster.envs.rewards import Reward
    from yardmaster.schedulers.language import load_module
    from yardmaster.testing.conformance import judge_order
    from yardmaster.workloads.recipes.recipe import Recipe
    from yardmaster.workloads.traces.formats import TraceFormat

    place, _, attribute = target.rpartition(":")
    # Disciplines and placements may stand behind the name of an order.
    name = attribute.partition("+")[0].partition("@")[0].partition("~")[0]
    found = getattr(load_module(place, target), name, None)
    if isinstance(found, TraceFormat):
        return _format(found, samples)
    if isinstance(found, Reward | Mapping):
        from yardmaster.testing.rewards import judge_reward

        return judge_reward(found, name=target)
    if isinstance(found, Recipe):
        from yardmaster.testing.recipes import judge_recipe

        return judge_recipe(found)
    if _is_learner(found):
        return _learner(found)
    if found is not None and not callable(found) and not hasattr(found, "function"):
        raise YardmasterError(
            f"{target} is of type {type(found).__name__}: neither an order, a trace format, a"
            " reward, a recipe nor a learner."
        )
    return judge_order(target)  # which says if there is no such name


def _format(entry: Any, samples: Sequence[str | Path]) -> Conformance:
    from yardmaster.testing.trace_formats import judge_trace_format

    return judge_trace_format(entry, samples)


def _learner(found: Any) -> Conformance:
    from yardmaster.testing.learners import judge_learner

    return judge_learner(found)


def _is_learner(found: object) -> bool:
    """Whether it is a learner's class or kind, without importing torch to find out."""
    is_class = isinstance(found, type) and all(
        hasattr(found, name) for name in ("update", "state", "load")
    )
    return is_class or type(found).__name__ == "LearnerKind"
