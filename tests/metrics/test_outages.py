"""Outages: clipped to the horizon, and taken off the capacity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yardmaster.metrics import outages
from yardmaster.model.cluster import Cluster

COLUMNS = {"submit_s": [10.0], "duration_s": [40.0]}
CLUSTER = Cluster.of("1x A100:4", "2x V100:2")


def test_outages_are_clipped_to_the_horizon(make):
    """What lies before the first submission or after the end does not count."""
    schedule = make(
        CLUSTER, [(0, 10, 50, [0])],
        outages=[(1, 0.0, 20.0), (2, 40.0, 1e9), (1, 30.0, 35.0), (0, 50.0, 60.0), (2, 1.0, 9.0)],
        **COLUMNS,
    )  # fmt: skip
    node, begin, end = outages.outage_spans(schedule)
    assert list(zip(node, begin, end, strict=True)) == [(1, 10, 20), (2, 40, 50), (1, 30, 35)]
    np.testing.assert_array_equal(outages.capacity_gpu_s(schedule), [160, 160 - 2 * 25])
    assert outages.availability(schedule) == pytest.approx(1 - 50 / 320)


def test_without_outages_everything_is_there(make):
    """Capacity is GPUs × horizon, and nothing of it is lost; no horizon, no number."""
    schedule = make(CLUSTER, [(0, 10, 50, [0])], **COLUMNS)
    np.testing.assert_array_equal(outages.capacity_gpu_s(schedule), [160, 160])
    assert outages.availability(schedule) == 1
    instant = make(CLUSTER, [(0, 10, 10, [0])], submit_s=[10], duration_s=[0])
    assert math.isnan(outages.availability(instant))
