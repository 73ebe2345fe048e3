"""Whether the scheduler of a live run still works, told by the file that it touches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SILENT_S = 30.0
"""Without a sign of life for so long, a run counts as gone."""


def live_state(path: Path, about: Mapping[str, Any]) -> str:
    """Return the state that live.json tells; `silent` if it says running and nobody stirs."""
    state = str(about.get("state", "unknown"))
    try:
        seen_s = (path / "heartbeat.json").lstat().st_mtime
    except OSError:
        seen_s = float(about.get("began_unix_s") or 0.0)
    return "silent" if state == "running" and time.time() - seen_s > SILENT_S else state
