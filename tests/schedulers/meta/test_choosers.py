"""`meta:` and `bandit:` in the scheduler language."""

from __future__ import annotations

import pytest

from yardmaster.engine.choosing.sight import DEFAULT_MENU, ChoiceSight
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.schedulers.language import file_names, parse_scheduler
from yardmaster.schedulers.meta import choosers
from yardmaster.schedulers.meta.chooser_file import write_chooser
from yardmaster.schedulers.views import Information
from yardmaster.testing.choosing import random_chooser


def written(path, **sight):
    """Write a chooser and return its name in the scheduler language."""
    write_chooser(path, random_chooser(ChoiceSight(**sight)))
    return f"meta:{path}"


@pytest.mark.parametrize(
    ("text", "menu"),
    [
        ("bandit:linucb", DEFAULT_MENU),
        ("bandit:exp3=fifo/sjf+easy", ("fifo", "sjf+easy")),
        ("bandit:random=sjf~estimate/edf@spread", ("sjf~estimate", "edf@spread")),
    ],
)
def test_bandits_are_schedulers(text, menu):
    """A bandit parses to itself, with the default menu or one of its own."""
    scheduler = parse_scheduler(text)
    assert str(scheduler) == text
    assert scheduler.chooser.sight.menu == menu
    assert file_names([text]) == []


def test_what_choosers_know_is_what_they_or_their_menu_read(tmp_path):
    """Information is that of the chooser and of all schedulers it may put to work."""
    blind = ("fifo+skip", "largest-first+skip")
    estimates = ("sjf+easy~estimate", "fifo")
    cases = {
        "bandit:exp3": Information.CLAIRVOYANT,
        "bandit:exp3=sjf~estimate/edf": Information.ESTIMATE_BASED,
        "bandit:linucb=fifo/edf+skip": Information.BLIND,
        "bandit:exp3=fifo/edf~estimate": Information.BLIND,
        "bandit:exp3=fifo/edf+easy": Information.CLAIRVOYANT,
        written(tmp_path / "a.npz", menu=blind, information="blind"): Information.BLIND,
        written(tmp_path / "b.npz", menu=blind): Information.CLAIRVOYANT,
        written(tmp_path / "c.npz", menu=("sjf",), information="blind"): Information.CLAIRVOYANT,
        written(
            tmp_path / "d.npz", menu=estimates, information="estimate"
        ): Information.ESTIMATE_BASED,
        written(
            tmp_path / "e.npz", menu=estimates, information="blind"
        ): Information.ESTIMATE_BASED,
    }
    assert {text: parse_scheduler(text).information for text in cases} == cases


def test_a_chooser_is_named_by_its_file_or_the_folder_of_its_training(tmp_path):
    """Both mean the same file, which is copied along with a run."""
    (tmp_path / "run").mkdir()
    text = written(tmp_path / "run" / "policy.npz")
    folder = f"meta:{tmp_path}/run"
    assert str(parse_scheduler(text)) == text
    assert str(parse_scheduler(folder)) == folder
    assert file_names([text, folder, "fifo"]) == [f"{tmp_path}/run/policy.npz"]
    # Reading it twice is one chooser; once changed, it is another.
    assert parse_scheduler(text).chooser is parse_scheduler(folder).chooser
    before = parse_scheduler(text).chooser
    written(tmp_path / "run" / "policy.npz", menu=("fifo", "sjf"))
    assert parse_scheduler(text).chooser is not before


def test_shipped_choosers_go_by_name(tmp_path, monkeypatch):
    """A name of ours means the file that comes along, which no run need copy."""
    monkeypatch.setattr(choosers, "SHIPPED", tmp_path)
    written(tmp_path / "for-jct.npz")
    assert str(parse_scheduler("meta:for-jct")) == "meta:for-jct"
    assert file_names(["meta:for-jct"]) == []
    with pytest.raises(YardmasterError, match="Did you mean 'for-jct'"):
        parse_scheduler("meta:for-jtc")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bandit:linucbb", "Did you mean 'linucb'"),
        ("bandit:exp3=fifo/sjff", "Did you mean 'sjf'"),
        ("bandit:exp3=fifo/srpt+preemptive", r"srpt\+preemptive cannot stand on a menu"),
        ("bandit:exp3=fifo/sjf+conservative", "only strict, skip, commit, easy"),
        ("bandit:exp3=fifo/sjf@milp", "it has no keys"),
        ("bandit:exp3=fifo/bandit:random", "it has no keys"),
        ("bandit:exp3=sjf/edf+easy~estimate", "must agree on run times"),
        ("bandit:exp3=fifo/sjf/fifo", "on the menu twice"),
        ("bandit:exp3=", "Cannot read scheduler"),
        ("meta:nowhere.npz", "no trained chooser 'nowhere.npz'"),
        ("meta:nowhere", "no trained chooser 'nowhere'"),
    ],
)
def test_mistakes_are_named(text, message):
    """Unknown bandits, schedulers that no menu can hold, and missing files are named."""
    with pytest.raises(YardmasterError, match=message):
        parse_scheduler(text)


def test_a_chooser_may_not_be_shown_other_run_times_than_its_menu(tmp_path):
    """True run times beside a menu that reads estimates would make it a cheat."""
    text = written(tmp_path / "a.npz", menu=("sjf~estimate",), information="clairvoyant")
    with pytest.raises(YardmasterError, match="cannot choose among schedulers that read others"):
        parse_scheduler(text)


def test_unknown_bandits_are_unknown_names():
    """The error is the one for names, so that the command line shows what there is."""
    with pytest.raises(UnknownNameError, match="Known: epsilon-greedy, exp3, linucb, random"):
        parse_scheduler("bandit:ucb1")
