"""What disturbances do, where it is known what they do."""

from __future__ import annotations

import pytest

from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.robustness import Robustness, robustness
from yardmaster.report.suite.runs import Runs

EFFECTS = {("capacity-dip", 0.1): 0.25, ("capacity-dip", 0.2): 0.5, ("arrival-noise", 0.1): 0.0}


@pytest.fixture(scope="module")
def found(plain_family: Runs) -> Robustness:
    found = robustness(plain_family, OBJECTIVES)
    assert found is not None
    return found


def test_every_effect_is_found(found: Robustness):
    """Each scheduler is compared with itself on the same jobs undisturbed."""
    for (kind, severity), change in EFFECTS.items():
        for name in found.runs.schedulers:
            effect = found.scenarios[kind, severity, name]
            assert effect.change["mean_jct_s"] == pytest.approx((change,) * 3, abs=1e-12)


def test_all_severities_together_are_their_mean(found: Robustness):
    """With as many runs of each severity, the overall change is the mean of the changes."""
    effect = found.overall["capacity-dip", "best+skip"]
    assert effect.change["p95_jct_s"].mean == pytest.approx(0.375)
    assert effect.severity is None


def test_explosions_are_counted_with_and_without(found: Robustness):
    """Queues that explode under a disturbance are told beside those that explode anyway."""
    effect = found.overall["capacity-dip", "mid+skip"]
    assert (effect.explosions, effect.clean_explosions) == (1.0, 0.0)
    assert found.clean_spread["mid+skip", "mean_jct_s"] == pytest.approx(
        effect.seed_spread["mean_jct_s"], rel=0.5
    )


def test_severities_go_from_mild_to_strong(found: Robustness):
    """Kinds keep the order of the table, their severities are sorted."""
    assert found.perturbations["phase-shift"] == (0.25, 0.5)
    assert len(found.scenarios) == 6 * 4


def test_nothing_disturbed_has_no_effects(drift: Runs):
    """A family without perturbations has no robustness to report."""
    assert robustness(drift, OBJECTIVES) is None
