"""Snapshots from a file: what an operator knows, with mistakes named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import InvalidWorkloadError
from yardmaster.experiments.eta import predict
from yardmaster.experiments.snapshot_file import read_snapshot
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

CLUSTER = Cluster.of("1x V100:4")
FILE = """id,submit_s,gpus,estimate_s,start_s,elapsed_s,user
b,1000,2,600,,200,ann
a,900,2,900,950,,bob
c,1100,4,300,,,ann
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "now.csv"
    path.write_text(text)
    return path


def test_who_runs_and_who_waits(tmp_path: Path):
    """Starts and elapsed times say who runs; rows are sorted by submission."""
    moment = read_snapshot(write(tmp_path, FILE), CLUSTER, "fifo+easy~estimate", now_s=1250.0)
    assert moment.jobs.id.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(moment.since_s, [950.0, 1050.0, np.nan])
    assert moment.jobs.duration_s.tolist() == [300.0, 200.0, 0.0]
    assert moment.queued.tolist() == [2]


def test_estimates_alone_predict_the_start(tmp_path: Path):
    """Without a past, jobs are taken to run as estimated: c starts when a ends."""
    moment = read_snapshot(write(tmp_path, FILE), CLUSTER, "fifo+strict", now_s=1250.0)
    forecast = predict(moment, simulations=3)
    np.testing.assert_allclose(forecast.wait_s, 950 + 900 - 1250, atol=1e-6)


def test_the_past_is_learnt_from(tmp_path: Path):
    """Where all jobs of the past took twice their estimate, those that run do so too."""
    past = Workload.of(
        submit_s=np.arange(40), duration_s=np.full(40, 20.0), estimate_s=np.full(40, 10.0)
    )
    path = write(tmp_path, FILE)
    moment = read_snapshot(path, CLUSTER, "fifo+strict", now_s=1250.0, history=past)
    assert moment.ended.sum() == 40
    forecast = predict(moment, simulations=3)
    np.testing.assert_allclose(forecast.wait_s, 950 + 1800 - 1250, atol=1e-6)


def test_now_is_the_latest_thing_that_happened(tmp_path: Path):
    """Without a moment given, it is the last submission or start."""
    text = "submit_s,start_s\n100,150\n120,\n"
    assert read_snapshot(write(tmp_path, text), CLUSTER, "fifo").now_s == 150.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit_s,start\n1,2\n", "unknown column 'start'.*'start_s'"),
        ("gpus,start_s\n1,2\n", "'submit_s' is required"),
        ("submit_s,gpus\n", "no jobs"),
        ("submit_s,start_s\n1,soon\n", "row 0: start_s is 'soon'"),
        ("submit_s,start_s\n5,2\n", "row 0: it starts before its submission"),
        ("submit_s,start_s\n1,99999\n", "row 0: .*after now"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text, message):
    """Every mistake names the file and the row or column."""
    with pytest.raises(InvalidWorkloadError, match=message):
        read_snapshot(write(tmp_path, text), CLUSTER, "fifo", now_s=100.0)
