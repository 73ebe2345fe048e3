"""A real Slurm for these tests: started once, private, removed afterwards."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yardmaster.live.audit import AuditLog
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.folder import AUDIT, LiveFolder
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.commands import Slurm
from yardmaster.live.slurm.driving import Settings, SlurmDriver, about
from yardmaster.live.slurm.minicluster.cluster import MiniCluster, missing_packages
from yardmaster.live.slurm.minicluster.documents import Shape
from yardmaster.live.slurm.probing import probe
from yardmaster.live.slurm.reading import PriorityRow

SHAPE = Shape(nodes=2, gpus=2, batch_delay_s=0)
JOB = """#!/bin/sh
echo "start $SLURM_JOB_ID" >> {log}
sleep {seconds}
echo "end $SLURM_JOB_ID" >> {log}
"""


class Mini:
    """A small cluster, and jobs that write down when they begin and end."""

    def __init__(self, folder: Path) -> None:
        self.cluster = MiniCluster(folder / "mini", SHAPE)
        self.log = folder / "runs.txt"
        self.slurm = Slurm(environment={"SLURM_CONF": str(self.cluster.conf)})

    def submit(self, *options: str, gpus: int = 2, seconds: float = 0.2, minutes: int = 5) -> str:
        """Submit a job and return its number."""
        answer = self.cluster.run(
            "sbatch", "--parsable", f"--gpus={gpus}", "-N1", f"--time={minutes}", "--mem=1M",
            "--output=/dev/null", "--chdir=/tmp", *options,
            text=JOB.format(log=self.log, seconds=seconds),
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    def fill(self) -> list[str]:
        """Let jobs that do not end by themselves hold every GPU."""
        jobs = [self.submit(seconds=600, minutes=60) for _ in range(SHAPE.nodes)]
        self.until(lambda: len(self.states("R")) == SHAPE.nodes)
        return jobs

    def states(self, states: str) -> list[str]:
        """Return the jobs in these states."""
        return self.slurm.read("squeue", "-h", "-t", states, "-o", "%i").split()

    def order(self) -> list[str]:
        """Return the jobs that wait, as Slurm sorts them."""
        return self.slurm.read("squeue", "-h", "-t", "PD", "-S", "-p,i", "-o", "%i").split()

    def weights(self) -> dict[str, PriorityRow]:
        """Return what priorities are made of."""
        return reading.priority_rows(self.slurm.read(*reading.priorities_command()))

    def sites(self) -> dict[str, int]:
        """Return the SiteFactors that are not zero."""
        return {job: row.site for job, row in self.weights().items() if row.site}

    def runs(self, word: str = "end") -> list[str]:
        """Return the jobs that began or ended, in this order."""
        if not self.log.exists():
            return []
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [line[1] for line in lines if line[0] == word]

    def once(self, jobs: list[str]) -> bool:
        """Whether each of these jobs began once and ended once."""
        counts = Counter(self.runs("start")), Counter(self.runs("end"))
        return all(count[job] == 1 for count in counts for job in jobs)

    def cancel(self, *jobs: str) -> None:
        """Cancel jobs."""
        self.cluster.run("scancel", *jobs)

    def until(self, is_so: Callable[[], bool], limit_s: float = 60.0) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < deadline, "it did not come to pass"
            time.sleep(0.05)

    def driver(self, folder: Path, scheduler: str = "sjf+easy", **settings: object) -> SlurmDriver:
        """Return Yardmaster beside this cluster, to be ticked by hand."""
        held = LiveFolder(folder)
        chosen = Settings(**{"mode": "apply", "interval_s": 0.5, **settings})
        decider = Decider(scheduler, may_stop=chosen.requeue is not None)
        held.begin("slurm", chosen.mode, decider.name, nodes=[], settings=about(chosen))
        began = held.about["began_unix_s"]
        audit = AuditLog(folder / AUDIT, LiveClock.since(began))
        return SlurmDriver(
            self.slurm, decider, probe(self.slurm), chosen, held, audit, began_unix_s=began
        )

    def yardmaster(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of ours that means this cluster."""
        return subprocess.Popen(
            [sys.executable, "-m", "yardmaster", *words], env=self.cluster.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def said(self, *words: str) -> str:
        """Run a command of ours to its end and return what it said."""
        process = self.yardmaster(*words)
        text, _ = process.communicate(timeout=60)
        return text


@pytest.fixture(scope="session")
def _started() -> Iterator[Mini]:
    if absent := missing_packages():
        pytest.skip(f"needs a real Slurm; not installed: {', '.join(absent)}")
    folder = Path(tempfile.mkdtemp(prefix="ym-"))
    folder.chmod(0o755)  # other users of the machine may ask this cluster
    mini = Mini(folder)
    mini.cluster.up()
    yield mini
    mini.cluster.down()
    shutil.rmtree(folder)


@pytest.fixture
def mini(_started: Mini) -> Iterator[Mini]:
    """An empty cluster; what a test leaves in it is cancelled."""
    yield _started
    _started.cluster.run("scancel", "--state=PENDING", "--user=" + _me())
    _started.cluster.run("scancel", "--user=" + _me())
    _started.until(lambda: not _started.slurm.read("squeue", "-h").strip())


def _me() -> str:
    import os
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
