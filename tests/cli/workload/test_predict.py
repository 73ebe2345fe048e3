"""`yardmaster workload predict` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from yardmaster.model.workload import Workload
from yardmaster.workloads.tables import read_table, write_table


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "workload", "predict", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with jobs of users who always run the same time, half of them with estimates."""
    rng = np.random.default_rng(1)
    user = rng.integers(0, 5, 900)
    jobs = Workload.of(
        submit_s=np.sort(rng.integers(0, 10**6, 900)),
        duration_s=60.0 * (1 + user),
        user=user.tolist(),
        estimate_s=np.where(np.arange(900) % 2, 7200.0, np.nan),
    )
    write_table(jobs, tmp_path / "jobs.parquet", overwrite=False)
    return tmp_path


def test_estimates_are_written_and_scored(folder: Path):
    """The table shows all cheap methods, the file holds the predictions and says so."""
    done = run("jobs.parquet", "-o", "out.parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    for method in ("user", "mean", "median", "last-two", "history"):
        assert done.stdout.count(f" {method} ") >= 2
    assert "boosted" not in done.stdout
    assert "out.parquet" in done.stderr
    written = read_table(folder / "out.parquet")
    assert (written.estimate_s[450:] == written.duration_s[450:]).all()
    assert any("estimates are predictions (history)" in note for note in written.notes)


def test_scores_as_json(folder: Path):
    """Programs get every figure of both parts, and what the predictions rest on."""
    done = run("jobs.parquet", "--json", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    rows = {(row["part"], row["method"]): row for row in result["rows"]}
    assert rows["last half", "history"]["median_error"] == 0
    assert rows["all", "user"]["cold"] == pytest.approx(0.5)
    assert sum(result["rests_on"].values()) == pytest.approx(1)
    assert list(folder.iterdir()) == [folder / "jobs.parquet"]


def test_boosted_is_scored_beside_the_cheap_ones(folder: Path):
    """The chosen method joins the table."""
    pytest.importorskip("sklearn")
    done = run("jobs.parquet", "--method", "boosted", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = {(row["part"], row["method"]): row for row in json.loads(done.stdout)["rows"]}
    assert rows["last half", "boosted"]["within_2"] == 1
    assert ("all", "history") in rows


def test_existing_estimates_stay_on_request(folder: Path):
    """`--keep-existing` fills only what is missing."""
    done = run("jobs.parquet", "--keep-existing", "-o", "out.parquet", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    estimate_s = read_table(folder / "out.parquet").estimate_s
    assert (estimate_s[1::2] == 7200).all()
    assert (estimate_s[450::2] < 7200).all()


def test_presets_can_be_predicted(tmp_path: Path):
    """A generated workload works as a file does."""
    done = run("venus-like", "--jobs", "200", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 11


def test_mistakes_are_told_before_any_work(folder: Path):
    """Unknown methods and files that are there already end with code 2 and change nothing."""
    done = run("jobs.parquet", "--method", "histori", cwd=folder)
    assert done.returncode == 2
    assert "Did you mean 'history'?" in done.stderr
    before = (folder / "jobs.parquet").read_bytes()
    done = run("jobs.parquet", "-o", "jobs.parquet", cwd=folder)
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert (folder / "jobs.parquet").read_bytes() == before
