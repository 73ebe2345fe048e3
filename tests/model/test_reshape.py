"""A reshaped cluster differs from the original by the change and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidClusterError, UnknownNameError
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.reshape import (
    add_nodes,
    most_common_nodes,
    parse_nodes,
    remove_nodes,
    replace_nodes,
    resize,
    with_quota,
)
from yardmaster.model.site import Failures, Outage, Quota, Sharing, Site

COLUMNS = ("node_gpus", "node_cpus", "node_memory_gib", "node_overhead_w", "node_sharing")


@pytest.fixture
def mixed() -> Cluster:
    groups = [
        NodeGroup(3, gpu_type("V100"), 4, nodes_per_rack=2, cpus=32, overhead_w=90.0),
        NodeGroup(2, gpu_type("A100"), 8, memory_gib=512, sharing=Sharing.MPS),
        NodeGroup(1, gpu_type("V100"), 8),
    ]
    return from_groups(groups, name="mixed", site=Site(quotas=(Quota("vc1", 8),)))


def types(cluster: Cluster) -> list[str]:
    return [cluster.gpu_types[number].name for number in cluster.node_type]


def test_added_nodes_stand_behind_the_others(mixed):
    """Old nodes keep every column; new ones are like the last of their kind, in a new rack."""
    grown = add_nodes(mixed, "2x V100:4")
    for name in (*COLUMNS, "node_rack"):
        np.testing.assert_array_equal(getattr(grown, name)[:6], getattr(mixed, name))
    assert types(grown) == [*types(mixed), "V100", "V100"]
    assert grown.node_gpus[6:].tolist() == [4, 4]
    assert grown.node_cpus[6:].tolist() == [32, 32]
    assert grown.node_overhead_w[6:].tolist() == [90, 90]
    assert set(grown.node_rack[6:].tolist()) == {int(mixed.node_rack.max()) + 1}
    assert grown.site.quotas == mixed.site.quotas


def test_a_new_type_joins_the_cluster(mixed):
    """A type the cluster lacked is added; its host is unknown."""
    grown = add_nodes(mixed, "1x H100:8")
    assert types(grown)[-1] == "H100"
    assert np.isnan(grown.node_cpus[-1])
    assert grown.gpus == mixed.gpus + 8


def test_gpus_per_node_may_be_left_out_for_known_types(mixed):
    """`1x A100` means a node like those that are there; a new type must say."""
    assert add_nodes(mixed, "1x A100").node_gpus[-1] == 8
    with pytest.raises(InvalidClusterError, match=r"add 2x H100 to mixed.*'2x H100:8'"):
        add_nodes(mixed, "2x H100")


def test_the_last_nodes_of_a_type_go(mixed):
    """Nodes go from the end; the others keep order, racks and hosts."""
    smaller = remove_nodes(mixed, "2x V100")
    assert types(smaller) == ["V100", "V100", "A100", "A100"]
    np.testing.assert_array_equal(smaller.node_rack, mixed.node_rack[[0, 1, 3, 4]])
    np.testing.assert_array_equal(smaller.node_sharing, mixed.node_sharing[[0, 1, 3, 4]])


def test_a_type_without_nodes_is_forgotten(mixed):
    """The cluster lists only types it has."""
    smaller = remove_nodes(mixed, "2x A100")
    assert [kind.name for kind in smaller.gpu_types] == ["V100"]
    assert types(smaller) == ["V100"] * 4


def test_outages_follow_their_nodes(mixed):
    """Outages of nodes that go are dropped, the others renumbered."""
    outages = (Outage(0, 1.0, 2.0), Outage(4, 3.0, 4.0), Outage(5, 5.0, 6.0))
    site = replace(mixed.site, failures=Failures(outages=outages))
    smaller = remove_nodes(mixed.under(site), "1x A100")
    assert smaller.site.failures.outages == (Outage(0, 1.0, 2.0), Outage(4, 5.0, 6.0))


def test_durations_stay_those_of_the_original(mixed):
    """Where another type becomes the commonest, the old one stays the reference."""
    grown = add_nodes(Cluster.of("2x V100:8"), "50x H100:8")
    assert grown.site.reference_gpu == "V100"
    assert replace_nodes(Cluster.of("2x V100:8"), "2x V100", "1x H100:8").site.reference_gpu == (
        "V100"
    )
    assert add_nodes(Cluster.of("2x V100:8"), "1x V100:8").site == Site()
    named = mixed.under(Site(reference_gpu="T4"))
    assert remove_nodes(named, "1x A100").site.reference_gpu == "T4"


def test_replacing_all_nodes():
    """Every old node may go if new ones come."""
    new = replace_nodes(Cluster.of("8x V100:8"), "8x V100", "4x H100:8")
    assert types(new) == ["H100"] * 4
    assert new.gpus == 32


@given(st.integers(1, 6), st.integers(1, 6))
def test_adding_and_removing_are_opposites(nodes, more):
    """Taking away what was added gives back every column."""
    cluster = Cluster.of(f"{nodes}x V100:8", "2x T4:4")
    back = remove_nodes(add_nodes(cluster, f"{more}x V100:8"), f"{more}x V100:8")
    for name in (*COLUMNS, "node_type", "node_rack"):
        np.testing.assert_array_equal(getattr(back, name), getattr(cluster, name))


def test_resizing_takes_the_commonest_nodes(mixed):
    """The commonest kind grows or shrinks; nothing is a change of zero."""
    assert most_common_nodes(mixed) == (3, "V100", 4)
    assert resize(mixed, 0) is mixed
    assert resize(mixed, 2).gpus == mixed.gpus + 8
    assert resize(mixed, -3).nodes == 3
    assert resize(mixed, 1, parse_nodes("A100:8")).gpus == mixed.gpus + 8


def test_a_pool_grows_by_gpus():
    """A pool has no node borders: a node more is a GPU more, nodes count by their GPUs."""
    pool = Cluster.pool(100)
    assert most_common_nodes(pool) == (100, "V100", 1)
    grown = resize(pool, 4)
    assert grown.is_pool
    assert (grown.gpus, grown.nodes, grown.name) == (104, 1, "pool of 100 + 4 GPUs")
    assert resize(pool, -1).gpus == 99
    assert add_nodes(pool, "2x V100:8").gpus == 116
    assert remove_nodes(pool, "2x V100:8").gpus == 84
    with pytest.raises(InvalidClusterError, match="nothing would be left"):
        resize(pool, -100)
    with pytest.raises(InvalidClusterError, match=r"one type, here V100.* write --nodes \+16\."):
        add_nodes(pool, "2x A100:8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("5x V100", r"remove 5x V100 from mixed: it has only 4 nodes of V100"),
        ("2x V100:8", r"only 1 nodes of V100:8"),
        ("1x A10", r"has no A10. Did you mean 'A100'"),
        ("0x V100", r"Cannot read nodes '0x V100'"),
        ("V100:", r"Cannot read nodes"),
    ],
)
def test_impossible_removals_name_the_change(mixed, change, message):
    """The error says what was asked of which cluster, and what it has."""
    with pytest.raises(InvalidClusterError, match=message):
        remove_nodes(mixed, change)


def test_other_impossible_changes(mixed):
    """A cluster cannot vanish, unknown types stay unknown."""
    with pytest.raises(InvalidClusterError, match="nothing would be left"):
        remove_nodes(Cluster.of("2x V100:8"), "2x V100")
    with pytest.raises(UnknownNameError, match="H100"):
        add_nodes(mixed, "1x H1000:8")


def test_quotas_change_one_tenant(mixed):
    """The named tenant's quota is replaced or added; others stay."""
    more = with_quota(mixed, Quota("vc2", 4, 6), tenants=frozenset({"vc2"}))
    assert more.site.quotas == (Quota("vc1", 8), Quota("vc2", 4, 6))
    changed = with_quota(more, Quota("vc1", 16), tenants=frozenset())
    assert changed.site.quotas == (Quota("vc1", 16), Quota("vc2", 4, 6))


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        (Quota("vc11", 4), "'vc11'.*Did you mean 'vc1'"),
        (Quota("vc1", -1), "-1 GPUs"),
        (Quota("vc1", 8, 4), "limit of 4 GPUs is below"),
    ],
)
def test_senseless_quotas_are_refused(mixed, quota, message):
    """Unknown tenants and impossible numbers are named."""
    with pytest.raises(InvalidClusterError, match=message):
        with_quota(mixed, quota, tenants=frozenset())
