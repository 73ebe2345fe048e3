"""What an order may see."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import EntitlementError
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Power, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.views import view_for

JOBS = Workload.of(
    submit_s=[0, 1, 2],
    duration_s=[10, 20, 30],
    estimate_s=[11, 22, 33],
    gpus=[1, 2, 3],
    priority=[3, 2, 1],
    deadline_s=[math.nan, 50, 60],
    user=["a", "b", "a"],
    tenant=["x", None, "y"],
    kind=["bert", "gpt", None],
    status=["completed", "failed", "completed"],
)
CLUSTER = Cluster.of("2x V100:4")
COLUMNS = ("submit_s", "gpus", "priority", "deadline_s")


@pytest.mark.parametrize("run_s", [None, JOBS.estimate_s])
def test_columns_are_the_workloads(run_s):
    """Everything known at submission is there, row by row."""
    view = view_for("mine", JOBS, CLUSTER, run_s)
    assert len(view) == 3
    assert view.cluster_gpus == 8
    for name in COLUMNS:
        assert np.array_equal(getattr(view, name), getattr(JOBS, name), equal_nan=True)
    for name in ("user", "tenant", "kind"):
        assert getattr(view, name).values() == getattr(JOBS, name).values()


def test_run_times_are_what_the_scheduler_was_told():
    """`run_s` is the column handed in, be it estimates or the truth."""
    view = view_for("mine", JOBS, CLUSTER, JOBS.estimate_s)
    assert view.run_s.tolist() == [11, 22, 33]


def test_blind_orders_see_no_run_times():
    """Without entitlement the view refuses, names the order and says what to do."""
    view = view_for("mine", JOBS, CLUSTER, None)
    for seen in (view, view.take(np.array([1]))):
        with pytest.raises(EntitlementError, match=r"'mine' reads run_s.*reads_run_time=True"):
            _ = seen.run_s


@pytest.mark.parametrize("name", ["duration_s", "estimate_s", "status"])
@pytest.mark.parametrize("run_s", [None, JOBS.duration_s])
def test_the_future_is_never_visible(name, run_s):
    """No order may look past `run_s` at the trace itself, entitled or not."""
    view = view_for("mine", JOBS, CLUSTER, run_s)
    with pytest.raises(EntitlementError, match=f"'mine' may not read {name}"):
        getattr(view, name)


def test_other_names_are_plain_mistakes():
    """A column that does not exist is an AttributeError, so that hasattr works."""
    view = view_for("mine", JOBS, CLUSTER, None)
    assert not hasattr(view, "colour")


def test_take_keeps_every_column_in_step():
    """Restricting the view restricts every column to the same rows, in the order asked for."""
    rows = np.array([2, 0])
    view = view_for("mine", JOBS, CLUSTER, JOBS.duration_s)
    part = view.take(rows)
    assert len(part) == 2
    assert part.cluster_gpus == 8
    for name in (*COLUMNS, "run_s", "extra_w"):
        assert np.array_equal(getattr(part, name), getattr(view, name)[rows], equal_nan=True)
    for name in ("user", "tenant", "kind"):
        whole = getattr(view, name).values()
        assert getattr(part, name).values() == [whole[2], whole[0]]


@pytest.mark.parametrize("name", [*COLUMNS, "run_s"])
def test_columns_cannot_be_written(name):
    """An order that writes into the view fails instead of changing the workload."""
    view = view_for("mine", JOBS, CLUSTER, JOBS.duration_s)
    before = JOBS.fingerprint()
    with pytest.raises(ValueError, match="read-only"):
        getattr(view, name)[0] = 1
    assert JOBS.fingerprint() == before


def test_watts_of_types_the_cluster_lacks():
    """A job that accepts only absent types is never placed; its watts are some number."""
    jobs = JOBS.with_columns(gpu_types=["A100", "V100", None])
    assert np.isfinite(view_for("mine", jobs, CLUSTER, None).extra_w).all()


MINUTES_OF_DAY = 24 * 60


def priced(jobs, prices):
    """Return the view of jobs under a price curve."""
    site = Site(power=Power(price_per_kwh=tuple(map(float, prices))))
    return view_for("mine", jobs, CLUSTER.under(site), jobs.duration_s)


def cheapest_minute(prices, submit, run, deadline, longest):
    """Try every minute a job might start and add up every minute it would run."""

    def cost(start):
        return sum(prices[(minute % MINUTES_OF_DAY) // 60] for minute in range(start, start + run))

    latest = submit + longest
    if deadline is not None:
        latest = max(min(latest, deadline - run), submit)
    return min(range(submit, latest + 1), key=lambda start: (cost(start), start))


@settings(max_examples=60, deadline=None)
@given(
    prices=st.lists(st.integers(1, 9), min_size=24, max_size=24),
    jobs=st.lists(
        st.tuples(
            st.integers(0, 3 * MINUTES_OF_DAY),
            st.integers(1, 400),
            st.none() | st.integers(0, 1500),
        ),
        min_size=1,
        max_size=3,
    ),
    longest_h=st.integers(0, 12),
)
def test_no_minute_is_cheaper(prices, jobs, longest_h):
    """Of all minutes a job may start, the first of the cheapest is found, minute by minute."""
    jobs = sorted(jobs, key=lambda job: job[0])
    deadlines = [None if slack is None else start + run + slack for start, run, slack in jobs]
    workload = Workload.of(
        submit_s=[60 * start for start, _, _ in jobs],
        duration_s=[60 * run for _, run, _ in jobs],
        deadline_s=[math.nan if end is None else 60 * end for end in deadlines],
    )
    expected = [
        60 * cheapest_minute(prices, start, run, end, 60 * longest_h)
        for (start, run, _), end in zip(jobs, deadlines, strict=True)
    ]
    found = priced(workload, prices).cheapest_start_s(3600.0 * longest_h)
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("prices", [(), (0.3,), (0.3,) * 24])
def test_flat_prices_are_not_waited_for(prices):
    """Where electricity costs the same at every hour, everybody starts on submission."""
    jobs = JOBS.with_columns(submit_s=[10.5, 4000.25, 86000.125])
    assert priced(jobs, prices).cheapest_start_s(43_200.0).tolist() == jobs.submit_s.tolist()


def test_missed_deadlines_are_not_missed_by_more():
    """A job that cannot meet its deadline any more does not wait for a better price."""
    jobs = Workload.of(submit_s=[0], duration_s=[7200], deadline_s=[3600])
    assert priced(jobs, [9] * 12 + [1] * 12).cheapest_start_s(86_400.0).tolist() == [0.0]
