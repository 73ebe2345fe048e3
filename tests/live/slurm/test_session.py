"""Whole runs beside a real Slurm: they log, put back what they did, and can be reported on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import read_lines
from yardmaster.live.folder import ABOUT, AUDIT, HEARTBEAT, read_json
from yardmaster.live.slurm import session
from yardmaster.live.slurm.driving import Settings, Tick
from yardmaster.live.slurm.session import SlurmSession
from yardmaster.live.slurm.shadow import shadow_report


def test_a_normal_stop_puts_everything_back(mini, tmp_path: Path):
    """On SIGTERM in the middle of its work, the command takes its factors away and says so."""
    mini.fill()
    for minutes in (9, 5, 7):
        mini.submit(minutes=minutes)
    before, folder = mini.order(), tmp_path / "run"
    process = mini.yardmaster("live", "slurm", "--apply", "-o", str(folder), "--interval-s", "0.3")
    mini.until(lambda: len(mini.sites()) > 1 or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert "no job is passed by one that has waited 86400 s less" in said
    assert "factors taken away." in said
    assert not mini.sites()
    assert mini.order() == before
    about = read_json(folder / ABOUT)
    assert (about["kind"], about["mode"], about["state"]) == ("slurm", "apply", "stopped")
    assert (folder / HEARTBEAT).exists()


def test_whatever_ends_the_work_puts_everything_back(mini, tmp_path: Path, monkeypatch):
    """A report nobody reads and a closed terminal take factors away; pauses give signs of life."""
    mini.fill()
    for minutes in (9, 5, 7):
        mini.submit(minutes=minutes)
    folder, given = tmp_path / "run", []
    settings = Settings(mode="apply", interval_s=60.0)

    def broken(_tick: Tick) -> None:
        given.append(mini.sites())
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        SlurmSession(mini.slurm, "sjf+easy", settings, folder).run(report=broken)
    assert given[0]
    assert not mini.sites()
    assert read_json(folder / ABOUT)["state"] == "failed"

    monkeypatch.setattr(session, "BEAT_S", 0.2)
    beats = []

    def closing(_tick: Tick) -> None:
        beats.append(read_json(folder / HEARTBEAT)["unix_s"])
        threading.Timer(1.6, os.kill, (os.getpid(), signal.SIGHUP)).start()

    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
    try:
        ending = SlurmSession(mini.slurm, "sjf+easy", settings, folder).run(report=closing)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ending.changes == ending.restored.zeroed > 0
    assert not mini.sites()
    assert read_json(folder / ABOUT)["state"] == "stopped"
    assert read_json(folder / HEARTBEAT)["unix_s"] >= beats[0] + 1.0


def test_a_bound_that_would_not_bind_is_refused_at_once(mini, tmp_path: Path):
    """More than half of PriorityMaxAge is refused for `apply`, before a folder is made."""
    settings = Settings(mode="apply", max_advance_s=0.51 * mini.cluster.shape.max_age_s)
    with pytest.raises(YardmasterError, match="counts no more, so somebody could starve"):
        SlurmSession(mini.slurm, "sjf+easy", settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_watched_queue_can_be_reported_on(mini, tmp_path: Path):
    """Shadow mode sees jobs come, start and end; the report says what would be gained."""
    blockers = mini.fill()
    jobs = [mini.submit(minutes=minutes, seconds=0.3) for minutes in (9, 2, 7, 4)]
    folder = tmp_path / "run"
    watching = SlurmSession(mini.slurm, "sjf+easy", Settings(interval_s=0.3), folder)
    watching.driver.tick()
    why = mini.said("live", "why", jobs[0], "--folder", str(folder))
    assert "place 4 of 4" in why
    assert "Slurm: " in why
    mini.cancel(*blockers)

    def all_ended() -> bool:
        watching.driver.tick()
        lines = [line for line in read_lines(folder / AUDIT) if line["what"] == "job"]
        ended = {line["job"]: line for line in lines if line["event"] == "ended"}
        return all("end_s" in ended.get(job, {}) for job in jobs)

    mini.until(all_ended)
    ending = watching.run(ticks=watching.driver.number + 1)
    assert (ending.changes, ending.restored) == (0, None)
    report = shadow_report(folder)
    assert report.jobs >= len(jobs)
    assert report.scheduler_wait_s <= report.baseline_wait_s + 0.5
    assert 0.0 <= report.agreed <= 1.0
    assert json.loads(mini.said("live", "shadow-report", str(folder), "--json"))["looks"] > 0


def test_a_plain_user_may_look_but_not_touch(mini):
    """Somebody without rights is refused `--apply` with the way to get them, and may shadow."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    program = (
        "import os\n"
        "from yardmaster.live.slurm.commands import Slurm\n"
        "from yardmaster.live.slurm.observing import Allowed, observe\n"
        "from yardmaster.live.slurm.probing import probe\n"
        "from yardmaster.model.gpus import gpu_type\n"
        "gpu_type('A100')  # reads files that somebody else may not\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(probe(Slurm()).refusals, observe(Slurm(), Allowed()).state.cluster.gpus)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], env=mini.cluster.environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "adminlevel=operator" in said.stdout, said.stderr
    assert said.stdout.split()[-1] == str(mini.cluster.shape.nodes * mini.cluster.shape.gpus)


def test_mistakes_are_told_before_anything_is_begun(mini, tmp_path: Path):
    """An unknown scheduler, one that stops jobs, and a silly setting are refused in our words."""
    folder = tmp_path / "run"
    for scheduler, words in (("sjff+easy", "Did you mean"), ("srpt+preemptive", "never stop")):
        with pytest.raises(YardmasterError, match=words):
            SlurmSession(mini.slurm, scheduler, Settings(), folder)
    assert not folder.exists()
    said = mini.said("live", "slurm", "-o", str(folder), "--interval-s", "0")
    assert "interval_s is 0" in said
    words = ("--user", "nosuchuser", "--shadow", "--ticks", "1")
    said = mini.said("live", "slurm", "-o", str(folder), *words)
    assert "of user nosuchuser is in the queue now; is the name right?" in said
    assert "is not the folder" in mini.said("live", "restore", str(tmp_path))
