"""Trainings on the dashboard: real ones, followed, stopped and resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from yardmaster.dashboard.trainers import is_command, trainer
from yardmaster.dashboard.trainings import Followed, columns_of, thinned
from yardmaster.experiments.training.folder import RunFolder, add_line

TINY = """
[task]
preset = "default"
cluster = "2x V100:4"
jobs = 24
load = 1.3
window = 8
episodes = 16
[learner]
name = "ppo"
steps_per_update = 128
[learner.network]
arch = "mlp"
hidden = [8]
[train]
steps = 3000
envs = 4
eval_every = 1000
eval_episodes = 4
against = ["fifo", "sjf"]
threads = 1
tensorboard = false
"""
ENDLESS = "100000000"
LATEST_S = 1.0
"""Within this a written scalar must be on the page."""


@pytest.fixture(scope="session")
def config(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("training") / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


_TRAIN_SEEDS = """
import sys
from pathlib import Path
from yardmaster.experiments import training

for seed in (0, 1):
    config = training.read_config(Path(sys.argv[1]), {"train": {"seed": seed}})
    training.train(config, out=Path(sys.argv[2]) / f"seed-{seed}")
"""


@pytest.fixture(scope="session")
def seeds(runs_folder: Path, config: Path) -> list[Path]:
    """Two finished trainings of a few thousand steps with a tiny network."""
    command = [sys.executable, "-c", _TRAIN_SEEDS, str(config), str(runs_folder)]
    subprocess.run(command, check=True)
    return [runs_folder / "seed-0", runs_folder / "seed-1"]


@pytest.fixture
def endless(runs_folder: Path, config: Path, request) -> Iterator[Path]:
    """A training that goes on until it is stopped, started as a user does."""
    folder = runs_folder / f"endless-{request.node.name[:30].replace('[', '-').strip(']')}"
    command = [sys.executable, "-m", "yardmaster", "train", "--config", str(config), "--quiet"]
    with subprocess.Popen(
        [*command, "--steps", ENDLESS, "--out", str(folder)], stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait(lambda: (folder / "progress.jsonl").exists() or process.poll() is not None)
            yield folder
        finally:
            process.kill()
    holder = trainer(folder)
    if holder is not None:  # one that the dashboard resumed
        os.kill(holder, signal.SIGKILL)


def wait(is_so: Callable[[], Any], seconds: float = 40.0) -> Any:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        found = is_so()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


def status(folder: Path) -> str:
    return str(json.loads((folder / "run.json").read_text())["status"])


def test_a_stream_tells_all_that_a_finished_training_wrote(seeds, asking):
    """Updates and evaluations arrive as they are in the journals, of several runs in one stream."""
    wanted = {folder.name for folder in seeds}
    found: dict[str, dict[str, Any]] = {}
    for event in asking.events("/api/training/events", run=sorted(wanted)):
        found.setdefault(event["run"], {}).update(event)
        if set(found) == wanted:
            break
    for folder in seeds:
        lines = [json.loads(one) for one in (folder / "progress.jsonl").read_text().splitlines()]
        updates = found[folder.name]["updates"]
        assert updates["steps"] == [one["steps"] for one in lines]
        assert updates["entropy"] == [one["entropy"] for one in lines]
        assert len(found[folder.name]["evaluations"]) == 4
        about = found[folder.name]["about"]
        assert about["status"] == "finished"
        assert set(about["heuristics"]) == {"fifo", "sjf"}


@pytest.mark.parametrize(
    ("name", "code"), [("nothing", 404), ("../etc", 400), ("", 400), ("a/../../b", 400)]
)
def test_only_trainings_of_the_folder_are_shown(seeds, asking, name, code):
    """Names that lead out of the folder or to no training are refused, by every route."""
    del seeds
    assert asking.get("/api/training", run=name).status_code == code
    assert asking.get("/api/training/events", run=name).status_code == code
    for what in ("stop", "resume"):
        assert asking.post(f"/api/training/{what}", {"run": name}).status_code == code


def test_a_finished_training_is_neither_stopped_nor_resumed(seeds, asking):
    """Nobody trains there, and all steps are made; it may be made longer."""
    name = seeds[0].name
    stop = asking.post("/api/training/stop", {"run": name})
    assert (stop.status_code, stop.json()["error"]) == (409, f"Nobody trains in {name} now.")
    resume = asking.post("/api/training/resume", {"run": name})
    assert resume.status_code == 409
    assert "made all of its steps" in resume.json()["error"]
    for steps in (0, "9", True, 10**15):
        assert asking.post("/api/training/resume", {"run": name, "steps": steps}).status_code == 400


def test_a_training_within_another_program_is_left_alone(tmp_path, runs_folder, asking, seeds):
    """A process that only holds the lock is not `yardmaster train`: it is not interrupted."""
    folder = runs_folder / "held"
    folder.mkdir()
    for name in ("config.toml", "run.json"):
        (folder / name).write_bytes((seeds[0] / name).read_bytes())
    code = (
        "import fcntl, sys, time\nlock = open(sys.argv[1], 'a')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(folder / ".lock"), "train"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert trainer(folder) == holder.pid
        assert not is_command(holder.pid)
        answer = asking.post("/api/training/stop", {"run": "held"})
        assert answer.status_code == 409
        assert "another program" in answer.json()["error"]
        assert holder.poll() is None
        holder.kill()
    assert trainer(folder) is None
    del tmp_path


def test_a_resumed_run_that_forgot_its_last_lines_is_told_anew(tmp_path):
    """What was written after the last checkpoint is cut back: the page is told everything again."""
    folder = RunFolder(tmp_path)
    for update in range(1, 6):
        add_line(folder.progress, {"updates": update, "steps": update * 10, "loss": 1.0})
    followed = Followed(folder)
    first = followed.news(around=False)
    assert first is not None
    assert first["updates"]["steps"] == [10, 20, 30, 40, 50]
    assert followed.news(around=False) is None
    from yardmaster.experiments.training.folder import cut_back

    cut_back(folder.progress, 2)
    add_line(folder.progress, {"updates": 3, "steps": 31, "loss": 2.0})
    again = followed.news(around=False)
    assert again is not None
    assert again["restarted"] is True
    assert again["updates"]["steps"] == [10, 20, 31]


def test_long_curves_are_thinned_without_losing_their_mean():
    """Neighbours are averaged; counts are those of the last of them; nulls do not spoil a mean."""
    records = [
        {"steps": n, "loss": float(n % 2), "kl": None if n % 2 else 4.0} for n in range(1000)
    ]
    found = thinned(records, 100)
    assert len(found) == 100
    assert [one["steps"] for one in found] == list(range(9, 1000, 10))
    assert {one["loss"] for one in found} == {0.5}
    assert {one["kl"] for one in found} == {4.0}
    assert columns_of([{"a": 1}, {"b": 2}]) == {"a": [1, None], "b": [None, 2]}


def test_curves_of_several_seeds(seeds, page, dashboard, shoot):
    """Two seeds are one band with its mean; separate lines on request; smoothing changes them."""
    names = ",".join(folder.name for folder in seeds)
    page.goto(f"{dashboard.url}#/training/{names}")
    plot = page.locator('[data-curve="entropy"] .curve-plot')
    plot.locator("canvas").wait_for()
    assert "mean of 2" in plot.get_attribute("aria-label")
    evaluation = page.locator('[data-curve="evaluation"] .curve-plot')
    assert "sjf" in evaluation.get_attribute("aria-label")
    shoot(page, "training-light")
    page.get_by_label("All as one band").uncheck()
    label = plot.get_attribute("aria-label")
    assert "seed-0" in label
    assert "seed-1" in label
    page.locator("#smoothing").fill("0.95")
    assert plot.get_attribute("aria-label") != label
    page.locator("#against").select_option("seconds")
    assert "over seconds" in page.locator('[data-curve="entropy"] .curve-plot').get_attribute(
        "aria-label"
    )


def test_curves_are_read_by_keyboard_and_as_numbers(seeds, page, dashboard):
    """Arrow keys say the values of a focused curve; its numbers are also a table and a CSV."""
    page.goto(f"{dashboard.url}#/training/{seeds[0].name}")
    page.keyboard.press("Tab")
    figure = page.locator('[data-curve="entropy"]')
    figure.locator("canvas").wait_for()
    figure.locator(".curve-plot").focus()
    page.keyboard.press("Home")
    first = figure.locator(".curve-told").text_content()
    page.keyboard.press("ArrowRight")
    assert figure.locator(".curve-told").text_content() != first
    page.locator("#smoothing").fill("0")
    figure.get_by_text("Numbers").click()
    shown = float(figure.locator("tbody td").first.text_content())
    lines = (seeds[0] / "progress.jsonl").read_text().splitlines()
    assert shown == pytest.approx(json.loads(lines[0])["entropy"], rel=1e-4)
    with page.expect_download() as download:
        figure.get_by_role("button", name="as CSV").click()
    rows = Path(download.value.path()).read_text().splitlines()
    assert len(rows) == len(lines) + 1


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_training_fits_small_and_dark_windows(seeds, open_page, dashboard, shoot, width, scheme):
    """Nothing sticks out on a phone, and dark pages have dark curves' ink."""
    page = open_page(width=width, color_scheme=scheme)
    page.goto(f"{dashboard.url}#/training/{seeds[0].name},{seeds[1].name}")
    page.locator('[data-curve="kl"] canvas').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shoot(page, f"training-{scheme}-{width}")


