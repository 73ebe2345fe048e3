"""Google's machines of 2011, as slots of cores."""

import gzip
from pathlib import Path

import pytest

from yardmaster.errors import InvalidClusterError, InvalidWorkloadError
from yardmaster.workloads.machines.formats import import_machines
from yardmaster.workloads.machines.listing import MachineOptions
from yardmaster.workloads.traces.borg_jobs import SLOT
from yardmaster.workloads.traces.reading.options import ImportOptions

EVENTS = [
    "0,5,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493",
    "0,6,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.25,0.1241",
    "0,7,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,,",
    "0,8,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.03,0.1",
    "1000000,6,1,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.25,0.1241",
    "2000000,9,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,1,1",
    "3000000,5,2,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.25,0.2493",
]


def written(folder: Path, *events: str) -> Path:
    path = folder / "machine_events" / "part-00000-of-00001.csv.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{event}\n" for event in events).encode()))
    return path


def slots(path: Path, at: str | None, slot: float | None = None) -> list[int]:
    options = MachineOptions(at=at, rows=ImportOptions(slot_cores=slot))
    return sorted(import_machines([path], options=options).cluster.node_gpus.tolist())


@pytest.mark.parametrize(
    ("at", "slot", "wanted"),
    [
        (None, 0.0625, [4, 8]),
        ("0.5", 0.0625, [4, 8]),
        ("1", 0.0625, [8]),
        ("2", 0.0625, [8, 16]),
        ("3", 0.0625, [4, 16]),
        ("1e9", 0.25, [1, 4]),
        ("0", 0.03, [1, 8, 16]),
    ],
)
def test_machines_come_change_and_go(
    tmp_path: Path, at: str | None, slot: float | None, wanted: list[int]
):
    """At each moment the machines that are there have as many slots as fit into their cores."""
    assert slots(written(tmp_path, *EVENTS), at, slot) == wanted


def test_slots_are_those_of_the_jobs(tmp_path: Path):
    """Without a size, a slot is that of Google's jobs; larger than a machine it cannot be."""
    path = written(tmp_path, *EVENTS)
    assert slots(path, "1") == [int(0.5 / SLOT)]
    with pytest.raises(InvalidWorkloadError, match="at most 1"):
        slots(path, None, slot=2.0)


def test_machines_left_out_are_counted(tmp_path: Path):
    """Machines that are away, unknown in size or too small are counted under their reasons."""
    imported = import_machines([written(tmp_path, *EVENTS)])
    assert imported.account.format == "google-2011"
    reasons = {entry.reason: entry.count for entry in imported.account.stages[-1].dropped}
    assert list(reasons.values()) == [1, 1, 1]
    assert imported.account.stages[0].read == len(EVENTS)
    assert imported.cluster.site.equal_speeds
    assert any("no GPU" in remark for remark in imported.account.remarks)


@pytest.mark.parametrize("at", ["-1", "noon", "nan", "inf"])
def test_moments_are_seconds(tmp_path: Path, at: str):
    """Anything but a second from 0 is refused."""
    with pytest.raises(InvalidClusterError, match="counts seconds"):
        slots(written(tmp_path, *EVENTS), at)


def test_renamed_events_are_told_by_their_cells(tmp_path: Path):
    """Without the folder's name the six cells tell what the table is."""
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{event}\n" for event in EVENTS))
    assert import_machines([path]).account.format == "google-2011"
