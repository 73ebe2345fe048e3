"""How schedulers look."""

from __future__ import annotations

from yardmaster.report.suite.looks import looks_of, short_names


def test_no_two_schedulers_look_alike():
    """Ten schedulers differ by colour, and more still by colour and dash or marker."""
    names = [f"s{place}" for place in range(10)]
    looks = looks_of(names)
    assert len({look.colour for look in looks.values()}) == 10
    assert len({look.marker for look in looks.values()}) == 10


def test_a_look_does_not_depend_on_the_order():
    """The same schedulers look the same in every figure, whoever is best."""
    assert looks_of(["a", "b", "meta:x"]) == looks_of(["meta:x", "b", "a"])
    assert looks_of(["a", "meta:x"])["meta:x"].highlighted


def test_names_are_short_where_that_is_clear():
    """Of files the path is left out, of bandits the menu; where that is ambiguous, nothing."""
    assert short_names(["meta:runs/a/best.npz", "sjf+easy"]) == ["meta:best", "sjf+easy"]
    assert short_names(["meta:runs/a/policy.npz"]) == ["meta:a"]
    both = short_names(["meta:a/x.npz", "meta:b/x.npz"])
    assert both == ["meta:a/x.npz", "meta:b/x.npz"]
    assert len(short_names(["x" * 80])[0]) == 26
    assert short_names(["bandit:exp3=sjf/edf", "bandit:random"]) == ["bandit:exp3", "bandit:random"]
