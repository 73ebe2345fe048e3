"""`yardmaster cluster import` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIST = "sn,cpu_milli,memory_mib,gpu,model\na,96000,393216,8,G2\nb,8000,1024,1,T4\nc,8000,1024,0,\n"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_list_becomes_a_cluster_that_simulates(tmp_path: Path):
    """The account goes to standard output, and the file works as --cluster."""
    (tmp_path / "nodes.csv").write_text(LIST)
    done = run("cluster", "import", "nodes.csv", "-o", "ours.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 rows of nodes.csv read, 2 kept" in done.stdout
    assert "dropped 1: no GPU in the machine" in done.stdout
    assert "G2 (8 GPUs)" in done.stdout
    simulated = run(
        "simulate", "--cluster", "ours.toml", "--jobs", "20", "-q", "-o", "r", cwd=tmp_path
    )
    assert simulated.returncode == 0, simulated.stderr


def test_the_account_as_json_and_a_stand_in(tmp_path: Path):
    """--json prints the account alone; --gpu-type says whose figures a type takes."""
    (tmp_path / "nodes.csv").write_text(LIST)
    done = run(
        "cluster", "import", "alibaba-openb-2023", "nodes.csv", "-o", "x.toml",
        "--gpu-type", "G2=H100", "--json", "-q", cwd=tmp_path,
    )  # fmt: skip
    account = json.loads(done.stdout)
    assert (account["nodes"], account["gpus"]) == (2, 9)
    assert done.stderr == ""
    assert 'like = "H100"' in (tmp_path / "x.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nodes.csv", "-o", "x.txt"], "ends in .toml"),
        (["nodes.csv", "-o", "there.toml"], "--overwrite"),
        (["nodez.csv", "-o", "x.toml"], "Did you mean 'nodes.csv'"),
        (["helios", "nodes.csv", "-o", "x.toml"], "nodes.csv"),
        (["nodes.csv", "-o", "x.toml", "--gpu-type", "=A10"], "cannot read '=A10'"),
        (["nodes.csv", "-o", "x.toml", "--gpu-type", "T4=A10"], "no such type needs a stand-in"),
        (["jobs.csv", "-o", "x.toml"], "no list of machines"),
    ],
)
def test_mistakes_end_with_a_message(tmp_path: Path, arguments: list[str], message: str, run_here):
    """Exit code 2, a message, no traceback, and no file left behind."""
    (tmp_path / "nodes.csv").write_text(LIST)
    (tmp_path / "jobs.csv").write_text("id,submit_s,duration_s\n1,0,10\n")
    (tmp_path / "there.toml").write_text("")
    done = run_here("cluster", "import", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv", "jobs.csv", "there.toml"}
