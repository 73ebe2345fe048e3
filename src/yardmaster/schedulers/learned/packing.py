"""A policy's network as rows that the compiled core reads.

Attention is packed with fewer layers than it was learned with. Products of matrices that no ReLU
separates are multiplied beforehand: what a token looks for is compared with tokens instead of with
their keys, and values are made of the mix that was found instead of each token.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking import net_row
from yardmaster.engine.picking.layout import Layout
from yardmaster.engine.picking.net_row import CHUNK, LANES, LAYER, NET_HEADER, Architecture
from yardmaster.names import unknown
from yardmaster.schedulers.learned.policy_file import PolicyFile, PolicyFileError

Matrix = npt.NDArray[np.float64]

LINE_BYTES = 64
"""Of a line of the processor's cache."""

_ARCHITECTURES = {
    "mlp": Architecture.MLP,
    "kernel": Architecture.KERNEL,
    "self-attention": Architecture.SELF_ATTENTION,
    "cross-attention": Architecture.CROSS_ATTENTION,
}


class Packed(NamedTuple):
    """A network for `yardmaster.engine.picking.nets.score`."""

    net: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]
    scratch_length: int
    """Numbers of the scratch row, which must be zeros to begin with; one for each thread."""

    def scratch(self) -> npt.NDArray[np.float32]:
        """Return a scratch row."""
        return in_line(self.scratch_length)


class Affine(NamedTuple):
    """A layer: inputs × units, and units."""

    weight: Matrix
    bias: Matrix


def pack(policy: PolicyFile) -> Packed:
    """Return the rows of a policy's network.

    Raises:
        YardmasterError: if there is no such architecture, or weights are missing or do not fit.
    """
    if policy.architecture not in _ARCHITECTURES:
        raise unknown("network architecture", policy.architecture, _ARCHITECTURES)
    rows = _Rows(policy)
    architecture = _ARCHITECTURES[policy.architecture]
    rows.set("ARCHITECTURE", architecture)
    rows.set("BY_MAJORITY", int(policy.choice == "majority"))
    rows.describe_observation()
    if architecture == Architecture.MLP:
        width = rows.hidden_layers("HIDDEN", "hidden", policy.layout.length)
    elif architecture == Architecture.KERNEL:
        width = _pack_kernel(rows, rows.features)
        rows.set("NOOP_AT", rows.put(rows.vector("noop", rows.first_units())))
    elif architecture == Architecture.SELF_ATTENTION:
        width = _pack_self_attention(rows)
    else:
        width = _pack_cross_attention(rows)
    rows.set("WIDTH", _rounded(width))
    _pack_head(rows, width, is_per_action=architecture != Architecture.MLP)
    return rows.finish()


def _pack_kernel(rows: _Rows, inputs: int) -> int:
    """Pack the layers for one token and the context; return the width of the embedding."""
    context = rows.affine("context", rows.context_size)
    units = len(context.bias)
    token = Affine(rows.matrix("token.weight", inputs, units), np.zeros(units))
    rows.layers("OF_CONTEXT", [context])
    rows.layers("OF_TOKEN", [token], are_inputs_rounded=inputs != rows.features)
    rows.room("CONTEXT_AT", _rounded(units))
    return rows.hidden_layers("HIDDEN", "hidden", units)


def _pack_self_attention(rows: _Rows) -> int:
    job = rows.chain("job", rows.features, 2)
    dim = len(job[1].bias)
    rows.layers("JOB", job)
    rows.set("NOOP_AT", rows.put(rows.vector("noop", dim)))
    _pack_attention(rows, Affine(np.eye(dim), np.zeros(dim)))
    rows.room_to_look(rows.policy.layout.actions, _rounded(dim))
    return _pack_kernel(rows, dim)


def _pack_cross_attention(rows: _Rows) -> int:
    layout = rows.policy.layout
    job, gpu = rows.chain("job", rows.features, 2), rows.chain("gpu", 1, 2)
    dim = len(job[1].bias)
    rows.layers("JOB", job)
    rows.layers("GPU", gpu)
    if layout.global_features:
        rows.layers("OF_GLOBALS", rows.chain("globals", len(layout.global_features), 2))
        rows.layers("ADD_GLOBALS", [rows.affine("add_globals", dim)])
    _pack_attention(rows, gpu[1])
    rows.norm("LAST_NORM_AT", "last_norm", dim)
    rows.room_to_look(layout.gpu_slots, _rounded(dim))
    for place in ("CONTEXT_AT", "STATE_AT", "NOOP_TOKEN_AT"):
        rows.room(place, _rounded(dim))
    rows.room("MEAN_AT", _rounded(max(len(job[0].bias), len(gpu[0].bias))))
    return dim


