"""Weights of a network and a header, as a file that needs nothing but NumPy to read.

It is an uncompressed `.npz` of 32-bit arrays and a header in JSON: reading it cannot run code.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.errors import YardmasterError
from yardmaster.workloads.files import missing, whole_file

Weights = Mapping[str, npt.NDArray[np.float32]]


class PolicyFileError(YardmasterError):
    """A policy file that cannot be used."""


def write_weights(path: Path, header: Mapping[str, Any], weights: Weights) -> None:
    """Write a header and weights; a file of that name is replaced only when all is written.

    Raises:
        YardmasterError: if the file cannot be written.
    """
    shapes = {name: list(array.shape) for name, array in weights.items()}
    text = json.dumps({**header, "weights": shapes}, ensure_ascii=False)
    arrays: dict[str, Any] = {"header": np.frombuffer(text.encode(), dtype=np.uint8)}
    arrays |= {name: np.asarray(array, np.float32) for name, array in weights.items()}
    with whole_file(path, overwrite=True) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)


def read_weights(path: Path, kind: str, version: int) -> tuple[dict[str, Any], Weights]:
    """Read the header and the weights of a file of a kind.

    Raises:
        YardmasterError: if the file is not there.
        PolicyFileError: if it is damaged, of another kind, or of another version.
    """
    if not path.is_file():
        raise missing(path)
    try:
        # From memory: of a damaged archive, NumPy would leave the file open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise PolicyFileError(f"{path} is no policy file, or a damaged one.") from error
    header = _header(path, content, kind, version)
    if not isinstance(header.get("weights"), dict):
        raise PolicyFileError(f"{path} is a damaged policy file: its header lacks 'weights'.")
    return header, _weights(path, header["weights"], content)


def _header(
    path: Path, content: Mapping[str, npt.NDArray[Any]], kind: str, version: int
) -> dict[str, Any]:
    try:
        header = json.loads(content["header"].tobytes())
    except (KeyError, ValueError):
        raise PolicyFileError(f"{path} is no policy file: it has no header.") from None
    if not isinstance(header, dict) or header.get("format") != kind:
        raise PolicyFileError(f"{path} is no {kind.removeprefix('yardmaster ')} file.")
    if header.get("version") != version:
        raise PolicyFileError(
            f"{path} is a {kind.removeprefix('yardmaster ')} file of version"
            f" {header.get('version')}; this program reads version {version}."
        )
    return header


def _weights(
    path: Path, shapes: dict[str, list[int]], content: Mapping[str, npt.NDArray[Any]]
) -> Weights:
    absent = [name for name in shapes if name not in content]
    if absent:
        raise PolicyFileError(f"{path} is a damaged policy file: it lacks {', '.join(absent)}.")
    for name, shape in shapes.items():
        array = content[name]
        if array.dtype != np.float32 or list(array.shape) != shape:
            raise PolicyFileError(
                f"{path} is a damaged policy file: {name} is {array.dtype} {list(array.shape)}"
                f" instead of float32 {shape}."
            )
        if not np.isfinite(array).all():
            raise PolicyFileError(f"{path}: {name} holds numbers that are not finite.")
    return {name: content[name] for name in shapes}
