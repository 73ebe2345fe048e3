"""What the machine does, once a second: GPUs by NVML, the host by /proc."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.live.audit import JsonLines
from yardmaster.live.clock import LiveClock
from yardmaster.live.local.slots import Device

KIB_PER_GIB = 1 << 20


class Nvml:
    """The GPUs of this machine, as NVML tells; none, and a reason, where it cannot."""

    def __init__(self) -> None:
        """Ask NVML which GPUs there are."""
        self.reason = ""
        self.devices: tuple[Device, ...] = ()
        self._handles: list[Any] = []
        self._nvml: Any = None
        self._began_mj: list[float | None] = []
        try:
            nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            self.reason = "the package nvidia-ml-py is not installed"
            return
        self._nvml = nvml
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
            self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
            self.devices = tuple(
                Device(index, _text(nvml.nvmlDeviceGetUUID(handle)),
                       _text(nvml.nvmlDeviceGetName(handle)))
                for index, handle in enumerate(self._handles)
            )  # fmt: skip
        except nvml.NVMLError as error:
            self._handles, self.devices = [], ()
            self.reason = f"NVML: {error}"
            return
        if not self.devices:
            self.reason = "NVML: this machine has no NVIDIA GPU"
        self._began_mj = [self._ask("nvmlDeviceGetTotalEnergyConsumption", one)
                          for one in self._handles]  # fmt: skip

    def _ask(self, name: str, handle: Any, *more: Any) -> Any:
        """Return what a call says, None where this card or driver does not tell."""
        try:
            return getattr(self._nvml, name)(handle, *more)
        except self._nvml.NVMLError:
            return None

    def energy_j(self, index: int) -> float | None:
        """Return the joules a GPU has used since we began, from its own counter."""
        began = self._began_mj[index]
        now = self._ask("nvmlDeviceGetTotalEnergyConsumption", self._handles[index])
        return None if now is None or began is None else (now - began) / 1000.0

    def sample(self) -> list[dict[str, Any]]:
        """Return what each GPU does now."""
        found = []
        for device, handle in zip(self.devices, self._handles, strict=True):
            rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
            power_mw = self._ask("nvmlDeviceGetPowerUsage", handle)
            found.append(
                {
                    "index": device.index,
                    "uuid": device.uuid,
                    "utilisation_percent": None if rates is None else int(rates.gpu),
                    "memory_mib": None if memory is None else round(memory.used / (1 << 20)),
                    "power_w": None if power_mw is None else power_mw / 1000.0,
                    "energy_j": self.energy_j(device.index),
                    "temperature_c": self._ask("nvmlDeviceGetTemperature", handle, 0),
                }
            )
        return found


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass(slots=True)
class Host:
    """The host's own load, from /proc; what a system does not tell is None."""

    _busy: float = 0.0
    _total: float = 0.0

    def sample(self) -> dict[str, Any]:
        """Return how busy the host is, since the last call."""
        return {
            "cpu_percent": self._cpu_percent(),
            "load": round(os.getloadavg()[0], 2),
            "memory_gib": _memory_gib(),
        }

    def _cpu_percent(self) -> float | None:
        try:
            numbers = [
                float(cell)
                for cell in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
            ]
        except (OSError, ValueError):
            return None
        total = sum(numbers)
        busy = total - numbers[3] - numbers[4]  # idle, and idle while waiting for disks
        span, used = total - self._total, busy - self._busy
        is_first = self._total == 0.0
        self._busy, self._total = busy, total
        return None if is_first or span <= 0 else round(100.0 * used / span, 1)


def _memory_gib() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kib = {line.partition(":")[0]: line.split()[1] for line in lines if len(line.split()) > 1}
    if "MemTotal" not in kib or "MemAvailable" not in kib:
        return None
    return round((int(kib["MemTotal"]) - int(kib["MemAvailable"])) / KIB_PER_GIB, 3)


class Sampler:
    """A thread that writes one sample a period, until it is stopped."""

    def __init__(self, path: Path, nvml: Nvml, clock: LiveClock, *, every_s: float = 1.0) -> None:
        """Open the file of samples; nothing is sampled before `start`."""
        self._lines = JsonLines(path)
        self._nvml, self._clock, self._every_s = nvml, clock, every_s
        self._host = Host()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self.start: Callable[[], None] = self._thread.start

    def _run(self) -> None:
        self._host.sample()
        due = time.monotonic()
        while not self._stop.is_set():
            self._lines.write(
                {
                    "time_s": round(self._clock.time_s(), 3),
                    "unix_s": round(time.time(), 3),
                    **self._host.sample(),
                    "gpus": self._nvml.sample(),
                }
            )
            due = max(due + self._every_s, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def stop(self) -> None:
        """Stop sampling and close the file."""
        self._stop.set()
        self._thread.join()
        self._lines.close()
