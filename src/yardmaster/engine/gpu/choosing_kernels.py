"""Kernels in which a GPU's threads step and begin environments of choosing schedulers.

As in `kernels`, every function they call is one of the core, a thread steps one environment, and a
block of threads begins an episode. What is known of an episode from the start is never written, so
that all environments that play it read the same row of the bank.
"""

from __future__ import annotations

from typing import Any

from yardmaster.engine.choosing.accounts import settle_reward
from yardmaster.engine.choosing.places import (
    BSLD_SUM,
    ELAPSED_S,
    ENDED,
    IS_OVER,
    JCT_SUM,
    LATE_JOBS,
    LENGTH,
    RETURN,
    STEPS,
    SWITCHES,
    WAIT_SUM,
)
from yardmaster.engine.choosing.showing import look
from yardmaster.engine.choosing.stepping import begin, step
from yardmaster.engine.compilation import entry_point, kernel
from yardmaster.engine.gpu.hashing import next_number
from yardmaster.engine.gpu.kernels import copy_words
from yardmaster.engine.gpu.lanes import LANES

cuda: Any = None
"""These are replaced in the copies that are compiled; see `kernels`."""
lane: Any = None
state_lane: Any = None
bare: Any = None
RULES: Any = ()


@entry_point
def step_all(
    bank_facts: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    book: Any,
    purse: Any,
    views: Any,
    numbers: Any,
    actions: Any,
    rewards: Any,
    ends: Any,
    elapsed_s: Any,
) -> None:
    """Step all environments, one thread each."""
    number = cuda.grid(1)
    if number >= actions.shape[0]:
        return
    rules, weights, known = RULES, bare(scales), bare(bank_facts[int(numbers[number])])
    int_row, real_row = state_lane(ints, number), lane(reals, number)
    pages, coins, view = lane(book, number), lane(purse, number), lane(views, number)
    step(int_row, real_row, rules, weights, known, pages, coins, int(actions[number]))
    look(int_row, real_row, rules, weights, known, pages, coins, view)
    rewards[number] = settle_reward(real_row, known, pages, coins)
    ends[number] = pages[IS_OVER]
    elapsed_s[number] = coins[ELAPSED_S]


@kernel
def leave(number: int, book: Any, purse: Any, group: int, tally: Any) -> None:
    """Add up what came of the episode that has ended, if it had begun."""
    pages, coins = lane(book, number), lane(purse, number)
    if pages[STEPS] > 0:
        cuda.atomic.add(tally, (group, 0), 1.0)
        cuda.atomic.add(tally, (group, 1), coins[RETURN])
        cuda.atomic.add(tally, (group, 2), float(pages[STEPS]))
        cuda.atomic.add(tally, (group, 3), float(pages[SWITCHES]))
        cuda.atomic.add(tally, (group, 4), float(pages[ENDED]))
        cuda.atomic.add(tally, (group, 5), coins[JCT_SUM])
        cuda.atomic.add(tally, (group, 6), coins[BSLD_SUM])
        cuda.atomic.add(tally, (group, 7), coins[WAIT_SUM])
        cuda.atomic.add(tally, (group, 8), float(pages[LATE_JOBS]))


@entry_point
def begin_kept(
    bank_ints: Any,
    bank_reals: Any,
    bank_facts: Any,
    scales: Any,
    ints: Any,
    reals: Any,
    book: Any,
    purse: Any,
    views: Any,
    finals: Any,
    ends: Any,
    seeds: Any,
    begun: Any,
    numbers: Any,
    groups: Any,
    tally: Any,
) -> None:
    """Begin an episode of the bank wherever one has ended; a block looks after a tile."""
    me, team = cuda.threadIdx.x, cuda.blockDim.x
    rules, weights = RULES, bare(scales)
    for place in range(LANES):
        number = cuda.blockIdx.x * LANES + place
        if ends[number] == 0:
            continue
        episode = next_number(int(seeds[number]), int(begun[number]), bank_ints.shape[0])
        pages, coins = lane(book, number), lane(purse, number)
        view, last = lane(views, number), lane(finals, number)
        if me == 0:
            leave(number, book, purse, int(groups[number]), tally)
        for word in range(me, min(rules[LENGTH], finals.shape[1]), team):
            last[word] = view[word]
        copy_words(bank_ints, episode, lane(ints, number), me, team)
        copy_words(bank_reals, episode, lane(reals, number), me, team)
        cuda.syncthreads()
        for word in range(me, book.shape[1], team):
            pages[word] = 0
        for word in range(me, purse.shape[1], team):
            coins[word] = 0.0
        cuda.syncthreads()
        if me == 0:
            int_row, real_row = state_lane(ints, number), lane(reals, number)
            known = bare(bank_facts[episode])
            begin(int_row, real_row, rules, weights, known, pages, coins)
            look(int_row, real_row, rules, weights, known, pages, coins, view)
            numbers[number] = episode
            # The episodes of a bank go through the kinds in turn.
            groups[number] = episode % tally.shape[0]
            begun[number] += 1
        cuda.syncthreads()
