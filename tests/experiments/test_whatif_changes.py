"""Changes as users write them, read or refused with a reason."""

from __future__ import annotations

import pytest

from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.whatif_changes import (
    adding,
    changing_quota,
    reading_target,
    replacing,
    resizing,
    scaling_load,
    sweeping,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Quota
from yardmaster.model.workload import Workload

CLUSTER = Cluster.of("4x V100:8", "2x T4:4")
JOBS = Workload.of(submit_s=[0, 1], duration_s=[1, 1], tenant=["vc1", "vc2"])


@pytest.mark.parametrize(
    ("change", "gpus", "name"),
    [
        (adding("2x T4"), 48, "add 2x T4"),
        (replacing("4x V100=1x H100:8"), 16, "replace 4x V100 by 1x H100:8"),
        (resizing("+2"), 56, "+2 nodes"),
        (resizing("-1"), 32, "−1 node"),
        (resizing("-1", unit="GPU"), 32, "−1 GPU"),
        (scaling_load(1.2), 40, "load × 1.2"),
    ],
)
def test_changes_do_what_they_say(change, gpus, name):
    """Each change has a name that repeats it and gives the cluster it describes."""
    assert change.name == name
    assert change.reshape(CLUSTER).gpus == gpus


def test_quotas_are_read():
    """A guarantee, with or without a limit, for a tenant of the jobs."""
    plain = changing_quota("vc1=16", [JOBS]).reshape(CLUSTER)
    assert plain.site.quotas == (Quota("vc1", 16),)
    limited = changing_quota(" vc2 = 8:24", [JOBS]).reshape(CLUSTER)
    assert limited.site.quotas == (Quota("vc2", 8, 24),)


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("nodes=-4..8:4", (-4, 0, 4, 8)),
        ("nodes=0..3", (0, 1, 2, 3)),
        ("nodes:T4:4=-1..1", (-1, 0, 1)),
        ("load=0.8..1.1:0.1", (0.8, 0.9, 1.0, 1.1)),
    ],
)
def test_sweeps_are_read(text, amounts):
    """Low, high and step give the points of the curve, the ends included."""
    assert sweeping(text, CLUSTER).amounts == pytest.approx(amounts)


def test_a_sweep_of_a_type_changes_that_type():
    """`nodes:T4:4` adds T4 nodes, not the commonest ones."""
    more = sweeping("nodes:T4:4=1..1", CLUSTER).changes[0].reshape(CLUSTER)
    assert more.gpus == CLUSTER.gpus + 4


@pytest.mark.parametrize(
    ("text", "value", "below"),
    [
        ("mean_wait_s<600", 600, True),
        ("p95_wait_s < 2h", 7200, True),
        ("mean_jct_s<1.5 min", 90, True),
        ("utilisation>60%", 0.6, False),
    ],
)
def test_targets_are_read(text, value, below):
    """A metric, a direction, and a number with or without a unit."""
    target = reading_target(text)
    assert (target.value, target.below) == (pytest.approx(value), below)
    assert target.is_met(value - 1e-3) is below
    assert not target.is_met(float("nan"))


@pytest.mark.parametrize(
    ("make", "text", "message"),
    [
        (resizing, "four", "--nodes 'four'"),
        (replacing, "8x V100", "--replace '8x V100'"),
        (scaling_load, 0.0, "scale the load by 0"),
        (lambda text: changing_quota(text, [JOBS]), "vc1", "--quota 'vc1'"),
        (lambda text: sweeping(text, CLUSTER), "nodes=8..-4", "from low to high"),
        (lambda text: sweeping(text, CLUSTER), "gpus=1..2", "--sweep 'gpus=1..2'"),
        (lambda text: sweeping(text, CLUSTER), "nodes=0..1:0.5", "whole numbers"),
        (lambda text: sweeping(text, CLUSTER), "nodes=0..1000", "at most 200"),
        (lambda text: sweeping(text, CLUSTER), "load=1.2.3..4", "not a number"),
        (reading_target, "mean_wait_s=600", "--target 'mean_wait_s=600'"),
        (reading_target, "mean_wait_s<1.2.3", "--target"),
    ],
)
def test_what_cannot_be_read_is_named(make, text, message):
    """The error repeats the option and shows how to write it."""
    with pytest.raises(YardmasterError, match=message):
        make(text)


def test_unknown_metrics_of_targets_are_suggested():
    """A misspelt metric gets a suggestion."""
    with pytest.raises(UnknownNameError, match="Did you mean 'mean_wait_s'"):
        reading_target("mean_wait<600")
