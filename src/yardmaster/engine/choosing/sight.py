"""What a chooser sees and when it is asked: the part of a task that travels with a trained one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.showing import (
    AGE_FEATURES,
    AHEAD_FEATURES,
    PAST_FEATURES,
    QUEUE_FEATURES,
    SLACK_FEATURES,
)
from yardmaster.engine.picking.sight import INFORMATION, check_kinds
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray, IntArray
from yardmaster.names import unknown

SCHEMA = 1
"""Version of the observation: what its numbers mean."""

DEFAULT_MENU = (
    "srpt+skip",
    "edf+skip",
    "static-priority+skip",
    "static-equal+skip",
    "dynamic-heuristic+skip",
)
"""The five rules of RLMetaDQN."""


@dataclass(frozen=True, slots=True)
class ChoiceLayout:
    """The parts of a chooser's observation: numbers of now, then of the recent past."""

    now_features: tuple[str, ...]
    """Names of the numbers of now."""
    past_features: tuple[str, ...]
    """Names of the numbers of every span of the recent past, newest span first."""
    actions: int
    """Schedulers on the menu."""

    @property
    def length(self) -> int:
        """Numbers in the observation."""
        return len(self.now_features) + len(self.past_features)

    @property
    def window(self) -> int:
        """The number of the no-op, which no action has: a scheduler is always at work."""
        return self.actions


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSight:
    """Which schedulers there are to choose from, what is seen, and when a choice is due."""

    menu: tuple[str, ...] = DEFAULT_MENU
    """The schedulers, in the scheduler language; in which order does not matter."""
    every_s: float = 0.0
    """Least seconds between two decisions; 0: at every event at which there is a choice."""
    information: str = "clairvoyant"
    """Run times the chooser is shown: clairvoyant (true), estimate, or blind (none)."""
    ages: bool = True
    """Whether it sees how long jobs have waited."""
    past: int = 8
    """Spans of time of the recent past that it sees; 0: none."""
    past_span: float = 1.0
    """Length of such a span, in time units."""
    shows_choice: bool = True
    """Whether it sees which scheduler is at work."""
    labels: int = 0
    """Numbers that name the regime; 0: it is not told."""
    time_unit_s: float = 600.0
    """Seconds that count as long: features show t / (t + unit)."""

    def __post_init__(self) -> None:
        check_kinds(self)
        if self.information not in INFORMATION:
            raise unknown("information", self.information, INFORMATION)
        if not 1 <= len(self.menu) <= at.MOST_MEMBERS:
            raise YardmasterError(
                f"A menu has 1 to {at.MOST_MEMBERS} schedulers, got {len(self.menu)}."
            )
        if len(set(self.menu)) < len(self.menu):
            raise YardmasterError(f"A scheduler stands on the menu twice: {', '.join(self.menu)}.")
        for name in ("time_unit_s", "past_span"):
            if not 0 < getattr(self, name) < np.inf:
                raise YardmasterError(f"{name} must be positive, got {getattr(self, name)}.")
        if not self.every_s >= 0:
            raise YardmasterError(f"every_s must be 0 or more, got {self.every_s}.")
        if self.past < 0 or not 0 <= self.labels <= at.MOST_LABELS:
            raise YardmasterError(
                f"past must be 0 or more and labels 0 to {at.MOST_LABELS},"
                f" got {self.past} and {self.labels}."
            )

    @property
    def knows_run_times(self) -> bool:
        """Whether the chooser is shown run times, true or estimated."""
        return self.information != "blind"

    def features(self) -> tuple[tuple[str, str], ...]:
        """Return the numbers of now: name and meaning."""
        shown = [*QUEUE_FEATURES]
        if self.ages:
            shown += AGE_FEATURES
        shown += (*SLACK_FEATURES, *AHEAD_FEATURES)
        if self.shows_choice:
            shown += ((f"is_{name}", f"1 while {name} is at work") for name in self.menu)
        shown += ((f"label_{place}", "names the regime") for place in range(self.labels))
        return tuple(shown)

    def layout(self) -> ChoiceLayout:
        """Return where everything stands in the observation."""
        past = tuple(
            f"{name}_{back}" for back in range(self.past) for name, _meaning in PAST_FEATURES
        )
        return ChoiceLayout(tuple(name for name, _ in self.features()), past, len(self.menu))

    def to_table(self) -> dict[str, Any]:
        """Return plain values, for a policy file."""
        return asdict(self) | {"menu": list(self.menu), "schema": SCHEMA}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> ChoiceSight:
        """Read back what `to_table` gave.

        Raises:
            YardmasterError: if the observation is of another version, or a name is unknown.
        """
        values = dict(table)
        schema = values.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise YardmasterError(
                f"The chooser was trained on version {schema} of the observation; this is"
                f" version {SCHEMA}. Train it again, or use the release it was made with."
            )
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise unknown("setting of what a chooser sees", name, known)
        return cls(**(values | {"menu": tuple(values.get("menu", DEFAULT_MENU))}))

    def rules(self) -> IntArray:
        """Return the row of integers the compiled functions read; see `places`."""
        layout = self.layout()
        rules = np.zeros(at.RULES, dtype=np.int64)
        rules[at.MEMBERS] = len(self.menu)
        rules[at.LENGTH] = layout.length
        rules[at.RECENT_AT] = len(layout.now_features)
        rules[at.BUCKETS] = self.past
        rules[at.KNOWS] = self.knows_run_times
        rules[at.SHOWS_AGES] = self.ages
        rules[at.SHOWS_CHOICE] = self.shows_choice
        rules[at.LABELS] = self.labels
        return rules

    def scales(self) -> FloatArray:
        """Return the row of reals the compiled functions read."""
        scales = np.zeros(at.SCALES)
        scales[at.TIME_UNIT_S] = self.time_unit_s
        scales[at.BUCKET_S] = self.past_span * self.time_unit_s
        scales[at.EVERY_S] = self.every_s
        return scales
