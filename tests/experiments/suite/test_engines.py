"""Batches are made whatever happens to the workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from yardmaster.experiments.suite.batch import Outcome
from yardmaster.experiments.suite.engines import GIVEN_UP, carried_out


@dataclass(frozen=True)
class Named:
    """Stands in for a cell."""

    key: str


@dataclass
class Unreliable:
    """An engine that loses everything under way when a deadly cell runs, or by chance."""

    deadly: frozenset[str] = frozenset()
    losses: list[bool] = field(default_factory=list)
    """Whether each of the first outcomes is lost by chance."""
    flying: dict[int, tuple] = field(default_factory=dict)
    begun: Counter = field(default_factory=Counter)
    most: int = 0

    def __post_init__(self):
        self.tickets = count()

    def room(self) -> int:
        """Take three batches at a time."""
        return 3

    def submit(self, batch):
        """Begin a batch."""
        ticket = next(self.tickets)
        self.flying[ticket] = batch
        self.begun.update(cell.key for cell in batch)
        self.most = max(self.most, len(self.flying))
        return ticket

    def finished(self, tickets):
        """Finish the oldest, or lose them all."""
        assert set(tickets) == set(self.flying)
        under_way, self.flying = self.flying, {}
        dies = any(cell.key in self.deadly for batch in under_way.values() for cell in batch)
        if dies or (self.losses and self.losses.pop()):
            return dict.fromkeys(under_way)
        first, *others = under_way
        self.flying = {ticket: under_way[ticket] for ticket in others}
        return {first: Outcome(tuple(under_way[first]), ())}

    def close(self, *, at_once: bool = False) -> None:
        """Have nothing to let go of."""


def carried(engine, sizes, is_stopped=lambda: False):
    names = iter(range(10_000))
    batches = [tuple(Named(str(next(names))) for _ in range(size)) for size in sizes]
    made, failed = [], {}

    def take(outcome):
        made.extend(cell.key for cell in outcome.runs)
        failed.update(outcome.failures)

    carried_out(engine, batches, take=take, is_stopped=is_stopped)
    return [cell.key for batch in batches for cell in batch], made, failed


SIZES = st.lists(st.integers(1, 4), max_size=8)


@given(SIZES)
def test_without_losses_everything_is_made_once(sizes):
    """No batch is given out twice, and never more than there is room for."""
    engine = Unreliable()
    every, made, failed = carried(engine, sizes)
    assert sorted(made) == sorted(every)
    assert not failed
    assert all(times == 1 for times in engine.begun.values())
    assert engine.most <= 3


@given(SIZES, st.lists(st.booleans(), max_size=6), st.data())
def test_only_what_kills_its_worker_is_given_up(sizes, losses, data):
    """Whatever else is lost beside it, or by chance, is made in the end, and made once."""
    deadly = frozenset(map(str, data.draw(st.sets(st.integers(0, max(sum(sizes) - 1, 0))))))
    every, made, failed = carried(Unreliable(deadly, [*losses]), sizes)
    # Chance may hit the same lonely cell again and again, but not often enough to give it up.
    lost_by_chance = set(failed) - deadly
    assert len(lost_by_chance) <= sum(losses) // 3
    assert sorted(made) == sorted(set(every) - set(failed))
    assert deadly & set(every) <= set(failed)
    assert set(failed.values()) <= {GIVEN_UP}


def test_stopping_begins_nothing_more():
    """What is under way is finished and taken."""
    engine = Unreliable()
    asked = iter([False, True] + [True] * 100)
    _, made, _ = carried(engine, [1] * 10, is_stopped=lambda: next(asked))
    assert len(made) == 3
    assert sum(engine.begun.values()) == 3
