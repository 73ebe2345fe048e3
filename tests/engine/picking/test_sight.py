"""What a policy sees: names, shapes, and what is refused."""

import pytest

from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.sight import SCHEMA, Sight
from yardmaster.errors import UnknownNameError, YardmasterError


@pytest.mark.parametrize("features", ["standard", "gpu_optimizer", "drl_scheduler", "rltune"])
def test_the_parts_fill_the_observation(features):
    """Tokens, GPU slots and globals cover every place of the observation once."""
    layout = Sight(window=5, gpu_slots=3, features=features).layout()
    job = len(layout.job_features)
    places = [
        *range(layout.jobs_at, layout.jobs_at + 5 * job),
        *range(layout.gpus_at, layout.gpus_at + layout.gpu_slots),
        *layout.globals_at,
    ]
    assert sorted(places) == list(range(layout.length))
    assert layout.actions == 6


def test_ranks_are_features():
    """Every order whose ranks are shown adds a number to every token."""
    layout = Sight(window=4, gpu_slots=0, ranks=("sjf", "saf")).layout()
    assert layout.job_features[-2:] == ("rank_sjf", "rank_saf")
    assert layout.length == 4 * 15 + 6


def test_a_table_brings_a_sight_back():
    """What a policy file holds gives the same sight again."""
    sight = Sight(window=7, ranks=("sjf",), information="estimate", pace="commit", masked=False)
    table = sight.to_table()
    assert table["schema"] == SCHEMA
    assert Sight.from_table(table) == sight


def test_another_version_is_refused():
    """A policy of another observation version is not run on this one."""
    with pytest.raises(YardmasterError, match="version 99"):
        Sight.from_table(Sight().to_table() | {"schema": 99})


def test_unknown_settings_are_refused():
    """A misspelt setting is named, with what was meant."""
    with pytest.raises(UnknownNameError, match="lookahead"):
        Sight.from_table({"lookahaed": "cdf"})


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("features", "standrad", "standard"),
        ("information", "blnd", "blind"),
        ("lookahead", "per-gpu", "per_gpu"),
        ("noop", "nevr", "never"),
        ("pace", "decisions", "decision"),
    ],
)
def test_unknown_choices_are_refused(name, value, meant):
    """A misspelt choice is named, with what was meant."""
    with pytest.raises(UnknownNameError, match=meant):
        Sight(**{name: value})


@pytest.mark.parametrize(
    "setting",
    [{"window": 0}, {"time_unit_s": 0.0}, {"longest_s": -1.0}, {"tick_s": 0.0}, {"gpu_slots": -1}],
    ids=lambda setting: next(iter(setting)),
)
def test_impossible_numbers_are_refused(setting):
    """Windows, units and slots must make sense."""
    with pytest.raises(YardmasterError, match=next(iter(setting))):
        Sight(**setting)


def test_ranks_belong_to_the_standard_features():
    """Observations of other programs have no place for ranks."""
    with pytest.raises(YardmasterError, match="standard"):
        Sight(features="rltune", ranks=("sjf",))


def test_a_blind_policy_sees_no_reservation():
    """Reservations rest on run times, and on features that show them."""
    assert Sight().reserves
    assert not Sight(information="blind").reserves
    assert not Sight(features="rltune").reserves
    assert not Sight(reservation=False).reserves


def test_rules_say_what_the_sight_says():
    """The row of integers holds the choices under their numbers."""
    sight = Sight(lookahead="sorted", noop="always", pace="event", masked=False)
    rules = sight.rules(is_fixed=True)
    assert rules[at.LOOKAHEAD] == at.Lookahead.SORTED
    assert rules[at.NOOP] == at.NoOp.ALWAYS
    assert rules[at.PACE] == at.Pace.EVENT
    assert rules[at.IS_UNMASKED] == 1
    assert rules[at.LENGTH] == sight.layout().length
