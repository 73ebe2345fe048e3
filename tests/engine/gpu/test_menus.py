"""Menus of different simulations begin at the same places, and nothing is decided otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine import state
from yardmaster.engine.choosing import compilation
from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.gpu.menus import Alike, aligned_menus
from yardmaster.engine.state import Discipline
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.meta.menu import PreparedChoice, prepare_choice

CLUSTERS = (Cluster.of("2x V100:4"), Cluster.of("1x V100:4"), Cluster.of("1x A100:4", "2x V100:2"))
MENUS = {
    "plain": ("srpt+skip", "edf+skip", "dynamic-heuristic+skip"),
    "disciplines": ("srpt+skip", "edf+easy", "fifo", "static-equal+commit"),
    "history": ("qssf+skip", "srpt+skip", "dynamic-heuristic+skip"),
}


def prepared(menu: str) -> list[PreparedChoice]:
    """Lay out a few jobs, more on every cluster."""
    found = []
    for extra, cluster in enumerate(CLUSTERS):
        jobs = 7 + 4 * extra
        dice = np.random.default_rng(extra)
        workload = Workload.of(
            submit_s=np.sort(dice.uniform(0.0, 90.0, jobs)),
            duration_s=dice.uniform(10.0, 200.0, jobs),
            gpus=dice.integers(1, 5, jobs),
            user=dice.choice(["ann", "bob"], jobs),
            deadline_s=np.where(dice.random(jobs) < 0.5, 500.0, np.nan),
        )
        found.append(prepare_choice(workload, cluster, ChoiceSight(menu=MENUS[menu])))
    return found


def played(one: PreparedChoice, ints: FloatArray, reals: FloatArray, facts: FloatArray) -> list:
    """Play one episode, every scheduler in its turn; return all that was seen and the ends."""
    choosing = compilation.plain()
    sight = ChoiceSight(menu=("first", "second", "third"))
    rules, scales = sight.rules(), sight.scales()
    book = np.zeros((1, one.book_length), dtype=np.int64)
    purse = np.zeros((1, one.purse_length))
    views = np.zeros((1, sight.layout().length), dtype=np.float32)
    row, end_s = np.zeros(1, dtype=np.int64), int(ints[0, state.END])
    mine, own = ints.copy(), reals.copy()
    lengths = np.array([ints.shape[1], reals.shape[1], one.book_length, one.purse_length])
    bank = (ints, reals, facts)
    choosing.begin_many(
        *bank, rules, scales, mine, own, book, purse, views, row, lengths, np.arange(1)
    )
    seen = [views.copy()]
    rewards, ends, elapsed_s = np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1)
    for action in range(40):
        choosing.step_many(
            *(facts, rules, scales, mine, own, book, purse, views, row),
            *(np.array([action % 3]), rewards, ends, elapsed_s, 0, 1),
        )
        seen.append(views.copy())
        if ends[0]:
            break
    jobs = int(ints[0, state.JOBS])
    return [np.concatenate(seen), own[0, end_s : end_s + jobs], ends]


def alike(choices: list[PreparedChoice], menu: str) -> Alike:
    return aligned_menus(
        [one.simulation for one in choices], [one.facts for one in choices], len(MENUS[menu])
    )


@pytest.mark.parametrize("menu", list(MENUS))
def test_aligned_menus_decide_as_before(menu: str):
    """Every decision, sight and completion is that of the simulation as it was laid out."""
    choices = prepared(menu)
    rows = alike(choices, menu)
    for number, one in enumerate(choices):
        before = played(one, one.simulation.ints[None], one.simulation.reals[None], one.facts[None])
        after = played(
            one, *(part[number : number + 1] for part in (rows.ints, rows.reals, rows.facts))
        )
        for was, now in zip(before, after, strict=True):
            np.testing.assert_array_equal(now, was)
        assert before[-1][0] == at.End.DONE


def test_menus_begin_at_the_same_places():
    """In all rows, with the same keys behind them."""
    rows = alike(prepared("plain"), "plain")
    assert len(set(rows.facts[:, at.MENU_AT])) == 1
    begin = int(rows.facts[0, at.MENU_AT])
    menus = rows.ints[:, begin : begin + 3 * at.MENU_FIELDS]
    np.testing.assert_array_equal(menus, np.repeat(menus[:1], len(menus), axis=0))


def test_what_schedulers_agree_on_is_a_constant():
    """A discipline that all have is known; one that a choice may change is not."""
    same, other = (alike(prepared(menu), menu) for menu in ("plain", "disciplines"))
    assert same.constants[state.DISCIPLINE] == Discipline.SKIP
    assert state.DISCIPLINE not in other.constants
    for rows in (same, other):
        assert state.OFFSET not in rows.constants
        assert state.PLACEMENT in rows.constants
    assert other.disciplines == {0, 1, 2, 3}
