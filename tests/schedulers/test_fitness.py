"""Schedulers that make no sense on a cluster are refused, each with a reason and a way out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.site import (
    Checkpoints,
    Failures,
    Outage,
    Power,
    Quota,
    Sharing,
    Site,
)
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.simulation import simulate

NODES = Cluster.of("2x V100:4")
JOBS = Workload.of(
    submit_s=[0, 5, 5], duration_s=[100, 100, 50], tenant=["a", "b", "b"], gpus=[4, 1, 1]
)


def refusal(scheduler, cluster=NODES, jobs=JOBS):
    """Return why a scheduler is refused."""
    with pytest.raises(YardmasterError) as caught:
        simulate(jobs, cluster, scheduler)
    start = f"{parse_scheduler(scheduler)} cannot run on {cluster.name!r}: "
    assert str(caught.value).startswith(start)
    return str(caught.value)


def runs(scheduler, cluster=NODES, jobs=JOBS):
    """Whether everybody finishes under a scheduler."""
    return simulate(jobs, cluster, scheduler).count(Outcome.FINISHED) == len(jobs)


@pytest.mark.parametrize("discipline", ["preemptive", "timeslice"])
@pytest.mark.parametrize("order", ["wfp3", "sexp", "random-feasible"])
def test_stopping_needs_keys_that_hold(order, discipline):
    """Keys that change while jobs wait cannot say who stops whom."""
    reason = refusal(f"{order}+{discipline}")
    assert f"{discipline} stops running jobs by their keys, and those of {order!r} change" in reason
    assert "use an order such as srpt" in reason


def test_stopping_needs_keys_known_beforehand():
    """An order that is asked at every pass cannot say who stops whom either."""
    asked = Order("asked", lambda jobs, _now: jobs.submit_s, reads_run_time=False, formula="s")
    asked = replace(asked, discipline="preemptive")
    assert "those of 'asked' change while jobs wait" in refusal(asked)


@pytest.mark.parametrize("order", ["sjf", "srpt", "las", "edf"])
def test_turns_go_by_submission(order):
    """Who takes turns takes them in order of submission, whatever the order's name says."""
    assert "write fifo+timeslice" in refusal(f"{order}+timeslice")
    assert runs("fifo+timeslice")


@pytest.mark.parametrize("discipline", ["strict", "easy", "preemptive", "elastic", "defrag"])
def test_an_integer_program_decides_whole_passes(discipline):
    """With milp no other discipline has anything left to say."""
    reason = f"milp decides whole passes and goes with skip, not with {discipline}"
    assert reason in refusal(f"fifo+{discipline}@milp")


@pytest.mark.parametrize("order", ["drf", "fair-share", "las", "las-2d", "random-feasible"])
def test_an_integer_program_needs_one_order_for_the_pass(order):
    """Orders whose keys change with every start cannot be followed by a program."""
    reason = f"milp cannot follow {order!r}, whose keys depend on each start"
    assert reason in refusal(f"{order}@milp")
    assert runs("wfp3@milp")
    assert runs("srpt@milp")


