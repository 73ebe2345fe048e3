"""The list of runs over the wire, live, and the reports that runs hold."""

from __future__ import annotations

import json
import shutil
import time

import httpx
import pytest

from yardmaster.dashboard.desk import Desk, Streams
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.runs import RunsFolder


def test_new_runs_are_told_soon(asking, runs_folder, make_run):
    """Whoever follows the list hears of a run that appears, and of one that goes."""
    small = make_run("simulate", "--jobs", "60", "--out", "small")
    target = runs_folder / "appearing"
    heard: list[str] = []
    begun = 0.0
    for event in asking.events("/api/runs/events"):
        if event["first"]:
            assert "small" in [card["name"] for card in event["changed"]]
            shutil.copytree(small, target)
            begun = time.monotonic()
            continue
        if "appearing" in [card["name"] for card in event["changed"]]:
            heard.append("came")
            shutil.rmtree(target)
        if "appearing" in event["removed"]:
            heard.append("went")
            break
    assert heard == ["came", "went"]
    assert time.monotonic() - begun < 5.0


def test_reports_are_shown_in_a_cell(knock, make_run, runs_folder):
    """A run's report is served so that it can draw but reach nothing, neither us nor the world."""
    make_run("whatif", "--jobs", "60", "--seeds", "1", "--nodes", "+1", "--out", "question")
    desk = Desk(RunsFolder(runs_folder), "x" * 20)
    reply = knock(desk, "/report/question")
    assert reply.status == 200
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy  # so that default-src decides: nothing


def test_only_reports_are_served(knock, make_run, runs_folder, tmp_path):
    """No other file of a run, and no report that is a link."""
    make_run("simulate", "--jobs", "60", "--out", "small")
    (tmp_path / "secret.html").write_text("SECRET")
    linked = runs_folder / "linked"
    linked.mkdir(exist_ok=True)
    (linked / "report.html").symlink_to(tmp_path / "secret.html")
    desk = Desk(RunsFolder(runs_folder), "x" * 20)
    for name in ("small", "small/config.toml", "linked", "linked/report.html", ".."):
        reply = knock(desk, f"/report/{name}")
        assert reply.status in {400, 403, 404}
        assert b"SECRET" not in reply.body
    shutil.rmtree(linked)


def test_streams_are_counted():
    """So many streams and no more; a closed one makes room."""
    streams = Streams(most=2)
    with streams.one_more():
        with streams.one_more(), pytest.raises(Refusal) as refused, streams.one_more():
            pass
        assert refused.value.status == 429
        with streams.one_more():
            pass


def test_a_stream_that_is_left_makes_room(dashboard):
    """Pages that are closed do not hold their places: hundreds may come and go."""
    with httpx.Client(base_url=dashboard.url, timeout=10.0) as client:
        for _ in range(40):
            with client.stream("GET", "api/runs/events") as stream:
                assert stream.status_code == 200
                next(stream.iter_lines())
            time.sleep(0.02)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with client.stream("GET", "api/runs/events") as stream:
                if stream.status_code == 200:
                    break
        assert stream.status_code == 200


def test_the_list_is_plain_data(knock, runs_folder, make_run):
    """Names that look like markup travel as text; numbers that are none become null."""
    hostile = runs_folder / "<img src=x onerror=alert(1)>"
    small = make_run("simulate", "--jobs", "60", "--out", "small")
    shutil.copytree(small, hostile)
    rows = json.loads((hostile / "summary.json").read_text())
    rows[0]["mean_jct_s"] = float("nan")
    (hostile / "summary.json").write_text(json.dumps(rows))
    reply = knock(Desk(RunsFolder(runs_folder), "x" * 20), "/api/runs")
    assert reply.headers["content-type"] == "application/json"
    assert hostile.name in [card["name"] for card in reply.json()["runs"]]
    assert b"NaN" not in reply.body
    shutil.rmtree(hostile)
