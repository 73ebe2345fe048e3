"""What a study says it will take."""

from __future__ import annotations

import pytest

from yardmaster.experiments.trainings.cost import START_S, Cost, measured_cost, whole_s


def test_the_parts_of_a_training_add_up(plan):
    """Laying out episodes, updates and looks at validation each count as often as they happen."""
    config = plan({"plain": {}}).trainings[0].config  # 512 steps, looks at 0, 256 and 512
    cost = Cost(episode_s=1.0, update_s=10.0, update_steps=128, played_s=100.0)
    assert cost.seconds(config) == pytest.approx(START_S + (4 + 2) + 4 * 10 + 3 * 2 * 100)
    assert cost.seconds(config, done_steps=512) == pytest.approx(START_S + 6 + 200)


def test_a_few_moments_are_measured(plan):
    """The cost of a training comes from its own updates."""
    cost = measured_cost(plan({"plain": {}}).trainings[0].config)
    assert cost.update_steps == 128
    assert cost.update_s > 0
    assert cost.played_s > 0


@pytest.mark.parametrize(
    ("each", "workers", "expected"),
    [([], 2, 0.0), ([3.0], 2, 3.0), ([1.0, 2.0, 3.0], 2, 3.0), ([1.0] * 5, 2, 3.0)],
)
def test_trainings_share_processors(each: list, workers: int, expected: float):
    """So many at a time, the longest first."""
    assert whole_s(each, workers) == expected
