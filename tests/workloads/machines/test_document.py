"""From a list of machines to a cluster file."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidClusterError, InvalidConfigError, UnknownNameError
from yardmaster.model.catalogue import load_cluster
from yardmaster.workloads.machines.document import ImportedCluster, made_into_cluster
from yardmaster.workloads.machines.listing import (
    MachineFormat,
    MachineList,
    MachineOptions,
    StandIn,
)
from yardmaster.workloads.traces.reading.account import Ledger

Machine = tuple[str | None, int, float | None, float | None]
MACHINES = st.lists(
    st.tuples(
        st.sampled_from(["T4", "V100M32", "tesla v100", "G2", 'Ωmega "9"', None]),
        st.integers(1, 16),
        st.one_of(st.none(), st.floats(0.5, 512)),
        st.one_of(st.none(), st.integers(1, 4096).map(float)),
    ),
    min_size=1,
    max_size=20,
)


def made(
    machines: list[Machine], wishes: dict[str, str] | None = None, **listed: object
) -> ImportedCluster:
    frame = pl.DataFrame(
        machines,
        schema={
            "gpu_type": pl.String, "gpus": pl.Int64, "cpus": pl.Float64, "memory_gib": pl.Float64,
        },
        orient="row",
    )  # fmt: skip
    entry = MachineFormat("test", "a list", "a test", lambda _: True, lambda *_: MachineList(frame))
    options = MachineOptions(stand_ins=wishes or {})
    ledger = Ledger("test", ["a\nb.csv"])
    return made_into_cluster(MachineList(frame, **listed), entry, options, ledger, "list")


@given(MACHINES)
def test_the_file_reads_back_as_the_same_cluster(
    tmp_path_factory: pytest.TempPathFactory, machines: list[Machine]
):
    """What is written is what `--cluster file.toml` reads: every machine, type, core and byte."""
    imported = made(machines)
    path = tmp_path_factory.mktemp("cluster") / "ours.toml"
    imported.write(path, overwrite=False)
    cluster = load_cluster(path)
    assert cluster.name == "ours"
    assert cluster.gpu_types == imported.cluster.gpu_types
    for column in ("node_type", "node_gpus", "node_rack"):
        assert getattr(cluster, column).tolist() == getattr(imported.cluster, column).tolist()
    assert cluster.nodes == len(machines)
    assert cluster.gpus == sum(gpus for _, gpus, _, _ in machines)
    known = [cpus for _, _, cpus, _ in machines if cpus is not None]
    assert sum(cluster.node_cpus[cluster.node_cpus > 0]) == pytest.approx(sum(known))


def test_equal_machines_are_one_group():
    """A thousand equal machines are one entry, in the order in which kinds first appear."""
    imported = made(
        [("T4", 2, 8.0, None)] * 1000 + [("V100", 8, None, None)] + [("T4", 2, 8.0, None)]
    )
    assert imported.document["nodes"] == [
        {"count": 1001, "gpu_type": "T4", "gpus": 2, "cpus": 8.0},
        {"count": 1, "gpu_type": "V100", "gpus": 8},
    ]


def test_types_of_the_catalogue_get_its_names_and_others_keep_theirs():
    """V100M32 is the catalogue's V100-32G; an unknown type is defined, with a remark."""
    imported = made([("V100M32", 8, None, None), ("G9", 4, None, None)])
    assert [kind.name for kind in imported.cluster.gpu_types] == ["V100-32G", "G9"]
    assert set(imported.document["gpu_types"]) == {"G9"}
    assert any(
        remark.startswith("G9 (4 GPUs): not in the catalogue")
        for remark in imported.account.remarks
    )


def test_the_publishers_stand_in_yields_to_the_users():
    """A type's own stand-in counts, then the user's for all, then the user's for this type."""
    known = {"G2": StandIn("A10", "undisclosed")}
    machine: list[Machine] = [("G2", 8, None, None)]
    chosen = [
        made(machine, wish, stand_ins=known).document["gpu_types"]["G2"]["like"]
        for wish in ({}, {"": "T4"}, {"": "T4", "g-2": "H100"})
    ]
    assert chosen == ["A10", "T4", "H100"]


def test_needless_and_misspelt_stand_ins_are_refused():
    """Stand-ins are only for types that need one, and only types of the catalogue stand in."""
    machines: list[Machine] = [("series-1", 8, None, None), ("T4", 8, None, None)]
    with pytest.raises(InvalidClusterError, match=r"series-2=…: no such.*Did you mean 'series-1'"):
        made(machines, {"series-2": "A10"})
    with pytest.raises(InvalidClusterError, match="T4=…"):
        made(machines, {"T4": "A10"})
    with pytest.raises(UnknownNameError, match="Did you mean 'A100'"):
        made(machines, {"series-1": "A1000"})


def test_absurd_clusters_are_refused():
    """A list that makes no cluster is refused by the same rules as a file of one's own."""
    with pytest.raises(InvalidConfigError, match="gpus"):
        made([("T4", 10**9, None, None)])
    with pytest.raises(InvalidClusterError, match="no machine"):
        made([])


def test_guarantees_and_sharing_are_written():
    """Tenants, sharing and equal speeds of the list are in the file."""
    imported = made([("T4", 8, None, None)], guarantees={"a": 8}, sharing="mps", equal_speeds=True)
    assert imported.document["tenants"] == [{"name": "a", "guaranteed_gpus": 8}]
    assert imported.document["nodes"][0]["sharing"] == "mps"
    assert imported.cluster.site.equal_speeds
