"""Who is compared is settled before anything runs, and fits the cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.compare import compare
from yardmaster.experiments.line_up import (
    DEFAULT_SCHEDULERS,
    FOR_ELASTIC_JOBS,
    FOR_PRICE_CURVES,
    FOR_STOPPING,
    FOR_UNEQUAL_GPUS,
    default_schedulers,
    given_workloads,
    parse_schedulers,
    refuse_unfit,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Site
from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.learned import catalogue
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.testing.policies import random_policy
from yardmaster.workloads.synthetic import simple

PLAIN = Cluster.of("2x V100:4")
JOBS = simple(jobs=40, seed=0, gpus=8, load=1.0, max_gpus=4).with_columns(tenant=["a"] * 40)
CONSERVATIVE = "fifo+conservative~estimate"
PRICES = tuple(0.1 + 0.01 * hour for hour in range(24))


@pytest.fixture(autouse=True)
def shipped(tmp_path, monkeypatch):
    """Return a folder that stands for that of policies that come along, with none in it."""
    monkeypatch.setattr(catalogue, "SHIPPED", tmp_path)
    return tmp_path


def elastic(jobs=JOBS):
    return jobs.with_columns(max_gpus=np.full(len(jobs), 4), min_gpus=np.ones(len(jobs), int))


def added_by(cluster, jobs=JOBS):
    """Return what the defaults have beyond the usual ones, and what they lack."""
    names = default_schedulers([jobs], cluster)
    return set(names) - set(DEFAULT_SCHEDULERS), set(DEFAULT_SCHEDULERS) - set(names)


def test_plain_clusters_have_the_usual_dozen():
    """Equal GPUs and rigid jobs: the same names in the same order, each written in full."""
    assert default_schedulers([JOBS], PLAIN) == DEFAULT_SCHEDULERS
    assert len(DEFAULT_SCHEDULERS) == 12
    assert {str(parse_scheduler(name)) for name in DEFAULT_SCHEDULERS} == set(DEFAULT_SCHEDULERS)


def test_policies_that_come_along_follow_the_usual_dozen(shipped):
    """They stand last where they can run: on the core, equal GPUs, with the estimates they read."""
    for information in ("blind", "clairvoyant", "estimate"):
        sight = Sight(window=4, information=information, gpu_slots=0)
        write_policy(shipped / f"{information}.npz", random_policy(sight))
    names = default_schedulers([JOBS], PLAIN)
    assert names[:12] == DEFAULT_SCHEDULERS
    assert names[12:] == ("policy:blind", "policy:clairvoyant", "policy:estimate")
    refuse_unfit(parse_schedulers(names), JOBS, PLAIN)
    assert default_schedulers([JOBS], PLAIN, engine="simpy") == DEFAULT_SCHEDULERS
    assert default_schedulers([JOBS], PLAIN, compatibility="rlscheduler") == DEFAULT_SCHEDULERS
    without = JOBS.with_columns(estimate_s=np.full(len(JOBS), np.nan))
    without_estimates = default_schedulers([JOBS, without], PLAIN)
    assert without_estimates[-2:] == ("policy:blind", "policy:clairvoyant")
    assert "policy:estimate" not in without_estimates
    mixed = Cluster.of("1x V100:4", "1x A100:4")
    assert not any("policy:" in name for name in default_schedulers([JOBS], mixed))


def test_a_comparison_of_nothing_named_has_the_policies(shipped):
    """From Python as on the command line; the reference engine does without them."""
    write_policy(shipped / "mine.npz", random_policy(Sight(window=4, gpu_slots=0)))
    assert len(compare(JOBS, PLAIN).rows) == 13
    assert len(compare(JOBS, PLAIN, engine="simpy").rows) == 12


def test_defaults_fall_back_to_true_durations():
    """Where one workload lacks estimates, all read true durations, and nobody stands twice."""
    without = JOBS.with_columns(estimate_s=np.full(len(JOBS), np.nan))
    names = default_schedulers([JOBS, without], PLAIN)
    assert len(names) == len(set(names)) >= 8
    assert not any("~" in name for name in names)


@pytest.mark.parametrize(
    ("site", "more", "less"),
    [
        (Site(quotas=(Quota("a", 4),)), (), (CONSERVATIVE,)),
        (Site(power=Power(cap_w=1500.0)), (), (CONSERVATIVE,)),
        (Site(failures=Failures(outages=(Outage(0, 5.0, 9.0),))), (), (CONSERVATIVE,)),
        (Site(power=Power(price_per_kwh=PRICES)), FOR_PRICE_CURVES, ()),
        (Site(power=Power(price_per_kwh=(0.2,))), (), ()),
        (Site(checkpoints=Checkpoints(every_s=600.0, save_s=1.0)), FOR_STOPPING, ()),
        (Site(quantum_s=60.0), FOR_STOPPING, ()),
        # A turn that restoring eats up is refused to las-2d, not to srpt.
        (Site(checkpoints=Checkpoints(restore_s=900.0), quantum_s=60.0), FOR_STOPPING[1:], ()),
    ],
    ids=["quotas", "cap", "outages", "prices", "flat", "checkpoints", "quantum", "standstill"],
)
def test_defaults_follow_the_site(site, more, less):
    """Rules of the site bring schedulers that use them, and drop those that would be refused."""
    assert added_by(PLAIN.under(site)) == (set(more), set(less))


def test_defaults_follow_the_machines_and_the_jobs():
    """Unequal GPUs bring `fastest`, unless they count as equal; elastic jobs bring `elastic`."""
    mixed = Cluster.of("1x V100:4", "1x A100:4")
    assert added_by(mixed)[0] == set(FOR_UNEQUAL_GPUS)
    assert added_by(mixed.under(Site(equal_speeds=True))) == (set(), set())
    assert added_by(PLAIN, elastic())[0] == set(FOR_ELASTIC_JOBS)


def test_default_schedulers_are_never_refused():
    """On a site with everything at once, all that is left can run."""
    site = Site(
        quotas=(Quota("a", 4),),
        checkpoints=Checkpoints(every_s=600.0, save_s=1.0, restore_s=2.0),
        failures=Failures(outages=(Outage(0, 5.0, 9.0),)),
        power=Power(price_per_kwh=PRICES),
        quantum_s=60.0,
    )
    cluster = Cluster.of("1x V100:4", "1x A100:4").under(site)
    names = default_schedulers([elastic()], cluster)
    refuse_unfit(parse_schedulers(names), elastic(), cluster)
    assert len(names) == 12 - 1 + 2 + 1 + 1 + 2


def test_all_bad_names_are_reported_at_once():
    """Two misspelt names are two lines, with a suggestion each; one is reported as it is."""
    with pytest.raises(UnknownNameError) as error:
        parse_schedulers(["sjff", "fifo", "fifo+eazy"])
    text = str(error.value)
    assert "Did you mean 'sjf'" in text
    assert "Did you mean 'easy'" in text
    with pytest.raises(UnknownNameError, match=r"^Unknown order 'sjff'"):
        parse_schedulers(["sjff", "fifo"])


def test_unfit_schedulers_are_named_before_anything_runs():
    """A comparison refuses every scheduler that cannot run here in one error, at once."""
    seen: list[str] = []
    cluster = PLAIN.under(Site(quotas=(Quota("a", 4),)))
    with pytest.raises(YardmasterError) as error:
        compare(
            JOBS,
            cluster,
            ["fifo", "sjf+conservative", "fifo@milp"],
            progress=lambda label, _done, _total: seen.append(label),
        )
    assert "sjf+conservative cannot run" in str(error.value)
    assert "fifo+skip@milp cannot run" in str(error.value)
    assert seen == []


def test_schedulers_refused_alike_are_told_together():
    """The same reason is given once, with every scheduler and both ways out."""
    missing = JOBS.estimate_s.copy()
    missing[3] = np.nan
    jobs = replace(JOBS, estimate_s=missing)
    names = ["fifo+easy~estimate", "sjf+easy~estimate", "fifo+conservative~estimate"]
    with pytest.raises(YardmasterError) as error:
        refuse_unfit(parse_schedulers(names), jobs, PLAIN)
    text = str(error.value)
    assert text.startswith(f"{', '.join(names)}: each reads estimates, but 1 of ")
    assert text.count("has none") == 1
    assert "yardmaster workload predict" in text
    assert "without ~estimate" in text


def test_estimates_missing_in_a_later_workload_are_found_first():
    """The workload that somebody could object to is looked at, wherever it stands."""
    without = replace(JOBS, estimate_s=np.full(len(JOBS), np.nan))
    seen: list[str] = []
    with pytest.raises(YardmasterError, match="have none"):
        compare(
            [JOBS, without],
            PLAIN,
            ["fifo", "sjf~estimate"],
            progress=lambda label, _done, _total: seen.append(label),
        )
    assert seen == []


def test_names_in_place_of_things():
    """A cluster may be named; for jobs the error says how to load them."""
    result = compare(JOBS, "2x V100:4", ["fifo"])
    assert result.rows[0].metrics["mean_jct_s"].mean > 0
    for mistaken in ("venus-like", [JOBS, "venus-like"]):
        with pytest.raises(YardmasterError, match=r"load_workload\('venus-like'\)"):
            given_workloads(mistaken)
    with pytest.raises(UnknownNameError, match="Did you mean 'demo'"):
        compare(JOBS, "demoo", ["fifo"])
