"""Helios' list of GPUs per virtual cluster and day."""

import csv
from pathlib import Path

import pytest

from yardmaster.errors import InvalidClusterError, UnknownNameError
from yardmaster.workloads.machines.formats import import_machines
from yardmaster.workloads.machines.listing import MachineOptions

QUOTA = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces" / "helios_quota"
LIST = "date,vcA,vcB,vcC,total\n2020-07-01,16,8,0,24\n2020-07-02,16,12,4,32\n"


def written(folder: Path, name: str = "cluster_gpu_number.csv", text: str = LIST) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def on(date: str) -> MachineOptions:
    return MachineOptions(at=date)


def test_a_day_has_nodes_of_eight_and_guarantees(tmp_path: Path):
    """The virtual clusters of the day are tenants with their GPUs; absent ones are counted."""
    imported = import_machines([written(tmp_path)], options=on("2020-07-01"))
    cluster = imported.cluster
    assert cluster.node_gpus.tolist() == [8, 8, 8]
    assert {quota.tenant: quota.guaranteed_gpus for quota in cluster.site.quotas} == {
        "vcA": 16, "vcB": 8,
    }  # fmt: skip
    assert all(quota.limit_gpus is None for quota in cluster.site.quotas)
    assert imported.account.stages[-1].dropped[0].count == 1


def test_a_comma_too_many_changes_nothing(tmp_path: Path):
    """Lists saved with an empty last column are read as well."""
    text = LIST.replace("\n", ",\n")
    assert import_machines([written(tmp_path, text=text)]).cluster.gpus == 32


def test_the_last_day_is_taken_if_none_is_named(tmp_path: Path):
    """Without a date the account says which day was taken, and what the others have."""
    imported = import_machines([written(tmp_path)])
    assert imported.cluster.gpus == 32
    assert any(
        "2 days with 24 to 32 GPUs; this is 2020-07-02" in r for r in imported.account.remarks
    )


@pytest.mark.parametrize("date", ["2020-07-03", "yesterday", "2020-02-31"])
def test_other_days_are_refused(tmp_path: Path, date: str):
    """A day outside the list, or none at all, is a clear message."""
    with pytest.raises(InvalidClusterError, match=date):
        import_machines([written(tmp_path)], options=on(date))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Venus_cluster_gpu_number.csv", "V100"),
        ("uranus.csv", "Pascal"),
        ("Saturn.csv", "Pascal-or-Volta"),
        ("other.csv", "Helios-GPU"),
    ],
)
def test_gpu_types_are_what_is_published_of_each_cluster(tmp_path: Path, name: str, kind: str):
    """The list names no type: the file's name tells the cluster, and the user may overrule."""
    path = written(tmp_path, name)
    assert [k.name for k in import_machines([path]).cluster.gpu_types] == [kind]
    given = import_machines([path], options=MachineOptions(stand_ins={"": "A100"}))
    assert [k.name for k in given.cluster.gpu_types] == ["A100"]


def test_unknown_types_of_the_user_are_refused(tmp_path: Path):
    """A misspelt type gets a suggestion."""
    with pytest.raises(UnknownNameError, match="V100"):
        import_machines([written(tmp_path)], options=MachineOptions(stand_ins={"": "V1000"}))


@pytest.mark.skipif(not QUOTA.is_dir(), reason="needs ../shared/traces")
def test_the_published_list():
    """Every day of the real list becomes a cluster of exactly its GPUs and virtual clusters."""
    path = QUOTA / "venus_cluster_gpu_number.csv"
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows[::30]:
        cluster = import_machines([path], options=on(row["date"])).cluster
        assert cluster.gpus == int(row["total"])
        quotas = {quota.tenant: quota.guaranteed_gpus for quota in cluster.site.quotas}
        assert quotas == {n: int(c) for n, c in row.items() if n.startswith("vc") and c != "0"}
