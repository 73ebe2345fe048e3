"""The regimes of gomede/rlmetadqn-tpds: one hour of 1-GPU jobs with deadlines on a few GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from yardmaster.workloads.regimes.regime import Phase, Regime

SHAPES = ("base", "bursty", "diurnal", "shifted")
INTENSITIES = ("low", "medium", "high")
GPUS = (2, 4, 8, 16)
SUPER_HIGH_GPUS = (4, 16)


def matrix() -> tuple[Regime, ...]:
    """Return the 48 regimes: 4 shapes × 3 intensities × 2, 4, 8 and 16 GPUs."""
    return _product("rlmetadqn", INTENSITIES, GPUS)


def super_high() -> tuple[Regime, ...]:
    """Return 1.5 times the high intensity in 4 shapes on 4 and 16 GPUs."""
    return _product("rlmetadqn-super-high", ("super-high",), SUPER_HIGH_GPUS)


def _product(family: str, intensities: Iterable[str], gpus: Iterable[int]) -> tuple[Regime, ...]:
    return tuple(
        Regime(
            name=f"{shape}-{intensity}-{count}",
            family=family,
            phases=(Phase((preset(shape, intensity),)),),
            cluster=f"pool:{count}",
            labels={"shape": shape, "intensity": intensity, "gpus": count},
            description=f"an hour of 1-GPU jobs: {shape}, {intensity}",
        )
        for shape in SHAPES
        for intensity in intensities
        for count in gpus
    )


def preset(shape: str, intensity: str) -> dict[str, str]:
    """Return the stream of one shape and intensity."""
    return {"preset": f"rlmetadqn:workload={shape},intensity={intensity}"}
