"""Named clusters, cluster files and the short notation."""

from __future__ import annotations

import csv
import io
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from yardmaster.errors import InvalidClusterError, InvalidConfigError, UnknownNameError
from yardmaster.model.catalogue import cluster_descriptions, cluster_names, load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import type_key
from yardmaster.model.site import Sharing, Site
from yardmaster.workloads.synthetic import generate

TRACES = Path(__file__).resolve().parents[2] / ".." / "shared" / "traces"
NEEDS_TRACES = pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")

PUBLISHED = {
    "alibaba-pai": (1_814, 6_742, 5),
    "demo": (16, 128, 1),
    "four-types-56": (4, 56, 4),
    "helios-earth": (143, 1_144, 1),
    "helios-saturn": (262, 2_096, 1),
    "helios-uranus": (264, 2_112, 1),
    "helios-venus": (133, 1_064, 1),
    "mixed-3-types": (40, 256, 3),
    "openb": (1_213, 6_212, 7),
    "philly": (552, 2_490, 2),
    "rltune-alibaba": (49, 254, 5),
    "rltune-helios": (17, 136, 1),
    "rltune-philly": (36, 192, 1),
    "tenants-demo": (16, 128, 1),
}
"""Nodes, GPUs and types of each cluster as its source states them."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_named_clusters_have_their_published_size(name: str):
    """Every named cluster loads and has the nodes, GPUs and types of its source."""
    cluster = load_cluster(name)
    assert (cluster.nodes, cluster.gpus, len(cluster.gpu_types)) == PUBLISHED[name]
    assert cluster.name == name


def test_every_named_cluster_is_listed_with_a_description():
    """The list is complete and sorted, and says one line about each."""
    assert list(cluster_names()) == sorted(PUBLISHED)
    descriptions = cluster_descriptions()
    assert tuple(descriptions) == cluster_names()
    for text in descriptions.values():
        assert 20 < len(text) < 100
        assert "\n" not in text


def test_the_four_types_cluster_has_the_counts_of_its_simulator():
    """16 A100, 16 V100, 12 T4 and 12 RTX 4090, one node each."""
    cluster = load_cluster("four-types-56")
    counts = dict(zip((k.name for k in cluster.gpu_types), cluster.node_gpus.tolist(), strict=True))
    assert counts == {"A100": 16, "V100": 16, "T4": 12, "RTX4090": 12}


def test_the_mixed_cluster_is_known_in_every_respect():
    """Its nodes have cores, memory and overhead, and stand in racks of four of one type."""
    cluster = load_cluster("mixed-3-types")
    for column in (cluster.node_cpus, cluster.node_memory_gib, cluster.node_overhead_w):
        assert (column > 0).all()
    assert set(Counter(cluster.node_rack.tolist()).values()) == {4}
    racks = set(zip(cluster.node_rack.tolist(), cluster.node_type.tolist(), strict=True))
    assert len(racks) == 10


def test_the_demo_with_tenants_is_the_demo_with_tenants():
    """The same machines, shared by the eight teams of generated workloads, all GPUs guaranteed."""
    shared, demo = load_cluster("tenants-demo"), load_cluster("demo")
    assert shared.node_gpus.tolist() == demo.node_gpus.tolist()
    assert shared.gpu_types == demo.gpu_types
    quotas = shared.site.quotas
    jobs = generate("venus-like", jobs=500, seed=0, gpus=128, load=0.9)
    assert {quota.tenant for quota in quotas} == set(jobs.tenant.names)
    assert sum(quota.guaranteed_gpus for quota in quotas) == demo.gpus
    assert shared.under(demo.site).site == Site()


def test_only_openb_shares_gpus():
    """Alibaba's pods of 2023 take parts of GPUs; every other cluster hands out whole ones."""
    sharing = {name: set(load_cluster(name).node_sharing.tolist()) for name in PUBLISHED}
    assert sharing.pop("openb") == {Sharing.MPS}
    assert set().union(*sharing.values()) == {Sharing.NONE}


def machines(cluster: Cluster) -> Counter[tuple[str, int, float, float]]:
    """Count the nodes by (type, GPUs, CPU cores, memory in GiB)."""
    keys = [type_key(cluster.gpu_types[index].name) for index in cluster.node_type]
    columns = (cluster.node_gpus, cluster.node_cpus, cluster.node_memory_gib)
    return Counter(zip(keys, *(column.tolist() for column in columns), strict=True))


