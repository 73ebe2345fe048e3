"""Scalars for TensorBoard, where tensorboardX is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError


class TensorBoard:
    """Event files of a run; does nothing where they are not wanted."""

    def __init__(self, folder: Path, *, wanted: bool | None, from_step: int) -> None:
        """Open the event files.

        Args:
            folder: where they go.
            wanted: None for "if tensorboardX is there".
            from_step: hide what an earlier process wrote for later steps.

        Raises:
            YardmasterError: if they are wanted and tensorboardX is missing.
        """
        is_there = find_spec("tensorboardX") is not None
        if wanted and not is_there:
            raise YardmasterError(
                "TensorBoard files need tensorboardX: pip install tensorboardX, or"
                " --no-tensorboard."
            )
        self._writer: Any = None
        if is_there and wanted is not False:
            purge = {"purge_step": from_step} if from_step else {}
            library = import_module("tensorboardX")
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
