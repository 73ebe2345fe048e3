"""Work on a GPU that is written down once and then played back in one go (CUDA graphs).

Small networks make hundreds of small calls, and calling takes longer than computing. A graph holds
all calls of a function with the memory they read and write: played back, they cost one call. What
is captured must therefore do the same at every time: on the same memory, in the same shapes,
without looking at a number in between. What differs from time to time is written into that memory
before.

Stream order: graphs are played back on torch's current stream, which is the legacy default stream,
as is that of Numba's kernels; so everything happens in the order it was asked for. Capturing and
rehearsing have a stream of their own, which waits for the current one and is waited for.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

REHEARSALS = 2
"""Times a function runs before it is captured: libraries set themselves up in the first."""


class Replays:
    """Functions over memory that stays where it is, captured when first run.

    On a CPU, and after a capture that failed, they are simply called.
    """

    def __init__(self, device: torch.device) -> None:
        self.is_capturing = device.type == "cuda"
        """Whether functions become graphs."""
        self._graphs: dict[Hashable, Any] = {}
        self._held: dict[Hashable, Tensor] = {}
        self._pool: Any = None
        self._stream: Any = None

    @property
    def count(self) -> int:
        """How many functions have been captured."""
        return sum(hasattr(graph, "replay") for graph in self._graphs.values())

    def run(
        self,
        key: Hashable,
        function: Callable[[], None],
        rehearse: Callable[[], None] | None = None,
    ) -> None:
        """Run a function without arguments and results.

        Args:
            key: The same means: the same calls on the same memory.
            function: What is to be done. What it leaves behind, it writes into memory that was made
                outside: graphs share theirs.
            rehearse: The same without any effect that would count twice; `function` if not given.
        """
        if self.is_capturing and key not in self._graphs:
            self._capture(key, function, rehearse or function)
        if self.is_capturing:
            self._graphs[key].replay()
        else:
            function()

    def call(self, key: Hashable, function: Callable[..., Any], *inputs: Tensor) -> Any:
        """Return a pure function's results, one tensor or several, good until it is called again.

        Inputs are always of the same shapes.
        """
        if not self.is_capturing:
            return function(*inputs)
        held = [self.hold((key, place), one) for place, one in enumerate(inputs)]
        if (key, "results") not in self._graphs:  # the first ones make the memory for all others
            self._graphs[key, "results"] = function(*held)
            return self._graphs[key, "results"]
        results = self._graphs[key, "results"]

        def rewrite() -> None:
            found = function(*held)
            if isinstance(results, Tensor):
                results.copy_(found)
            else:
                for result, one in zip(results, found, strict=True):
                    result.copy_(one)

        self.run(key, rewrite)
        return results

    def hold(self, key: Hashable, numbers: Tensor) -> Tensor:
        """Return the numbers where those of this key have always been.

        The first tensor of a key is kept, later ones of the same shape are copied into it; nothing
        is copied if they are there already.
        """
        held = self._held.setdefault(key, numbers)
        if held.data_ptr() != numbers.data_ptr():
            held.copy_(numbers)
        return held

    def forget(self) -> None:
        """Capture everything anew: some of the memory has moved."""
        self._graphs.clear()
        self._held.clear()
        self._pool = None  # it goes with the last graph that was in it

    def _capture(
        self, key: Hashable, function: Callable[[], None], rehearse: Callable[[], None]
    ) -> None:
        """Make a graph of a function; without success, go on without graphs and say so."""
        current: Any = None
        was_collecting = gc.isenabled()
        # Freeing memory of the GPU, as forgotten arrays of Numba do, would spoil the capture.
        gc.disable()
        try:
            current = torch.cuda.current_stream()
            if self._pool is None:
                new_stream: Any = torch.cuda.Stream
                self._pool, self._stream = torch.cuda.graph_pool_handle(), new_stream()
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                for _ in range(REHEARSALS):
                    rehearse()
            current.wait_stream(self._stream)
            graph: Any = torch.cuda.CUDAGraph()
            with torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ):
                function()
            self._graphs[key] = graph
        except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts that it has it
            if current is not None:
                torch.cuda.set_stream(current)  # a capture that ends badly leaves its own behind
            self.is_capturing = False
            self._graphs.clear()
            why = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
            warnings.warn(
                f"CUDA graphs cannot be used here, learning goes on without them: {why}"
                " (graphs = false says so from the start)",
                RuntimeWarning,
                stacklevel=3,
            )
        finally:
            if was_collecting:
                gc.enable()


def room_for(count: int, most: int) -> int:
    """Return a size for so many things, out of few, and at most `most`.

    It is the next multiple of 64, and from 256 things on at most a quarter larger than they are.
    Every size is a graph of its own, so there must not be many.
    """
    step = max(64, 1 << max(count.bit_length() - 3, 0))
    return min(max(-(-count // step), 1) * step, most)
