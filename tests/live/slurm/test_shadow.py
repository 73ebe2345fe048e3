"""The report on a watched queue: a log whose gain is known by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.cli.live.shadow_report import shadow_report as say_report
from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.shadow import TooEarlyError, shadow_report


def write_run(folder: Path, jobs: list[tuple[str, float, float, float, float]]) -> None:
    """One node with one GPU; jobs are (name, submitted, started, ended, believed run time)."""
    folder.mkdir()
    about = {
        "format": "yardmaster-live", "version": 1, "kind": "slurm", "scheduler": "sjf+easy",
        "nodes": [{"name": "n1", "gpus": 1, "gpu_type": "A100", "devices": []}],
    }  # fmt: skip
    (folder / "live.json").write_text(json.dumps(about))
    lines = [{"what": "decide", "order": ["short", "long"], "starts": []}]
    for name, submit, start, end, believed in jobs:
        base = {"what": "job", "job": name, "gpus": 1, "submit_s": submit, "estimate_s": believed}
        lines.append({**base, "event": "submitted"})
        lines.append({**base, "event": "started", "start_s": start})
        lines.append({**base, "event": "ended", "start_s": start, "end_s": end})
    text = "".join(
        json.dumps({"n": n, "time_s": 0.0, **line}) + "\n" for n, line in enumerate(lines)
    )
    (folder / "audit.jsonl").write_text(text)


def test_the_gain_is_the_difference_of_two_rehearsals(tmp_path: Path):
    """A runs; long and short wait: Slurm takes the long one first, shortest-first does not."""
    write_run(
        tmp_path / "run",
        [
            ("a", -50.0, -10.0, 100.0, 200.0),
            ("long", -5.0, 100.0, 1100.0, 1000.0),
            ("short", 1.0, 1100.0, 1110.0, 10.0),
        ],
    )
    report = shadow_report(tmp_path / "run")
    assert report.jobs == 2
    assert report.slurm_wait_s == pytest.approx((100 + 1099) / 2)
    assert report.baseline_wait_s == pytest.approx(report.slurm_wait_s)
    assert report.scheduler_wait_s == pytest.approx((110 + 99) / 2)
    assert (report.agreed, report.starts) == (0.5, 2)
    assert "Of 2 starts of Slurm, 50 %" in report.in_words()
    assert "82.6 % less" in report.in_words()


def test_a_stand_in_that_differs_is_told(tmp_path: Path):
    """Where Slurm waited much longer than its stand-in would, the report says to take care."""
    write_run(tmp_path / "run", [("a", 0.0, 500.0, 600.0, 100.0)])
    assert "with care" in shadow_report(tmp_path / "run").in_words()


def test_waits_under_our_factors_are_called_that(tmp_path: Path):
    """Where factors were given, the measured waits are not said to be Slurm's own."""
    write_run(tmp_path / "run", [("a", 0.0, 500.0, 600.0, 100.0)])
    assert "as it was under Slurm" in shadow_report(tmp_path / "run").in_words()
    line = {"n": 9, "time_s": 0.0, "what": "apply", "operation": "factor", "outcome": "done"}
    with (tmp_path / "run/audit.jsonl").open("a") as log:
        log.write(json.dumps(line) + "\n")
    report = shadow_report(tmp_path / "run")
    assert report.was_applied
    assert "under Slurm with our factors" in report.in_words()
    assert "as it was" not in report.in_words()


def test_too_little_to_say_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Nothing has ended yet: who waits and runs is told, and it is no mistake."""
    write_run(tmp_path / "run", [])
    asked = {"n": 1, "time_s": 0.0, "what": "job", "gpus": 1, "submit_s": 0.0, "estimate_s": 9.0}
    lines = [
        {**asked, "job": "a", "event": "submitted"},
        {**asked, "job": "b", "event": "submitted"},
        {**asked, "job": "b", "event": "started", "start_s": 1.0},
    ]
    with (tmp_path / "run/audit.jsonl").open("a") as log:
        log.writelines(json.dumps(line) + "\n" for line in lines)
    with pytest.raises(TooEarlyError, match="0 jobs so far, 1 wait, 1 run"):
        shadow_report(tmp_path / "run")
    say_report(tmp_path / "run")
    assert "start and end while watched" in capsys.readouterr().out
    say_report(tmp_path / "run", json=True)
    assert json.loads(capsys.readouterr().out) == {"jobs": 0, "waiting": 1, "running": 1}
    with pytest.raises(YardmasterError, match="not the folder"):
        shadow_report(tmp_path)


def test_few_jobs_are_said_to_be_few(tmp_path: Path):
    """A mean over a handful of jobs comes with a warning, that over many does not."""
    few = [(f"j{n}", float(n), float(n), n + 0.5, 1.0) for n in range(5)]
    write_run(tmp_path / "few", few)
    assert "5 jobs are few" in shadow_report(tmp_path / "few").in_words()
    many = [(f"j{n}", float(n), float(n), n + 0.5, 1.0) for n in range(30)]
    write_run(tmp_path / "many", many)
    assert "are few" not in shadow_report(tmp_path / "many").in_words()
