"""Cluster documents: node groups, pools and GPU types of the user's own."""

from __future__ import annotations

import math
import tomllib

import numpy as np
import pytest

from yardmaster.errors import InvalidConfigError
from yardmaster.model.cluster import Cluster
from yardmaster.model.cluster_document import ClusterDocument
from yardmaster.model.documents import validate
from yardmaster.model.gpus import GpuType, gpu_type


def read(text: str) -> Cluster:
    """Return the cluster a document describes."""
    return validate(ClusterDocument, tomllib.loads(text), "ours.toml").cluster("ours")


def mistakes(text: str) -> tuple[str, ...]:
    """Return the mistakes for which a document is refused."""
    with pytest.raises(InvalidConfigError) as caught:
        read(text)
    return caught.value.mistakes


def test_groups_with_everything_given():
    """Counts, racks and host resources reach the nodes; what is not given is unknown."""
    cluster = read("""
        name = "two kinds"
        description = "for a test"
        source = "nowhere"
        [[nodes]]
        count = 4
        gpu_type = "a100"
        gpus = 8
        nodes_per_rack = 2
        cpus = 96
        memory_gib = 512
        overhead_w = 400
        [[nodes]]
        gpu_type = "T4"
        gpus = 4
    """)
    assert cluster.describe() == "two kinds: 5 nodes, 36 GPUs (32 A100, 4 T4)"
    assert cluster.node_rack.tolist() == [0, 0, 1, 1, 2]
    np.testing.assert_array_equal(cluster.node_cpus, [96, 96, 96, 96, math.nan])
    np.testing.assert_array_equal(cluster.node_memory_gib, [512, 512, 512, 512, math.nan])
    np.testing.assert_array_equal(cluster.node_overhead_w, [400, 400, 400, 400, 0])


def test_a_document_without_a_name_takes_that_of_its_file():
    """The name is optional."""
    assert read('[[nodes]]\ngpu_type = "T4"\ngpus = 1').name == "ours"


def test_own_types_take_the_rest_from_a_known_one():
    """`like` gives every figure that is not written."""
    cluster = read("""
        [gpu_types.Slow]
        like = "A100-80G"
        busy_w = 250
        source = "measured"
        [[nodes]]
        gpu_type = "slow"
        gpus = 8
    """)
    (kind,) = cluster.gpu_types
    known = gpu_type("A100")
    assert (kind.name, kind.busy_w, kind.source) == ("Slow", 250, "measured")
    assert (kind.flops, kind.memory_gib, kind.idle_w) == (known.flops, 80, known.idle_w)


def test_own_types_from_scratch():
    """A type can be written in full, without a known one behind it."""
    cluster = read("""
        [gpu_types.New]
        memory_gib = 288
        fp32_tflops = 100
        fp16_tflops = 3000
        memory_gb_s = 9000
        idle_w = 0
        busy_w = 1400
        [[nodes]]
        gpu_type = "New"
        gpus = 8
    """)
    assert cluster.gpu_types == (GpuType("New", 288, 100, 3000, 9000, 0, 1400),)


def test_own_types_stand_before_the_catalogue():
    """A document may correct a known type for its own cluster, and for that one only."""
    text = """
        [gpu_types.V100M16]
        like = "V100"
        busy_w = 250
        [[nodes]]
        gpu_type = "V100"
        gpus = 8
    """
    assert read(text).gpu_types[0].busy_w == 250
    assert gpu_type("V100").busy_w == 300


def test_a_pool_melts_its_nodes():
    """With `pool`, one group is one unit with the sum of its nodes' resources."""
    cluster = read("""
        pool = true
        [[nodes]]
        count = 4
        gpu_type = "T4"
        gpus = 8
        cpus = 10
        overhead_w = 100
    """)
    assert cluster.is_pool
    assert (cluster.nodes, cluster.gpus) == (1, 32)
    assert cluster.node_cpus.tolist() == [40]
    assert math.isnan(cluster.node_memory_gib[0])
    assert cluster.node_overhead_w.tolist() == [400]


def test_all_mistakes_of_a_document_come_at_once():
    """Unknown types, keys, wrong numbers and a wrong pool are reported together."""
    found = mistakes("""
        pool = "yes"
        colour = "red"
        [gpu_types.X]
        like = "V10"
        memory_gib = -1
        [gpu_types.Y]
        memory_gib = inf
        busy_w = 3
        [[nodes]]
        count = 0
        gpu_type = "V1000"
        gpus = 8.5
        [[nodes]]
        gpu_tipe = "A100"
        gpus = true
        nodes_per_rack = 99999999999999999999999999999
        cpus = nan
    """)
    assert sorted(mistake.split(":")[0] for mistake in found) == [
        "colour",
        "gpu_types.X.like",
        "gpu_types.X.memory_gib",
        "gpu_types.Y.like",
        "gpu_types.Y.memory_gib",
        "nodes[0].count",
        "nodes[0].gpu_type",
        "nodes[0].gpus",
        "nodes[1].cpus",
        "nodes[1].gpu_tipe",
        "nodes[1].gpu_type",
        "nodes[1].gpus",
        "nodes[1].nodes_per_rack",
        "pool",
    ]
    text = "\n".join(found)
    assert "'V1000'. Did you mean 'V100'" in text
    assert "Did you mean 'gpu_type'? Allowed: count, cpus, gpu_type, gpus" in text
    assert (
        "gpu_types.Y.like: is required, or else fp32_tflops, fp16_tflops, memory_gb_s, idle_w"
        in text
    )


def test_own_types_are_suggested_too():
    """A misspelt name of the document's own type leads to that type."""
    (found,) = mistakes("""
        [gpu_types.Falcon]
        like = "T4"
        [[nodes]]
        gpu_type = "Falcn"
        gpus = 1
    """)
    assert "Did you mean 'Falcon'" in found


ONE = "{gpu_type = 'T4', gpus = 1}"
TWICE = "[gpu_types]\nV100 = {like = 'T4'}\nv-100 = {like = 'T4'}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "nodes: is required"),
        ("nodes = []", "nodes: a cluster needs at least one [[nodes]] group"),
        (f"pool = true\nnodes = [{ONE}, {ONE}]", "pool: a pool has exactly one [[nodes]] group"),
        (f"nodes = [{ONE}]\ngpu_types = 3", "gpu_types: must be a table, got 3"),
        (f"nodes = [{ONE}]\n{TWICE}", "'V100' and 'v-100' name the same GPU type"),
        (f"nodes = [{ONE}]\n[gpu_types.'-']\nlike = 'T4'", "'-' is not a name"),
    ],
)
def test_documents_that_make_no_sense(text: str, expected: str):
    """Each rule of the document as a whole has its own message."""
    (found,) = mistakes(text)
    assert expected in found
