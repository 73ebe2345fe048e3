"""The keeper of one attempt, on its node: starts the command, and ends it if Ray lets go of it.

Ray does not end what a job started when a node is lost to it. So the command does not hang on Ray:
a keeper of ours, a process of its own, runs it at the gate of `local.attempts`, and listens to the
reservation in Ray through a pipe. A word asks the command to end; a closed pipe says that the
reservation, or its whole node, is gone, and then the command is killed before Ray, which notices
later, lets anybody start it elsewhere.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.folder import read_json, write_json
from yardmaster.live.local.attempts import EXIT, MARK, Attempt
from yardmaster.live.local.processes import Process, boot_id
from yardmaster.live.ray.occupants import GPUS, kill_marked, occupants
from yardmaster.live.ray.orders import CLAIM, Order, claim, view

KEEPER, CLOSER = "keeper", "closer"
REFUSED, LOST, TIMED_OUT = "refused.json", "lost", "timed-out"
BUSY, CANNOT_START = "busy", "cannot start"
LONGEST_PAUSE_S = 1.0
TAIL_BYTES = 1 << 20
LOGS = ("stdout.log", "stderr.log")


def main() -> None:
    """Keep the attempt that standard input tells of; let our parent go at once.

    Nobody's child, the keeper is not ended with the children of a worker of Ray.
    """
    if os.fork():
        os._exit(0)
    told = _first_line(0)
    if told is None:
        return
    message = json.loads(told)
    _Keeper(Order.of(message["order"]), message["gpus"], Path(message["place"])).keep(0)


def _first_line(line: int) -> bytes | None:
    """Read up to the first newline; None if whoever writes went away before."""
    told = b""
    while not told.endswith(b"\n"):
        part = os.read(line, 1)
        if not part:
            return None
        told += part
    return told


class _Keeper:
    """One attempt, from its claim to its end."""

    def __init__(self, order: Order, gpus: Sequence[str], place: Path) -> None:
        self._order, self._gpus = order, list(gpus)
        self._attempt = Attempt(place)
        self._due_s = math.inf
        self._kill_s = math.inf

    def keep(self, line: int) -> None:
        """Run the command once, if nobody has; return when it is over."""
        path = self._attempt.path
        if not claim(path, KEEPER):
            return
        busy = occupants(self._gpus)
        if busy:
            write_json(path / REFUSED, {"why": BUSY, "detail": ", ".join(busy)})
            return
        try:
            process, popen = self._launch()
        except YardmasterError as error:
            write_json(path / REFUSED, {"why": CANNOT_START, "detail": str(error)})
            return
        self._due_s = time.monotonic() + (self._order.timeout_s or math.inf)
        self._watch(process, line)
        popen.wait()
        if self._kill_s <= time.monotonic():
            self._attempt.note_killed()
        self._attempt.ending()
        mark = f"{MARK}={path.resolve()}"
        process.kill_leftovers(mark)
        if (path / LOST).exists():
            kill_marked(mark)  # it may be started elsewhere now: nothing of it may go on here

    def _launch(self) -> tuple[Process, subprocess.Popen[bytes]]:
        order, now = self._order, time.time()
        return self._attempt.launch(
            order.command,
            folder=order.folder,
            environment=_environment(order, self._gpus, self._attempt.path),
            facts={
                "start_s": now - order.began_unix_s,
                "start_unix_s": now,
                "slots": [_slot(name) for name in self._gpus],
                "devices": self._gpus,
                "node": order.node,
            },
        )

    def _watch(self, process: Process, line: int) -> None:
        """Wait for the command's end; end it when it is time, or nobody is left who wants it."""
        poll = select.poll()
        poll.register(line, select.POLLIN)
        poll.register(os.pidfd_open(process.pid), select.POLLIN)
        while process.is_alive():
            ready = [descriptor for descriptor, _ in poll.poll(1000 * self._pause_s())]
            if line in ready and os.read(line, 4096):
                self._attempt.mark_stopped()
                self._end(process)
            elif line in ready:
                poll.unregister(line)
                (self._attempt.path / LOST).touch()
                self._kill_s = -math.inf
            now = time.monotonic()
            if now >= self._due_s:
                self._due_s = math.inf
                (self._attempt.path / TIMED_OUT).touch()
                self._end(process)
            if now >= self._kill_s:
                process.signal_group(signal.SIGKILL)

    def _end(self, process: Process) -> None:
        self._kill_s = min(self._kill_s, time.monotonic() + self._order.grace_s)
        process.signal_group(signal.SIGTERM)

    def _pause_s(self) -> float:
        left_s = min(self._due_s, self._kill_s) - time.monotonic()
        return max(min(left_s, LONGEST_PAUSE_S), 0.01)


