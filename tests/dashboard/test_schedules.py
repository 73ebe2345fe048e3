"""Schedules over the wire: one binary answer that says what the schedule says."""

from __future__ import annotations

import itertools
import json
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.runs import RunsFolder
from yardmaster.experiments.saved_schedules import read_schedule

KINDS = {"f64": "<f8", "f32": "<f4", "u32": "<u4", "u16": "<u2", "i16": "<i2", "u8": "u1"}


def unpacked(data: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Read the documented layout, written here a second time."""
    assert data[:8] == b"YMSCHED1"
    (length,) = struct.unpack("<I", data[8:12])
    about = json.loads(data[12 : 12 + length])
    base = 12 + length
    assert base % 8 == 0
    columns = {
        name: np.frombuffer(data, KINDS[one["type"]], one["length"], base + one["offset"])
        for name, one in about["columns"].items()
    }
    return about, columns


@pytest.fixture(scope="module")
def shared(make_run, runs_folder) -> Path:
    (runs_folder / "shared.toml").write_text(
        'name = "shared"\n[[nodes]]\ncount = 2\ngpu_type = "T4"\ngpus = 4\nsharing = "mps"\n'
        '[[nodes]]\ncount = 2\ngpu_type = "V100"\ngpus = 8\n'
        "[failures]\nmtbf_h = 80\nmttr_h = 4\n"
    )
    return make_run(
        "simulate", "-c", "shared.toml", "-w", "venus-like:fractions=0.5", "--jobs", "150",
        "-s", "srpt+preemptive", "--out", "sharing",
    )  # fmt: skip


@pytest.fixture(scope="module")
def desk(runs_folder) -> Desk:
    return Desk(RunsFolder(runs_folder), "x" * 20)


def test_bars_are_the_segments(knock, desk, shared):
    """Every segment has one bar on each of its GPUs, on tracks without overlap, in order."""
    reply = knock(desk, "/api/schedule/sharing")
    assert reply.headers["content-type"] == "application/octet-stream"
    about, column = unpacked(reply.body)
    schedule = read_schedule(shared).schedule
    assert about["is_same"]
    assert about["scheduler"] == schedule.scheduler
    seen = set()
    for track, gpu in enumerate(column["track_gpu"].tolist()):
        bars = column["bar_segment"][column["track_bar"][track] : column["track_bar"][track + 1]]
        assert (column["segment_start"][bars][1:] >= column["segment_end"][bars][:-1]).all()
        seen |= {(int(segment), gpu) for segment in bars}
    expected = {
        (segment, int(gpu))
        for segment in range(len(schedule.segment_job))
        for gpu in schedule.gpus_of(segment)
    }
    assert seen == expected
    assert column["track_bar"][-1] == len(expected) == about["bars"]
    assert column["gpu_lanes"].max() > 1  # jobs do share here
    assert len(column["outage_node"]) > 0


def test_jobs_keep_their_names_and_times(knock, desk, shared):
    """Ids, submissions, starts and labels of every job arrive as they are."""
    about, column = unpacked(knock(desk, "/api/schedule/sharing").body)
    workload = read_schedule(shared).schedule.workload
    text = column["id_text"].tobytes()
    ends = column["id_offset"].tolist()
    ids = [text[a:b].decode() for a, b in itertools.pairwise(ends)]
    assert ids == [str(one) for one in workload.id.tolist()]
    assert np.array_equal(column["job_submit"], workload.submit_s)
    tenants = [about["tenants"][code] if code >= 0 else None for code in column["job_tenant"]]
    assert tenants == workload.tenant.values()


def test_strips_are_the_metrics(knock, desk, shared):
    """The areas under queue and busy GPUs are the run's own averages."""
    about, column = unpacked(knock(desk, "/api/schedule/sharing").body)
    (row,) = json.loads((shared / "summary.json").read_text())
    area = float(column["queue_values"] @ np.diff(column["queue_edges"]))
    begin, end = about["horizon_s"]
    assert area / (end - begin) == pytest.approx(row["mean_queue"], rel=1e-5)
    assert {strip["name"] for strip in about["strips"]} == {
        "queue", "busy", "fragmented", "power",
    }  # fmt: skip


def test_a_comparisons_schedules_are_made_when_asked_for(knock, desk, make_run):
    """Any simulation of a comparison is had by its number, and others are refused."""
    make_run(
        "compare", "--jobs", "60", "--seeds", "2", "-s", "fifo+strict,sjf+easy", "--out", "pair"
    )
    listed = knock(desk, "/api/schedule-list/pair").json()["simulations"]
    assert [one["scheduler"] for one in listed] == ["fifo+strict"] * 2 + ["sjf+easy"] * 2
    about, _ = unpacked(knock(desk, "/api/schedule/pair?simulation=3").body)
    assert (about["scheduler"], about["is_stored"], about["is_same"]) == ("sjf+easy", False, True)
    for wrong in ("4", "-1", "x", "1e9", "99999999999"):
        assert knock(desk, f"/api/schedule/pair?simulation={wrong}").status in {400, 422}


def test_a_job_tells_its_life(knock, desk, shared):
    """The life of a job by its row; a row that is not there is refused."""
    told = knock(desk, "/api/schedule-job/sharing?row=5").json()
    assert told["id"] == str(read_schedule(shared).schedule.workload.id[5])
    assert told["situations"]
    assert told["why"] is None
    assert knock(desk, "/api/schedule-job/sharing?row=150").status == 404


def test_other_runs_have_no_schedules(knock, desk, make_run):
    """A question's folder, or none, is refused with a sentence."""
    make_run("whatif", "--jobs", "60", "--seeds", "1", "--nodes", "+1", "--out", "question")
    refused = knock(desk, "/api/schedule/question")
    assert refused.status == 422
    assert "whatif" in refused.json()["error"]
    assert knock(desk, "/api/schedule/nowhere").status == 404


def test_code_in_a_folder_is_not_run(knock, desk, make_run, runs_folder):
    """An order in a Python file is not executed by looking; a stored schedule of it is shown."""
    code = "import pathlib\n\ndef oldest(waiting, now):\n    return waiting.submit_s\n"
    (runs_folder / "mine.py").write_text(code)
    make_run("compare", "--jobs", "30", "--seeds", "1", "-s", "fifo,mine.py:oldest", "--out", "own")
    make_run("simulate", "--jobs", "30", "-s", "mine.py:oldest", "--out", "mine")
    trap = f"import pathlib\npathlib.Path({str(runs_folder / 'sprung')!r}).touch()\n{code}"
    for folder in ("own", "mine"):
        for copy in (runs_folder / folder / "orders").iterdir():
            copy.write_text(trap)
    (runs_folder / "mine.py").write_text(trap)
    assert knock(desk, "/api/schedule/own?simulation=0").status == 200
    refused = knock(desk, "/api/schedule/own?simulation=1")
    assert refused.status == 422
    assert "Python file" in refused.json()["error"]
    assert knock(desk, "/api/schedule/mine").status == 200
    assert not (runs_folder / "sprung").exists()


def test_the_last_few_are_kept(make_run):
    """The same schedule is not made twice; old ones make room."""
    from yardmaster.dashboard.schedule_shelf import ScheduleShelf

    shelf = ScheduleShelf(kept=2)
    pair = make_run(
        "compare", "--jobs", "60", "--seeds", "2", "-s", "fifo+strict,sjf+easy", "--out", "pair"
    )
    first = shelf.get(pair, 0)
    assert shelf.get(pair, 0) is first
    shelf.get(pair, 1)
    shelf.get(pair, 2)
    assert shelf.get(pair, 0) is not first


def test_what_is_kept_does_not_wait_for_what_is_being_made(make_run, monkeypatch):
    """While one schedule takes long, kept ones are given and others made; the same is made once."""
    from yardmaster.dashboard import schedule_shelf

    pair = make_run(
        "compare", "--jobs", "60", "--seeds", "2", "-s", "fifo+strict,sjf+easy", "--out", "pair"
    )
    shelf = schedule_shelf.ScheduleShelf()
    kept = shelf.get(pair, 0)
    begun, go_on, made = threading.Event(), threading.Event(), []

    def slowly(path, number, *, runs_code):
        made.append(number)
        if number == 1:
            begun.set()
            assert go_on.wait(30)
        return read_schedule(path, number, runs_code=runs_code)

    monkeypatch.setattr(schedule_shelf, "read_schedule", slowly)
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(shelf.get, pair, 1) for _ in range(2)]
        assert begun.wait(30)
        try:
            assert pool.submit(shelf.get, pair, 0).result(timeout=10) is kept
            assert pool.submit(shelf.get, pair, 2).result(timeout=30).is_same
        finally:
            go_on.set()
        assert slow[0].result() is slow[1].result()
    assert made == [1, 2]
