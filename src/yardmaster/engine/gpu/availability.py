"""Whether environments can run on a GPU here, and if not, why not."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

from yardmaster.errors import YardmasterError

SIMULATOR = "NUMBA_ENABLE_CUDASIM"
"""Environment variable under which Numba plays a GPU in Python, thread by thread."""
NEEDED = "numba-cuda"


class GpuStatus(NamedTuple):
    """Whether a GPU can be used."""

    is_usable: bool
    device: str
    """Its name; empty if there is none."""
    why: str
    """What was found, as a sentence for people."""


def is_simulated() -> bool:
    """Whether Numba plays the GPU: everything works, slowly, without one."""
    return os.environ.get(SIMULATOR, "0") == "1"


def gpu_status() -> GpuStatus:
    """Look for a GPU and for what compiles for it; never raises."""
    if is_simulated():
        return GpuStatus(
            is_usable=True,
            device="simulated",
            why=f"{SIMULATOR}=1: a GPU is played in Python, slowly.",
        )
    try:
        cuda = cuda_module()
    except YardmasterError as error:
        return GpuStatus(is_usable=False, device="", why=str(error))
    try:
        if not cuda.is_available():
            return GpuStatus(is_usable=False, device="", why="No NVIDIA GPU, or no driver for it.")
        name = cuda.get_current_device().name
    except Exception as error:  # noqa: BLE001  (drivers fail in many ways; each is a reason)
        first = str(error).strip().splitlines() or [type(error).__name__]
        return GpuStatus(is_usable=False, device="", why=f"The GPU does not answer: {first[0]}")
    text = name.decode() if isinstance(name, bytes) else str(name)
    return GpuStatus(is_usable=True, device=text, why=f"{text}, by {NEEDED}.")


def cuda_module() -> Any:
    """Return Numba's compiler for GPUs.

    Raises:
        YardmasterError: if it is not installed.
    """
    import numpy as np

    if not hasattr(np, "row_stack"):  # numba-cuda still asks for what NumPy 2.5 removed
        setattr(np, "row_stack", np.vstack)  # noqa: B010  (unknown to its type stubs)
    try:
        if not is_simulated():
            importlib.import_module("numba_cuda")
        return importlib.import_module("numba.cuda")
    except ImportError as error:
        raise YardmasterError(
            f"{NEEDED} is not installed; it compiles environments for the GPU"
            f" (pip install 'yardmaster[gpu]')."
        ) from error


def require_gpu() -> Any:
    """Return Numba's compiler for GPUs, and complain if there is none to run on.

    Raises:
        YardmasterError: saying what is missing.
    """
    status = gpu_status()
    if not status.is_usable:
        raise YardmasterError(
            f"Environments cannot run on a GPU here. {status.why} Use --device cpu, or see"
            " `yardmaster doctor`."
        )
    return cuda_module()
