"""What kind of network, and how large."""

from __future__ import annotations

from dataclasses import dataclass

from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.engine.choosing.sight import ChoiceLayout
from yardmaster.errors import InvalidConfigError
from yardmaster.names import unknown

FOR_PICKING = ("mlp", "kernel", "self-attention", "cross-attention")
"""Architectures that can pick jobs."""
FOR_CHOOSING = ("mlp", "regime")
"""Architectures that can choose schedulers."""
ARCHITECTURES = (*FOR_PICKING, "regime")


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """A network from observations to preferences among actions."""

    arch: str = "kernel"
    """`mlp`: one network over the whole observation. `kernel`: one small network for every job.
    `self-attention`: the same, after jobs have looked at each other. `cross-attention`: jobs look
    at the GPU slots. `regime`, for choosing schedulers: the recent past becomes an embedding, which
    is joined to the numbers of now."""
    hidden: tuple[int, ...] = (32, 32)
    """Units of each hidden layer: of the whole network (`mlp`), of the network for one job
    (`kernel`), of what follows attention (`self-attention`); of the critic in any case."""
    dim: int = 64
    """Numbers per token of the attention networks; numbers of the embedding (`regime`)."""
    noop_bias: float = -1.0
    """Where the policy's learned extra preference for the no-op begins."""
    head_hidden: int = 0
    """Units of a hidden layer in each head of a network for values of actions; 0: no such layer."""

    def check(self, layout: AnyLayout) -> None:
        """Complain about settings that make no network for this layout.

        Raises:
            UnknownNameError: if there is no such architecture.
            InvalidConfigError: if sizes are impossible, or the layout has no GPU slots to look at.
        """
        if self.arch not in ARCHITECTURES:
            raise unknown("network architecture", self.arch, ARCHITECTURES)
        mistakes = self._misfits(layout)
        if not self.hidden or min(self.hidden) < 1:
            mistakes.append(f"hidden = {list(self.hidden)}: needs at least one layer of 1 unit")
        if self.dim < 1:
            mistakes.append(f"dim = {self.dim}: must be at least 1")
        if self.head_hidden < 0:
            mistakes.append(f"head_hidden = {self.head_hidden}: must not be negative")
        if mistakes:
            raise InvalidConfigError("network", mistakes)

    def _misfits(self, layout: AnyLayout) -> list[str]:
        """Return why the architecture cannot look at such observations, a line each."""
        if isinstance(layout, ChoiceLayout):
            if self.arch not in FOR_CHOOSING:
                return [f"arch = {self.arch}: schedulers are chosen by {' or '.join(FOR_CHOOSING)}"]
            if self.arch == "regime" and not layout.past_features:
                return ["arch = regime: needs the recent past, which is not shown; use mlp"]
            return []
        mistakes = []
        if self.arch == "regime":
            mistakes.append("arch = regime: is for choosing schedulers, not for picking jobs")
        if layout.window < 1 or not layout.job_features:
            mistakes.append("the observation shows no jobs")
        if self.arch == "cross-attention" and not layout.gpu_slots:
            mistakes.append(
                "cross-attention lets jobs look at GPU slots, and the observation has none;"
                " switch them on, or use kernel or self-attention"
            )
        return mistakes