def _slot(gpu: str) -> int | str:
    """Return the number of a GPU on its node, or the name of a card."""
    number = gpu.rpartition("/")[2]
    return int(number) if number.isdigit() else number


def _environment(order: Order, gpus: Sequence[str], place: Path) -> dict[str, str]:
    """Return the command's environment: the node's own, without what Ray tells its workers."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RAY_") or name.startswith(("RAY_ADDRESS", "RAY_AUTH"))
    }
    return {
        **kept,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "YARDMASTER_JOB": order.job,
        "YARDMASTER_ATTEMPT": str(order.attempt),
        "YARDMASTER_NODE": order.node,
        **dict(order.environment),
        GPUS: ",".join(gpus),
        MARK: str(place.resolve()),
    }


# what a folder says


def report_of(place: Path) -> dict[str, Any]:
    """Return how an attempt stands, as its folder says on its own node.

    `state`: unclaimed, never (it will never run), starting, refused, running, ended, lost (the
    machine was started anew), or unknown (these are another machine's processes).
    """
    path = place / CLAIM
    if not path.exists():
        return {"state": "unclaimed"}
    claimed = read_json(path)
    if claimed["by"] == CLOSER:
        return {"state": "never"}
    if (place / REFUSED).exists():
        return {"state": "refused", **read_json(place / REFUSED)}
    attempt = Attempt(place)
    if (place / EXIT).exists():
        return _ended(attempt)
    state = _unended(attempt, claimed)
    return _ended(attempt) if state == "ended" else {"state": state, **_facts(attempt)}


def _unended(attempt: Attempt, claimed: Mapping[str, Any]) -> str:
    """Return how an attempt stands of which no exit code was there a moment ago."""
    if claimed["view"] != view():
        is_reboot = claimed["host"] == os.uname().nodename and claimed["boot"] != boot_id()
        return "lost" if is_reboot else "unknown"
    keeper = Process(int(claimed["pid"]), int(claimed["pid_start"]), str(claimed["boot"]))
    if keeper.is_alive():
        return "running" if attempt.has_begun() else "starting"
    if attempt.ending() is not None:
        return "ended"
    process = attempt.process()
    return "running" if process is not None and process.is_alive() else "never"


def _ended(attempt: Attempt) -> dict[str, Any]:
    ending = attempt.ending()
    assert ending is not None  # noqa: S101  (its exit code is there)
    return {
        "state": "ended",
        "exit_code": ending.exit_code,
        "end_unix_s": ending.end_unix_s,
        "is_lost": (attempt.path / LOST).exists(),
        "is_stopped": attempt.is_stopped,
        "timed_out": (attempt.path / TIMED_OUT).exists(),
        **_facts(attempt),
    }


def _facts(attempt: Attempt) -> Mapping[str, Any]:
    facts = attempt.facts() or {}
    return {name: facts[name] for name in ("start_unix_s", "slots", "devices") if name in facts}


def close_and_look(order: Order) -> dict[str, Any]:
    """Close an attempt that nobody has claimed, so that it never runs; return how it stands."""
    place = order.place()
    claim(place, CLOSER)
    report = report_of(place)
    if report["state"] == "ended" and not place.is_relative_to(order.run_folder):
        report["tails"] = tails_of(place)
    return report


def tails_of(place: Path) -> dict[str, bytes]:
    """Return the ends of an attempt's logs."""
    found = {}
    for name in LOGS:
        path = place / name
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
                found[name] = file.read()
    return found


if __name__ == "__main__":
    main()