def _pack_attention(rows: _Rows, seen: Affine) -> None:
    """Pack attention to tokens that a last linear layer makes of what is looked at.

    Likeness is query · key, of which softmax ignores what is the same for all keys.
    """
    dim = len(seen.bias)
    query, key, value, out = (rows.affine(name, dim) for name in ("query", "key", "value", "out"))
    keys = (seen.weight @ key.weight).T / math.sqrt(dim)
    rows.layers("QUERY", [Affine(query.weight @ keys, query.bias @ keys)])
    weight = seen.weight @ value.weight @ out.weight
    bias = (seen.bias @ value.weight + value.bias) @ out.weight + out.bias
    rows.layers("FOUND", [Affine(weight, bias)])
    rows.norm("NORM_AT", "norm", dim)
    rows.set("DIM", dim)


def _pack_head(rows: _Rows, width: int, *, is_per_action: bool) -> None:
    """Pack everything from embeddings to scores."""
    given = rows.policy.weights
    actions = rows.policy.layout.actions
    outputs = len(given["support"]) if "support" in given else 1
    rows.set("OUTPUTS", outputs)
    *hidden, last = rows.chain("head", width)
    rows.layers("HEAD", hidden)
    rows.set("HEAD_COUNT", len(hidden))
    rows.expect("head", len(last.bias), outputs if is_per_action else outputs * actions)
    if is_per_action:
        rows.set("NOOP_BIAS_AT", rows.put(rows.vector("noop_bias", outputs)))
    if is_per_action or outputs == 1:
        rows.layers("LAST", [last])
        if is_per_action and outputs == 1:  # a dot product: the weights of the only unit, in a row
            rows.set_layer("LAST", net_row.WEIGHT_AT, rows.put(last.weight[:, 0]))
    else:
        rows.layer_per_action("LAST", last, outputs)
    if outputs > 1:
        rows.set("SUPPORT_AT", rows.put(rows.vector("support", outputs)))
        rows.room("NUMBERS_AT", actions * _rounded(outputs))
    if "state.0.weight" in given:
        state = rows.chain("state", width)
        rows.expect("state", len(state[-1].bias), outputs)
        rows.layers("STATE", state)
        rows.set("STATE_COUNT", len(state))
        rows.set("IS_POOLED", 1)
        rows.room("POOL_AT", _rounded(width))


