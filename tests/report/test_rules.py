"""The rules of a site in words: what is set is said, with its numbers."""

from __future__ import annotations

import pytest

from yardmaster.model.catalogue import cluster_names, load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Site
from yardmaster.report.rules import rules_in_words

CLUSTER = Cluster.of("2x V100:8", "1x A100:8", name="ours")


def said(site: Site, topic: str) -> str:
    return dict(rules_in_words(CLUSTER.under(site)))[topic]


@pytest.mark.parametrize(
    ("site", "topic", "words"),
    [
        (Site(), "tenants", ["No quotas"]),
        (Site(quotas=(Quota("x", 8, 12),)), "tenants", ["8 of 24", "x: 8 guaranteed, at most 12"]),
        (Site(), "stopping jobs", ["Nothing is said"]),
        (
            Site(checkpoints=Checkpoints(3600.0, 36.0, 90.0, on_preemption=False), quantum_s=600.0),
            "stopping jobs",
            ["every 60 min", "36 s (1.0 %", "falls back", "takes 90 s", "within 10 min"],
        ),
        (Site(), "failures", ["never fail"]),
        (Site(failures=Failures(mtbf_h=240, mttr_h=6)), "failures", ["10 d", "6 h", "always"]),
        (
            Site(failures=Failures(outages=(Outage(1, 3600, 7200),) * 5, retries=1)),
            "failures",
            ["5 outages", "Node 1 is away from 60 min to 2 h", "up to 1 time,"],
        ),
        (Site(), "power", ["0.15, as no price is set"]),
        (Site(power=Power(price_per_kwh=(0.3,))), "power", ["costs 0.3."]),
        (
            Site(power=Power(2000.0, (0.1, *[0.4] * 23), (200.0,), 900.0)),
            "power",
            [
                "2 kW above",
                "from 0.1 (hour 0",
                "0.4 (hour 1)",
                "CO₂ per kilowatt-hour: 200",
                "15 min",
            ],
        ),
        (Site(), "speeds", ["measured on V100", "A100 1.24×", "within one node"]),
        (Site(equal_speeds=True), "speeds", ["equally fast"]),
        (Site(splits_gangs=True), "speeds", ["spread over nodes"]),
    ],
)
def test_every_rule_is_said(site, topic, words):
    """What the site sets is in the sentence of its topic."""
    text = said(site, topic)
    for word in words:
        assert word in text


def test_sharing_is_said_by_nodes():
    """How many nodes let jobs share GPUs, and how."""
    assert "1,213 nodes" in dict(rules_in_words(load_cluster("openb")))["sharing"]
    assert "holds a whole one" in said(Site(), "sharing")


@pytest.mark.parametrize("name", cluster_names())
def test_every_catalogued_cluster_has_words_for_all_topics(name):
    """Seven topics, none empty, no number missing."""
    rules = rules_in_words(load_cluster(name))
    assert len(rules) == 7
    assert all(text.endswith((".", ")")) and "nan" not in text.split() for _, text in rules)
