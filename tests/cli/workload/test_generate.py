"""`yardmaster workload generate` as a user meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from yardmaster.cli.app import main
from yardmaster.workloads.synthetic import generate
from yardmaster.workloads.tables import read_table

pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
"""The arguments are where a shell puts them, which Cyclopts takes for a mistake in a test."""


@dataclass
class Done:
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path) -> Callable[..., Done]:
    """Return a function that runs the command line in an empty folder, within this process."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["yardmaster", *arguments])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return command


@pytest.fixture
def made(run) -> Callable[..., Done]:
    """Return a function that generates and must succeed."""

    def command(*arguments: str) -> Done:
        done = run("workload", "generate", *arguments)
        assert done.returncode == 0, done.stderr
        return done

    return command


def test_a_preset_is_written_and_summed_up(made, tmp_path: Path):
    """The table holds what Python generates; the summary says jobs, span, sizes and load."""
    done = made(
        "venus-like", "--jobs", "300", "--seed", "5", "--load", "0.8", "-c", "pool:64",
        "-o", "a.parquet",
    )  # fmt: skip
    ours = read_table(tmp_path / "a.parquet")
    python = generate("venus-like", jobs=300, seed=5, gpus=64, load=0.8)
    assert ours.fingerprint() == python.fingerprint()
    assert "a.parquet: 300 jobs over" in done.stdout
    assert "load 0.8 on 64 GPUs" in done.stdout
    assert "largest" in done.stdout
    assert "Note: generated:" in done.stderr


def test_options_compose_and_the_recipe_makes_it_again(made, tmp_path: Path):
    """--print-recipe writes TOML that gives the same bytes."""
    done = made(
        "--arrivals", "markov:rates=5/1,sojourns_s=600/3000", "--sizes", "uniform:low=1,high=8",
        "--durations", "pareto:alpha=1.2,low=10,high=10000", "--estimates", "noisy:sigma=0.5",
        "--deadlines", "none", "--tenants", "users:names=ann/bob", "--priorities", "fixed:value=2",
        "--demands", "cores=4", "--jobs", "200", "--rate", "120", "--print-recipe",
        "-o", "a.parquet",
    )  # fmt: skip
    assert done.stdout.startswith("name = ")
    assert "200 jobs over" in done.stderr
    (tmp_path / "mine.toml").write_text(done.stdout)
    made("mine.toml", "-o", "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    jobs = read_table(tmp_path / "a.parquet")
    assert set(jobs.user.values()) == {"ann", "bob"}
    assert set(jobs.cpus / jobs.gpus) == {4.0}


def test_options_replace_parts_of_a_recipe_file(made, tmp_path: Path):
    """What an option names is the option's; the rest is the file's. Without -o only TOML."""
    (tmp_path / "mine.toml").write_text(
        'preset = "rlmetadqn:workload=bursty"\njobs = 30\nsizes = "fixed:value=2"\n'
    )
    done = made("mine.toml", "--durations", "fixed:value=60", "--print-recipe")
    assert 'process = "alternating"' in done.stdout
    assert "value = 2.0" in done.stdout
    assert "value = 60.0" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml"]


def test_the_summary_for_programs(made):
    """--json has the numbers, the fingerprint and the notes."""
    done = made("rlmetadqn:intensity=high", "-o", "a.csv", "--json", "-q")
    summary = json.loads(done.stdout)
    ours = generate("rlmetadqn:intensity=high", seed=0)
    assert summary["jobs"] == len(ours)
    assert summary["fingerprint"] == ours.fingerprint()
    assert summary["gpus_max"] == 1
    assert "load" not in summary
    assert summary["notes"]


def test_a_recipe_works_wherever_a_workload_does(run, tmp_path: Path):
    """`compare` pairs over seeds of a recipe as over those of a preset."""
    (tmp_path / "mine.toml").write_text('jobs = 60\narrivals = "sine:period_s=3600"\n')
    done = run(
        "compare", "--workload", "mine.toml", "-c", "pool:8", "-s", "fifo,sjf", "--seeds", "3",
        "--load", "0.8", "-o", "cmp", "--json", "-q",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sjf+strict" in done.stdout
    assert len(list((tmp_path / "cmp/workloads").iterdir())) == 3
    prints = {read_table(path).fingerprint() for path in (tmp_path / "cmp/workloads").iterdir()}
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (
            ["--arrivals", "bursty", "--sizes", "uniform:low=9,hihg=3", "--rate", "-3"],
            ["4 mistakes", "--arrivals: Unknown", "'bursts'", "--sizes.hihg", "'high'", "--rate:"],
        ),
        (["venus-lik", "-c", "demo"], ["Did you mean 'venus-like'"]),
        (["mine.toml"], ["No such file: mine.toml"]),
        (["venus-like"], ["How fast are jobs submitted?", "--rate"]),
        (["venus-like", "--load", "0.5"], ["give --cluster"]),
        (["venus-like", "--load", "0.5", "--rate", "3", "-c", "demo"], ["together"]),
        (["--sizes", "fixed:value=64", "-c", "pool:8"], ["the smallest job has 64 GPUs"]),
    ],
)
def test_mistakes_end_with_a_message_and_no_file(run, tmp_path: Path, arguments, messages):
    """Exit code 2, every mistake with its path, and nothing written."""
    done = run("workload", "generate", *arguments, "-o", "a.parquet")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for message in messages:
        assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_files_are_not_replaced_by_accident(run, tmp_path: Path):
    """A file that is there stays, unless --overwrite; without -o there is nothing to do."""
    (tmp_path / "a.csv").write_text("mine")
    wanted = ["workload", "generate", "mm", "--rate", "60", "--jobs", "5"]
    done = run(*wanted, "-o", "a.csv")
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert run(*wanted, "-o", "a.csv", "--overwrite").returncode == 0
    assert len(read_table(tmp_path / "a.csv")) == 5
    assert "Say where to write" in run(*wanted).stderr
