"""`--watch`: a schedule played back in the terminal, for people who work over SSH."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.cli.console import remark
from yardmaster.report.playback import AWAY, IDLE, Moment, Playback, clock
from yardmaster.report.values import plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from yardmaster.model.schedule import Schedule
    from yardmaster.model.workload import FloatArray

FRAMES_PER_S = 12
PLAIN_LINES = 20
"""Lines told where there is no terminal to draw on."""
WAITING_SHOWN = 4
_STEPS = " ▁▂▃▄▅▆▇█"
_SHADES = "·░▒▓█"
# Okabe and Ito's colours as the nearest of 256; distinguishable with any kind of colour vision.
_COLOURS = ("color(25)", "color(166)", "color(36)", "color(175)", "color(178)", "color(74)")
_KEYS = "space: pause   + −: speed   ← →: skip   q: leave"
_FASTER, _SKIP = 1.5, 0.05
_KEY = re.compile(r"\x1b\[[A-Z]|[^\x1b]")
_ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}


def watch(schedule: Schedule, *, seconds: float) -> None:
    """Play a schedule back within so many seconds; lines instead where there is no terminal.

    Ctrl-C and `q` leave it.
    """
    playback = Playback(schedule)
    if not sys.stderr.isatty():
        _tell(playback)
        return
    with suppress(KeyboardInterrupt):
        _play(playback, seconds)


def _tell(playback: Playback) -> None:
    """Say in a line each how the cluster stands at equal distances."""
    for share in np.linspace(0.0, 1.0, PLAIN_LINES + 1):
        moment = playback.at(playback.begin_s + float(share) * playback.span_s)
        gpus = playback.schedule.cluster.gpus
        remark(
            f"{share:4.0%}  {clock(moment.time_s)}  GPUs {moment.busy:g}/{gpus} in use,"
            f" {moment.running} running, {len(moment.waiting)} waiting,"
            f" {moment.ended}/{len(playback.schedule.workload)} ended"
        )


def _play(playback: Playback, seconds: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    pace = Pace(playback.span_s, seconds)
    with _keys() as pressed, Live(console=console, auto_refresh=False) as live:
        last = time.monotonic()
        while True:
            moment = playback.at(playback.begin_s + pace.position_s)
            width, height = console.size
            live.update(frame(playback, moment, pace, width=width, height=height), refresh=True)
            if pace.is_over:
                return
            key = pressed(1.0 / FRAMES_PER_S)
            if key == "q":
                return
            pace.press(key)
            now = time.monotonic()
            pace.advance(now - last)
            last = now


class Pace:
    """Where playback is, and how fast it goes."""

    def __init__(self, span_s: float, seconds: float) -> None:
        self.span_s = span_s
        self.speed = span_s / max(seconds, 1e-3)
        """Seconds of the workload per second of the viewer."""
        self.position_s = 0.0
        self.is_paused = False

    @property
    def is_over(self) -> bool:
        """Whether the end was reached."""
        return self.position_s >= self.span_s

    def advance(self, seconds: float) -> None:
        """Let some time of the viewer pass."""
        if not self.is_paused:
            self.position_s = min(self.position_s + seconds * self.speed, self.span_s)

    def press(self, key: str) -> None:
        """Do what a key means."""
        if key == " ":
            self.is_paused = not self.is_paused
        elif key in ("+", "=", "up"):
            self.speed *= _FASTER
        elif key in ("-", "down"):
            self.speed /= _FASTER
        elif key in ("left", "right"):
            step = _SKIP * self.span_s * (1 if key == "right" else -1)
            self.position_s = min(max(self.position_s + step, 0.0), self.span_s)


def frame(
    playback: Playback, moment: Moment, pace: Pace, *, width: int, height: int
) -> RenderableType:
    """Draw one moment: clock, curves, the nodes, and who waits."""
    from rich.console import Group
    from rich.text import Text

    schedule = playback.schedule
    done = pace.position_s / playback.span_s if playback.span_s else 1.0
    bar = max(width - 46, 10)
    filled = round(done * bar)
    state = "paused" if pace.is_paused else f"{pace.speed:,.0f}×"
    title = f"{schedule.scheduler} on {schedule.workload.name}, {schedule.cluster.name}"
    lines = [
        Text(plain(title), "bold"),
        Text(f"{clock(moment.time_s)}  {'━' * filled}{'─' * (bar - filled)} {done:4.0%}  {state}"),
        *_curves(playback, moment, done, width),
        Text(""),
    ]
    footer = [*_waiting(playback, moment), Text(_KEYS, "dim")]
    room = max(height - len(lines) - len(footer) - 1, 3)
    lines += _nodes(schedule, moment, width=width, most=room)
    everything = [*lines, *footer]
    for line in everything:
        line.truncate(width, overflow="ellipsis")
    return Group(*everything)


def _curves(playback: Playback, moment: Moment, done: float, width: int) -> list[Text]:
    """Draw utilisation and queue so far as small curves with the present number."""
    from rich.text import Text

    gpus = playback.schedule.cluster.gpus
    bins = max(width - 40, 10)
    seen = max(round(done * bins), 1)
    busy, queue = playback.utilisation(bins), playback.queue(bins)
    longest = float(np.nanmax(queue, initial=0.0))
    share = moment.busy / gpus
    return [
        Text(f"GPUs in use {moment.busy:6g} of {gpus:<6} {share:4.0%}  ").append(
            sparkline(busy[:seen], 1.0), "color(36)"
        ),
        Text(f"jobs waiting{len(moment.waiting):6} of {moment.submitted:<6}       ").append(
            sparkline(queue[:seen], longest), "color(166)"
        ),
    ]


def sparkline(values: FloatArray, top: float) -> str:
    """Write values as blocks of eight heights, `top` being the highest."""
    shares = np.clip(np.nan_to_num(values) / top, 0.0, 1.0) if top > 0 else np.zeros(len(values))
    return "".join(_STEPS[int(np.ceil(share * 8))] for share in shares)


def _nodes(schedule: Schedule, moment: Moment, *, width: int, most: int) -> list[Text]:
    """Draw every GPU, a line per node; or every node as one shade where there are too many."""
    from rich.text import Text

    cluster = schedule.cluster
    first = cluster.node_first_gpu
    head = 18
    wrapped = max(width - head, 8)
    rows = int(np.ceil(cluster.node_gpus / wrapped).sum())
    if rows > most:
        return _shades(schedule, moment, width=width, most=most)
    lines = []
    for node in range(cluster.nodes):
        kind = plain(cluster.gpu_types[int(cluster.node_type[node])].name)
        jobs = moment.gpu_job[first[node] : first[node] + cluster.node_gpus[node]].tolist()
        for begin in range(0, len(jobs), wrapped):
            name = f"node {node} {kind}" if begin == 0 else ""
            line = Text(f"{name[: head - 2]:<{head}}")
            for job in jobs[begin : begin + wrapped]:
                _add_gpu(line, job)
            lines.append(line)
    return lines


def _add_gpu(line: Text, job: int) -> None:
    if job == IDLE:
        line.append("·", "dim")
    elif job == AWAY:
        line.append("×", "red")
    else:
        line.append("█", _COLOURS[job % len(_COLOURS)])


def _shades(schedule: Schedule, moment: Moment, *, width: int, most: int) -> list[Text]:
    """Draw nodes as one shade each, or several nodes together where even that is too many."""
    from rich.text import Text

    cluster = schedule.cluster
    in_use = np.bincount(cluster.gpu_node, moment.gpu_job >= 0, minlength=cluster.nodes)
    share = in_use / cluster.node_gpus
    together = max(-(-cluster.nodes // (width * max(most - 1, 1))), 1)
    groups = [share[at : at + together].mean() for at in range(0, cluster.nodes, together)]
    marks = "".join(_SHADES[int(np.ceil(one * (len(_SHADES) - 1)))] for one in groups)
    each = "a node" if together == 1 else f"{together} nodes"
    title = f"{cluster.nodes} nodes, each mark is {each}: {_SHADES[0]} idle … {_SHADES[-1]} full"
    return [
        Text(title, "dim"),
        *(Text(marks[at : at + width]) for at in range(0, len(marks), width)),
    ]


def _waiting(playback: Playback, moment: Moment) -> list[Text]:
    """Name the jobs that have waited longest."""
    from rich.text import Text

    jobs = playback.schedule.workload
    lines = [Text("")]
    for row in moment.waiting[:WAITING_SHOWN].tolist():
        hours = (moment.time_s - float(jobs.submit_s[row])) / 3600.0
        lines.append(
            Text(f"waiting: job {plain(jobs.id[row])}, {jobs.gpus[row]} GPUs, since {hours:.1f} h")
        )
    lines += [Text("")] * (WAITING_SHOWN + 1 - len(lines))
    return lines


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a question: which key was pressed within so many seconds? Empty if none."""
    if not sys.stdin.isatty():
        yield _wait
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    pending: list[str] = []

    def pressed(seconds: float) -> str:
        if not pending and select.select([terminal], [], [], seconds)[0]:
            pending.extend(_KEY.findall(os.read(terminal, 64).decode(errors="ignore")))
        key = pending.pop(0) if pending else ""
        return _ARROWS.get(key, key)

    try:
        tty.setcbreak(terminal)
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""