@NEEDS_TRACES
def test_alibaba_pai_is_its_machine_list():
    """The groups are exactly the GPU machines of the published list."""
    archive = TRACES / "alibaba_pai2020" / "pai_machine_spec.tar.gz"
    with tarfile.open(archive) as tar:
        member = tar.extractfile("pai_machine_spec.csv")
        assert member is not None
        rows = list(csv.reader(io.TextIOWrapper(member, "utf-8")))
    assert len(rows) == 1_897
    listed = Counter(
        (type_key(kind), int(gpus), float(cpus), float(memory))
        for _, kind, cpus, memory, gpus in rows
        if int(gpus) > 0
    )
    assert machines(load_cluster("alibaba-pai")) == listed


@NEEDS_TRACES
def test_openb_is_its_node_list():
    """The groups are exactly the nodes of the published list."""
    with (TRACES / "alibaba_openb2023" / "openb_node_list_gpu_node.csv").open() as file:
        listed = Counter(
            (
                type_key(row["model"]),
                int(row["gpu"]),
                int(row["cpu_milli"]) / 1000,
                int(row["memory_mib"]) / 1024,
            )
            for row in csv.DictReader(file)
        )
    assert machines(load_cluster("openb")) == listed


@pytest.mark.parametrize("text", ["8x A100:8, 4x T4:4", "8x A100:8+4x T4:4", " 8x a100:8 ,4xT4:4 "])
def test_short_notation_joins_groups(text: str):
    """Groups are joined by commas or plus signs."""
    assert load_cluster(text).node_gpus.tolist() == [8] * 8 + [4] * 4


@pytest.mark.parametrize(
    ("text", "gpus", "type_name"),
    [("pool:512", 512, "V100"), ("Pool: 7", 7, "V100"), ("pool:A100:64", 64, "A100")],
)
def test_pools_in_short_notation(text: str, gpus: int, type_name: str):
    """`pool:512` is 512 interchangeable GPUs, of a type if one is named."""
    cluster = load_cluster(text)
    assert cluster.is_pool
    assert cluster.gpus == gpus
    assert cluster.gpu_types[0].name == type_name


@pytest.mark.parametrize("text", ["pool:", "pool:many", "pool:A100", "pool:-3", "pool:8 x"])
def test_unreadable_pools_are_refused(text: str):
    """A pool that cannot be read is refused with an example."""
    with pytest.raises(InvalidClusterError, match="such as 'pool:512'"):
        load_cluster(text)


def test_names_do_not_depend_on_case_or_space():
    """Names are found however they are capitalised."""
    assert load_cluster(" Helios-Venus ").name == "helios-venus"


def test_misspelt_names_are_answered_with_the_nearest():
    """An unknown name gives a suggestion, the list, and the other ways to write a cluster."""
    with pytest.raises(UnknownNameError, match=r"'phily'. Did you mean 'philly'.*pool:512"):
        load_cluster("phily")


@pytest.mark.parametrize("text", ["", "A100", "nothing", "8", "12 nodes"])
def test_nothing_is_guessed_from_a_word(text: str):
    """A single word that is no name of a cluster is an error."""
    with pytest.raises(UnknownNameError):
        load_cluster(text)


@pytest.mark.parametrize("text", ["8x A100:8,", ",", "8x A100:8 4x T4:4", "8:8"])
def test_broken_notation_is_refused(text: str):
    """Notation with an unreadable group is refused."""
    with pytest.raises(InvalidClusterError, match="Cannot read node group"):
        load_cluster(text)


def test_files_are_read_by_path_and_by_text(tmp_path: Path):
    """A path, or text that looks like one, is a file; its name is the default name."""
    file = tmp_path / "ours.toml"
    file.write_text('[[nodes]]\ncount = 3\ngpu_type = "L4"\ngpus = 2\n')
    for written in (file, str(file)):
        assert load_cluster(written).describe() == "ours: 3 nodes, 6 GPUs (6 L4)"


def test_mistakes_in_a_file_name_the_file(tmp_path: Path):
    """Every mistake of a file comes under the file's name."""
    file = tmp_path / "ours.toml"
    file.write_text('[[nodes]]\ngpu_type = "L44"\ngpuz = 2\n')
    with pytest.raises(InvalidConfigError) as caught:
        load_cluster(file)
    assert str(caught.value).startswith(f"{file}: 3 mistakes\n")


@pytest.mark.parametrize("text", ["missing.toml", "no/such/file", "demo.toml"])
def test_missing_files_are_named(text: str):
    """A path to nothing says so; it is never taken for a catalogue name."""
    with pytest.raises(InvalidConfigError, match="no such file"):
        load_cluster(text)
