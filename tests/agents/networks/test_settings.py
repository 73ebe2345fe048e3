"""Settings that make no network are refused with a reason."""

import pytest

from yardmaster.agents.networks import NetworkSettings, actor_critic, q_network
from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import InvalidConfigError, UnknownNameError

JOBS_ONLY = Layout(3, ("a", "b"), 0, (), 0, 6, ())


def test_misspelt_architectures_are_recognised():
    """An unknown architecture is answered with the nearest known one."""
    with pytest.raises(UnknownNameError, match="Did you mean 'kernel'"):
        actor_critic(NetworkSettings(arch="kernal"), JOBS_ONLY, 0)


def test_cross_attention_needs_something_to_look_at():
    """Without GPU slots, cross-attention says so and names what would work."""
    with pytest.raises(InvalidConfigError, match=r"GPU slots.*use kernel or self-attention"):
        q_network(NetworkSettings(arch="cross-attention"), JOBS_ONLY, 0)


def test_all_mistakes_are_named_at_once():
    """Impossible sizes are listed together."""
    wrong = NetworkSettings(hidden=(), dim=0, head_hidden=-1)
    with pytest.raises(InvalidConfigError, match="3 mistakes"):
        actor_critic(wrong, JOBS_ONLY, 0)