SHARED = replace(NODES, node_sharing=np.array([0, int(Sharing.MPS)]))
PARTS = JOBS.with_columns(milli_gpu=[1000, 300, 300])
HOSTS = replace(NODES, node_cpus=np.array([32.0, 32.0]))
CORES = JOBS.with_columns(cpus=[8, 2, 2])
FEATURES = {
    "shared GPUs": (SHARED, PARTS),
    "cores and host memory to share out": (HOSTS, CORES),
    "quotas": (NODES.under(Site(quotas=(Quota("a", 2),))), JOBS),
    "a power cap": (NODES.under(Site(power=Power(cap_w=1500.0))), JOBS),
    "node failures": (NODES.under(Site(failures=Failures(outages=(Outage(0, 1, 2),)))), JOBS),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_promises_are_of_gpus_alone(feature):
    """Conservative cannot promise what it does not reckon with; easy can live with it."""
    cluster, jobs = FEATURES[feature]
    reason = f"conservative promises GPUs alone, and here there are {feature}; use easy"
    assert reason in refusal("fifo+conservative", cluster, jobs)
    assert runs("fifo+easy", cluster, jobs)


@pytest.mark.parametrize("feature", FEATURES)
def test_programs_know_of_hosts_and_failures_only(feature):
    """The program reads usable GPUs, so cores and lost nodes are in it; the rest is not."""
    cluster, jobs = FEATURES[feature]
    if feature in ("cores and host memory to share out", "node failures"):
        assert runs("fifo@milp", cluster, jobs)
    else:
        reason = f"milp does not know of {feature}; use another placement"
        assert reason in refusal("fifo@milp", cluster, jobs)


@pytest.mark.parametrize("scheduler", ["fifo+conservative", "fifo@milp"])
def test_a_limit_alone_is_a_quota(scheduler):
    """A tenant that is guaranteed nothing but limited can be held back: that is a quota too."""
    limited = NODES.under(Site(quotas=(Quota("a", 0, 4),)))
    assert "quotas" in refusal(scheduler, limited)


def test_several_features_are_all_named():
    """The reason lists everything in the way, not only the first."""
    site = Site(quotas=(Quota("a", 2),), power=Power(cap_w=1500.0))
    assert "here there are quotas, a power cap; use easy" in refusal(
        "fifo+conservative", NODES.under(site)
    )


def test_what_nobody_uses_does_not_matter():
    """Sharing without fractional jobs, and hosts without needs, leave conservative its promises."""
    assert runs("fifo+conservative", SHARED, JOBS)
    assert runs("fifo+conservative", HOSTS, JOBS)
    assert runs("fifo+conservative", NODES, PARTS)
    assert runs("fifo@milp", SHARED, JOBS)


def under(**checkpoints):
    """Return one node whose jobs take turns of 60 s, with these costs of stopping."""
    return Cluster.of("V100:4").under(Site(quantum_s=60.0, checkpoints=Checkpoints(**checkpoints)))


TURNS = ["fifo+timeslice", "las+preemptive", "las-2d+preemptive", "drf+preemptive"]
TURNS += ["fair-share+preemptive"]


@pytest.mark.parametrize("scheduler", TURNS)
@pytest.mark.parametrize(
    ("costs", "lost_s"),
    [
        ({"save_s": 30.0, "restore_s": 30.0}, "60"),
        ({"restore_s": 200.0}, "200"),
        ({"on_preemption": False, "every_s": 50.0, "restore_s": 10.0}, "60"),
        ({"on_preemption": False}, "inf"),
    ],
)
def test_turns_must_get_somewhere(scheduler, costs, lost_s):
    """A turn that is lost to saving and restoring would repeat for ever, so it is refused."""
    reason = refusal(scheduler, under(**costs))
    assert "a turn of quantum_s = 60 s would be lost" in reason
    assert f"({lost_s} s), and no job would ever finish; set quantum_s higher" in reason


@pytest.mark.parametrize("scheduler", TURNS)
@pytest.mark.parametrize(
    "costs",
    [
        {"save_s": 29.0, "restore_s": 30.0},
        {"on_preemption": False, "every_s": 49.0, "restore_s": 10.0},
    ],
)
def test_turns_that_get_somewhere_end(scheduler, costs):
    """One second of progress a turn is enough for every job to finish."""
    assert runs(scheduler, under(**costs))


@pytest.mark.parametrize(
    "scheduler", ["drf+preemptive", "fair-share+preemptive", "srpt+preemptive"]
)
def test_without_turns_costs_may_be_high(scheduler):
    """Who is stopped only when somebody comes or goes gets somewhere at any cost."""
    costs = Checkpoints(restore_s=1000.0, on_preemption=False)
    assert runs(scheduler, Cluster.of("V100:4").under(Site(checkpoints=costs)))
    assert math.isinf(costs.every_s)
