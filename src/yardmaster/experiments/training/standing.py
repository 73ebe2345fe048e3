"""Where a run stands: what a checkpoint remembers besides the learner, and what people are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from yardmaster.experiments.training.evaluation import Evaluation

Status = Literal["running", "finished", "stopped early", "interrupted", "failed"]


@dataclass(slots=True)
class Standing:
    """How far a run has come."""

    updates: int = 0
    steps: int = 0
    """Environment steps."""
    seconds: float = 0.0
    """Spent so far, by all processes that worked on it."""
    best: float | None = None
    """Best score on the validation episodes."""
    best_steps: int = 0
    """When that was."""
    latest: float | None = None
    """Score of the latest evaluation."""
    evaluated: int = -1
    """Updates at the last evaluation."""
    stale: int = 0
    """Evaluations since the best."""
    warnings: list[dict[str, Any]] = field(default_factory=list)
    """Those given, each with the steps at which."""

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Standing:
        """Return the standing that `plain` gave."""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Progress:
    """What people are told after every update."""

    steps: int
    total_steps: int
    steps_per_s: float
    """Since the first update of this process, which compiles; NaN until there is a second."""
    eta_s: float
    """Seconds left at this pace; NaN while it is not known."""
    metric: str
    best: float | None
    """Best score on the validation episodes so far."""
    latest: float | None
    """Score of the latest evaluation."""
    heuristics: Mapping[str, float]
    """The same metric of the heuristics."""
    scalars: Mapping[str, float]
    """Of this update."""


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What came of a run."""

    folder: Path
    status: Status
    steps: int
    seconds: float
    best: Evaluation | None
    """The evaluation of the policy that was kept."""
    last: Evaluation | None
    heuristics: Mapping[str, Mapping[str, float]]
    """Every heuristic's mean of every metric on the validation episodes."""
    warnings: tuple[str, ...]
    scenes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Every heuristic's mean of the metric in each scene, where there are several."""
