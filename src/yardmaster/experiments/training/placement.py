"""Where the environments of a training run are: beside the network on the GPU, or on the CPU."""

from __future__ import annotations

from collections.abc import Callable

ON_GPU = ("ppo",)
"""Learners that can do with environments on the GPU; the others remember steps on the CPU."""
CHOOSE_ON_GPU = ("ppo", "meta-dqn")
"""The same where schedulers are chosen."""


def why_not_on_gpu(learner: str, able: tuple[str, ...] = ON_GPU) -> str | None:
    """Return why environments cannot be on the GPU with this learner; None if they can.

    `able` are the learners with which they can, where there is a GPU.
    """
    from yardmaster.engine.gpu.availability import gpu_status

    if learner not in able:
        verb = "does" if len(able) == 1 else "do"
        return f"{learner} remembers its steps there; {' and '.join(able)} {verb} not"
    status = gpu_status()
    return None if status.is_usable else status.why.rstrip(".")


def tell_apart(reason: str, announce: Callable[[str], None] | None) -> None:
    """Say that the network is on a GPU and the environments are not, and why."""
    if announce is not None:
        announce(f"The network is on the GPU, the environments stay on the CPU: {reason}.")


def in_whole_tiles(size: int, announce: Callable[[str], None] | None) -> int:
    """Return the number of environments, rounded up to what a GPU steps together."""
    from yardmaster.engine.gpu.lanes import LANES, tiles

    whole = tiles(size) * LANES
    if whole != size and announce is not None:
        announce(
            f"A GPU steps environments by {LANES}: there are {whole} in place of envs = {size}."
        )
    return whole
