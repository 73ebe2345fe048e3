"""`workload describe` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from yardmaster.model.workload import Workload
from yardmaster.workloads.tables import write_table


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "workload", "describe", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dice = np.random.default_rng(0)
    jobs = Workload.of(
        name="lab",
        begins="2020-04-06T00:00:00",
        submit_s=np.sort(dice.integers(0, 14 * 86_400, 500)).astype(float),
        duration_s=dice.lognormal(6, 2, 500).round(),
        gpus=dice.choice([1, 2, 8], 500),
        tenant=[f"t{number}" for number in dice.integers(0, 3, 500)],
        gpu_types=["V100"] * 500,
    )
    write_table(jobs, tmp_path / "lab.parquet")
    write_table(jobs.with_columns(gpu_types=["Q9000"] * 500), tmp_path / "odd.parquet")
    return tmp_path


def test_tables_are_printed(folder: Path):
    """The overview, sizes and tenants, with the load on a cluster and the jobs too large for it."""
    done = run("lab.parquet", "--cluster", "2x V100:4", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("lab: 500 jobs over ")
    for words in ("of the 8 GPUs of 2x V100:4", "Sizes and run times", "Tenants, most GPU time"):
        assert words in done.stdout
    assert "never fit on it  no job" in done.stdout
    assert done.stderr == ""


def test_json_is_for_programs(folder: Path):
    """The numbers alone go to standard output; what has no value is null."""
    done = run("lab.parquet", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert found["jobs"] == 500
    assert found["demand"]["load"] is None
    assert found["waits"]["wait_s"]["mean"] is None
    one_node = json.loads(run("lab.parquet", "-c", "1x V100:4", "--json", cwd=folder).stdout)
    sizes = {size["gpus"]: size["jobs"] for size in found["sizes"]}
    assert one_node["demand"]["load"]["jobs_too_large"] == sizes[8.0]


def test_a_page_is_written(folder: Path):
    """Page, figures and numbers in a folder, which is not replaced unasked."""
    done = run("lab.parquet", "-o", "page", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Page: page/report.html" in done.stderr
    page = (folder / "page" / "report.html").read_text(encoding="utf-8")
    assert "describe lab.parquet -o page" in page
    assert (folder / "page" / "figures" / "sizes.png").stat().st_size > 1000
    again = run("lab.parquet", "-o", "page", cwd=folder)
    assert again.returncode == 2
    assert "page/report.html is there already; --overwrite replaces it." in again.stderr


def test_presets_can_be_looked_at(folder: Path):
    """A preset is generated for the demo cluster, or the one that is named."""
    done = run("venus-like", "--jobs", "300", "--json", cwd=folder)
    assert json.loads(done.stdout)["jobs"] == 300
    assert "is generated: 300 jobs" in done.stderr
    done = run("mm", "--jobs", "300", "-c", "pool:64", "--load", "0.7", "--json", "-q", cwd=folder)
    load = json.loads(done.stdout)["demand"]["load"]
    assert (load["gpus"], round(load["load"], 2)) == (64, 0.7)
    assert done.stderr == ""


def test_unknown_gpu_types_do_not_stop_it(folder: Path):
    """Which jobs fit is then unknown, and said so; everything else is told."""
    done = run("odd.parquet", "-c", "1x V100:8", cwd=folder)
    assert done.returncode == 0
    assert "Which jobs fit is unknown: " in done.stderr
    assert "Q9000" in done.stderr
    assert "too large" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("./lab.parket",), "Did you mean 'lab.parquet'?"),
        (("venus-lick",), "Did you mean 'venus-like'"),
        (("lab.parquet", "--load", "0.9"), "name a --cluster"),
        (("lab.parquet", "-c", "dem"), "Did you mean 'demo'?"),
        (("lab.parquet", "-o", "lab.parquet"), "it is a file, not a folder"),
    ],
)
def test_mistakes_end_with_a_message(folder: Path, arguments, words, run_here):
    """Exit code 2, no traceback."""
    done = run_here("workload", "describe", *arguments, cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
