"""Checkpoints: a learner's state in one file, whole or not at all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from yardmaster.errors import YardmasterError

FORMAT = "yardmaster-checkpoint"
VERSION = 1
_ARRAY, _SCALAR = "numpy array", "numpy scalar"
"""Keys under which a tensor stands for what NumPy made."""


class CheckpointError(YardmasterError):
    """A checkpoint that cannot be read or does not belong here."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A learner at one moment, with what is needed to build it again.

    All parts are plain values, arrays and tensors.
    """

    learner: str
    """Its name in `yardmaster.agents.learners.LEARNERS`."""
    config: Mapping[str, Any]
    """The run's resolved configuration: tables `task`, `learner`, `train`."""
    state: Mapping[str, Any]
    """What the learner's `state()` returned; of the best policy only its `network`."""
    standing: Mapping[str, Any]
    """Where the run stood: steps, updates, seconds, the best so far."""


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; if that is cut short, the file that was there before stays.

    Raises:
        CheckpointError: if it cannot be written.
    """
    content = {field.name: getattr(checkpoint, field.name) for field in fields(checkpoint)}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as file:
            torch.save({"format": FORMAT, "version": VERSION} | _packed(content), file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        raise CheckpointError(f"Cannot write the checkpoint {path}: {error}.") from None
    finally:
        unfinished.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, its tensors on the CPU. Nothing in the file is executed.

    Raises:
        CheckpointError: if there is none, it is damaged, is something else, or was written by a
            version that this one does not understand.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint {path}.") from None
    except OSError as error:
        raise CheckpointError(f"Cannot read the checkpoint {path}: {error.strerror}.") from None
    try:
        with file:
            content = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError):
        # What torch says is long, and advises to trust the file.
        raise CheckpointError(f"{path} is damaged, or not a checkpoint.") from None
    return _checked(content, path)


def _checked(content: Any, path: Path) -> Checkpoint:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of yardmaster.")
    if content.get("version") != VERSION:
        raise CheckpointError(
            f"{path} is a checkpoint of version {content.get('version')}; this is version"
            f" {VERSION}. Read it with the version of yardmaster that wrote it."
        )
    missing = [field.name for field in fields(Checkpoint) if field.name not in content]
    if missing:
        raise CheckpointError(f"{path} is damaged: it has no {', '.join(missing)}.")
    return Checkpoint(
        **{field.name: _unpacked(content[field.name]) for field in fields(Checkpoint)}
    )


def _packed(value: Any) -> Any:
    """Return a value with tensors in place of arrays, which torch stores quickly and safely."""
    if isinstance(value, Mapping):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_packed, value))
    if isinstance(value, np.ndarray | np.generic):
        # torch refuses arrays that run backwards or must not be written to.
        is_fit = (
            isinstance(value, np.ndarray) and value.flags.c_contiguous and value.flags.writeable
        )
        array = value if is_fit else np.array(value, order="C")
        return {_ARRAY if isinstance(value, np.ndarray) else _SCALAR: torch.from_numpy(array)}
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return value[_ARRAY].numpy()
        if value.keys() == {_SCALAR}:
            return value[_SCALAR].numpy()[()]
        return {key: _unpacked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unpacked, value))
    return value
