"""Whole runs beside a real Slurm: they log, put back what they did, and can be reported on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import read_lines
from yardmaster.live.folder import ABOUT, AUDIT, HEARTBEAT, read_json
from yardmaster.live.slurm.driving import Settings
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


def test_a_watched_queue_can_be_reported_on(mini, tmp_path: Path):
    """Shadow mode sees jobs come, start and end; the report says what would be gained."""
    blockers = mini.fill()
    jobs = [mini.submit(minutes=minutes, seconds=0.3) for minutes in (9, 2, 7, 4)]
    folder = tmp_path / "run"
    session = SlurmSession(mini.slurm, "sjf+easy", Settings(interval_s=0.3), folder)
    session.driver.tick()
    why = mini.said("live", "why", jobs[0], "--folder", str(folder))
    assert "place 4 of 4" in why
    assert "Slurm: " in why
    mini.cancel(*blockers)

    def all_ended() -> bool:
        session.driver.tick()
        lines = [line for line in read_lines(folder / AUDIT) if line["what"] == "job"]
        ended = {line["job"]: line for line in lines if line["event"] == "ended"}
        return all("end_s" in ended.get(job, {}) for job in jobs)

    mini.until(all_ended)
    ending = session.run(ticks=session.driver.number + 1)
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
    assert "is not the folder" in mini.said("live", "restore", str(tmp_path))