def test_a_written_scalar_is_drawn_within_a_second(seeds, runs_folder, page, dashboard):
    """From the moment a line is in the file to the moment the curve ends there: under 1 s."""
    folder = RunFolder(runs_folder / "latency")
    folder.path.mkdir()
    for file in ("config.toml", "run.json"):
        (folder.path / file).write_bytes((seeds[0] / file).read_bytes())
    add_line(folder.progress, {"updates": 0, "steps": 1, "seconds": 0.0, "episode_return": 0.0})
    page.goto(f"{dashboard.url}#/training/latency")
    place = '[data-curve="episode_return"] .curve-plot'
    page.locator(f'{place}[data-last="1"]').wait_for()
    taken = []
    for update in range(1, 9):
        steps = 1000 * update
        page.evaluate(
            """([place, last]) => {
              const plot = document.querySelector(place);
              window.drawn = new Promise((done) => {
                const look = () => plot.dataset.last === last && done(Date.now() / 1000);
                new MutationObserver(look).observe(plot, { attributes: true });
              });
            }""",
            [place, str(steps)],
        )
        record = {"updates": update, "steps": steps, "seconds": 1.0, "episode_return": update / 2}
        begun = time.time()
        add_line(folder.progress, record)
        taken.append(page.evaluate("window.drawn") - begun)
    assert max(taken) < LATEST_S, taken


