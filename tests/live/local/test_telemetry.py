"""Telemetry: the host always, GPUs where NVML tells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yardmaster.live.audit import read_lines
from yardmaster.live.clock import LiveClock
from yardmaster.live.local.telemetry import Host, Nvml, Sampler

FAKE = r"""
#include <string.h>
typedef unsigned long long u64;
static u64 energy = 5000;
int nvmlInitWithFlags(unsigned f) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(u64)(i + 1); return 0; }
int nvmlDeviceGetUUID(void *h, char *s, unsigned n) {
    strcpy(s, h == (void *)1 ? "GPU-one" : "GPU-two"); return 0; }
int nvmlDeviceGetName(void *h, char *s, unsigned n) { strcpy(s, "NVIDIA H200"); return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *h, u64 *e) {
    if (h == (void *)2) return 3; *e = energy; energy += 2500; return 0; }
int nvmlDeviceGetUtilizationRates(void *h, unsigned *u) { u[0] = 77; u[1] = 5; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, u64 *m) { m[0] = 1ull << 34; m[1] = 0; m[2] = 3ull << 20;
    return 0; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *p) { *p = 250500; return 0; }
int nvmlDeviceGetTemperature(void *h, int s, unsigned *t) { *t = 41; return 0; }
"""
ASK = """
import json
from yardmaster.live.local.telemetry import Nvml
nvml = Nvml()
print(json.dumps([[d.record() for d in nvml.devices], nvml.sample(), nvml.sample()]))
"""


def test_gpus_are_read_through_nvml(tmp_path):
    """Energy is the difference of the card's counter; what a card does not tell is null."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a library that stands for NVML")
    pytest.importorskip("pynvml")
    (tmp_path / "nvml.c").write_text(FAKE)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-w", "-o", str(library), str(tmp_path / "nvml.c")],
        check=True,
    )
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], check=True, capture_output=True, text=True, env=environment
    )
    devices, first, second = json.loads(done.stdout)
    assert [device["uuid"] for device in devices] == ["GPU-one", "GPU-two"]
    assert first[0]["utilisation_percent"] == 77
    assert first[0]["power_w"] == 250.5
    assert first[0]["temperature_c"] == 41
    assert (first[0]["energy_j"], second[0]["energy_j"]) == (2.5, 5.0)
    assert first[1]["energy_j"] is None


def test_without_gpus_there_is_a_reason():
    """Either there are GPUs, or a sentence says why not, and samples are empty."""
    nvml = Nvml()
    assert bool(nvml.devices) != bool(nvml.reason)
    assert len(nvml.sample()) == len(nvml.devices)


def test_the_host_is_sampled_from_proc():
    """The first look has nothing to compare with; the second says how busy the cores were."""
    host = Host()
    assert host.sample()["cpu_percent"] is None
    until = time.monotonic() + 0.15
    while time.monotonic() < until:
        pass
    sample = host.sample()
    assert 0 <= sample["cpu_percent"] <= 100
    assert sample["memory_gib"] > 0


def test_samples_come_at_their_period(tmp_path):
    """A sampler at 20 Hz writes about so many lines, in order, and stops when told."""
    path = Path(tmp_path / "telemetry.jsonl")
    sampler = Sampler(path, Nvml(), LiveClock.since(time.time()), every_s=0.05)
    sampler.start()
    time.sleep(0.5)
    sampler.stop()
    times = [line["time_s"] for line in read_lines(path)]
    assert 4 <= len(times) <= 12
    assert times == sorted(times)
