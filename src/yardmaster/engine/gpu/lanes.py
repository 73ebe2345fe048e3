"""How the rows of many environments stand in a GPU's memory.

A GPU's threads run 32 at a time, in step, and are quick if they read neighbouring words. So 32
environments share a tile in which word after word stands 32 times, once for each: array[tile, word,
lane]. The core addresses words of one environment; a lane is what it needs for that: the place of
word 0, the others following at a distance of 32.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

LANES = 32
"""Environments of a tile: threads that run in step."""
_SHIFT = 5


class Addressing(NamedTuple):
    """What kernels need to reach rows: the forms for a GPU, or those for the simulator."""

    lane: Any
    """(array, environment) → the environment's row."""
    state_lane: Any
    """The same of the core's integers, some of which are the same in all environments."""
    bare: Any
    """Array of one row → the row."""


def tiles(environments: int) -> int:
    """Return how many tiles hold so many environments."""
    return -(-environments // LANES)


def by_environment(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return tiles as (environments, words), on the CPU."""
    return array.transpose(0, 2, 1).reshape(-1, array.shape[1])


def in_tiles(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return (environments, words) as tiles; the environments must fill them."""
    return np.ascontiguousarray(rows.reshape(-1, LANES, rows.shape[1]).transpose(0, 2, 1))


def simulated() -> Addressing:
    """Return the forms for the simulator: views that yield Python's numbers."""

    def lane(array: Any, number: int) -> Any:
        return _memory(array)[number >> _SHIFT, :, number & (LANES - 1)].data

    def bare(array: Any) -> Any:
        return _memory(array).data

    return Addressing(lane, lane, bare)


def _memory(array: Any) -> npt.NDArray[Any]:
    """Return the NumPy array behind what the simulator hands to kernels."""
    return np.asarray(getattr(array, "_ary", array))


def compiled(constants: Mapping[int, int]) -> Addressing:
    """Return the forms for a GPU: pointers, so that a row is one word to pass.

    Args:
        constants: places of the core's integers whose values are known; they are never read.
    """
    types: Any = importlib.import_module("numba.cuda.types")
    lane_type, state_type = _lane_types()
    known = tuple(sorted(constants.items()))
    return Addressing(
        lane=_pointer_to(lane_type, at_tile=True),
        state_lane=_pointer_to(lambda dtype: state_type(dtype, known), at_tile=True),
        bare=_pointer_to(types.CPointer, at_tile=False),
    )


@cache
def _lane_types() -> tuple[Any, Any]:
    """Return the types of rows in tiles, and teach the compiler to address them."""
    types: Any = importlib.import_module("numba.cuda.types")
    extending: Any = importlib.import_module("numba.cuda.extending")
    ir: Any = importlib.import_module("llvmlite.ir")

    class Lane(types.CPointer):  # type: ignore[misc]
        """Pointer to word 0 of an environment; its words are 32 apart."""

        def __init__(self, dtype: Any, known: tuple[tuple[int, int], ...] = ()) -> None:
            super().__init__(dtype)
            self.known = dict(known)
            self.name = f"lane of {dtype} {hash(known)}"

        @property
        def key(self) -> Any:
            return self.dtype, "lane", tuple(self.known.items())

    class StateLane(Lane):
        """A lane some of whose words are known."""

    for kind in (Lane, StateLane):
        extending.register_model(kind)(extending.core_models.PointerModel)

    def place(builder: Any, pointer: Any, word: Any) -> Any:
        distance = builder.shl(word, ir.Constant(word.type, _SHIFT))
        return builder.gep(pointer, [distance], inbounds=True)

    def get(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.load(place(builder, *arguments))

    def put(_: Any, builder: Any, __: Any, arguments: Any) -> None:
        pointer, word, value = arguments
        builder.store(value, place(builder, pointer, word))

    def know(_: Any, __: Any, signature: Any, arguments: Any) -> Any:
        known = signature.args[0].known
        if arguments[1] not in known:
            raise NotImplementedError  # it is read, like any other
        return ir.Constant(ir.IntType(64), known[arguments[1]])

    extending.lower_builtin(operator.getitem, Lane, types.Integer)(get)
    extending.lower_builtin(operator.setitem, Lane, types.Integer, types.Any)(put)
    extending.lower_builtin("static_getitem", StateLane, types.IntegerLiteral)(know)

    return Lane, StateLane


def _pointer_to(kind: Any, *, at_tile: bool) -> Any:
    """Return a function of the GPU: an array, and perhaps an environment → a pointer."""
    types: Any = importlib.import_module("numba.cuda.types")
    cgutils: Any = importlib.import_module("numba.cuda.cgutils")
    extending: Any = importlib.import_module("numba.cuda.extending")
    ir: Any = importlib.import_module("llvmlite.ir")

    def proxy(context: Any, builder: Any, signature: Any, value: Any) -> Any:
        return cgutils.create_struct_proxy(signature.args[0])(context, builder, value)

    def begin(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        return proxy(context, builder, signature, value).data

    def begin_in_tile(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, number = arguments
        array = proxy(context, builder, signature, value)
        _, words, _ = cgutils.unpack_tuple(builder, array.shape, 3)
        shift = ir.Constant(number.type, _SHIFT)
        tile = builder.mul(builder.lshr(number, shift), builder.shl(words, shift))
        inside = builder.and_(number, ir.Constant(number.type, LANES - 1))
        return builder.gep(array.data, [builder.add(tile, inside)], inbounds=True)

    def lane(_: Any, array: Any, number: Any) -> Any:
        del number
        return kind(array.dtype)(array, types.int64), begin_in_tile

    def bare(_: Any, array: Any) -> Any:
        return kind(array.dtype)(array), begin

    return extending.intrinsic(lane if at_tile else bare)
