"""Kernels in which a GPU's threads step and begin environments of picking jobs.

Every function they call is one of the core, compiled for the GPU from the same source. A thread
steps one environment. Beginning an episode is much copying and happens rarely, so a block of
threads shares it, and only the first of them walks to the first decision.

What stands here under `cuda`, `lane`, `state_lane`, `bare`, `RULES` and `float64` is replaced in
the copies that are compiled (see `picking.compiled`).
"""

from __future__ import annotations

from typing import Any

from yardmaster.engine.compilation import entry_point, kernel
from yardmaster.engine.core.bits import dice
from yardmaster.engine.drawing.jobs import draw_part, scene_of, settle_part
from yardmaster.engine.drawing.places import SHARES, SUMS, TEMPLATE
from yardmaster.engine.gpu.hashing import next_number
from yardmaster.engine.gpu.lanes import LANES
from yardmaster.engine.picking.places import (
    BSLD_SUM,
    ELAPSED_S,
    ENDED,
    IS_OVER,
    JCT_SUM,
    LENGTH,
    NOOPS,
    RETURN,
    STEPS,
    WINDOW,
)
from yardmaster.engine.picking.stepping import begin, look, step
from yardmaster.engine.picking.terms import settle_reward

MOST_EPISODES = 1 << 31
"""Numbers that drawn episodes have."""

cuda: Any = None
"""Numba's compiler for GPUs."""
lane: Any = None
"""(tiles, environment) → the environment's row; see `lanes`."""
state_lane: Any = None
"""The same of the core's integers."""
bare: Any = None
"""Array of one row → the row."""
RULES: Any = ()
"""What the task is, as constants of the machine code: most of the core is then left out of it."""
float64: Any = float
"""The type of sums that threads share."""


@entry_point
def step_all(
    scales: Any,
    ints: Any,
    reals: Any,
    facts: Any,
    cards: Any,
    book: Any,
    purse: Any,
    views: Any,
    legal: Any,
    actions: Any,
    rewards: Any,
    ends: Any,
    elapsed_s: Any,
    groups: Any,
) -> None:
    """Step all environments, one thread each."""
    number = cuda.grid(1)
    if number >= actions.shape[0]:
        return
    rules, weights = RULES, bare(scales[int(groups[number])])
    int_row, real_row, fact_row = state_lane(ints, number), lane(reals, number), lane(facts, number)
    pages, coins = lane(book, number), lane(purse, number)
    may = lane(legal, number)
    step(int_row, real_row, rules, weights, fact_row, pages, coins, may, int(actions[number]))
    card_row, view = lane(cards, number), lane(views, number)
    look(int_row, real_row, rules, weights, fact_row, card_row, pages, coins, view)
    rewards[number] = settle_reward(weights, coins)
    ends[number] = pages[IS_OVER]
    elapsed_s[number] = coins[ELAPSED_S]


@entry_point
def act_at_random(legal: Any, seed: int, moment: int, actions: Any) -> None:
    """Choose any legal action in every environment, one thread each."""
    number = cuda.grid(1)
    if number >= actions.shape[0]:
        return
    may, count = lane(legal, number), legal.shape[1]
    allowed = 0
    for action in range(count):
        allowed += may[action]
    skipped = dice(seed, moment, number) % max(allowed, 1)
    for action in range(count):
        if may[action] == 1:
            if skipped == 0:
                actions[number] = action
            skipped -= 1


@kernel
def leave(number: int, book: Any, purse: Any, group: int, tally: Any) -> None:
    """Add up what came of the episode that has ended, if it had begun."""
    pages, coins = lane(book, number), lane(purse, number)
    if pages[STEPS] > 0:
        cuda.atomic.add(tally, (group, 0), 1.0)
        cuda.atomic.add(tally, (group, 1), coins[RETURN])
        cuda.atomic.add(tally, (group, 2), float(pages[STEPS]))
        cuda.atomic.add(tally, (group, 3), float(pages[NOOPS]))
        cuda.atomic.add(tally, (group, 4), float(pages[ENDED]))
        cuda.atomic.add(tally, (group, 5), coins[JCT_SUM])
        cuda.atomic.add(tally, (group, 6), coins[BSLD_SUM])


@kernel
def enter(
    number: int,
    rules: Any,
    weights: Any,
    ints: Any,
    reals: Any,
    facts: Any,
    cards: Any,
    book: Any,
    purse: Any,
    views: Any,
    legal: Any,
) -> None:
    """Go to the first decision of the episode whose rows have been written."""
    int_row, real_row, fact_row = state_lane(ints, number), lane(reals, number), lane(facts, number)
    pages, coins, may = lane(book, number), lane(purse, number), lane(legal, number)
    begin(int_row, real_row, rules, weights, fact_row, pages, coins, may)
    card_row, view = lane(cards, number), lane(views, number)
    look(int_row, real_row, rules, weights, fact_row, card_row, pages, coins, view)


