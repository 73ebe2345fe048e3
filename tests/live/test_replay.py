"""Replaying a live run: predicted against measured."""

from __future__ import annotations

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.local.commands import commands_of
from yardmaster.live.local.runner import Settings, run_local
from yardmaster.live.replay import read_log, replay_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a real run of ten jobs on two slots."""
    path = tmp_path_factory.mktemp("live") / "run"
    rows = [
        {"id": f"j{number}", "command": f"sleep {0.1 + number % 3 / 10}", "gpus": 1 + number % 2,
         "estimate_s": 0.1 + number % 3 / 10, "submit_s": 0.05 * number, "kind": "nap"}
        for number in range(10)
    ]  # fmt: skip
    run_local(commands_of(rows, name="naps"), path, Settings(gpus=2, scheduler="fifo+strict"))
    return path


def test_with_measured_run_times_the_simulator_says_what_happened(folder):
    """Under a strict order only starting takes time, so the mean JCT is off by little."""
    likeness = replay_log(folder)
    summary = likeness.summary()
    assert summary["jobs"] == 10
    assert summary["unfinished"] == 0
    assert abs(summary["mean_error_percent"]) < 15
    assert summary["predicted_mean_jct_s"] <= summary["measured_mean_jct_s"] + 0.01
    assert summary["median_decision_ms"] > 0
    rows = likeness.rows()
    assert [row["job"] for row in rows] == [f"j{number}" for number in range(10)]
    for row in rows:
        assert row["error_s"] == pytest.approx(
            row["predicted_jct_s"] - row["measured_jct_s"], abs=2e-3
        )


def test_believed_run_times_and_an_overhead_can_be_asked_for(folder):
    """More overhead means later predicted ends; what was believed is taken from the log."""
    without = replay_log(folder, run_times="believed").summary()
    some = replay_log(folder, run_times="believed", overhead_s=0.05).summary()
    assert some["predicted_mean_jct_s"] > without["predicted_mean_jct_s"]
    log = read_log(folder)
    assert [job.believed_s for job in log.jobs][:3] == pytest.approx([0.1, 0.2, 0.3])
    assert {job.kind for job in log.jobs} == {"nap"}


def test_another_scheduler_can_be_asked(folder):
    """What would another have made of the same jobs?"""
    other = replay_log(folder, scheduler="sjf+easy").summary()
    assert other["jobs"] == 10
    assert not other["same_scheduler"]
    assert replay_log(folder).summary()["same_scheduler"]


def test_what_cannot_be_replayed_is_said(folder, tmp_path):
    """Unknown options and folders that hold no run end with a sentence."""
    with pytest.raises(YardmasterError, match="Did you mean 'measured'"):
        replay_log(folder, run_times="measurd")
    with pytest.raises(YardmasterError, match="overhead"):
        replay_log(folder, overhead_s=-1.0)
    with pytest.raises(YardmasterError, match="not the folder"):
        replay_log(tmp_path)
