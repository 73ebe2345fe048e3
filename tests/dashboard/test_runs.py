"""The folder of runs: what names mean, and how quickly and safely it is listed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from yardmaster.dashboard import runs as runs_module
from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.runs import RunsFolder

SMALL = ("config.toml", "meta.json", "summary.json")


def copied(source: Path, target: Path) -> Path:
    target.mkdir(parents=True)
    for name in SMALL:
        shutil.copy(source / name, target / name)
    return target


@pytest.fixture(scope="module")
def simulated(make_run) -> Path:
    return make_run("simulate", "--jobs", "60", "--out", "small")


@pytest.mark.parametrize(
    "name",
    ["", "..", ".", "a/../..", "../x", "/etc", "a//b", "a/", "./a", "a\0b", "a\\b", "x" * 2000],
)
def test_names_that_are_no_names_are_refused(tmp_path, name):
    """Nothing absolute, nothing that climbs, nothing that is not plainly a path below."""
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "x").mkdir()
    with pytest.raises(Refusal) as refused:
        RunsFolder(tmp_path / "runs").resolve(name)
    assert refused.value.status in {400, 404}


def test_links_out_of_the_folder_are_refused(tmp_path):
    """A link that leads out, or to a file, or nowhere, is no run; one that stays inside is."""
    folder = tmp_path / "runs"
    (folder / "real").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "up").symlink_to(folder / "..")
    (folder / "self").symlink_to(folder)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "file").write_text("x")
    (folder / "inside").symlink_to(folder / "real")
    runs = RunsFolder(folder)
    for name in ("out", "up", "up/outside", "self", "loop", "file", "missing"):
        with pytest.raises(Refusal):
            runs.resolve(name)
    assert runs.resolve("inside") == runs.resolve("real") == folder / "real"


def test_links_are_not_listed(tmp_path, simulated):
    """A run outside of the folder does not get into the list by a link."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "elsewhere").symlink_to(simulated)
    assert RunsFolder(folder).index() == ()


@pytest.mark.parametrize("place", ["live.json", "workloads/0.parquet", "trials"])
def test_links_out_of_a_run_are_not_followed(tmp_path, simulated, knock, place):
    """A run that came from elsewhere cannot show what lies outside of the folder of runs."""
    run = tmp_path / "runs" / "run"
    shutil.copytree(simulated, run)
    (run / place).unlink(missing_ok=True)
    (run / place).symlink_to(tmp_path)
    desk = Desk(RunsFolder(tmp_path / "runs"), "x" * 20)
    for address in ("/api/schedule/run", "/api/live?run=run", "/api/training?run=run",
                    "/api/compare?run=run", "/api/experiment?run=run"):  # fmt: skip
        reply = knock(desk, address)
        assert reply.status == 403, address
        assert place in reply.json()["error"]


def test_trainings_of_a_sweep_that_lead_elsewhere_are_left_out(tmp_path, knock):
    """A link among the trials of a sweep is neither listed nor read."""
    training = tmp_path / "elsewhere"
    training.mkdir()
    (training / "run.json").write_text('{"status": "finished", "command": "secret"}')
    (training / "config.toml").write_text("")
    own = tmp_path / "runs" / "sweep" / "trials" / "own"
    shutil.copytree(training, own)
    desk = Desk(RunsFolder(tmp_path / "runs"), "x" * 20)
    assert [one["run"] for one in knock(desk, "/api/training?run=sweep").json()["within"]] == [
        "sweep/trials/own"
    ]
    (own / "run.json").unlink()
    (own / "run.json").symlink_to(training / "run.json")
    assert b"secret" not in knock(desk, "/api/training?run=sweep").body


@pytest.mark.parametrize("name", ["live.json", "summary.json", "run.json", "evaluation.json"])
def test_a_pipe_among_the_files_of_a_run_holds_nobody_up(tmp_path, simulated, name):
    """It is damage like any other: the list does not wait for somebody to write to it."""
    path = copied(simulated, tmp_path / "run")
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    (card,) = RunsFolder(tmp_path).index()
    assert card.status == "damaged"


def test_a_thousand_runs_are_listed_within_a_second(tmp_path, simulated, make_run):
    """1,000 runs that nobody has looked at before, a fifth of them comparisons: under a second."""
    compared = make_run(
        "compare", "--jobs", "60", "--seeds", "4", "-s", "fifo+easy,sjf+easy,saf+easy", "--out",
        "several",
    )  # fmt: skip
    folder = tmp_path / "runs"
    for number in range(1000):
        copied(compared if number % 5 == 0 else simulated, folder / f"run-{number:04d}")
    quickest = float("inf")
    for _ in range(3):  # other work on the machine only ever adds time
        runs = RunsFolder(folder)
        begun = time.perf_counter()
        cards = runs.index()
        quickest = min(quickest, time.perf_counter() - begun)
        if quickest < 1.0:
            break
    assert len(cards) == 1000
    assert quickest < 1.0
    deadline = time.monotonic() + 20
    while any(card.pending for card in runs.index()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert {card.kind for card in runs.index()} == {"simulate", "compare"}


def test_what_is_read_late_is_listed_at_once(tmp_path, simulated, monkeypatch):
    """Where there is no time to read runs, they are named first and filled in later."""
    for number in range(5):
        copied(simulated, tmp_path / f"run-{number}")
    monkeypatch.setattr(runs_module, "BUDGET_S", 0.0)
    monkeypatch.setattr(runs_module, "FRESH_S", -1.0)
    runs = RunsFolder(tmp_path)
    assert [card.pending for card in runs.index()] == [True] * 5
    monkeypatch.setattr(runs_module, "BUDGET_S", 10.0)
    assert [card.pending for card in runs.index()] == [False] * 5


def test_the_list_follows_the_folder(tmp_path, simulated, monkeypatch):
    """Runs that come, change and go are seen by the next look."""
    monkeypatch.setattr(runs_module, "FRESH_S", -1.0)
    runs = RunsFolder(tmp_path)
    assert runs.index() == ()
    path = copied(simulated, tmp_path / "mine")
    assert [card.status for card in runs.index()] == ["finished"]
    (path / "summary.json").unlink()
    assert [card.status for card in runs.index()] == ["damaged"]
    shutil.rmtree(path)
    assert runs.index() == ()


def test_runs_in_folders_of_runs_are_found(tmp_path, simulated):
    """Folders may group runs; a run's own folders are not looked into."""
    copied(simulated, tmp_path / "week" / "monday" / "one")
    copied(simulated, tmp_path / "week" / "two")
    copied(simulated, tmp_path / "three")
    copied(simulated, tmp_path / "three" / "nested")
    names = {card.name for card in RunsFolder(tmp_path).index()}
    assert names == {"week/monday/one", "week/two", "three"}
