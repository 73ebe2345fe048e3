"""Factors are taken away also if one of several programs fails in the middle of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.live.slurm.changes import SetFactor
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.ledger import Ledger
from yardmaster.live.slurm.reading import PRIORITY_FIELDS, QUEUE_FIELDS
from yardmaster.live.slurm.restoring import TRIES, restore

JOBS = range(1, 31)
"""So many that two `scontrol` share them."""


SCONTROL = """
cd FOLDER
cat > got.$$
if grep -q 'JobId=1 ' got.$$ && [ $(ls | grep -c tried) -lt FAILS ]; then
  touch tried.$$; echo 'Unable to contact controller' >&2; exit 1
fi
for job in $(sed 's/.*JobId=//; s/ .*//' got.$$); do echo $job 0 > sites/$job; done
"""


def programs(folder: Path, fails: int) -> Slurm:
    """A Slurm whose `scontrol` fails so many times where job 1 is, sending nothing."""
    cells = {"JobArrayID": "{0}", "JobID": "{0}", "State": "PENDING", "SubmitTime": "9",
             "PriorityLong": "5", "NumNodes": "1", "NumTasks": "1"}  # fmt: skip
    line = "\x1f".join(cells.get(name, "N/A") for name in QUEUE_FIELDS) + "\x1f"
    (folder / "queue").write_text("".join(line.format(job) + "\n" for job in JOBS))
    zeros = "\\037".join(["0"] * (len(PRIORITY_FIELDS) - 4))
    weighs = f'{{printf "%s\\037main\\0375\\037%s\\037{zeros}\\n", $1, $2}}'
    (folder / "sites").mkdir()
    for job in JOBS:
        (folder / "sites" / str(job)).write_text(f"{job} 5\n")
    for name, text in (
        ("squeue", f"cat {folder}/queue"),
        ("sprio", f"cat {folder}/sites/* | awk '{weighs}'"),
        ("scontrol", SCONTROL.replace("FOLDER", str(folder)).replace("FAILS", str(fails))),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return Slurm(5.0, {"PATH": f"{folder}:/usr/bin:/bin"})


def given(folder: Path) -> Ledger:
    ledger = Ledger(folder)
    ledger.intend([SetFactor(str(job), 5) for job in JOBS])
    return ledger


def test_a_program_that_fails_once_is_tried_again(tmp_path: Path):
    """One of two `scontrol` fails: what it did not send is sent the next time."""
    restored = restore(programs(tmp_path, 1), given(tmp_path))
    assert (restored.left, restored.others) == (0, 0)
    assert all(f"{job} 0" in (tmp_path / "sites" / str(job)).read_text() for job in JOBS)


def test_a_program_that_fails_for_good_is_told(tmp_path: Path):
    """After the last try the failure is told; what could be taken away is."""
    with pytest.raises(SlurmError, match="Unable to contact"):
        restore(programs(tmp_path, TRIES), given(tmp_path))
    left = [job for job in JOBS if "5" in (tmp_path / "sites" / str(job)).read_text().split()[1]]
    assert 1 in left
    assert 0 < len(left) < len(JOBS)