@entry_point
def begin_kept(
    bank_ints: Any,
    bank_reals: Any,
    bank_facts: Any,
    bank_cards: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    facts: Any,
    cards: Any,
    book: Any,
    purse: Any,
    views: Any,
    finals: Any,
    legal: Any,
    ends: Any,
    seeds: Any,
    begun: Any,
    numbers: Any,
    tally: Any,
) -> None:
    """Begin an episode of the bank wherever one has ended; a block looks after a tile."""
    me, team = cuda.threadIdx.x, cuda.blockDim.x
    rules, weights = RULES, bare(scales[0])
    for place in range(LANES):
        number = cuda.blockIdx.x * LANES + place
        if ends[number] == 0:
            continue
        episode = next_number(int(seeds[number]), int(begun[number]), bank_ints.shape[0])
        if me == 0:
            leave(number, book, purse, 0, tally)
        view, last = lane(views, number), lane(finals, number)
        for word in range(me, min(rules[LENGTH], finals.shape[1]), team):
            last[word] = view[word]
        copy_words(bank_ints, episode, lane(ints, number), me, team)
        copy_words(bank_reals, episode, lane(reals, number), me, team)
        copy_words(bank_facts, episode, lane(facts, number), me, team)
        copy_words(bank_cards, episode, lane(cards, number), me, team)
        cuda.syncthreads()
        clear(number, rules, book, purse, views, legal, me, team)
        cuda.syncthreads()
        if me == 0:
            enter(number, rules, weights, ints, reals, facts, cards, book, purse, views, legal)
            numbers[number] = episode
            begun[number] += 1
        cuda.syncthreads()


@entry_point
def begin_drawn(
    scene_ints: Any,
    scene_reals: Any,
    pool: Any,
    sizes: Any,
    shapes: Any,
    bank_ints: Any,
    bank_reals: Any,
    bank_facts: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    facts: Any,
    cards: Any,
    book: Any,
    purse: Any,
    views: Any,
    legal: Any,
    ends: Any,
    seeds: Any,
    begun: Any,
    numbers: Any,
    groups: Any,
    tally: Any,
) -> None:
    """Draw an episode and begin it wherever one has ended; a block looks after a tile."""
    me, team = cuda.threadIdx.x, cuda.blockDim.x
    sums = cuda.shared.array(SUMS, float64)
    rules = RULES
    for place in range(LANES):
        number = cuda.blockIdx.x * LANES + place
        if ends[number] == 0:
            continue
        episode = next_number(int(seeds[number]), int(begun[number]), MOST_EPISODES)
        scene = scene_of(episode, scene_reals, scene_ints.shape[0])
        template = int(scene_ints[scene, TEMPLATE])
        if me == 0:
            leave(number, book, purse, int(groups[number]), tally)
        row, real_row = state_lane(ints, number), lane(reals, number)
        fact_row, card_row = lane(facts, number), lane(cards, number)
        copy_words(bank_ints, template, row, me, team)
        copy_words(bank_reals, template, real_row, me, team)
        copy_words(bank_facts, template, fact_row, me, team)
        cuda.syncthreads()
        settings, ranges = bare(scene_ints[scene]), bare(scene_reals[scene])
        for part in range(me, SHARES, team):
            draw_part(
                *(episode, part, settings, ranges, pool, sizes, bare(shapes), rules),
                *(row, real_row, fact_row, card_row, sums),
            )
        clear(number, rules, book, purse, views, legal, me, team)
        cuda.syncthreads()
        for part in range(me, SHARES, team):
            settle_part(episode, part, settings, ranges, row, real_row, fact_row, sums)
        cuda.syncthreads()
        if me == 0:
            weights = bare(scales[scene])
            enter(number, rules, weights, ints, reals, facts, cards, book, purse, views, legal)
            numbers[number] = episode
            groups[number] = scene
            begun[number] += 1
        cuda.syncthreads()


@kernel
def copy_words(bank: Any, number: int, row: Any, me: int, team: int) -> None:
    """Copy a row of the bank, every thread of the team its share."""
    for word in range(me, bank.shape[1], team):
        row[word] = bank[number, word]


@kernel
def clear(
    number: int, rules: Any, book: Any, purse: Any, views: Any, legal: Any, me: int, team: int
) -> None:
    """Forget what an environment was in the middle of, every thread of the team its share."""
    pages, coins = lane(book, number), lane(purse, number)
    view, may = lane(views, number), lane(legal, number)
    for word in range(me, book.shape[1], team):
        pages[word] = 0
    for word in range(me, purse.shape[1], team):
        coins[word] = 0.0
    for word in range(me, rules[LENGTH], team):
        view[word] = 0.0
    for action in range(me, rules[WINDOW] + 1, team):
        may[action] = 0
