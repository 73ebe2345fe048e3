"""What an order may see."""

import math

import numpy as np
import pytest

from yardmaster.errors import EntitlementError
from yardmaster.model.cluster import Cluster
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
