"""Many environments in one call: what Python calls."""

from __future__ import annotations

from typing import Any

from yardmaster.engine.choosing.accounts import settle_reward
from yardmaster.engine.choosing.places import ELAPSED_S, IS_OVER
from yardmaster.engine.choosing.showing import look
from yardmaster.engine.choosing.stepping import begin, step
from yardmaster.engine.compilation import (
    bare,
    entry_point,
    hot_kernel,
    parallel_entry_point,
    prange,
    spliced_kernel,
)
from yardmaster.engine.state import Ints, Reals


@hot_kernel
def _copy_row(source: Any, target: Any, length: int) -> None:
    for place in range(length):
        target[place] = source[place]


@spliced_kernel
def _begin_one(
    template_ints: Ints,
    template_reals: Reals,
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    lengths: Ints,
) -> None:
    """Put an environment at the first decision of an episode."""
    _copy_row(template_ints, ints, lengths[0])
    _copy_row(template_reals, reals, lengths[1])
    for place in range(lengths[2]):
        book[place] = 0
    for place in range(lengths[3]):
        purse[place] = 0.0
    begin(ints, reals, rules, scales, facts, book, purse)
    look(ints, reals, rules, scales, facts, book, purse, view)


@entry_point
def begin_many(
    bank_ints: Any,
    bank_reals: Any,
    bank_facts: Any,
    rules: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    book: Any,
    purse: Any,
    views: Any,
    episodes: Any,
    lengths: Any,
    rows: Any,
) -> None:
    """Begin in some environments the episodes whose places in the bank are given."""
    for index in range(len(rows)):
        row = rows[index]
        episode = episodes[row]
        _begin_one(
            bare(bank_ints[episode]),
            bare(bank_reals[episode]),
            bare(ints[row]),
            bare(reals[row]),
            bare(rules),
            bare(scales),
            bare(bank_facts[episode]),
            bare(book[row]),
            bare(purse[row]),
            bare(views[row]),
            bare(lengths),
        )


@spliced_kernel
def _step_one(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    action: int,
) -> float:
    step(ints, reals, rules, scales, facts, book, purse, action)
    look(ints, reals, rules, scales, facts, book, purse, view)
    return settle_reward(reals, facts, book, purse)


@entry_point
def step_many(
    bank_facts: Any,
    rules: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    book: Any,
    purse: Any,
    views: Any,
    episodes: Any,
    actions: Any,
    rewards: Any,
    ends: Any,
    elapsed_s: Any,
    first: int,
    last: int,
) -> None:
    """Step environments first … last − 1; those whose episode ends stay at its end."""
    for row in range(first, last):
        rewards[row] = _step_one(
            bare(ints[row]),
            bare(reals[row]),
            bare(rules),
            bare(scales),
            bare(bank_facts[episodes[row]]),
            bare(book[row]),
            bare(purse[row]),
            bare(views[row]),
            actions[row],
        )
        ends[row] = book[row, IS_OVER]
        elapsed_s[row] = purse[row, ELAPSED_S]


@parallel_entry_point
def step_parts(
    bank_facts: Any,
    rules: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    book: Any,
    purse: Any,
    views: Any,
    episodes: Any,
    actions: Any,
    rewards: Any,
    ends: Any,
    elapsed_s: Any,
    parts: int,
) -> None:
    """Step all environments, so many parts of them at the same time."""
    size = len(actions)
    for part in prange(parts):
        step_many(
            bank_facts,
            rules,
            scales,
            ints,
            reals,
            book,
            purse,
            views,
            episodes,
            actions,
            rewards,
            ends,
            elapsed_s,
            part * size // parts,
            (part + 1) * size // parts,
        )