def test_a_card_moves_on_and_keeps_the_focus(seeds, runs_folder, page, dashboard):
    """Steps grow with every update, not only when run.json changes; a note and the focus stay."""
    folder = RunFolder(runs_folder / "moving")
    folder.path.mkdir()
    config = (seeds[0] / "config.toml").read_text()
    folder.config.write_text(config.replace('"ppo"', '"ppx"'))  # it cannot be resumed
    about = json.loads((seeds[0] / "run.json").read_text()) | {"status": "interrupted"}
    folder.about.write_text(json.dumps(about))
    add_line(folder.progress, {"updates": 0, "steps": 100, "seconds": 0.0, "loss": 1.0})
    page.goto(f"{dashboard.url}#/training/moving")
    card = page.locator(".training-card")
    card.locator(".steps", has_text="100 of").wait_for()
    card.get_by_role("button", name="Resume").click()
    note = card.get_by_role("status")
    note.filter(has_text="ppx").wait_for(timeout=30_000)
    told = note.text_content()
    add_line(folder.progress, {"updates": 1, "steps": 1600, "seconds": 1.0, "loss": 1.0})
    card.locator(".steps", has_text="1\u202f600 of").wait_for()
    assert card.locator("progress").evaluate("bar => bar.value") == 1600
    folder.about.write_text(json.dumps(about | {"best": 0.5}))
    card.get_by_text("0.5 at").wait_for()
    assert note.text_content() == told
    assert page.evaluate("document.activeElement.closest('.training-card') !== null")


def test_a_training_is_stopped_and_resumed(endless, page, dashboard, asking):
    """Stop interrupts politely, Resume goes on from the checkpoint, and the page follows along."""
    name = endless.name
    user_started = trainer(endless)
    assert user_started is not None
    assert asking.post("/api/training/resume", {"run": name}).status_code == 409
    page.goto(f"{dashboard.url}#/training/{name}")
    page.locator('[data-status="running"]').wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator('[data-status="interrupted"]').wait_for(timeout=20_000)
    assert trainer(endless) is None
    assert status(endless) == "interrupted"
    page.get_by_role("button", name="Resume").click()
    page.locator('[data-status="running"]').wait_for(timeout=30_000)
    plot = page.locator('[data-curve="loss"] .curve-plot')
    before = int(plot.get_attribute("data-last"))
    wait(lambda: int(plot.get_attribute("data-last")) > before)
    resumed = trainer(endless)
    assert resumed not in {None, user_started}
    assert asking.post("/api/training/resume", {"run": name}).status_code == 409
    assert asking.post("/api/training/stop", {"run": name}).json() == {"asked": resumed}
    page.locator('[data-status="interrupted"]').wait_for(timeout=20_000)
    (work,) = [one for one in asking.get("/api/work").json()["works"] if one["run"] == name]
    assert asking.work(work["number"])["exit_code"] == 130


def test_the_trainings_of_a_sweep_are_listed_best_first(seeds, runs_folder, page, dashboard):
    """A folder that holds trainings shows them as a table; each leads to its curves."""
    for folder in seeds:
        shutil.copytree(folder, runs_folder / "sweep" / "trials" / folder.name)
    page.goto(f"{dashboard.url}#/training/sweep")
    rows = page.locator("tbody tr")
    rows.nth(1).wait_for()
    best = [json.loads((folder / "run.json").read_text())["best"] for folder in seeds]
    assert seeds[best.index(max(best))].name in rows.first.text_content()
    page.get_by_role("link", name="together").click()
    page.locator('[data-curve="entropy"] .curve-plot[aria-label*="mean of 2"]').wait_for()


def test_unknown_trainings_are_told_as_such(page, dashboard):
    """A wrong address gets a sentence and a way back."""
    page.goto(dashboard.url + "#/training/nothing-here")
    page.get_by_role("alert").get_by_text("There is no run named").wait_for()
