"""What a real Slurm 22.05 printed is read as it was meant: recorded samples, always run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.live.slurm import reading
from yardmaster.live.slurm.commands import SEPARATOR, Slurm, SlurmError

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def test_gpus_are_counted_in_every_way_of_asking():
    """Per job, per node, per task, with a type, in an array, in parts, and none at all."""
    rows = {row.label: row for row in reading.queue_rows(sample("squeue.txt"))}
    gpus = {label: rows[label].gpus for label in ("1", "5_[0-9%2]", "6", "7", "10+1", "12", "16")}
    assert gpus == {"1": 8, "5_[0-9%2]": 4, "6": 4, "7": 3, "10+1": 2, "12": 1, "16": 0}
    assert rows["12"].gpu_types == "A100"
    assert (rows["6"].nodes, rows["6"].limit_s) == (2, 300.0)
    assert rows["7"].limit_s == 86_400.0


def test_without_counted_gpus_requests_are_multiplied_out():
    """Where the site does not count GPUs, per node times nodes and per task times tasks remain."""
    text = sample("squeue.txt").replace(",gres/gpu=", ",gres/other=")
    rows = {row.label: row for row in reading.queue_rows(text)}
    assert {label: rows[label].gpus for label in ("1", "6", "7", "12")} == {
        "1": 8, "6": 4, "7": 3, "12": 1,
    }  # fmt: skip


def test_reasons_with_commas_do_not_shift_cells():
    """A job of two partitions whose reason is a sentence is read like any other."""
    row = next(row for row in reading.queue_rows(sample("squeue.txt")) if row.label == "13")
    assert (row.partition, row.priority, row.gpus) == ("main,other", 694, 1)
    assert row.reason.startswith("Nodes required for job are DOWN")


def test_arrays_and_parts_are_one_unit():
    """Slurm orders an array, and a heterogeneous job, as one."""
    units = [row.unit for row in reading.queue_rows(sample("squeue.txt"))]
    assert units.count("10") == 2
    assert units.count("5") == 1


def test_nodes_are_listed_once():
    """Slurm prints a line per node and partition; a node is one row with all its partitions."""
    rows = reading.node_rows(sample("sinfo.txt"))
    assert [row.name for row in rows] == ["n1", "n2", "n3", "n4"]
    assert rows[0] == reading.NodeRow("n1", "mix", 8, "A100", 8, ("main", "other", "scavenge"))
    assert rows[0].takes_jobs


@pytest.mark.parametrize("state", ["down", "drain", "drng", "down*", "idle*", "maint", "resv"])
def test_nodes_that_are_away_take_no_jobs(state: str):
    """Down, drained, silent or reserved nodes are out of reach."""
    assert not reading.NodeRow("n", state, 8, "A100", 0, ()).takes_jobs


def test_priorities_are_taken_apart():
    """Site, age and the rest, nice included; a priority that was written does not add up."""
    rows = reading.priority_rows(sample("sprio.txt"))
    assert rows["6"] == reading.PriorityRow(794, 100, 694, 0)
    assert rows["7"].others == -50
    assert rows["15"].is_set_by_hand
    assert not any(rows[job].is_set_by_hand for job in rows if job != "15")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,07]", ["n1", "n2", "n3", "n07"]),
        ("a[09-11]b,c", ["a09b", "a10b", "a11b", "c"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
    ],
)
def test_node_lists_are_expanded(text: str, names: list[str]):
    """Brackets, leading zeros and several of them."""
    assert reading.expanded(text) == names


@given(st.text(alphabet="n1[],- x\x1f\n0PENDING", max_size=80))
def test_nonsense_is_refused_in_our_words(text: str):
    """Whatever is printed, reading ends with rows or with an error of ours that names the line."""
    for read in (reading.node_rows, reading.priority_rows, lambda t: list(reading.queue_rows(t))):
        told = "line"
        try:
            read(text)
        except SlurmError as error:
            told = str(error)
        assert "line" in told


def test_a_missing_cell_is_told():
    """An answer with fewer cells than were asked for is not guessed at."""
    with pytest.raises(SlurmError, match=r"line 1: 19 cells were asked for, 2 came"):
        list(reading.queue_rows(f"1{SEPARATOR}2"))


def test_commands_that_write_are_not_for_reading():
    """The reading door opens for readers alone."""
    for command in (("scontrol", "update", "JobId=1"), ("scancel", "1"), ("scontrol",)):
        with pytest.raises(SlurmError, match="only reads"):
            Slurm().read(*command)


def test_slow_and_missing_programs_are_told(tmp_path: Path):
    """A program that hangs is given up after the time limit; one that is absent is named."""
    slow = tmp_path / "squeue"
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    slow.chmod(0o755)
    with pytest.raises(SlurmError, match=r"did not answer within 0\.2 s"):
        Slurm(0.2, {"PATH": f"{tmp_path}:/usr/bin:/bin"}).read("squeue")
    with pytest.raises(SlurmError, match="not installed"):
        Slurm(0.2, {"PATH": str(tmp_path)}).read("sinfo")


def test_nothing_but_the_last_look_is_kept():
    """Lines that are gone, or have changed, are forgotten: a living queue must cost no memory."""
    text = (SAMPLES / "squeue.txt").read_text("utf-8")
    lines = text.splitlines()
    for look in range(5):
        reading.queue_rows(text.replace("Priority", f"Priority{look}"))
    assert len(reading._QUEUE._last) == len(set(lines))
    reading.queue_rows(lines[0])
    assert list(reading._QUEUE._last) == lines[:1]
