"""Experiments go on where they were stopped, whatever stopped them, to the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

import yardmaster
from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite import run as module
from yardmaster.experiments.suite.document import Suite, load_suite
from yardmaster.experiments.suite.run import duration, run_suite

SLOW = """
import time

def slow(jobs):
    time.sleep(0.02)
    return -jobs.submit_s
"""
"""An order that takes its time, so that there is some to be killed in."""

COMMAND = (sys.executable, "-m", "yardmaster", "experiment", "run")


def run(suite: Suite, folder: Path, **options):
    """Run an experiment with one process, which starts sooner than two."""
    return run_suite(suite, folder, **({"workers": 1} | options))


def bytes_of(folder: Path) -> bytes:
    return (folder / "results.parquet").read_bytes()


def kept(folder: Path) -> int:
    """Count the runs in a store that somebody else is writing."""
    if not (folder / "runs.sqlite").is_file():
        return 0
    connection = sqlite3.connect(folder / "runs.sqlite", timeout=10)
    try:
        return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.OperationalError:  # before the tables are there
        return 0
    finally:
        connection.close()


@pytest.fixture(scope="module")
def slow(small: Suite, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Return an experiment of 112 runs, half of which take 20 ms."""
    file = tmp_path_factory.mktemp("slow") / "slow.py"
    file.write_text(SLOW)
    return small.with_changes(schedulers=("sjf+skip", f"{file}:slow+skip"), seeds=8)


@pytest.fixture(scope="module")
def undisturbed(slow: Suite, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the table of that experiment, made in one go."""
    folder = tmp_path_factory.mktemp("undisturbed") / "whole"
    run(slow, folder, workers=2)
    return bytes_of(folder)


def test_a_run_from_start_to_table(small, tmp_path):
    """Runs are made, counted and estimated; a second time there is nothing to do."""
    news: list[str] = []
    steps: list[tuple[int, int]] = []
    first = run(
        small, tmp_path / "one", workers=2, announce=news.append,
        progress=lambda _, done, total: steps.append((done, total)),
    )  # fmt: skip
    assert (first.cells, first.made, first.reused) == (28, 28, 0)
    assert first.is_complete
    assert not first.failures
    assert "28 runs: about" in news[0]
    assert steps[0][0] == 0
    assert steps[-1][0] == steps[-1][1]
    assert len(pl.read_parquet(tmp_path / "one" / "results.parquet")) == 28
    timings = json.loads((tmp_path / "one" / "timings.json").read_text())
    assert set(timings["mean_run_s"]) == {"sjf+skip", "fifo+skip"}
    before = bytes_of(tmp_path / "one")
    second = run(small, tmp_path / "one", announce=news.append)
    assert (second.made, second.reused) == (0, 28)
    assert "nothing to simulate" in news[-1]
    assert bytes_of(tmp_path / "one") == before
    assert not (tmp_path / "one" / "failures.json").exists()


def test_killed_at_random_moments(slow, undisturbed, tmp_path):
    """All processes are killed (-9), again and again: nothing kept is lost, the table the same."""
    document = tmp_path / "slow.toml"
    document.write_text(slow.to_toml())
    folder = tmp_path / "killed"
    dice = random.Random(time.time_ns())
    before = 0
    for _ in range(2):
        process = subprocess.Popen(
            [*COMMAND, document, "-o", folder, "-q", "--workers", "2"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        wanted = before + dice.randint(1, 30)
        while process.poll() is None and kept(folder) < wanted:
            time.sleep(0.002)
        time.sleep(dice.random() * 0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert kept(folder) >= before  # nothing that was kept is lost
        before = kept(folder)
    assert 0 < before < 112
    result = run(slow, folder)
    assert result.reused == before
    assert result.made == 112 - before
    assert bytes_of(folder) == undisturbed


def test_interrupted_politely(slow, undisturbed, tmp_path):
    """Ctrl-C finishes what is under way, says how to go on, and leaves with 130."""
    document = tmp_path / "slow.toml"
    document.write_text(slow.to_toml())
    folder = tmp_path / "stopped"
    process = subprocess.Popen(
        [*COMMAND, document, "-o", folder],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while process.poll() is None and kept(folder) < 20:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "go on with the same command" in error
    assert "Traceback" not in error
    assert not out
    assert not (folder / "results.parquet").exists()
    before = kept(folder)
    assert 20 <= before < 112
    assert run(slow, folder).reused == before
    assert bytes_of(folder) == undisturbed


def test_failures_are_listed_and_the_rest_is_made(small, tmp_path):
    """What failed is tried again the next time, and forgotten once it works."""
    file = tmp_path / "moody.py"
    file.write_text("def moody(jobs):\n    raise ValueError('not today')\n")
    changed = small.with_changes(schedulers=("sjf+skip", f"{file}:moody+skip"))
    result = run(changed, tmp_path / "out")
    assert len(result.failures) == 14
    assert result.made == 14
    assert result.is_complete
    assert "not today" in result.failures[0].reason
    table = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(table["scheduler"]) == {"sjf+skip"}
    assert len(json.loads((tmp_path / "out" / "failures.json").read_text())) == 14
    again = run(changed, tmp_path / "out")
    assert (again.reused, again.made, len(again.failures)) == (14, 0, 14)


def test_another_experiment_reuses_what_both_have(small, tmp_path):
    """With overwrite, only runs that are new are made; the table has the new experiment's alone."""
    run(small, tmp_path / "out")
    other = small.with_changes(schedulers=("fifo+skip", "lifo+skip"), seeds=1)
    with pytest.raises(YardmasterError, match="holds another experiment"):
        run(other, tmp_path / "out")
    result = run(other, tmp_path / "out", overwrite=True)
    assert (result.reused, result.made) == (7, 7)
    run(other, tmp_path / "fresh")
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "fresh")


