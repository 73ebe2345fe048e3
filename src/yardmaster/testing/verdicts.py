"""What a suite found: one verdict for each rule that a plug-in has to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from yardmaster.errors import ConformanceError, YardmasterError

State = Literal["kept", "broken", "not tried"]


class NotTriedError(Exception):
    """Raised by a rule that has nothing to say about this plug-in, with the reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A promise in words, and a function that returns what breaks it, or nothing.

    What the function raises breaks the promise as well: whoever calls a plug-in for users would
    get that exception, too.
    """

    words: str
    problem: Callable[[], str]
    is_needed: bool = False
    """Whether nothing else can be tried if this one is broken."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one rule."""

    rule: str
    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Conformance:
    """What came of all rules, for one plug-in.

    Attributes:
        kind: what the plug-in is, such as `order`.
        name: what it is called.
        verdicts: one for each rule, in order.
    """

    kind: str
    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def conforms(self) -> bool:
        """Whether no rule is broken."""
        return not any(verdict.state == "broken" for verdict in self.verdicts)

    def lines(self) -> list[str]:
        """Return one line per rule, the reason behind those that are not kept."""
        marks = {"kept": "kept", "broken": "BROKEN", "not tried": "not tried"}
        return [
            f"{marks[one.state]:<10} {one.rule}{f': {one.reason}' if one.reason else ''}"
            for one in self.verdicts
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        rules = [
            {"rule": one.rule, "state": one.state, "reason": one.reason} for one in self.verdicts
        ]
        return {"kind": self.kind, "name": self.name, "conforms": self.conforms, "rules": rules}

    def insist(self) -> None:
        """Raise if a rule is broken.

        Raises:
            ConformanceError: with the first rule that is, and why.
        """
        for one in self.verdicts:
            if one.state == "broken":
                raise ConformanceError(
                    f"The {self.kind} {self.name!r} breaks a rule: {one.rule}. {one.reason}"
                )


def judged(kind: str, name: str, rules: Sequence[Rule]) -> Conformance:
    """Try one rule after the other; all of them, unless one is broken that the others need."""
    verdicts: list[Verdict] = []
    is_over = False
    for rule in rules:
        verdict = Verdict(rule.words, "not tried") if is_over else _tried(rule)
        verdicts.append(verdict)
        is_over = is_over or (rule.is_needed and verdict.state == "broken")
    return Conformance(kind, name, tuple(verdicts))


def _tried(rule: Rule) -> Verdict:
    try:
        problem = rule.problem()
    except NotTriedError as reason:
        return Verdict(rule.words, "not tried", str(reason))
    except YardmasterError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001  (whatever a plug-in does wrong is its verdict)
        problem = f"{type(error).__name__}: {error}"
    return Verdict(rule.words, "broken" if problem else "kept", problem)
