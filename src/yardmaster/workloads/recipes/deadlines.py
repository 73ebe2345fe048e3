"""By when jobs should end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.workloads.recipes.parameters import Part, catalogue, choice, number
from yardmaster.workloads.recipes.parameters import share as share_of_the_jobs


class Deadlines(Part, ABC):
    """A process that deadlines are drawn from."""

    __slots__ = ()

    @abstractmethod
    def draw(
        self,
        rng: np.random.Generator,
        submit_s: FloatArray,
        duration_s: FloatArray,
        estimate_s: FloatArray,
    ) -> FloatArray:
        """Draw the second by which each job should end, NaN where it does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack(Deadlines):
    """submit + U(low, high) × what the job is expected to take, for a share of the jobs.

    People set deadlines by what they expect: a deadline that follows the estimate gives away no
    more than the estimate does.
    """

    process: ClassVar[str] = "slack"
    low: float = number("smallest multiple", least=0, default=1.5)
    high: float = number("largest multiple", above=0, default=5.0)
    share: float = share_of_the_jobs("share of the jobs that have a deadline", default=1.0)
    follows: str = choice("what is multiplied", ("estimate", "duration"), default="estimate")

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        if self.low > self.high:
            yield f"low is {self.low:g}, above high, {self.high:g}."

    def draw(
        self,
        rng: np.random.Generator,
        submit_s: FloatArray,
        duration_s: FloatArray,
        estimate_s: FloatArray,
    ) -> FloatArray:
        """Draw who has a deadline, and how much slack."""
        chosen = rng.random(len(submit_s)) < self.share
        slack = rng.uniform(self.low, self.high, len(submit_s))
        expected_s = duration_s if self.follows == "duration" else estimate_s
        return np.where(chosen, submit_s + expected_s * slack, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDeadlines(Deadlines):
    """No job has a deadline."""

    process: ClassVar[str] = "none"

    def draw(
        self,
        rng: np.random.Generator,
        submit_s: FloatArray,
        duration_s: FloatArray,
        estimate_s: FloatArray,
    ) -> FloatArray:
        """Return no deadlines."""
        del rng, duration_s, estimate_s
        return np.full(len(submit_s), np.nan)


DEADLINES = catalogue("process of deadlines", Slack, NoDeadlines)
