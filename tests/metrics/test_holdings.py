"""What segments held, and how busy GPUs were, against a plain count at every second."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import holdings
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Sharing

ASKED = [1, 142, 143, 500, 994, 995, 999, 1000]


@pytest.mark.parametrize(
    ("how", "held"),
    [
        (Sharing.NONE, [1000] * 8),
        (Sharing.MPS, ASKED),
        (Sharing.MIG, [142, 142, 284, 568, 994, 1000, 1000, 1000]),
    ],
)
def test_thousandths_by_kind_of_sharing(make, share, how, held):
    """Without sharing a part is a whole, MPS gives what was asked, MIG whole slices of 142."""
    jobs = range(len(ASKED))
    schedule = make(
        share(Cluster.of("2x A100:4"), how), [(job, 0, 10, [job]) for job in jobs],
        submit_s=[0] * 8, duration_s=[10] * 8, milli_gpu=ASKED,
    )  # fmt: skip
    np.testing.assert_array_equal(holdings.segment_milli(schedule), held)
    np.testing.assert_allclose(holdings.segment_gpus(schedule), np.divide(held, 1000))


def test_gangs_hold_all_their_gpus(make):
    """Segments of one elastic job hold different numbers of GPUs."""
    schedule = make(
        Cluster.pool(4), [(0, 0, 5, [0, 1, 2]), (0, 5, 9, [3])], submit_s=[0], duration_s=[10]
    )
    np.testing.assert_array_equal(holdings.segment_gpus(schedule), [3, 1])


def test_a_shared_gpu_is_busy_once_at_most(make, share):
    """Shares of 700 and 600 on one GPU make one busy GPU while both last, not 1.3."""
    schedule = make(
        share(Cluster.of("1x A100:1"), Sharing.MPS), [(0, 0, 10, [0]), (1, 5, 20, [0])],
        submit_s=[0, 0], duration_s=[10, 15], milli_gpu=[700, 600],
    )  # fmt: skip
    begin, end, amount = holdings.busy_spans(schedule, np.ones(1))
    np.testing.assert_array_equal(begin, [0, 5, 10])
    np.testing.assert_array_equal(end, [5, 10, 20])
    np.testing.assert_array_equal(amount, [0.7, 1, 0.6])


def busy_at(schedule, now, weight) -> float:
    """Weighted busy GPUs at one instant, GPU by GPU."""
    cluster = schedule.cluster
    milli = holdings.segment_milli(schedule)
    total = 0.0
    for gpu in range(cluster.gpus):
        held = sum(
            milli[segment]
            for segment in range(len(schedule.segment_job))
            if gpu in schedule.gpus_of(segment)
            and schedule.segment_start_s[segment] <= now < schedule.segment_end_s[segment]
        )
        total += min(held, 1000) / 1000 * weight[cluster.node_type[cluster.gpu_node[gpu]]]
    return total


@settings(max_examples=40)
@given(st.data())
def test_busy_spans_add_up_at_every_second(eventful_schedules, data):
    """The spans that cover an instant add up to what each GPU does then."""
    schedule = data.draw(eventful_schedules)
    weight = np.array([2.0, 5.0])
    begin, end, amount = holdings.busy_spans(schedule, weight)
    for now in np.arange(0.5, 60.0):
        covering = amount[(begin <= now) & (now < end)].sum()
        assert covering == pytest.approx(busy_at(schedule, now, weight))
