"""A trained policy as a file that needs nothing but NumPy to read.

It is an uncompressed `.npz` of 32-bit weights and a header in JSON. A layer `x` is `x.weight`,
inputs × units, and `x.bias`. By architecture:

- `mlp`: `hidden.0`, `hidden.1`, … over the whole observation;
- `kernel`: the first layer in two parts, `token` (no bias) and `context` (globals, then GPU slots);
  `noop`, which the no-op has in place of what `token` makes of a job; `hidden.0`, …;
- `self-attention`: `job.0`, `job.1` and `noop` make tokens; `query`, `key`, `value`, `out` and
  `norm` (`.scale`, `.shift`) let them look at each other; then as `kernel`, without its `noop`;
- `cross-attention`: `job.0`, `job.1`, `gpu.0`, `gpu.1`, and if there are globals `globals.0`,
  `globals.1` make tokens; jobs look at GPU slots as above; `add_globals`; `last_norm`.

Then `head.0`, …, of which the last is linear, for one action or with `mlp` for all; and except with
`mlp` a `noop_bias`. If there is a `support`, the head makes logits of a distribution over these
values, and preferences are expectations; with `state.0`, … (from the mean embedding; the last is
linear) a dueling network's, whose advantages are averaged over legal actions.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import YardmasterError
from yardmaster.workloads.files import missing, whole_file

FORMAT = "yardmaster policy"
VERSION = 1

Weights = Mapping[str, npt.NDArray[np.float32]]


class PolicyFileError(YardmasterError):
    """A policy file that cannot be used."""


@dataclass(frozen=True, eq=False, slots=True)
class PolicyFile:
    """A trained policy: what it looks at, its network, and where it comes from."""

    architecture: str
    layout: Layout
    sight: dict[str, Any]
    """Settings of what it sees, as plain values."""
    weights: Weights
    """32-bit arrays by name; see above."""
    about: dict[str, Any] = field(default_factory=dict)
    """Learner, steps, scores: plain values, for people."""


def write_policy(path: Path, policy: PolicyFile) -> None:
    """Write a policy; a file of that name is replaced only when all is written.

    Raises:
        YardmasterError: if the file cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": VERSION,
        "architecture": policy.architecture,
        "layout": asdict(policy.layout),
        "sight": policy.sight,
        "about": policy.about,
        "weights": {name: list(array.shape) for name, array in policy.weights.items()},
    }
    text = json.dumps(header, ensure_ascii=False)
    arrays: dict[str, Any] = {"header": np.frombuffer(text.encode(), dtype=np.uint8)}
    arrays |= {name: np.asarray(array, np.float32) for name, array in policy.weights.items()}
    with whole_file(path, overwrite=True) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)


def read_policy(path: Path) -> PolicyFile:
    """Read a policy.

    Raises:
        YardmasterError: if the file is not there.
        PolicyFileError: if it is damaged, no policy, or of another version.
    """
    if not path.is_file():
        raise missing(path)
    try:
        # From memory: of a damaged archive, NumPy would leave the file open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise PolicyFileError(f"{path} is no policy file, or a damaged one.") from error
    header = _header(path, content)
    try:
        return PolicyFile(
            architecture=str(header["architecture"]),
            layout=_layout(header["layout"]),
            sight=dict(header["sight"]),
            weights=_weights(path, header["weights"], content),
            about=dict(header["about"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PolicyFileError(
            f"{path} is a damaged policy file: its header lacks {error}."
        ) from None


def _header(path: Path, content: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    try:
        header = json.loads(content["header"].tobytes())
    except (KeyError, ValueError):
        raise PolicyFileError(f"{path} is no policy file: it has no header.") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise PolicyFileError(f"{path} is no policy file.")
    if header.get("version") != VERSION:
        raise PolicyFileError(
            f"{path} is a policy file of version {header.get('version')}; this program reads"
            f" version {VERSION}."
        )
    return header


def _layout(plain: dict[str, Any]) -> Layout:
    tuples = ("job_features", "global_features", "globals_at")
    return Layout(**(plain | {name: tuple(plain[name]) for name in tuples}))


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
