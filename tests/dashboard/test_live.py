"""Live runs on the dashboard: a real one, made of real commands, followed as it goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from yardmaster.dashboard.live import MOST_JOBS, Watched, about_run, telemetry_columns
from yardmaster.dashboard.run_cards import card_of
from yardmaster.dashboard.signs_of_life import SILENT_S

JOBS = """
name = "sleeps"
[[job]]
id = "long"
command = "sleep 4"
gpus = 2
estimate_s = 4
[[job]]
id = "short"
command = "sleep 1"
gpus = 1
estimate_s = 1
[[job]]
id = "fails"
command = "exit 3"
gpus = 1
estimate_s = 2
[[job]]
id = "late"
command = "sleep 0.3"
gpus = 2
estimate_s = 9
"""


@pytest.fixture(scope="module")
def live_run(runs_folder: Path, tmp_path_factory) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """`yardmaster live local` at work on two slots that stand for GPUs."""
    workload = tmp_path_factory.mktemp("live") / "sleeps.toml"
    workload.write_text(JOBS, encoding="utf-8")
    folder = runs_folder / "sleeps"
    command = [sys.executable, "-m", "yardmaster", "live", "local", str(workload), "--quiet"]
    options = ["--gpus", "2", "--scheduler", "sjf+easy~estimate", "--sample-s", "0.5"]
    with subprocess.Popen(
        [*command, *options, "--out", str(folder)], stdout=subprocess.DEVNULL
    ) as process:
        limit = time.monotonic() + 30.0
        while not (folder / "audit.jsonl").exists() and time.monotonic() < limit:
            time.sleep(0.05)
        try:
            yield folder, process
        finally:
            process.terminate()
            process.wait(20.0)


def told_by(folder: Path) -> dict[str, Any]:
    news = Watched(folder).news()
    assert news is not None
    return news


def test_a_run_is_followed_from_its_begin_to_its_end(live_run, page, dashboard, shoot):
    """Who runs where, who waits and why, decisions, ends and telemetry appear without a reload."""
    folder, process = live_run
    page.goto(f"{dashboard.url}#/live/{folder.name}")
    page.locator('[data-state="running"]').wait_for()
    page.get_by_label("Last decisions").get_by_text("start short").wait_for()
    page.locator(".slot.used", has_text="long").nth(1).wait_for(timeout=20_000)
    queue = page.get_by_label("Waiting, in the scheduler's order")
    assert "behind 1 job" in queue.locator("tr", has_text="late").text_content()
    shoot(page, "live-light")
    process.wait(30.0)
    page.locator('[data-state="finished"]').wait_for()
    ended = page.get_by_label("Ended", exact=True)
    ended.locator("tr", has_text="late").wait_for()
    assert "gave up" in ended.locator("tr", has_text="fails").text_content()
    assert "Nobody waits" in queue.text_content()
    cpu = page.locator('[data-curve="cpu"] .curve-plot')
    assert "CPU of the machine" in cpu.get_attribute("aria-label")


def test_the_book_agrees_with_the_audit(live_run):
    """Every job ended as the audit says; the last decisions name each start once."""
    folder, process = live_run
    process.wait(30.0)
    told = told_by(folder)
    book = told["book"]
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    ends = {one["job"]: one["end_s"] for one in lines if one.get("event") == "ended"}
    assert {one["job"]: one["end_s"] for one in book["ended"]} == ends
    assert not book["running"]
    started = [start["job"] for one in book["decisions"] for start in one["starts"]]
    assert sorted(started) == ["fails", "late", "long", "short"]
    assert told["about"]["state"] == "finished"
    assert told["telemetry"]["time_s"] == sorted(told["telemetry"]["time_s"])
    assert len(told["telemetry"]["host"]["cpu_percent"]) == len(told["telemetry"]["time_s"])


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_live_fits_small_and_dark_windows(live_run, open_page, dashboard, shoot, width, scheme):
    """Nothing sticks out on a phone."""
    folder, process = live_run
    process.wait(30.0)
    page = open_page(width=width, color_scheme=scheme)
    page.goto(f"{dashboard.url}#/live/{folder.name}")
    page.locator('[data-curve="memory"] canvas').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shoot(page, f"live-{scheme}-{width}")


@pytest.fixture
def write_run(runs_folder: Path, request) -> Callable[..., Path]:
    """Write the folder of a live run as documented, for what cannot be had in a moment."""

    def write(lines: list[dict[str, Any]], **about: Any) -> Path:
        folder = runs_folder / request.node.name[:40]
        folder.mkdir()
        usual = {
            "format": "yardmaster-live", "version": 1, "kind": "slurm", "mode": "shadow",
            "scheduler": "sjf", "workload": "", "began_unix_s": time.time(), "host": "here",
            "pid": 1, "nodes": [{"name": "n0", "gpus": 4}, {"name": "n1", "gpus": 4}],
            "state": "running", "restarts": 0, "telemetry": "none",
        }  # fmt: skip
        (folder / "live.json").write_text(json.dumps(usual | about))
        (folder / "heartbeat.json").write_text("{}")
        with (folder / "audit.jsonl").open("w") as file:
            for number, line in enumerate(lines, 1):
                file.write(json.dumps({"n": number, "unix_s": 0.0} | line) + "\n")
        return folder

    return write


EVIL = "<img src=x onerror=alert(1)>"
SHADOW = [
    {"what": "decide", "time_s": 10.0, "tick": 1, "waiting": 3, "order": ["a", "b", EVIL],
     "scores": [3.0, 2.0, None], "why": {"a": "shortest", "b": "next", EVIL: EVIL}, "took_ms": 2.0,
     "starts": [{"job": "a", "nodes": [[0, 2]]}, {"job": "b", "nodes": [[0, 1], [1, 1]]}]},
    {"what": "decide", "time_s": 20.0, "tick": 2, "waiting": 3, "order": ["a", "b", EVIL],
     "why": {EVIL: EVIL}, "starts": [{"job": "a", "nodes": [[0, 2]]}], "took_ms": 2.0},
    {"what": "job", "time_s": 40.0, "job": "a", "event": "started", "start_s": 40.0, "gpus": 2},
    {"what": "apply", "time_s": 41.0, "tick": 3, "operation": "factor", "job": "b",
     "outcome": "failed", "detail": "permission denied"},
]  # fmt: skip


def test_shadow_is_held_against_what_happened(write_run):
    """The first wish to start a job counts; one that started without any is listed too."""
    other = {"what": "job", "time_s": 5.0, "job": "c", "event": "started", "start_s": 5.0}
    folder = write_run([*SHADOW, other])
    shadow = told_by(folder)["book"]["shadow"]
    assert {one["job"]: (one["wanted_s"], one["real_s"]) for one in shadow["rows"]} == {
        "a": (10.0, 40.0), "b": (10.0, None), "c": (None, 5.0),
    }  # fmt: skip
    assert (shadow["wanted"], shadow["wanted_started"], shadow["unwanted_started"]) == (2, 1, 1)


def test_all_that_runs_is_counted_however_much_is_listed(write_run, monkeypatch):
    """Held GPUs and running jobs are sums over every job, and an audit is read in pieces."""
    monkeypatch.setattr("yardmaster.dashboard.tails.MOST_BYTES", 2_000)
    lines = [
        {
            "what": "job",
            "time_s": 1.0,
            "job": f"j{n}",
            "event": "started",
            "start_s": 1.0,
            "gpus": 2,
        }
        for n in range(MOST_JOBS + 30)
    ]
    book = told_by(write_run(lines))["book"]
    assert len(book["running"]) == MOST_JOBS
    assert book["running_jobs"] == MOST_JOBS + 30
    assert book["held_gpus"] == 2 * (MOST_JOBS + 30)


def test_shadow_in_the_page_and_names_that_look_like_markup(write_run, page, dashboard):
    """The difference is told in words; a hostile name and reason are only text."""
    folder = write_run(SHADOW)
    page.goto(f"{dashboard.url}#/live/{folder.name}")
    shadow = page.get_by_label("Shadow: what it would")
    shadow.get_by_text("Of 2 jobs that this scheduler would have started, 1 has").wait_for()
    assert "+30 s" in shadow.text_content()
    assert "n0 (1 GPU), n1 (1 GPU)" in page.get_by_label("Last decisions").text_content()
    assert EVIL in page.get_by_label("Waiting, in the scheduler's order").text_content()
    assert page.locator("main img").count() == 0
    assert "permission denied" in page.get_by_label("What did not work").text_content()


def test_a_look_that_is_newer_than_what_was_told_counts(write_run, page, dashboard):
    """After a restart, jobs may have ended unseen: the page shows the look and says so."""
    lines = [
        {"what": "job", "time_s": 1.0, "job": "a", "event": "started", "start_s": 1.0, "gpus": 2},
        {"what": "begin", "time_s": 50.0, "restart": 1},
        {"what": "observe", "time_s": 51.0, "waiting": 7, "running": 0, "free_gpus": [4, 4]},
    ]
    folder = write_run(lines)
    page.goto(f"{dashboard.url}#/live/{folder.name}")
    page.locator(".tile", has_text="waiting").get_by_text("7").wait_for()
    assert "the end was not seen" in page.get_by_label("Running").text_content()
    assert "n1: 4 GPUs, 4 free" in page.get_by_label("GPUs").text_content()
    assert page.get_by_role("heading", name="Telemetry").count() == 0


def test_every_gpu_has_its_curves(write_run, page, dashboard):
    """Utilisation, memory and power of each card, and samples that come while the page is open."""
    folder = write_run([], telemetry="nvml")

    def sample(time_s: float) -> None:
        gpus = [
            {"index": n, "uuid": f"GPU-{n}", "utilisation_percent": 10 * n, "memory_mib": 100 + n,
             "power_w": 70.5 if n else None}
            for n in range(2)
        ]  # fmt: skip
        line = {"time_s": time_s, "unix_s": 0.0, "cpu_percent": 5.0, "load": 1.0, "gpus": gpus}
        with (folder / "telemetry.jsonl").open("a") as file:
            file.write(json.dumps(line | {"memory_gib": 2.0}) + "\n")

    for second in range(5):
        sample(float(second))
    page.goto(f"{dashboard.url}#/live/{folder.name}")
    page.locator('[data-curve="power_w"] .curve-plot[data-last="4"]').wait_for()
    label = page.locator('[data-curve="utilisation_percent"] .curve-plot').get_attribute(
        "aria-label"
    )
    assert "GPU 0 0; GPU 1 10" in label
    sample(5.0)
    page.locator('[data-curve="memory_mib"] .curve-plot[data-last="5"]').wait_for()


def test_a_run_without_a_sign_of_life_is_said_to_be_silent(write_run):
    """The command was killed: its folder still says running; page and list know better."""
    folder = write_run([])
    assert about_run(folder)["state"] == "running"
    old = time.time() - SILENT_S - 5
    os.utime(folder / "heartbeat.json", (old, old))
    assert about_run(folder)["state"] == "silent"
    assert card_of("x", folder).status == "silent"


def test_telemetry_is_thinned_and_cards_may_come_and_go():
    """Columns have equal lengths; a card that is missing in a sample has no value there."""
    samples = [
        {"time_s": float(n), "cpu_percent": 1.0, "gpus": [{"uuid": "x", "power_w": n}] * (n > 2)}
        for n in range(10)
    ]
    whole = telemetry_columns(samples, 100)
    assert whole["gpus"]["x"]["power_w"] == [None, None, None, *range(3, 10)]
    thin = telemetry_columns(samples, 4)
    assert thin["time_s"] == [0.0, 3.0, 6.0, 9.0]


@pytest.mark.parametrize(("name", "code"), [("nothing", 404), ("../x", 400), ("", 400)])
def test_only_live_runs_of_the_folder_are_shown(asking, name, code):
    """Other names are refused by both routes."""
    assert asking.get("/api/live", run=name).status_code == code
    assert asking.get("/api/live/events", run=name).status_code == code
