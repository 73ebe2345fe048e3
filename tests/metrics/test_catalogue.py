"""The catalogue of metrics: complete descriptions, and help for misspelt names."""

from __future__ import annotations

import pytest

from yardmaster.errors import UnknownNameError
from yardmaster.metrics.catalogue import METRIC_NAMES, METRICS, metric


def test_every_metric_is_described():
    """Names are unique, definitions are sentences, and times carry their unit in the name."""
    assert len(set(METRIC_NAMES)) == len(METRICS)
    for item in METRICS:
        assert item.definition.endswith(".")
        assert item.definition[0].isupper() or item.definition[0].isdigit()
        assert item.unit
        assert (item.unit == "s") == item.name.endswith("_s")


def test_lookup_by_name():
    """A metric is found by the name users type."""
    assert metric("mean_jct_s").better == "lower"
    assert metric("utilisation").better == "higher"


@pytest.mark.parametrize(
    ("typed", "meant"), [("mean_jct", "mean_jct_s"), ("utilization", "utilisation")]
)
def test_misspelt_names_get_a_suggestion(typed, meant):
    """The error names what was probably meant."""
    with pytest.raises(UnknownNameError, match=f"Did you mean '{meant}'"):
        metric(typed)
