"""Where a training run comes from, for `run.json`: command, versions, machine."""

from __future__ import annotations

import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_LIBRARIES = ("yardmaster", "numpy", "numba", "torch")


def provenance() -> dict[str, Any]:
    """Return the command as it was typed, and what it runs on."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "started": now(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: _version(name) for name in _LIBRARIES},
    }


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:  # run from its sources, without having been installed
        return None
