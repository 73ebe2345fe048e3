"""Choosers on the command line: they run, say why, are shown with what they know, and rerun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.schedulers.meta.chooser_file import write_chooser
from yardmaster.testing.choosing import random_chooser

MENU = ("fifo+skip", "sjf+skip", "largest-first+easy")
BANDIT = "bandit:exp3=fifo+skip/sjf+easy"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def chooser(tmp_path: Path) -> str:
    """Return the name of a chooser's file that lies where commands are run."""
    sight = ChoiceSight(menu=MENU, past=2, time_unit_s=500.0)
    write_chooser(tmp_path / "chooser.npz", random_chooser(sight, seed=3))
    return "meta:chooser.npz"


def test_a_comparison_with_choosers_reruns_to_the_byte(tmp_path: Path, chooser: str):
    """A bandit and a trained chooser stand in the table, and the run needs nothing outside it."""
    names = f"fifo,{BANDIT},{chooser}"
    done = run(
        *("compare", "-s", names, "--seeds", "2", "--jobs", "150", "-o", "cmp"),
        *("--format", "json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["scheduler"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == {"fifo+strict", BANDIT, chooser}
    assert rows["fifo+strict"]["information"] == "blind"
    assert rows[BANDIT]["information"] == rows[chooser]["information"] == "clairvoyant"
    (tmp_path / "chooser.npz").unlink()
    again = run("rerun", "cmp", cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "byte for byte" in again.stdout


def test_simulate_says_why(tmp_path: Path, chooser: str):
    """`--why` writes a line for every decision: when, how many waited, who was liked how much."""
    done = run("simulate", "-s", chooser, "--jobs", "120", "--why", "-o", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "why.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) > 5
    assert f"{len(records):,} decisions: run/why.jsonl" in done.stderr
    for record in records:
        assert set(record) == {"second", "waiting", "chosen", "scores"}
        assert max(record["scores"], key=record["scores"].get) == record["chosen"]
    assert [one["second"] for one in records] == sorted({one["second"] for one in records})


def test_comparing_points_to_where_reasons_are(tmp_path: Path, run_here):
    """`compare --why` says which command writes reasons."""
    done = run_here("compare", "--why", cwd=tmp_path)
    assert done.returncode == 2
    assert "yardmaster simulate -s policy:PATH --why" in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bandit:linucbb", "Did you mean 'linucb'"),
        ("bandit:exp3=fifo/srpt+preemptive", "cannot stand on a menu"),
        ("meta:choser.npz", "no trained chooser 'choser.npz'"),
    ],
)
def test_mistakes_are_answered(tmp_path: Path, name: str, message: str, run_here):
    """A user's mistake is a message and exit code 2, without a traceback or a run directory."""
    done = run_here("simulate", "-s", name, "--jobs", "10", cwd=tmp_path)
    assert done.returncode == 2
    text = " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "runs").exists()
