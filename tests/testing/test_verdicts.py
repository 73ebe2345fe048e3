"""Verdicts on plug-ins: what a rule says, what it raises, and what follows from it."""

from __future__ import annotations

import pytest

from yardmaster.errors import ConformanceError, YardmasterError
from yardmaster.testing.verdicts import NotTriedError, Rule, judged


def raising(error: Exception):
    def problem() -> str:
        raise error

    return problem


def test_every_rule_gets_a_verdict():
    """Kept, broken by words, broken by exceptions, and not tried with the reason."""
    found = judged(
        "thing",
        "mine",
        [
            Rule("is good", lambda: ""),
            Rule("is blue", lambda: "it is red"),
            Rule("is careful", raising(ZeroDivisionError("oops"))),
            Rule("is polite", raising(YardmasterError("It is not."))),
            Rule("can fly", raising(NotTriedError("it is a fish"))),
        ],
    )
    assert found.lines() == [
        "kept       is good",
        "BROKEN     is blue: it is red",
        "BROKEN     is careful: ZeroDivisionError: oops",
        "BROKEN     is polite: It is not.",
        "not tried  can fly: it is a fish",
    ]
    assert not found.conforms
    assert found.to_dict()["rules"][1] == {
        "rule": "is blue",
        "state": "broken",
        "reason": "it is red",
    }
    with pytest.raises(ConformanceError, match=r"thing 'mine' breaks a rule: is blue\. it is red"):
        found.insist()


def test_what_others_need_ends_the_suite():
    """Where nothing can be tried after a broken rule, nothing is."""
    rules = [Rule("is there", lambda: "no", is_needed=True), Rule("is good", lambda: "")]
    assert [one.state for one in judged("thing", "x", rules).verdicts] == ["broken", "not tried"]


def test_what_was_not_tried_breaks_nothing():
    """A plug-in for which a rule has no meaning conforms."""
    found = judged("thing", "x", [Rule("can fly", raising(NotTriedError("it is a fish")))])
    assert found.conforms
    found.insist()
