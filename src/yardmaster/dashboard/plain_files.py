"""Files of runs, which may come from anybody: only ordinary ones are opened, and no links.

A link may lead anywhere on the machine, and who opens a pipe waits until somebody writes to it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST_TEXT = 32_000_000
"""Bytes of a text file that is read as a whole."""
DEEPEST = 2
"""A run's own files, and those of the folders in it: what is read of a run."""


def open_plain(path: Path) -> BinaryIO:
    """Open an ordinary file for reading.

    Raises:
        OSError: if it is a link, a pipe or a device, or cannot be opened.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not an ordinary file", str(path))
    return os.fdopen(number, "rb")


def read_plain(path: Path, most: int = LARGEST_TEXT) -> str:
    """Return what an ordinary file says.

    Raises:
        OSError: if it is no ordinary file, is larger than `most` bytes, or cannot be read.
        ValueError: if it is not UTF-8.
    """
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, "too large", str(path))
    return content.decode("utf-8")


def trap_in(folder: Path, within: Path, deepest: int = DEEPEST) -> str:
    """Return the name of something in a folder that must not be opened; empty if there is none.

    That is a link that leads out of `within`, and a pipe.
    """
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return ""
    for entry in found:
        if entry.is_symlink():
            if not Path(os.path.realpath(entry.path)).is_relative_to(within):
                return entry.name
        elif entry.is_dir(follow_symlinks=False):
            below = trap_in(Path(entry.path), within, deepest - 1) if deepest > 1 else ""
            if below:
                return f"{entry.name}/{below}"
        elif not entry.is_file(follow_symlinks=False) and stat.S_ISFIFO(entry.stat().st_mode):
            return entry.name
    return ""
