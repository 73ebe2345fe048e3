"""The strategies keep to what the engines can be asked."""

import math
import pickle

import pytest
from hypothesis import given, settings

from yardmaster.engine.requests import UNLIMITED
from yardmaster.engine.state import Discipline
from yardmaster.testing.real_strategies import (
    KEYS_THAT_STOP_NOBODY,
    raw_situations,
    real_situations,
)
from yardmaster.testing.strategies import PLAIN_DISCIPLINES, PLAIN_PLACEMENTS, situations

a_few = settings(max_examples=25, deadline=None)
BOTH = pytest.mark.parametrize("strategy", [real_situations, raw_situations])


@a_few
@given(situations())
def test_plain_situations_need_no_conditions(situation):
    """Nothing is drawn that could only work on real clusters."""
    assert situation.options.conditions is None
    assert situation.options.discipline in PLAIN_DISCIPLINES
    assert situation.options.placement in PLAIN_PLACEMENTS


@BOTH
def test_conservative_is_spared_what_it_does_not_know(strategy):
    """Nothing but GPUs is ever scarce, and no node is away."""

    @a_few
    @given(strategy([Discipline.CONSERVATIVE]))
    def check(situation):
        conditions = situation.options.conditions
        assert not conditions.node_sharing.any()
        assert not conditions.cpu_milli.any()
        assert not conditions.host_mib.any()
        assert conditions.outages == ()
        assert conditions.cap_watts == UNLIMITED
        assert (conditions.limit_gpus == UNLIMITED).all()

    check()


@BOTH
def test_running_jobs_have_keys_where_they_can_be_stopped(strategy):
    """Orders that know only waiting jobs are not drawn under disciplines that stop jobs."""

    @a_few
    @given(strategy([Discipline.PREEMPTIVE, Discipline.TIMESLICE]))
    def check(situation):
        assert situation.keys.kind not in KEYS_THAT_STOP_NOBODY
        assert situation.keys.rekey is None

    check()


@BOTH
def test_real_situations_are_cut_and_can_travel(strategy):
    """Every one ends by itself, and means the same in another process."""

    @a_few
    @given(strategy())
    def check(situation):
        assert math.isfinite(situation.until_s)
        copy = pickle.loads(pickle.dumps(situation))  # noqa: S301  (our own)
        assert copy.simulated().fingerprint() == situation.simulated().fingerprint()

    check()
