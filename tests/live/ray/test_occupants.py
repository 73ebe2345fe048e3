"""Names of GPUs that outlive Ray's nodes."""

from __future__ import annotations

import os
import subprocess
import time

from yardmaster.live.local.slots import Device
from yardmaster.live.ray.occupants import identities, kill_marked


def test_a_card_is_known_by_its_own_name():
    """Real GPUs are named by their UUID, pretended ones by the node and a number."""
    cards = [Device(0, "GPU-aa", "NVIDIA H100"), Device(1, "GPU-bb", "NVIDIA H100")]
    assert identities([1, "0"], "n1", cards) == ["GPU-bb", "GPU-aa"]
    assert identities(["GPU-cc"], "n1", cards) == ["GPU-cc"]
    assert identities([0, 3], "n1", []) == ["n1/0", "n1/3"]


def test_only_what_carries_the_mark_is_killed():
    """Of two processes, the one with our entry in its environment is ended."""
    marked = subprocess.Popen(["/bin/sleep", "60"], env=os.environ | {"YARDMASTER_FOLDER": "/x/1"})
    other = subprocess.Popen(["/bin/sleep", "60"], env=os.environ | {"YARDMASTER_FOLDER": "/x/12"})
    time.sleep(0.1)
    assert kill_marked("YARDMASTER_FOLDER=/x/1") == 1
    assert marked.wait(5) == -9
    assert other.poll() is None
    other.kill()
    other.wait()
