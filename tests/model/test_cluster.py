"""Clusters: groups laid out as nodes, racks and numbered GPUs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidClusterError, UnknownNameError
from yardmaster.model.cluster import LARGEST_CLUSTER_GPUS, Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import GpuType, gpu_type
from yardmaster.model.site import Sharing, Site

TYPES = st.sampled_from(["A100", "V100", "T4"]).map(gpu_type)
HOST = st.one_of(st.just(math.nan), st.floats(0, 1e4))
GROUPS = st.lists(
    st.builds(
        NodeGroup,
        count=st.integers(1, 6),
        gpu_type=TYPES,
        gpus=st.integers(1, 9),
        nodes_per_rack=st.integers(0, 8),
        cpus=HOST,
        memory_gib=HOST,
        overhead_w=st.floats(0, 1e4),
        sharing=st.sampled_from(Sharing),
    ),
    min_size=1,
    max_size=5,
)


def one_by_one(groups: list[NodeGroup]) -> list[tuple[GpuType, int, int, NodeGroup]]:
    """Lay out the nodes with plain loops: (type, GPUs, rack, group) of each."""
    nodes: list[tuple[GpuType, int, int, NodeGroup]] = []
    rack = -1
    for group in groups:
        for index in range(group.count):
            if index == 0 or (group.nodes_per_rack and index % group.nodes_per_rack == 0):
                rack += 1
            nodes.append((group.gpu_type, group.gpus, rack, group))
    return nodes


@given(GROUPS)
def test_groups_become_nodes_in_order(groups: list[NodeGroup]):
    """Every node has the type, GPUs, rack and host resources of its group."""
    cluster = from_groups(groups, name="any")
    nodes = one_by_one(groups)
    assert cluster.nodes == len(nodes)
    assert [cluster.gpu_types[index] for index in cluster.node_type] == [n[0] for n in nodes]
    assert cluster.node_gpus.tolist() == [n[1] for n in nodes]
    assert cluster.node_rack.tolist() == [n[2] for n in nodes]
    np.testing.assert_array_equal(cluster.node_cpus, [n[3].cpus for n in nodes])
    np.testing.assert_array_equal(cluster.node_memory_gib, [n[3].memory_gib for n in nodes])
    np.testing.assert_array_equal(cluster.node_overhead_w, [n[3].overhead_w for n in nodes])
    assert cluster.node_sharing.tolist() == [n[3].sharing for n in nodes]
    assert len(set(cluster.gpu_types)) == len(cluster.gpu_types)


@given(GROUPS)
def test_gpus_count_through_the_nodes(groups: list[NodeGroup]):
    """GPU numbers run through the nodes in order, without gap or overlap."""
    cluster = from_groups(groups, name="any")
    expected = [node for node, gpus in enumerate(cluster.node_gpus) for _ in range(gpus)]
    assert cluster.gpu_node.tolist() == expected
    assert cluster.gpus == len(expected)
    for node, first in enumerate(cluster.node_first_gpu):
        assert expected.index(node) == first


@given(GROUPS)
def test_columns_have_fixed_types_whatever_was_given(groups: list[NodeGroup]):
    """Counts are 64-bit integers and host resources floats, also when given as integers."""
    whole = [NodeGroup(g.count, g.gpu_type, g.gpus, cpus=96, memory_gib=512) for g in groups]
    for cluster in (from_groups(groups, name="any"), from_groups(whole, name="any")):
        integers = (cluster.node_type, cluster.node_gpus, cluster.node_rack, cluster.gpu_node)
        integers += (cluster.node_first_gpu, cluster.node_sharing)
        assert {array.dtype for array in integers} == {np.dtype("i8")}
        floats = (cluster.node_cpus, cluster.node_memory_gib, cluster.node_overhead_w)
        assert {array.dtype for array in floats} == {np.dtype("f8")}


@given(
    count=st.integers(1, 50),
    gpus=st.integers(1, 16),
    name=st.sampled_from(["A100", "v100-32g", "RTX4090"]),
    cross=st.sampled_from(["x", "X", "×", " x ", "x "]),
    colon=st.sampled_from([":", " : ", ": "]),
)
def test_short_notation(count: int, gpus: int, name: str, cross: str, colon: str):
    """`8x A100:8` reads as eight nodes of eight, with any spacing."""
    cluster = Cluster.of(f" {count}{cross}{name}{colon}{gpus} ")
    assert cluster.nodes == count
    assert set(cluster.node_gpus.tolist()) == {gpus}
    assert cluster.gpu_types == (gpu_type(name),)


def test_parts_of_the_notation_default_to_one():
    """A group without a count is one node, without GPUs one GPU."""
    cluster = Cluster.of("A100", "A100:8", "2x T4")
    assert cluster.node_gpus.tolist() == [1, 8, 1, 1]


def test_equal_types_of_several_groups_are_one_type():
    """Groups of the same GPU type, under any alias, share one entry."""
    cluster = Cluster.of("2x V100:8", "1x V100M16:4", "1x T4:1")
    assert [kind.name for kind in cluster.gpu_types] == ["V100", "T4"]
    assert cluster.node_type.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "text", ["", "8x", "8x A100:", "A100:x", "8 A100:8", "x A100:8", "-1x A100:8", "8x A100:8 T4",
             "8x A100:8\n4x T4:4", f"{'9' * 5000}x A100:8", "8x A100:" + "9" * 5000]
)  # fmt: skip
def test_unreadable_groups_are_refused(text: str):
    """What is not in the notation is refused with an example of it."""
    with pytest.raises(InvalidClusterError, match=r"such as '8x A100:8'"):
        Cluster.of(text)


@pytest.mark.parametrize("text", ["0x A100:8", "8x A100:0"])
def test_groups_of_nothing_are_refused(text: str):
    """A group has at least one node and one GPU."""
    with pytest.raises(InvalidClusterError, match="at least 1 node and 1 GPU"):
        Cluster.of(text)


def test_a_cluster_needs_a_group():
    """A cluster of nothing is refused, however it is built."""
    with pytest.raises(InvalidClusterError, match="at least one"):
        Cluster.of()
    with pytest.raises(InvalidClusterError, match="at least one"):
        from_groups([], name="empty")


def test_unknown_types_are_answered_with_the_nearest():
    """A misspelt GPU type is the user's error, with a suggestion."""
    with pytest.raises(UnknownNameError, match="Did you mean 'A100'"):
        Cluster.of("8x A1000:8")


