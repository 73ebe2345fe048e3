"""A trained chooser at the wheel: the whole replay of a workload inside the compiled core."""

from __future__ import annotations

from typing import Any

from yardmaster.engine.choosing.nets import score
from yardmaster.engine.choosing.places import IS_OVER, MEMBERS, End
from yardmaster.engine.choosing.showing import look
from yardmaster.engine.choosing.stepping import step
from yardmaster.engine.compilation import bare, entry_point, kernel, spliced_kernel
from yardmaster.engine.state import Ints, Reals


@kernel
def favourite(members: int, scores: Reals) -> int:
    """Return the member with the highest score, the first of several."""
    best = 0
    for member in range(1, members):
        if scores[member] > scores[best]:
            best = member
    return best


@kernel
def _decide(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    net: Ints,
    weights: Reals,
    scores: Reals,
    scratch: Reals,
) -> int:
    """Look, and return the scheduler that the network prefers."""
    look(ints, reals, rules, scales, facts, book, purse, view)
    score(net, weights, view, scores, scratch)
    return favourite(rules[MEMBERS], scores)


@spliced_kernel
def _drive(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    net: Ints,
    weights: Reals,
    scores: Reals,
    scratch: Reals,
    decisions: int,
) -> int:
    for _ in range(decisions):
        if book[IS_OVER] != End.NOT_YET:
            break
        action = _decide(
            ints, reals, rules, scales, facts, book, purse, view, net, weights, scores, scratch
        )
        step(ints, reals, rules, scales, facts, book, purse, action)
    return book[IS_OVER]


@entry_point
def drive(
    ints: Any,
    reals: Any,
    rules: Any,
    scales: Any,
    facts: Any,
    book: Any,
    purse: Any,
    view: Any,
    net: Any,
    weights: Any,
    scores: Any,
    scratch: Any,
    decisions: int,
) -> int:
    """Let the network take so many decisions; return an End."""
    return _drive(
        bare(ints),
        bare(reals),
        bare(rules),
        bare(scales),
        bare(facts),
        bare(book),
        bare(purse),
        bare(view),
        bare(net),
        bare(weights),
        bare(scores),
        bare(scratch),
        decisions,
    )


@entry_point
def decide(
    ints: Any,
    reals: Any,
    rules: Any,
    scales: Any,
    facts: Any,
    book: Any,
    purse: Any,
    view: Any,
    net: Any,
    weights: Any,
    scores: Any,
    scratch: Any,
) -> int:
    """Return the scheduler that the network would put to work now; nothing changes."""
    return _decide(
        bare(ints),
        bare(reals),
        bare(rules),
        bare(scales),
        bare(facts),
        bare(book),
        bare(purse),
        bare(view),
        bare(net),
        bare(weights),
        bare(scores),
        bare(scratch),
    )
