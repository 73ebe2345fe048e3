"""What a chooser sees: names of all numbers, checks, and a trip through plain values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.sight import DEFAULT_MENU, SCHEMA, ChoiceSight
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.testing.choosing import choice_sights


@given(choice_sights())
def test_a_sight_survives_plain_values(sight):
    """Written as JSON and read back, it is the same, and its names are all different."""
    assert ChoiceSight.from_table(json.loads(json.dumps(sight.to_table()))) == sight
    layout = sight.layout()
    names = [*layout.now_features, *layout.past_features]
    assert len(set(names)) == len(names) == layout.length == sight.rules()[at.LENGTH]
    assert layout.actions == len(sight.menu) == sight.rules()[at.MEMBERS]


def test_parts_are_left_out_when_not_wanted():
    """Ages, the past and the choice can each be left out, and change nothing else."""
    whole = ChoiceSight().layout()
    blind_to_age = ChoiceSight(ages=False).layout()
    assert set(whole.now_features) - set(blind_to_age.now_features) == {
        *("mean_age", "age_spread", "oldest"),
        *(f"older_{age:g}" for age in at.AGES),
    }
    assert ChoiceSight(past=0).layout().past_features == ()
    without = ChoiceSight(shows_choice=False).layout().now_features
    assert set(whole.now_features) - set(without) == {f"is_{name}" for name in DEFAULT_MENU}
    assert ChoiceSight(labels=2).layout().now_features[-2:] == ("label_0", "label_1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"menu": ()}, "1 to 32 schedulers, got 0"),
        ({"menu": ("fifo", "sjf", "fifo")}, "on the menu twice"),
        ({"time_unit_s": 0.0}, "time_unit_s must be positive"),
        ({"past_span": float("inf")}, "past_span must be positive"),
        ({"every_s": -1.0}, "every_s must be 0 or more"),
        ({"past": -1}, "past must be 0 or more"),
        ({"labels": 33}, "labels 0 to 32"),
        ({"past": "many"}, "past"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_makes_no_sense_is_refused(changes, message):
    """Empty and double menus, and numbers out of range, are named."""
    with pytest.raises(YardmasterError, match=message):
        ChoiceSight(**changes)


def test_other_versions_and_unknown_names_are_refused():
    """A chooser of another version of the observation never runs; misspelt names get a hint."""
    table = ChoiceSight().to_table()
    with pytest.raises(YardmasterError, match=f"version {SCHEMA + 1} of the observation"):
        ChoiceSight.from_table(table | {"schema": SCHEMA + 1})
    with pytest.raises(UnknownNameError, match="Did you mean 'ages'"):
        ChoiceSight.from_table(table | {"agess": True})
    with pytest.raises(UnknownNameError, match="Did you mean 'blind'"):
        ChoiceSight(information="blnd")