def test_absurd_sizes_are_refused():
    """A typing mistake does not fill the memory."""
    with pytest.raises(InvalidClusterError, match="more than"):
        Cluster.of("999999999x A100:999999999")
    assert Cluster.pool(LARGEST_CLUSTER_GPUS).gpus == LARGEST_CLUSTER_GPUS


@pytest.mark.parametrize(
    "bad",
    [
        {"nodes_per_rack": -1},
        {"cpus": -1.0},
        {"cpus": math.inf},
        {"memory_gib": -0.5},
        {"overhead_w": -1.0},
        {"overhead_w": math.nan},
        {"overhead_w": math.inf},
    ],
)
def test_impossible_hosts_are_refused(bad: dict[str, Any]):
    """Host resources are finite and not negative; watts must be known."""
    group = NodeGroup(count=1, gpu_type=gpu_type("A100"), gpus=1, **bad)
    with pytest.raises(InvalidClusterError):
        from_groups([group], name="bad")


def test_two_types_cannot_share_a_name():
    """Jobs ask for types by name, so one name must mean one type."""
    known = gpu_type("A100")
    other = GpuType("a-100", 1, 1, 1, 1, 1, 1)
    groups = [NodeGroup(1, known, 1), NodeGroup(1, other, 1)]
    with pytest.raises(InvalidClusterError, match="share a name"):
        from_groups(groups, name="twice")


def test_a_pool_is_one_unit():
    """A pool has no node borders: one unit that holds all GPUs."""
    pool = Cluster.pool(512)
    assert pool.is_pool
    assert (pool.nodes, pool.gpus) == (1, 512)
    assert pool.describe() == "pool of 512: one pool, 512 GPUs (512 V100)"
    assert Cluster.pool(4, "T4").gpu_types == (gpu_type("T4"),)
    assert not Cluster.of("A100:512").is_pool


def test_the_same_machines_under_other_rules():
    """Rules can be exchanged; the machines and the first cluster stay as they are."""
    first = Cluster.of("2x V100:8")
    second = first.under(Site(quantum_s=60.0))
    assert (first.site, second.site.quantum_s) == (Site(), 60.0)
    assert second.node_gpus is first.node_gpus
    assert second.node_sharing.tolist() == [Sharing.NONE, Sharing.NONE]


def test_description_counts_every_type():
    """One line says how many nodes, how many GPUs, and of which types."""
    cluster = Cluster.of("8x A100:8", "4x T4:4", "1x A100:2", name="ours")
    assert cluster.describe() == "ours: 13 nodes, 82 GPUs (66 A100, 16 T4)"
    assert Cluster.of("8x A100:8", "4x T4:4").name == "8x A100:8 + 4x T4:4"
