"""A trained chooser as a file that needs nothing but NumPy to read.

A layer `x` is `x.weight`, inputs × units, and `x.bias`. `past.0`, … turn the numbers of the recent
past into an embedding (there may be none); `hidden.0`, … and then `head.0`, … turn the numbers of
now and the embedding into a preference for each scheduler of the menu. All but the last layer pass
on what is positive only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from yardmaster.engine.choosing.nets import LAYER_FIELDS, NET_HEADER
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.picking.layout import Floats
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import IntArray
from yardmaster.schedulers.learned.weights_file import (
    PolicyFileError,
    Weights,
    read_weights,
    write_weights,
)

FORMAT = "yardmaster chooser"
VERSION = 1


@dataclass(frozen=True, eq=False, slots=True)
class ChooserFile:
    """A trained chooser: what it looks at, its network, and where it comes from."""

    sight: ChoiceSight
    weights: Weights
    """32-bit arrays by name; see above."""
    about: dict[str, Any] = field(default_factory=dict)
    """Learner, steps, scores: plain values, for people."""


@dataclass(frozen=True, eq=False, slots=True)
class PackedNet:
    """A chooser's network, packed for the compiled forward pass; see `engine.choosing.nets`."""

    net: IntArray
    weights: Floats
    scratch: int
    """32-bit reals the forward pass needs to work in."""


def write_chooser(path: Path, chooser: ChooserFile) -> None:
    """Write a chooser; a file of that name is replaced only when all is written.

    Raises:
        YardmasterError: if the file cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": VERSION,
        "sight": chooser.sight.to_table(),
        "about": chooser.about,
    }
    write_weights(path, header, chooser.weights)


def read_chooser(path: Path) -> ChooserFile:
    """Read a chooser.

    Raises:
        YardmasterError: if the file is not there.
        PolicyFileError: if it is damaged, no chooser, or of another version.
    """
    header, weights = read_weights(path, FORMAT, VERSION)
    try:
        sight = ChoiceSight.from_table(header["sight"])
        return ChooserFile(sight, weights, dict(header["about"]))
    except (KeyError, TypeError, ValueError, YardmasterError) as error:
        raise PolicyFileError(f"{path} is a damaged chooser file: {error}") from None


def packed(file: ChooserFile) -> PackedNet:
    """Return the network as rows of numbers.

    Raises:
        PolicyFileError: if its layers do not fit each other or the observation.
    """
    layout = file.sight.layout()
    now, past = len(layout.now_features), len(layout.past_features)
    encoder, rest = _layers(file, "past"), _layers(file, "hidden") + _layers(file, "head")
    embedding = encoder[-1][0].shape[1] if encoder else past
    _check_chain(encoder, past)
    _check_chain(rest, now + embedding)
    if not rest or rest[-1][0].shape[1] != layout.actions:
        raise PolicyFileError("The network's last layer does not fit the menu.")
    layers = [*encoder, *rest]
    net = [len(encoder), len(rest), now, past]
    arrays: list[Floats] = []
    begin = 0
    for weight, bias in layers:
        net += [weight.shape[0], weight.shape[1], begin]
        arrays += [np.ascontiguousarray(weight).ravel(), bias]
        begin += weight.size + bias.size
    assert len(net) == NET_HEADER + LAYER_FIELDS * len(layers)  # noqa: S101
    units = sum(weight.shape[1] for weight, _ in layers)
    return PackedNet(
        np.array(net, dtype=np.int64),
        np.concatenate(arrays).astype(np.float32),
        past + units + now + embedding,
    )


def _layers(file: ChooserFile, name: str) -> list[tuple[Floats, Floats]]:
    found: list[tuple[Floats, Floats]] = []
    while f"{name}.{len(found)}.weight" in file.weights:
        layer = f"{name}.{len(found)}"
        if f"{layer}.bias" not in file.weights:
            raise PolicyFileError(f"The network lacks {layer}.bias.")
        found.append((file.weights[f"{layer}.weight"], file.weights[f"{layer}.bias"]))
    return found


def _check_chain(layers: list[tuple[Floats, Floats]], inputs: int) -> None:
    for weight, bias in layers:
        if weight.ndim != 2 or weight.shape[0] != inputs or bias.shape != (weight.shape[1],):
            raise PolicyFileError(
                f"A layer of the network has shape {weight.shape}, and {inputs} inputs are there."
            )
        inputs = weight.shape[1]
