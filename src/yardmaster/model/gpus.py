"""GPU types: how fast, how large and how hungry one GPU is.

The catalogue lives in `data/gpus.toml`. A cluster document may define further types; those travel
with their cluster and never enter the catalogue.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from yardmaster.names import unknown


@dataclass(frozen=True, slots=True)
class GpuType:
    """One kind of GPU, with peak figures from its datasheet.

    Attributes:
        name: canonical name, such as `A100` or `V100-32G`.
        memory_gib: device memory.
        fp32_tflops: peak FP32, 10¹² FLOP/s.
        fp16_tflops: peak dense half precision, 10¹² FLOP/s (see `data/gpus.toml` for old GPUs).
        memory_gb_s: peak memory bandwidth, 10⁹ bytes/s.
        idle_w: typical watts with no process.
        busy_w: watts at the power limit.
        year: first shipped; 0 if unknown.
        source: where the figures come from.
    """

    name: str
    memory_gib: float
    fp32_tflops: float
    fp16_tflops: float
    memory_gb_s: float
    idle_w: float
    busy_w: float
    year: int = 0
    source: str = ""

    @property
    def flops(self) -> float:
        """Peak FP32 in FLOP/s."""
        return self.fp32_tflops * 1e12


def gpu_type(name: str) -> GpuType:
    """Return the catalogue's type of this name or alias, however it is spelt.

    Raises:
        UnknownNameError: if the catalogue has no such type.
    """
    found = _by_spelling().get(_spelling(name))
    if found is None:
        raise unknown("GPU type", name, [kind.name for kind in gpu_types()])
    return found


def is_gpu_type(name: str) -> bool:
    """Whether the catalogue has a type of this name or alias."""
    return _spelling(name) in _by_spelling()


@cache
def gpu_types() -> tuple[GpuType, ...]:
    """Return every type of the catalogue, oldest first."""
    kinds = dict.fromkeys(_by_spelling().values())
    return tuple(sorted(kinds, key=lambda kind: (kind.year, kind.fp32_tflops, kind.name)))


def type_key(name: str) -> str:
    """Return what all names of one GPU type share: `V100M16`, `v100` and `Tesla V100` agree.

    Jobs name the types they accept in the words of their trace, clusters in their own; two names
    mean the same type exactly when their keys are equal. Names outside the catalogue have keys too.
    """
    spelling = _spelling(name)
    found = _by_spelling().get(spelling)
    return _spelling(found.name) if found else spelling


_SEPARATORS = re.compile(r"[\W_]+")
_VENDOR = re.compile(r"^(?:nvidia|amd)?(?:tesla|geforce|instinct)?(?=.)")


def _spelling(name: str) -> str:
    """Return the name without case, separators and vendor prefixes."""
    return _VENDOR.sub("", _SEPARATORS.sub("", name).casefold())


@cache
def _by_spelling() -> dict[str, GpuType]:
    """Read the catalogue: every name and alias, spelt without case and separators."""
    import tomllib
    from importlib import resources

    text = resources.files("yardmaster.model").joinpath("data/gpus.toml").read_text("utf-8")
    types: dict[str, GpuType] = {}
    for name, figures in tomllib.loads(text).items():
        aliases = figures.pop("aliases", [])
        kind = GpuType(name=name, **figures)
        types |= {_spelling(alias): kind for alias in (name, *aliases)}
    return types
