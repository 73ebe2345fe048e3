"""A trained policy at the wheel: the whole replay of a workload inside the compiled core."""

from __future__ import annotations

from typing import Any

from yardmaster.engine.compilation import bare, entry_point, kernel, spliced_kernel
from yardmaster.engine.picking.nets import score
from yardmaster.engine.picking.places import IS_OVER, WINDOW, End
from yardmaster.engine.picking.stepping import begin, look, step
from yardmaster.engine.state import NOTHING, PASSES, Ints, Reals


@kernel
def best_action(rules: Ints, legal: Ints, scores: Reals) -> int:
    """Return the legal action with the highest score, the first of several."""
    best = NOTHING
    for action in range(rules[WINDOW] + 1):
        if legal[action] == 1 and (best == NOTHING or scores[action] > scores[best]):
            best = action
    return best


@spliced_kernel
def _drive(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    cards: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    legal: Ints,
    net: Ints,
    weights: Reals,
    scores: Reals,
    scratch: Reals,
    decisions: int,
) -> int:
    if ints[PASSES] == 0:
        begin(ints, reals, rules, scales, facts, book, purse, legal)
    left = decisions
    while book[IS_OVER] == End.NOT_YET and left > 0:
        look(ints, reals, rules, scales, facts, cards, book, purse, view)
        score(net, weights, view, legal, scores, scratch)
        action = best_action(rules, legal, scores)
        step(ints, reals, rules, scales, facts, book, purse, legal, action)
        left -= 1
    return book[IS_OVER]


@entry_point
def drive(
    ints: Any,
    reals: Any,
    rules: Any,
    scales: Any,
    facts: Any,
    cards: Any,
    book: Any,
    purse: Any,
    view: Any,
    legal: Any,
    net: Any,
    weights: Any,
    scores: Any,
    scratch: Any,
    decisions: int,
) -> int:
    """Let the policy take so many decisions; return an End: why the replay is over, if it is.

    With none to take, time passes until the first decision. Afterwards `view` and `scores` are
    those of the last decision taken.
    """
    return _drive(
        bare(ints),
        bare(reals),
        bare(rules),
        bare(scales),
        bare(facts),
        bare(cards),
        bare(book),
        bare(purse),
        bare(view),
        bare(legal),
        bare(net),
        bare(weights),
        bare(scores),
        bare(scratch),
        decisions,
    )