def test_an_estimate_makes_no_more_than_samples(small, tmp_path):
    """Asked only what it would take, it says so and writes no table."""
    news: list[str] = []
    result = run(small, tmp_path / "out", only_estimate=True, announce=news.append)
    assert "28 runs: about" in news[-1]
    assert 0 < result.made <= 4
    assert not result.is_complete
    assert not (tmp_path / "out" / "results.parquet").exists()


def test_both_cores_are_compiled_before_processes_start(small, tmp_path, monkeypatch):
    """One run on equal GPUs that never fail, and one elsewhere, by whoever needs to be compiled."""
    begun: list[tuple[str, bool]] = []

    def begin(_jobs, machines, name, **_options):
        begun.append((name, bool(machines.site.failures.outages)))

    monkeypatch.setattr(module, "simulate", begin)
    monkeypatch.setattr(module._Work, "_make", lambda *_given, **_options: None)
    names = ("sjf+skip", "bandit:random", "fifo+skip")
    run(small.with_changes(schedulers=names), tmp_path / "few", only_estimate=True)
    assert sorted(begun) == [("bandit:random", False), ("bandit:random", True)]
    monkeypatch.setattr(module, "COMPILE_ABOVE_JOB_RUNS", 0)
    monkeypatch.setattr(module, "is_cached", lambda **_options: False)
    begun.clear()
    run(small, tmp_path / "many", only_estimate=True)
    assert sorted(begun) == [("sjf+skip", False), ("sjf+skip", True)]


