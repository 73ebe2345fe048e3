"""What `tune` varies: for each learner, its settings that matter most and how far they may go.

Names are those of the `[learner]` table, with a point before those of `[learner.network]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from yardmaster.names import unknown


@dataclass(frozen=True, slots=True)
class Between:
    """Any number between two, both included; whole if both ends are."""

    low: float
    high: float
    log: bool = False
    """Whether factors matter rather than differences: learning rates."""

    def words(self) -> str:
        """Say it in words."""
        return f"{self.low:g} … {self.high:g}{', by factors' if self.log else ''}"

    def suggested(self, name: str, trial: Any) -> int | float:
        """Ask a trial of Optuna for a value."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(trial.suggest_int(name, self.low, self.high, log=self.log))
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few values."""

    values: tuple[Any, ...]

    def words(self) -> str:
        """Say it in words."""
        return ", ".join(map(_label, self.values))

    def suggested(self, name: str, trial: Any) -> Any:
        """Ask a trial of Optuna for a value."""
        labels = {_label(value): value for value in self.values}
        # Optuna's files hold plain values only: layers of a network go by their label.
        return labels[trial.suggest_categorical(name, list(labels))]


def _label(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


Space = Mapping[str, Between | OneOf]

_SMALL_NETWORKS = OneOf(((16, 16), (32, 32), (64, 64), (32, 16, 8), (128, 128)))
_OFF_POLICY: Space = {
    "learning_rate": Between(1e-4, 3e-3, log=True),
    "batch_size": OneOf((64, 128, 256, 512)),
    "gradient_steps": OneOf((16, 32, 64, 128)),
    "gamma": Between(0.95, 0.999),
    "tau": Between(1e-3, 5e-2, log=True),
    "network.hidden": _SMALL_NETWORKS,
}
_EXPLORATION: Space = {
    "epsilon_end": Between(0.01, 0.2, log=True),
    "n_step": OneOf((1, 2, 3, 5, 10)),
}

SPACES: Mapping[str, Space] = {
    "ppo": {
        "learning_rate": Between(1e-4, 3e-3, log=True),
        "steps_per_update": OneOf((2_048, 4_096, 8_192, 16_384)),
        "epochs": Between(2, 10),
        "minibatches": OneOf((4, 8, 16)),
        "clip": Between(0.1, 0.3),
        "entropy": Between(1e-4, 3e-2, log=True),
        "gamma": Between(0.95, 0.999),
        "gae_lambda": Between(0.9, 0.99),
        "network.hidden": _SMALL_NETWORKS,
    },
    "d3qn": {**_OFF_POLICY, **_EXPLORATION},
    "meta-dqn": {
        **_OFF_POLICY,
        **_EXPLORATION,
        "hold": Between(1.0, 32.0, log=True),
        "network.dim": OneOf((8, 16, 32)),
    },
    "rainbow": {
        **_OFF_POLICY,
        "n_step": _EXPLORATION["n_step"],
        "priority": Between(0.2, 0.8),
        "atoms": OneOf((21, 51, 101)),
    },
    "sac": {
        **_OFF_POLICY,
        "entropy_ratio": Between(0.05, 0.9),
        "alpha_start": Between(0.02, 1.0, log=True),
        "actor_every": OneOf((1, 2)),
    },
}


def space_of(learner: str, names: Iterable[str] = ()) -> Space:
    """Return what is varied for a learner, or only some of it.

    Raises:
        UnknownNameError: if a name is not in the learner's space.
    """
    space = SPACES[learner]
    chosen = tuple(names) or tuple(space)
    for name in chosen:
        if name not in space:
            raise unknown(f"setting to vary of {learner}", name, space)
    return {name: space[name] for name in chosen}
