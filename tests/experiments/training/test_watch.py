"""Early warnings come when they should, once, and not otherwise."""

from __future__ import annotations

import math

import pytest

from yardmaster.experiments.training.watch import (
    SPAN,
    TrainingFailedError,
    Watch,
    refuse_non_finite,
)


def told(updates: list[dict[str, float]], watch: Watch | None = None) -> list[str]:
    watch = watch or Watch()
    return [text.partition(":")[0] for scalars in updates for text in watch.look(scalars)]


def course(name: str, *values: float) -> list[dict[str, float]]:
    return [{name: value} for value in values for _ in range(SPAN)]


def both(*pairs: tuple[float, float]) -> list[dict[str, float]]:
    return [
        {"entropy": entropy, "episode_return": value}
        for entropy, value in pairs
        for _ in range(SPAN)
    ]


def test_entropy_that_falls_without_gain_is_a_collapse():
    """A policy that stops trying things and is no better than at the start is told of, once."""
    assert told(both((1.0, -5.0), (0.05, -5.0), (0.05, -6.0))) == ["Entropy collapse"]


def test_a_policy_that_got_better_may_be_sure_of_itself():
    """Low entropy with better returns is success, not collapse."""
    assert told(both((1.0, -5.0), (0.05, -4.0), (0.01, -4.0))) == []


def test_entropy_that_hardly_falls_is_no_collapse():
    """Above a tenth of its start, entropy is not mentioned."""
    assert told(both((1.0, -5.0), (0.2, -6.0))) == []


def test_waiting_all_the_time_is_a_collapse():
    """Nine decisions in ten to wait, over a whole span of updates, are told of once."""
    assert told(course("noop_share", 0.95, 0.95)) == ["No-op collapse"]
    assert told(course("noop_share", 0.85, 0.85)) == []
    assert told([*course("noop_share", 0.5)[:-1], {"noop_share": 1.0}]) == []


def test_nothing_is_said_before_a_span_is_full():
    """A few odd updates at the beginning are no sign."""
    assert told(course("noop_share", 1.0)[:-1]) == []


def test_a_watch_goes_on_from_its_state():
    """Cut anywhere, a watch says the same, and does not repeat itself."""
    updates = both((1.0, -5.0), (0.05, -5.0)) + course("noop_share", 0.95, 0.99)
    whole = told(updates)
    assert whole == ["Entropy collapse", "No-op collapse"]
    for cut in range(len(updates)):
        before = Watch()
        said = told(updates[:cut], before)
        said += told(updates[cut:], Watch(before.state()))
        assert said == whole


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_scalars_that_are_not_finite_stop_the_run(value: float):
    """The complaint names the scalar and where the run stood."""
    with pytest.raises(TrainingFailedError, match=r"at 5 steps: loss is .*last checkpoint"):
        refuse_non_finite({"kl": 0.0, "loss": value}, weights_are_finite=True, when="at 5 steps")


def test_weights_that_are_not_finite_stop_the_run():
    """Broken weights stop the run even if no scalar shows them yet."""
    with pytest.raises(TrainingFailedError, match="weights are not finite"):
        refuse_non_finite({"loss": 0.0}, weights_are_finite=False, when="at 5 steps")
    refuse_non_finite({"loss": 0.0}, weights_are_finite=True, when="at 5 steps")