def test_editing_one_order_makes_its_runs_again(small, tmp_path):
    """Of all sources, one order's function is changed: the runs of all others stay."""
    package = Path(yardmaster.__file__).parent
    sources = tmp_path / "src"
    shutil.copytree(package, sources / "yardmaster", ignore=shutil.ignore_patterns("__pycache__"))
    document = tmp_path / "small.toml"
    document.write_text(small.to_toml())

    def made_now() -> str:
        ended = subprocess.run(
            [*COMMAND, document, "-o", tmp_path / "out", "--workers", "1"],
            env=os.environ | {"PYTHONPATH": str(sources)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    assert "28 runs made, 0 known before" in made_now()
    orders = sources / "yardmaster" / "schedulers" / "orders.py"
    text = orders.read_text()
    begin = text.index("def sjf(")
    orders.write_text(
        text[:begin] + text[begin:].replace("return jobs.run_s\n", "return 2.0 * jobs.run_s\n", 1)
    )
    assert "14 runs made, 14 known before" in made_now()
    engine = sources / "yardmaster" / "metrics" / "summary.py"
    engine.write_text(engine.read_text() + "# changed\n")
    assert "28 runs made, 0 known before" in made_now()


def test_editing_what_an_order_leans_on_makes_its_runs_again(small, tmp_path):
    """A module beside a user's order changes: the runs of that order are made anew, no others."""
    file, beside = tmp_path / "leaning.py", tmp_path / "leant_on_by_an_order.py"
    file.write_text(
        "from leant_on_by_an_order import SIGN\ndef by(jobs):\n    return SIGN * jobs.submit_s\n"
    )
    beside.write_text("SIGN = 1\n")
    suite = small.with_changes(schedulers=("fifo+skip", f"{file}:by+skip"))

    def waits() -> list[list[float]]:
        table = pl.read_parquet(tmp_path / "out" / "results.parquet")
        return [
            table.filter(pl.col("scheduler") == name)["mean_wait_s"].to_list()
            for name in ("fifo+skip", f"{file}:by+skip")
        ]

    assert run(suite, tmp_path / "out").made == 28
    first = waits()
    assert first[0] == first[1]
    beside.write_text("SIGN = -1.0\n")
    again = run(suite, tmp_path / "out")
    assert (again.reused, again.made, again.failures) == (14, 14, ())
    assert waits()[0] == first[0]
    assert waits()[1] != first[1]


def test_outside_the_main_thread(small, tmp_path):
    """Signals belong to the main thread; experiments run in others all the same."""
    results = []
    thread = threading.Thread(target=lambda: results.append(run(small, tmp_path / "out")))
    thread.start()
    thread.join()
    assert results[0].made == 28


def test_options_that_make_no_sense(small, tmp_path):
    """They are refused before anything is written."""
    with pytest.raises(YardmasterError, match="at least 1"):
        run(small, tmp_path / "out", workers=0)
    with pytest.raises(YardmasterError, match="--engine ray"):
        run(small, tmp_path / "out", address="auto")
    with pytest.raises(YardmasterError, match="Did you mean 'sjf'"):
        run(small.with_changes(schedulers=("sjff",)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")]
)
def test_durations_in_words(seconds, text):
    """Seconds, minutes and hours."""
    assert duration(seconds) == text


def test_a_perturbed_matrix_has_a_deterministic_table(tmp_path):
    """One process or two, in whatever order batches end: the same bytes."""
    suite = load_suite("robustness").with_changes(
        seeds=1, schedulers=("srpt+skip", "edf+skip"),
        regimes=[{"family": "drift", "names": ["drift-base-surge-diurnal-2"],
                  "perturbations": ["phase-shift"]}],
    )  # fmt: skip
    run(suite, tmp_path / "one", workers=1)
    run(suite, tmp_path / "two", workers=2)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")
    table = pl.read_parquet(tmp_path / "one" / "results.parquet")
    assert table["recovery_s"].is_not_nan().any()


def test_a_dry_run_takes_nobodys_place(small, tmp_path):
    """Asked to overwrite and to change nothing at once, an experiment is refused."""
    run(small, tmp_path / "e")
    before = bytes_of(tmp_path / "e")
    with pytest.raises(YardmasterError, match="dry run changes nothing"):
        run(small.with_changes(seeds=3), tmp_path / "e", overwrite=True, only_estimate=True)
    assert bytes_of(tmp_path / "e") == before