class _Rows:
    """The rows in the making."""

    def __init__(self, policy: PolicyFile) -> None:
        self.policy = policy
        self.features = len(policy.layout.job_features)
        self.context_size = len(policy.layout.global_features) + policy.layout.gpu_slots
        self._net = [0] * NET_HEADER
        self._weights: list[npt.NDArray[np.float32]] = []
        self._length = 0
        self._scratch = 0
        self._widest = _rounded(policy.layout.length)

    def set(self, name: str, value: int) -> None:
        """Set a named place of the integers."""
        self._net[getattr(net_row, name)] = value

    def set_layer(self, name: str, part: int, value: int) -> None:
        """Set a part of a layer that is there already."""
        self._net[self._net[getattr(net_row, name)] + part] = value

    def describe_observation(self) -> None:
        """Say where what stands in the observation."""
        layout = self.policy.layout
        _check(layout)
        self.set("SINGLE", 1)
        self.set("WINDOW", layout.window)
        self.set("FEATURES", self.features)
        self.set("JOBS_AT", layout.jobs_at)
        self.set("SLOTS", layout.gpu_slots)
        self.set("GPUS_AT", layout.gpus_at)
        self.set("LENGTH", layout.length)
        self.set("GLOBALS", len(layout.globals_at))
        self.set("GLOBALS_LIST", len(self._net))
        self._net.extend(layout.globals_at)

    def vector(self, name: str, size: int) -> Matrix:
        """Return a row of weights, checked."""
        return self._array(name, (size,))

    def matrix(self, name: str, inputs: int, units: int) -> Matrix:
        """Return a matrix of weights, checked."""
        return self._array(name, (inputs, units))

    def affine(self, name: str, inputs: int) -> Affine:
        """Return a layer's weights, checked."""
        bias = self._array(f"{name}.bias", (-1,))
        return Affine(self.matrix(f"{name}.weight", inputs, len(bias)), bias)

    def chain(self, name: str, inputs: int, count: int = 0) -> list[Affine]:
        """Return layers that follow each other: so many, or as many as there are (at least one)."""
        found: list[Affine] = []
        while len(found) < max(count, 1) or (
            not count and f"{name}.{len(found)}.weight" in self.policy.weights
        ):
            found.append(self.affine(f"{name}.{len(found)}", inputs))
            inputs = len(found[-1].bias)
        return found

    def expect(self, name: str, size: int, expected: int) -> None:
        """Complain if something has another size than it must have."""
        if size != expected:
            raise PolicyFileError(
                f"Policy weights {name!r} make {size} numbers; the observation's layout asks"
                f" for {expected}."
            )

    def _array(self, name: str, shape: tuple[int, ...]) -> Matrix:
        if name not in self.policy.weights:
            raise PolicyFileError(f"The policy lacks the weights {name!r}.")
        array = np.asarray(self.policy.weights[name], dtype=np.float64)
        fits = array.ndim == len(shape) and all(
            size in (-1, real) for size, real in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise PolicyFileError(
                f"Policy weights {name!r} are {list(array.shape)}; the layout asks for"
                f" {list(shape)}."
            )
        return array

    def put(self, array: Matrix) -> int:
        """Append a row of weights, rounded up; return where it begins."""
        return self._append(_padded(array))

    def _append(self, array: Matrix) -> int:
        at = self._length
        self._weights.append(array.astype(np.float32).ravel())
        self._length += array.size
        return at

    def layers(self, name: str, layers: list[Affine], *, are_inputs_rounded: bool = True) -> None:
        """Append layers, and set the named place to where they begin.

        What another layer made has been rounded up; what comes from an observation need not be.
        """
        self.set(name, len(self._net))
        for layer in layers:
            inputs = len(layer.weight)
            weight = _padded(layer.weight)
            weight = weight if are_inputs_rounded else weight[:inputs]
            inputs, units = weight.shape
            self._add_layer(inputs, units, self._append(weight), self.put(layer.bias))

    def layer_per_action(self, name: str, layer: Affine, outputs: int) -> None:
        """Append a layer that makes the numbers of all actions, as one layer per action."""
        self.set(name, len(self._net))
        inputs = len(layer.weight)
        weights = layer.weight.reshape(inputs, -1, outputs).transpose(1, 0, 2)
        padded = np.stack([_padded(part) for part in weights])
        biases = np.stack([_padded(part) for part in layer.bias.reshape(-1, outputs)])
        _, rows, units = padded.shape
        self._add_layer(rows, units, self._append(padded), self._append(biases))

    def _add_layer(self, inputs: int, units: int, weight_at: int, bias_at: int) -> None:
        record = [0] * LAYER
        record[net_row.INPUTS], record[net_row.UNITS] = inputs, units
        record[net_row.WEIGHT_AT], record[net_row.BIAS_AT] = weight_at, bias_at
        self._net.extend(record)
        self._widest = max(self._widest, inputs, units)

    def hidden_layers(self, place: str, name: str, inputs: int) -> int:
        """Append all layers of a name; return the width of what comes out."""
        layers = []
        if f"{name}.0.weight" in self.policy.weights:
            layers = self.chain(name, inputs)
        self.layers(place, layers)
        self.set(f"{place}_COUNT", len(layers))
        return len(layers[-1].bias) if layers else inputs

    def first_units(self) -> int:
        """Return the units of the first layer."""
        return len(self.policy.weights["context.bias"])

    def norm(self, place: str, name: str, dim: int) -> None:
        """Append a normalisation."""
        self.set(place, self.put(self.vector(f"{name}.scale", dim)))
        self.put(self.vector(f"{name}.shift", dim))

    def room(self, name: str, size: int) -> None:
        """Set aside part of the scratch row."""
        self.set(name, self._scratch)
        self._scratch += size

    def room_to_look(self, most: int, width: int) -> None:
        """Set aside room for attention to at most so many tokens."""
        self.room("PLACES_AT", _rounded(self.policy.layout.actions))
        self.room("TOKENS_AT", (_rounded(most) + LANES) * width)
        self.room("TURNED_AT", _rounded(most) * width)
        self.room("LIKENESS_AT", CHUNK * _rounded(most))

    def finish(self) -> Packed:
        """Return the rows."""
        self.room("CHOSEN_AT", CHUNK)
        self.room("FIRST_AT", CHUNK * self._widest)
        self.room("SECOND_AT", CHUNK * self._widest)
        weights = in_line(self._length)
        np.concatenate(self._weights, out=weights)
        return Packed(np.array(self._net, dtype=np.int64), weights, self._scratch)


def _check(layout: Layout) -> None:
    """Complain about a layout that would make the core read where nothing is."""
    jobs = layout.window * len(layout.job_features)
    places = [
        *range(layout.jobs_at, layout.jobs_at + jobs),
        *range(layout.gpus_at, layout.gpus_at + layout.gpu_slots),
        *layout.globals_at,
    ]
    sizes = (layout.window, len(layout.job_features), layout.gpu_slots + 1)
    if min(sizes) < 1 or sorted(places) != list(range(layout.length)):
        raise PolicyFileError("The policy's layout does not say where every number stands, once.")


def in_line(size: int) -> npt.NDArray[np.float32]:
    """Return zeros that begin where a line of the processor's cache does.

    All lanes of a sum are then in one line. Otherwise most are fetched in two halves.
    """
    row = np.zeros(size + LINE_BYTES // np.dtype(np.float32).itemsize, dtype=np.float32)
    first = -row.ctypes.data % LINE_BYTES // row.itemsize
    return row[first : first + size]


def _rounded(size: int) -> int:
    """Return the size rounded up to whole lanes, at least one."""
    return max(1, math.ceil(size / LANES)) * LANES


def _padded(array: Matrix) -> Matrix:
    """Return the array with zeros up to whole lanes along every axis."""
    return np.pad(array, [(0, _rounded(size) - size) for size in array.shape])
