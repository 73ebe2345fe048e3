"""Scalars for TensorBoard, where tensorboardX is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from yardmaster.errors import YardmasterError


def event_library(*, wanted: bool | None) -> ModuleType | None:
    """Return the library that writes event files; None if they are not wanted.

    Args:
        wanted: None for "if the library is there".

    Raises:
        YardmasterError: if they are wanted and the library is missing.
    """
    if wanted is False:
        return None
    try:
        return import_module("tensorboardX")
    except ImportError:
        if wanted is None:
            return None
        raise YardmasterError(
            "TensorBoard files need tensorboardX: pip install tensorboardX, or --no-tensorboard."
        ) from None


class TensorBoard:
    """Event files of a run; does nothing where they are not wanted."""

    def __init__(self, library: ModuleType | None, folder: Path, *, from_step: int) -> None:
        """Open the event files.

        Args:
            library: what `event_library` returned.
            folder: where they go.
            from_step: hide what an earlier process wrote for later steps.
        """
        self._writer: Any = None
        if library is not None:
            # A purge takes its own step with it, which this run keeps.
            purge = {"purge_step": from_step + 1} if from_step else {}
            self._writer = library.SummaryWriter(logdir=str(folder), **purge)

    def add(self, group: str, scalars: Mapping[str, float], steps: int) -> None:
        """Write some scalars for a step."""
        if self._writer is not None:
            for name, value in scalars.items():
                self._writer.add_scalar(f"{group}/{name}", value, steps)

    def close(self) -> None:
        """Write out what is pending."""
        if self._writer is not None:
            self._writer.close()
