"""`yardmaster experiment` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.cli.app import main

pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
DOCUMENT = """
name = "mine"
schedulers = ["sjf+skip", "fifo+skip"]
seeds = 2

[[regimes]]
family = "rlmetadqn"
names = ["bursty-high-4"]
perturbations = ["phase-shift"]
severities = { phase-shift = [0.5] }
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Return a function that runs `yardmaster experiment …` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(DOCUMENT)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["yardmaster", "experiment", *arguments])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, error = capsys.readouterr()
        return code, out, error

    return run


def test_an_experiment_from_document_to_table(command, tmp_path):
    """It says what it will take, prints standings, and goes on in the same folder later."""
    code, out, error = command("run", "mine.toml", "--workers", "1")
    assert code == 0, error
    assert "8 runs: about" in error
    assert "1 rlmetadqn regimes, 2 seeds, 4 runs" in out
    assert "1 regimes under perturbations, 2 seeds, 4 runs" in out
    assert "gap mean JCT" in out
    assert (tmp_path / "runs" / "experiment-mine" / "results.parquet").is_file()
    code, out, error = command("run", "mine.toml", "--json", "-q")
    assert (code, error) == (0, "")
    first, second = json.loads(out)["tables"]
    assert {row["scheduler"] for row in first["rows"]} == {"sjf+skip", "fifo+skip"}
    assert second["runs"] == 4


def test_options_replace_factors(command):
    """Schedulers and seeds may be named on the command line; another folder is then needed."""
    code, _, error = command(
        "run", "mine.toml", "-s", "srpt+skip", "--seeds", "1", "-o", "one", "--workers", "1"
    )
    assert code == 0, error
    assert "2 runs made" in error
    code, _, error = command("run", "mine.toml", "-o", "one")
    assert code == 2
    assert "holds another experiment" in error


def test_a_dry_run_leaves_nothing(command, tmp_path):
    """It says how many runs there are, how long they take, and is gone."""
    code, out, error = command("run", "mine.toml", "--dry-run", "--workers", "1")
    assert (code, out) == (0, "")
    assert "8 runs: about" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_failures_are_told(command, tmp_path):
    """Runs that failed are listed with their reason; the others count, and the code is 1."""
    (tmp_path / "bad.py").write_text("def bad(jobs):\n    raise ValueError('no idea')\n")
    code, out, error = command(
        "run", "mine.toml", "-s", "sjf+skip,bad.py:bad+skip", "--workers", "1", "-o", "out"
    )
    assert code == 1
    assert "sjf+skip" in out
    assert "4 of 8 runs failed" in error
    assert "bad.py:bad+skip on bursty-high-4, seed 0: The order" in error
    assert "no idea" in error


def test_mistakes_are_named(command):
    """Unknown experiments, schedulers and engines are refused with what was meant."""
    assert "Did you mean 'matrix'" in command("run", "matrx")[2]
    assert "Did you mean 'srpt'" in command("matrix", "-s", "srp+skip")[2]
    text = Path("mine.toml").read_text()
    Path("wrong.toml").write_text(f'{text}\n[[workloads]]\nworkload = "venus"\ncluster = "demo"\n')
    code, out, error = command("run", "wrong.toml")
    assert (code, out) == (2, "")
    assert "wrong.toml: 1 mistake" in error
    assert "workloads[0].workload: " in error
    code, _, error = command("matrix", "--engine", "ry")
    assert code != 0
    assert "local" in error


@pytest.mark.parametrize("name", ["matrix", "robustness", "hard"])
def test_built_in_experiments_are_commands(command, name, tmp_path):
    """Each has a command of its own that takes the same options."""
    code, _, error = command(name, "-s", "fifo+skip", "--seeds", "1", "--dry-run", "--workers", "1")
    assert code == 0, error
    assert "runs: about" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
