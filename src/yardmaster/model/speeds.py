"""How fast a job of a kind runs: on which GPU type, spread how far, beside whom, on how many GPUs.

Twenty-six kinds of training jobs were measured on three GPU types; `data/throughputs.toml` holds
the figures, their source, and the rule by which other types are estimated. Names of kinds are
matched without case, spaces and punctuation: `resnet50-bs64` is `ResNet-50 (batch size 64)`.
A family without its batch size means the middle one, a batch size nobody measured the nearest.
Every other kind runs at the ratio of peak FP32, and at the median of the known kinds otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import median

from yardmaster.model.gpus import GpuType, gpu_type

UPLINK_OVERSUBSCRIPTION = 2.0
"""Assumed, not measured: what the network costs a gang within a rack, it costs twice across racks,
since the uplinks of a rack usually carry half of what its nodes could send together."""

SMALLEST_EXPONENT = 0.5
"""Speed-up curves flatter than the square root are taken for noise of the measurement."""


@dataclass(frozen=True, slots=True)
class Locality:
    """What distance costs a gang: factors on its speed, at most 1."""

    node: float
    """Spread over nodes of one rack."""
    rack: float
    """Spread over racks."""


def kinds() -> tuple[str, ...]:
    """Return the kinds that were measured, by family and batch size."""
    return tuple(_known().measured)


def is_measured(kind: str) -> bool:
    """Whether a kind of this name was measured."""
    return _find(kind) is not None


def speed(kind: str | None, gpu: GpuType, reference: GpuType) -> float:
    """Return how much work a second on `gpu` does, in seconds on `reference`.

    Args:
        kind: what the job does; None or any name.
        gpu: the type it runs on.
        reference: the type on which its duration was measured.

    Returns:
        The ratio of steps/s, measured or estimated, for a known kind; the ratio of peak FP32
        otherwise. Six significant digits, so that it is the same number on every machine.
    """
    measured = _find(kind)
    if measured is None:
        return _rounded(gpu.fp32_tflops / reference.fp32_tflops)
    return _rounded(_steps_per_s(measured, gpu) / _steps_per_s(measured, reference))


def locality(kind: str | None) -> Locality:
    """Return what spreading a gang of this kind over nodes and over racks costs."""
    measured = _find(kind)
    node = _known().node_factor if measured is None else _node_factor(measured)
    if node is None:  # a kind that was only measured on one GPU
        node = _known().node_factor
    return Locality(_rounded(node), _rounded(_rack_factor(node)))


def colocation(kind: str | None, other: str | None) -> float:
    """Return the speed of `kind` while it shares a GPU with `other`; alone it is 1.

    A pair that was not measured, because one of the two is unknown or because they could not run
    together, takes the median of what is known about the kind, the other, or all pairs.
    """
    known = _known()
    mine, theirs = _find(kind), _find(other)
    if mine is not None and theirs is not None:
        pair = mine.beside[known.place[theirs.name]]
        if pair > 0:
            return min(pair, 1.0)
    if mine is not None:
        return _median_beside(mine.beside)
    column = None if theirs is None else known.place[theirs.name]
    return _median_beside(
        pair
        for measured in known.measured.values()
        for place, pair in enumerate(measured.beside)
        if column in {None, place}
    )


def scaling(kind: str | None) -> float:
    """Return the exponent of the speed-up curve: on c times its GPUs a job is cᵃ times as fast."""
    measured = _find(kind)
    exponent = None if measured is None else _exponent(measured)
    return _rounded(_known().exponent if exponent is None else exponent)


def peak_compute_tflops(gpu: GpuType) -> float:
    """Return the geometric mean of FP32 and FP16 peaks: training uses vector and matrix units."""
    return math.sqrt(gpu.fp32_tflops * gpu.fp16_tflops)


@dataclass(frozen=True, slots=True)
class _Measured:
    """One kind, as `data/throughputs.toml` describes it."""

    name: str
    family: str
    compute: float
    bandwidth: float
    steps_per_s: Mapping[str, float]
    beside: Sequence[float]
    batch: int = 0
    speed_up: Sequence[float] = ()
    spread: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """All that was measured, and what an unknown kind takes from it."""

    measured: Mapping[str, _Measured]
    place: Mapping[str, int]
    """Position of each kind in the lists of pairs."""
    spellings: Mapping[str, _Measured]
    families: Mapping[str, Sequence[_Measured]]
    """By spelling, each in order of batch size."""
    anchors: Mapping[str, GpuType]
    """The types on which kinds were measured."""
    node_factor: float
    exponent: float


@cache
def _known() -> _Known:
    import tomllib
    from importlib import resources

    text = resources.files("yardmaster.model").joinpath("data/throughputs.toml").read_text("utf-8")
    document = tomllib.loads(text)
    measured: dict[str, _Measured] = {}
    families: dict[str, list[_Measured]] = {}
    for name, figures in document["kinds"].items():
        family = document["families"][figures["family"]]
        exponents = {key: family[key] for key in ("compute", "bandwidth")}
        measured[name] = _Measured(name=name, **exponents, **figures)
        families.setdefault(_spelling(figures["family"]), []).append(measured[name])
    every = list(measured.values())
    names = dict.fromkeys(name for kind in every for name in kind.steps_per_s)
    return _Known(
        measured=measured,
        place={name: place for place, name in enumerate(measured)},
        spellings={_spelling(name): kind for name, kind in measured.items()},
        families={key: sorted(of, key=lambda kind: kind.batch) for key, of in families.items()},
        anchors={name: gpu_type(name) for name in names},
        node_factor=median(f for kind in every if (f := _node_factor(kind)) is not None),
        exponent=median(e for kind in every if (e := _exponent(kind)) is not None),
    )


_PUNCTUATION = re.compile(r"[\W_]+")
_BATCH = re.compile(r"batch(?:size)?|bs")
_FAMILY_AND_BATCH = re.compile(r"(.+?)(?:bs(\d{1,9}))?")


def _spelling(name: str) -> str:
    """Return a name without case, spaces and punctuation, its batch size as `bs64`."""
    return _BATCH.sub("bs", _PUNCTUATION.sub("", name).casefold())


@lru_cache(maxsize=4096)
def _find(kind: str | None) -> _Measured | None:
    """Return the measured kind that a name means, None if there is no such family."""
    if kind is None:
        return None
    known, spelling = _known(), _spelling(kind)
    if spelling in known.spellings:
        return known.spellings[spelling]
    parts = _FAMILY_AND_BATCH.fullmatch(spelling)
    members = known.families.get(parts[1], ()) if parts else ()
    if not parts or not members:
        return None
    if parts[2] is None:
        return members[len(members) // 2]
    batch = int(parts[2])
    return min(members, key=lambda member: abs(member.batch - batch))


def _steps_per_s(kind: _Measured, gpu: GpuType) -> float:
    """Return steps/s on a type: measured, or estimated from the most similar type measured."""
    anchors = _known().anchors
    nearest = min(anchors, key=lambda name: _distance(gpu, anchors[name]))
    anchor = anchors[nearest]
    compute = math.pow(peak_compute_tflops(gpu) / peak_compute_tflops(anchor), kind.compute)
    bandwidth = math.pow(gpu.memory_gb_s / anchor.memory_gb_s, kind.bandwidth)
    return kind.steps_per_s[nearest] * compute * bandwidth


def _distance(gpu: GpuType, other: GpuType) -> float:
    """Return how unlike two types are: 0 when their peak rates are the same."""
    ratios = (
        gpu.fp32_tflops / other.fp32_tflops,
        gpu.fp16_tflops / other.fp16_tflops,
        gpu.memory_gb_s / other.memory_gb_s,
    )
    return sum(math.log(ratio) ** 2 for ratio in ratios)


def _node_factor(kind: _Measured) -> float | None:
    """Return the geometric mean of what spreading cost 2, 4 and 8 GPUs, at most 1."""
    if not kind.spread:
        return None
    return min(math.exp(sum(map(math.log, kind.spread)) / len(kind.spread)), 1.0)


def _rack_factor(node: float) -> float:
    """Return the factor across racks, where waiting for the network takes twice as long."""
    waiting = 1.0 / node - 1.0
    return 1.0 / (1.0 + UPLINK_OVERSUBSCRIPTION * waiting)


def _exponent(kind: _Measured) -> float | None:
    """Fit a line to the logarithms of GPUs (1, 2, 4, 8) and speed-up; return its slope, clipped."""
    if not kind.speed_up:
        return None
    doublings = [place - len(kind.speed_up) / 2 for place in range(len(kind.speed_up) + 1)]
    logs = [0.0, *(math.log2(ratio) for ratio in kind.speed_up)]
    slope = sum(x * y for x, y in zip(doublings, logs, strict=True)) / sum(x * x for x in doublings)
    return min(max(slope, SMALLEST_EXPONENT), 1.0)


def _median_beside(pairs: Iterable[float]) -> float:
    """Return the median of the pairs that could run together, at most 1."""
    return min(_rounded(median(pair for pair in pairs if pair > 0)), 1.0)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
