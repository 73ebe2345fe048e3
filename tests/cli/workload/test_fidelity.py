"""`workload fidelity` as a user meets it: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.tables import write_table


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "workload", "fidelity", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a record of first come, first served on 8 GPUs, and the same without waits."""
    place = tmp_path_factory.mktemp("traces")
    rng = np.random.default_rng(0)
    run_s = np.ceil(rng.exponential(3600.0, 120))
    gpus = rng.choice([1, 2, 4], 120)
    jobs = Workload.of(
        submit_s=np.sort(np.floor(rng.random(120) * float((gpus * run_s).sum()) / 8)),
        duration_s=run_s, gpus=gpus, estimate_s=2 * run_s,
    )  # fmt: skip
    schedule = simulate(jobs, Cluster.pool(8), "fifo+strict")
    wait_s = schedule.start_s - jobs.submit_s
    write_table(jobs.with_columns(recorded_wait_s=wait_s), place / "trace.parquet")
    write_table(jobs, place / "blind.csv")
    lines = [
        " ".join(map(str, [row + 1, int(jobs.submit_s[row]), int(wait_s[row]), int(run_s[row]),
                           gpus[row], -1, -1, gpus[row], int(2 * run_s[row]), -1, 1, *[-1] * 7]))
        for row in range(120)
    ]  # fmt: skip
    (place / "trace.swf").write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    return place


def test_a_record_is_reproduced_by_its_own_scheduler(folder: Path):
    """Named, it is exactly zero apart, and the sentence says so."""
    done = run("trace.parquet", "-c", "pool:8", "-s", "fifo+strict", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "fifo+strict reproduces all" in done.stdout
    assert "Looked for and not found" in done.stdout


def test_the_line_up_is_ranked_on_the_machine_of_the_header(folder: Path):
    """Without options, an SWF file is held against common schedulers on its own machine."""
    done = run("trace.swf", "--json", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["gpus"] == 8
    assert found["closest"] == "fifo+strict"
    assert found["is_guess"] is True
    assert found["rows"][0]["apart"] == 0
    assert all(row["apart"] > 0 for row in found["rows"][1:])
    assert found["chosen_on_first_half"] == "fifo+strict"


def test_a_folder_is_written(folder: Path):
    """A page that stands alone, figures and numbers; a second time only with --overwrite."""
    arguments = ("trace.swf", "-s", "fifo+skip,fifo+easy~estimate", "-o", "out")
    done = run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "a guess, chosen on the data it is judged by" in done.stdout.replace("\n", " ")
    page = (folder / "out/report.html").read_text()
    assert "yardmaster workload fidelity" in page or "fidelity trace.swf" in page
    assert "http://" not in page
    assert len(list((folder / "out/figures").glob("*.svg"))) == 4
    again = run(*arguments, cwd=folder)
    assert again.returncode == 2
    assert "--overwrite replaces it" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["blind.csv", "-c", "pool:8"], "no job says how long it waited"),
        (["venus-like"], "venus-like is generated"),
        (["trace.parquet"], "name the machines with --cluster"),
        (["missing.swf"], "No such file: missing.swf"),
        (["trace.swf", "-s", "fifo+eazy"], "Did you mean 'easy'"),
        (["trace.swf", "-s", " , "], "at least one scheduler"),
        (["trace.swf", "-s", "fifo+strict", "--warm-up-days", "9999"], "leaves nothing"),
        (["trace.swf", "-c", "pool:0"], "at least 1"),
    ],
)
def test_mistakes_are_explained(folder: Path, arguments, message, run_here):
    """A message and exit code 2, no traceback, nothing left behind."""
    done = run_here("workload", "fidelity", *arguments, "-o", "never", cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert not (folder / "never").exists()
    assert not list(folder.glob(".never*"))
