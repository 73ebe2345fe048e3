"""Who is on a GPU, whatever Ray believes: what our jobs left behind, and what NVML sees there.

Ray counts a GPU as free as soon as whoever reserved it is gone, even where processes live on.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from yardmaster.live.local.processes import process_of
from yardmaster.live.local.slots import Device
from yardmaster.live.local.telemetry import Nvml

GPUS = "YARDMASTER_RAY_GPUS"
"""By this variable the processes of our jobs say which GPUs they were given."""
_PROC = Path("/proc")


def identities(numbers: Sequence[str | int], node: str, devices: Sequence[Device]) -> list[str]:
    """Return names of GPUs that outlive Ray's nodes: the card's own, else the node's and a number.

    Args:
        numbers: what Ray calls the GPUs it gave: numbers, or the names of cards.
        node: name of the node.
        devices: the real GPUs there, in NVML's order.
    """
    named = []
    for number in map(str, numbers):
        is_real = number.isdigit() and int(number) < len(devices)
        whole = devices[int(number)].uuid if is_real else number
        named.append(f"{node}/{whole}" if whole.isdigit() else whole)
    return named


def occupants(gpus: Sequence[str], nvml: Nvml | None = None) -> list[str]:
    """Return who is on these GPUs now, in words; nobody: they are really free."""
    return [*_left_behind(frozenset(gpus)), *_computing(frozenset(gpus), nvml or Nvml())]


def kill_marked(mark: str) -> int:
    """Kill every process that carries this entry in its environment; return how many those were."""
    marked = [pid for pid, cells in _environments() if mark.encode() in cells]
    for pid in marked:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(marked)


def _left_behind(gpus: frozenset[str]) -> Iterator[str]:
    """Yield living processes of our jobs that were given one of these GPUs."""
    for pid, cells in _environments():
        told = dict(cell.partition(b"=")[::2] for cell in cells)
        given = told.get(GPUS.encode(), b"").decode(errors="replace").split(",")
        process = process_of(pid)
        if gpus.isdisjoint(given) or process is None or not process.is_alive():
            continue
        job = told.get(b"YARDMASTER_JOB", b"?").decode(errors="replace")
        yield f"process {pid} of job {job}"


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the processes that we may look into, and what they were started with."""
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            yield int(entry.name), (_PROC / entry.name / "environ").read_bytes().split(b"\0")
        except OSError:  # gone, or somebody else's
            continue


def _computing(gpus: frozenset[str], nvml: Nvml) -> Iterator[str]:
    """Yield processes that NVML sees computing on one of these GPUs."""
    mine = [device for device in nvml.devices if device.uuid in gpus]
    if not mine:
        return
    library: Any = importlib.import_module("pynvml")
    for device in mine:
        try:
            handle = library.nvmlDeviceGetHandleByUUID(device.uuid)
            found = library.nvmlDeviceGetComputeRunningProcesses(handle)
        except library.NVMLError:
            continue  # the card does not tell
        for process in found:
            yield f"process {process.pid} computing on {device.uuid}"
