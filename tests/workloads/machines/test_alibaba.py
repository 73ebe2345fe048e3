"""Alibaba's machine lists."""

import csv
import io
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from yardmaster.errors import InvalidClusterError, TraceFormatError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Sharing
from yardmaster.workloads.machines.formats import import_machines
from yardmaster.workloads.machines.listing import MachineOptions
from yardmaster.workloads.traces.reading.options import ImportOptions

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
NEEDS_TRACES = pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")
OPENB = "sn,cpu_milli,memory_mib,gpu,model\n"


def nodes(cluster: Cluster) -> Counter[tuple[str, int, str, str]]:
    """Count nodes by GPU type, GPUs, cores and memory; what is unknown is nan."""
    return Counter(
        (cluster.gpu_types[kind].name, int(gpus), str(cpus), str(memory))
        for kind, gpus, cpus, memory in zip(
            cluster.node_type,
            cluster.node_gpus,
            cluster.node_cpus,
            cluster.node_memory_gib,
            strict=True,
        )
    )


@NEEDS_TRACES
@pytest.mark.parametrize("name", ["all_node", "gpu_node"])
def test_both_openb_lists_are_the_named_cluster(name: str):
    """With and without CPU nodes the list gives the nodes of the cluster `openb`."""
    path = TRACES / "alibaba_openb2023" / f"openb_node_list_{name}.csv"
    imported = import_machines([path])
    assert nodes(imported.cluster) == nodes(load_cluster("openb"))
    assert (imported.cluster.node_sharing == Sharing.MPS).all()
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    (stage,) = imported.account.stages
    assert stage.read == len(rows)
    assert stage.kept == sum(row["gpu"] != "0" for row in rows)


@NEEDS_TRACES
def test_the_pai_list_is_the_named_cluster():
    """The publisher's archive, without a header, gives the nodes of the cluster `alibaba-pai`."""
    imported = import_machines([TRACES / "alibaba_pai2020"])
    assert nodes(imported.cluster) == nodes(load_cluster("alibaba-pai"))
    with tarfile.open(TRACES / "alibaba_pai2020" / "pai_machine_spec.tar.gz") as archive:
        (member,) = archive.getmembers()
        content = archive.extractfile(member)
        assert content is not None
        rows = list(csv.reader(io.TextIOWrapper(content)))
    (stage,) = imported.account.stages
    assert (stage.read, stage.kept) == (len(rows), sum(row[4] != "0" for row in rows))


@NEEDS_TRACES
def test_the_spot_list_has_its_published_size():
    """All nodes and GPUs of the spot list are there, each under the publisher's type."""
    path = TRACES / "alibaba_spot2026" / "node_info_df.csv"
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    cluster = import_machines([path]).cluster
    assert cluster.nodes == len(rows)
    assert cluster.gpus == sum(int(row["gpu_capacity_num"]) for row in rows)
    assert {"GPU-series-1", "GPU-series-2", "H800"} <= {kind.name for kind in cluster.gpu_types}


def test_undisclosed_types_take_figures_and_say_so(tmp_path: Path):
    """G2 keeps its name, so that jobs can ask for it, and the figures of what stands in for it."""
    path = tmp_path / "nodes.csv"
    path.write_text(OPENB + "a,96000,393216,8,G2\nb,96000,393216,8,G2\nc,8000,1024,1,T4\n")
    imported = import_machines([path])
    (g2,) = (kind for kind in imported.cluster.gpu_types if kind.name == "G2")
    assert g2.fp32_tflops == load_cluster("1x A10:1").gpu_types[0].fp32_tflops
    assert any(remark.startswith("G2 (16 GPUs)") for remark in imported.account.remarks)
    other = import_machines([path], options=MachineOptions(stand_ins={"g2": "H100"}))
    (g2,) = (kind for kind in other.cluster.gpu_types if kind.name == "G2")
    assert g2.fp32_tflops == load_cluster("1x H100:1").gpu_types[0].fp32_tflops


def test_columns_of_the_spot_list_go_by_name(tmp_path: Path):
    """Both orders in which the publisher writes the columns give the same cluster."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,2\nH800,8,192,3\n")
    second.write_text("node_name,gpu_model,gpu_capacity_num,cpu_num\n2,A10,1,128\n3,H800,8,192\n")
    assert nodes(import_machines([first]).cluster) == nodes(import_machines([second]).cluster)


def test_renamed_pai_lists_are_told_by_their_cells(tmp_path: Path):
    """Without name and header the five cells tell what the list is."""
    path = tmp_path / "machines.txt"
    path.write_text("m1,CPU,96,512,0\nm2,T4,96,512,2\nm3,V100M32,96,384,8\n")
    imported = import_machines([path])
    assert imported.account.format == "alibaba-pai-2020"
    assert imported.cluster.gpus == 10


@pytest.mark.parametrize("row", ["a,96000,393216,-8,T4", "a,96000,393216,8", "a,x,393216,8,T4"])
def test_damaged_rows_are_named_or_skipped(tmp_path: Path, row: str):
    """A damaged row stops the import with its line, or is dropped and counted on demand."""
    path = tmp_path / "nodes.csv"
    path.write_text(f"{OPENB}ok,1000,1024,1,T4\n{row}\n")
    with pytest.raises(TraceFormatError, match="line 3"):
        import_machines([path])
    options = MachineOptions(rows=ImportOptions(skip_bad_rows=True))
    imported = import_machines([path], options=options)
    assert imported.cluster.nodes == 1
    assert imported.account.stages[0].dropped[0].count == 1


def test_a_list_without_gpus_is_no_cluster(tmp_path: Path):
    """Only CPU nodes: there is nothing to simulate on."""
    path = tmp_path / "nodes.csv"
    path.write_text(f"{OPENB}a,1000,1024,0,\n")
    with pytest.raises(InvalidClusterError, match="no machine with a GPU is left"):
        import_machines([path])
