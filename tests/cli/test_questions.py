"""`whatif` and `eta` as a user meets them: what they print, what they write, how they fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_whatif_answers_and_writes_a_report(tmp_path: Path):
    """Changes, a sweep and a target in one table, and a directory with figures and a page."""
    done = run(
        "whatif", "--jobs", "200", "--seeds", "2", "--add", "4x A100:8", "--nodes", "-2",
        "--sweep", "nodes=0..4:2", "--target", "mean_wait_s<1h", "-o", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "add 4x A100:8" in done.stdout
    assert "−2 nodes" in done.stdout
    names = {path.name for path in (tmp_path / "out").rglob("*")}
    assert {"report.html", "config.toml", "meta.json", "summary.json", "sweep.svg"} <= names
    page = (tmp_path / "out/report.html").read_text()
    assert "What if" in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "byte for byte" in run("rerun", "out", cwd=tmp_path).stdout


def test_changes_leave_a_generated_workload_alone(tmp_path: Path):
    """The jobs are those made for the cluster as it is: its row is the same whatever is asked."""
    rows = []
    for change in (["--add", "4x A100:8"], ["--remove", "8x V100"]):
        done = run(
            "whatif", "--jobs", "100", "--seeds", "1", *change, "--json", "-q", "-o",
            f"out{len(rows)}", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        rows.append(json.loads(done.stdout)["rows"])
    assert rows[0][0] == rows[1][0]
    assert rows[0][1]["jobs"] == rows[1][1]["jobs"] == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No change was named"),
        (["--remove", "99x V100"], "only 16 nodes of V100"),
        (["--add", "1x H1000:8"], "Unknown GPU type 'H1000'"),
        (["--quota", "nobody=3"], "tenant 'nobody'"),
        (["--target", "mean_wait<3"], "Did you mean 'mean_wait_s'"),
    ],
)
def test_whatif_mistakes_are_explained(tmp_path: Path, arguments, message, run_here):
    """A message, no traceback, nothing left behind."""
    done = run_here("whatif", "--jobs", "50", "--seeds", "1", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("runs/*"))


def test_eta_predicts_the_queue(tmp_path: Path):
    """All waiting jobs at a typical moment, as JSON, with a page and a picture."""
    done = run(
        "eta", "--jobs", "300", "--simulations", "8", "--calibrate", "0", "--json", "-o", "out",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["simulations"] == 8
    assert all(0 <= row["within_1h"] <= 1 for row in found["rows"])
    names = {path.name for path in (tmp_path / "out").rglob("*")}
    assert {"report.html", "config.toml", "summary.json"} <= names
    assert "byte for byte" in run("rerun", "out", cwd=tmp_path).stdout


def test_eta_of_a_new_job_from_a_file(tmp_path: Path):
    """A snapshot file and a hypothetical job: it starts when the running one ends."""
    text = "id,submit_s,gpus,estimate_s,start_s\na,0,4,1000,0\n"
    (tmp_path / "now.csv").write_text(text)
    done = run(
        "eta", "--snapshot", "now.csv", "-c", "1x V100:4", "--now-s", "400", "--gpus", "2",
        "--hours", "1", "--simulations", "3", "--json", "-q", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["p50_s"] == pytest.approx(600, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--job", "nope"], "No job 'nope'"),
        (["--gpus", "2"], "--hours"),
        (["--now-s", "0.5"], "Nobody waits at second 0.5"),
        (["--snapshot", "missing.csv"], "missing.csv"),
    ],
)
def test_eta_mistakes_are_explained(tmp_path: Path, arguments, message, run_here):
    """A message that names what is wrong, no traceback."""
    done = run_here("eta", "--jobs", "200", "--calibrate", "0", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
