"""What observations are made of."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine.picking.places import Lookahead
from yardmaster.engine.picking.sight import names_of
from yardmaster.envs import observation
from yardmaster.envs.task import TASKS
from yardmaster.errors import UnknownNameError

TASK_NAMES = sorted(TASKS)


@pytest.mark.parametrize("name", TASK_NAMES)
def test_every_number_has_a_name_and_a_meaning(name: str):
    """The fields are those of the layout, in its order."""
    task = TASKS[name]
    layout = task.sight.layout()
    fields = observation.job_fields(task)
    assert tuple(field.name for field in fields) == layout.job_features
    found = observation.GLOBAL_FIELDS[task.sight.features]
    assert tuple(field.name for field in found) == layout.global_features
    assert all(field.meaning for field in (*fields, *found))


def test_ranks_are_fields_too():
    """Ranks follow the standard numbers of a token."""
    task = TASKS["default"].changed(ranks=("sjf", "fifo"))
    names = [field.name for field in observation.job_fields(task)]
    assert names[-2:] == ["rank_sjf", "rank_fifo"]
    assert len(names) == len(task.sight.layout().job_features)


def test_every_lookahead_is_described():
    """The modes described are those there are."""
    assert tuple(observation.LOOKAHEADS) == names_of(Lookahead)


@pytest.mark.parametrize("name", TASK_NAMES)
def test_bounds_are_finite_and_leave_room(name: str):
    """Every number has a finite bound on either side, and the lower is below the upper."""
    low, high = observation.bounds(TASKS[name])
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (low < high).all()


def test_the_longest_queue_bounds_what_drl_scheduler_shows():
    """Its last number is the queue by 200: at most the jobs of an episode, by 200."""
    _, high = observation.bounds(TASKS["drl-scheduler"].changed(jobs=3000))
    assert high[-1] == 15.0


@pytest.mark.parametrize("name", TASK_NAMES)
def test_parts_hold_every_number_once(name: str):
    """A dictionary has every number of the flat observation exactly once, and no empty part."""
    layout = TASKS[name].sight.layout()
    flat = np.arange(layout.length, dtype=np.float32)
    parts = observation.arranged(flat, layout, "dict")
    assert isinstance(parts, dict)
    assert sorted(np.concatenate([part.ravel() for part in parts.values()])) == flat.tolist()
    assert all(part.size for part in parts.values())


def test_only_a_copy_is_ones_own():
    """Parts are views of the flat observation; a copy is not."""
    layout = TASKS["default"].sight.layout()
    flat = np.zeros(layout.length, dtype=np.float32)
    parts = observation.arranged(flat, layout, "dict")
    own = observation.copied(parts)
    flat[:] = 1.0
    assert isinstance(parts, dict)
    assert isinstance(own, dict)
    assert parts["jobs"].all()
    assert not own["jobs"].any()


def test_an_unknown_kind_is_refused():
    """A misspelt kind of observation is refused with a hint."""
    with pytest.raises(UnknownNameError, match="Did you mean 'flat'"):
        observation.space(TASKS["default"], "flatt")
