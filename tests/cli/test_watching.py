"""`simulate --watch`, as users meet it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.cli.watching import Pace, frame, sparkline
from yardmaster.report.playback import Playback


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: str, cwd: Path, **variables: str) -> None:
        self._our_end, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "yardmaster", *arguments],
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ
            | {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color"}
            | variables,
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def read_until(self, wanted: str, seconds: float = 60.0) -> None:
        """Read what the command draws until a text is there."""
        limit = time.monotonic() + seconds
        while wanted not in self.text and time.monotonic() < limit:
            self._read(0.1)
        assert wanted in self.text, self.text[-2000:]

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._our_end], [], [], seconds)
        if ready:
            try:
                self.text += os.read(self._our_end, 65_536).decode(errors="replace")
            except OSError:  # the other end was closed
                time.sleep(seconds)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._our_end, keys.encode())

    def end(self) -> int:
        """Wait for the command and return its exit code."""
        limit = time.monotonic() + 60.0
        while self.process.poll() is None and time.monotonic() < limit:
            self._read(0.05)
        self._read(0.05)
        os.close(self._our_end)
        return self.process.wait(1.0)


WATCH = ("simulate", "--jobs", "200", "--watch")


def test_watching_without_a_terminal_tells_lines(tmp_path: Path):
    """In a log there are 21 plain lines from 0 to 100 %, no escape codes, and the table."""
    done = run(*WATCH, "-o", "first", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "in use" in line]
    assert len(lines) == 21
    assert lines[-1].startswith("100%")
    assert "200/200 ended" in lines[-1]
    assert "\x1b" not in done.stdout + done.stderr
    assert "mean JCT" in done.stdout


def test_watching_plays_on_a_terminal_and_q_leaves(tmp_path: Path):
    """GPUs, curves and the clock are drawn in colour; q goes on to the table at once."""
    terminal = Terminal(*WATCH, "--watch-s", "600", "-o", "first", cwd=tmp_path)
    terminal.read_until("node 15 V100")
    terminal.press("+")
    terminal.press(" ")
    terminal.read_until("paused")
    terminal.press("q")
    terminal.read_until("mean JCT")
    assert terminal.end() == 0
    assert "GPUs in use" in terminal.text
    assert "\x1b[38;5;" in terminal.text
    assert (tmp_path / "first" / "summary.json").is_file()


def test_ctrl_c_leaves_playback_and_keeps_the_run(tmp_path: Path):
    """Interrupting the film is not an error: the table follows and the run is there, uncoloured."""
    terminal = Terminal(*WATCH, "--watch-s", "600", "-o", "first", cwd=tmp_path, NO_COLOR="1")
    terminal.read_until("node 15 V100")
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until("mean JCT")
    assert terminal.end() == 0
    assert "\x1b[38;5;" not in terminal.text
    assert (tmp_path / "first" / "summary.json").is_file()


@pytest.mark.parametrize("seconds", ["0", "-3", "nan", "inf"])
def test_a_length_that_makes_no_sense_is_refused(tmp_path: Path, seconds: str):
    """The mistake is told before anything is simulated."""
    done = run(*WATCH, "--watch-s", seconds, cwd=tmp_path)
    assert done.returncode == 2
    assert "--watch-s must be" in done.stderr
    assert not list(tmp_path.iterdir())


def test_keys_change_the_pace():
    """Space pauses, plus and minus undo each other, arrows skip and stop at both ends."""
    pace = Pace(span_s=1000.0, seconds=10.0)
    pace.advance(1.0)
    assert pace.position_s == 100.0
    pace.press(" ")
    pace.advance(5.0)
    assert pace.position_s == 100.0
    pace.press(" ")
    pace.press("+")
    assert pace.speed == pytest.approx(150.0)
    pace.press("-")
    assert pace.speed == pytest.approx(100.0)
    for _ in range(3):
        pace.press("left")
    assert pace.position_s == 0.0
    pace.press("right")
    assert pace.position_s == 50.0
    pace.advance(60.0)
    assert pace.is_over


def test_sparklines_have_nine_heights():
    """Nothing is blank, anything at all shows, and the top is a full block."""
    assert sparkline(np.array([0.0, 0.01, 0.5, 1.0, 2.0]), 1.0) == " ▁▄██"
    assert sparkline(np.array([3.0]), 0.0) == " "


@pytest.mark.parametrize("machines", ["500x V100:8", "pool:512", "6x A100:8", "5000x T4:1"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 50), (40, 20)])
def test_a_frame_fits_the_terminal(machines: str, width: int, height: int):
    """However many nodes and GPUs there are, nothing is wider or taller than the window."""
    from rich.console import Console

    cluster = ym.load_cluster(machines)
    jobs = ym.Workload.of(submit_s=np.arange(300.0), duration_s=np.full(300, 400.0), gpus=[8] * 300)
    playback = Playback(ym.simulate(jobs, cluster, "fifo+skip"))
    moment = playback.at(playback.begin_s + playback.span_s / 2)
    console = Console(width=width, height=height, file=StringIO(), record=True)
    console.print(frame(playback, moment, Pace(playback.span_s, 10.0), width=width, height=height))
    lines = console.export_text().rstrip("\n").split("\n")
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert any("█" in line for line in lines) or any("░" in line for line in lines)


def test_names_cannot_steer_the_terminal():
    """Escape sequences in the names of a file's jobs, workload and cluster are not passed on."""
    from rich.console import Console

    evil = "\x1b]0;mine\x07\x9b2J\r"
    jobs = ym.Workload.of(
        submit_s=[0.0, 1.0], duration_s=[50.0, 50.0], gpus=[4, 4], id=["a", evil], name=evil
    )
    playback = Playback(ym.simulate(jobs, ym.load_cluster("1x V100:4"), "fifo"))
    file = StringIO()
    moment = playback.at(playback.begin_s + 10.0)
    Console(width=100, height=30, file=file).print(
        frame(playback, moment, Pace(playback.span_s, 10.0), width=100, height=30)
    )
    assert "waiting: job" in file.getvalue()
    assert not set("\x1b\x07\x9b\r") & set(file.getvalue())
