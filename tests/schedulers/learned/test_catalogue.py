"""Policies that come with Yardmaster: by name, with a card, small, and what they say they are."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from yardmaster.engine.picking.sight import INFORMATION, Sight
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.compare import compare
from yardmaster.metrics.per_job import is_finished
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.report.legend import INFORMATION_MARKS
from yardmaster.report.tables import comparison_table
from yardmaster.schedulers.language import FILE_COPIES, file_names, parse_scheduler
from yardmaster.schedulers.learned import catalogue
from yardmaster.schedulers.learned.catalogue import (
    describe_shipped,
    model_card,
    shipped_names,
    shipped_path,
)
from yardmaster.schedulers.learned.policy import load_policy
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.schedulers.meta import choosers
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.policies import random_policy
from yardmaster.workloads.synthetic import generate

CLUSTER = Cluster.of("4x V100:8")
JOBS = generate("venus-like", jobs=60, seed=3, gpus=CLUSTER.gpus, load=1.2)
SECTIONS = (
    "Training data", "Steps", "Seeds", "Command", "GPU minutes", "Results", "Limits",
)  # fmt: skip
"""What every card must tell."""
INTERVAL = re.compile(r"\[[+−-]?[\d.,]+ ?%?, [+−-]?[\d.,]+ ?%?\]")
MOST_BYTES = 2**20
"""For the files of all policies and choosers together, with their cards."""
DRAWS = 20
"""Of run times that a policy may not know: its first picks must be the same under all."""
SHOWN = {"clairvoyant": "clairvoyant", "estimate": "estimate-based", "blind": "blind"}
"""What a policy is shown of run times → its league in tables."""
CARD = """\
# policy:{name}

{sections}
"""


def ship(folder: Path, name: str, information: str = "blind", **about: object) -> None:
    """Put a policy and its card where those that come along are."""
    sight = Sight(window=40, information=information, gpu_slots=8)
    write_policy(folder / f"{name}.npz", random_policy(sight, seed=2, **about))
    text = "\n\n".join(f"## {title}\n\n−3.1 % [−4.0, −2.2], and so on." for title in SECTIONS)
    (folder / f"{name}.md").write_text(CARD.format(name=name, sections=text), encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder that stands for the one of policies that come along."""
    made = tmp_path / "shipped"
    made.mkdir()
    monkeypatch.setattr(catalogue, "SHIPPED", made)
    return made


def sections_of(card: str) -> dict[str, str]:
    """Cut a card at its headings: title → text."""
    _, *parts = re.split(r"^## (.+)$", card, flags=re.MULTILINE)
    return {
        title.strip(): text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


def check_card(name: str) -> None:
    """Make sure that a card has its title, says something on everything, and has intervals."""
    card = model_card(name)
    assert card.startswith(f"# policy:{name}\n")
    sections = sections_of(card)
    assert [title for title in SECTIONS if not sections.get(title)] == []
    assert INTERVAL.search(sections["Results"])


def check_schedule(name: str) -> None:
    """Make sure that a policy schedules every job, and never on more GPUs than there are."""
    schedule = simulate(JOBS, CLUSTER, f"policy:{name}")
    assert is_finished(schedule).all()
    assert (schedule.start_s >= JOBS.submit_s).all()
    moments = np.concatenate([schedule.start_s, schedule.end_s])
    change = np.concatenate([JOBS.gpus, -JOBS.gpus])
    in_time = np.lexsort((change, moments))  # who ends makes room for who starts
    assert np.cumsum(change[in_time]).max() <= CLUSTER.gpus


def check_league(name: str) -> None:
    """Make sure that the table shows what the policy knows, and that it knows no more."""
    path = shipped_path(name)
    assert path is not None
    expected = SHOWN[load_policy(path).sight.information]
    result = compare(JOBS, CLUSTER, ["fifo", f"policy:{name}"])
    (row,) = (row for row in result.rows if row.scheduler == f"policy:{name}")
    assert row.information == describe_shipped(name).information == expected
    (cells,) = (
        [cell.text for cell in row]
        for row in comparison_table(result).rows
        if row[1].text == f"policy:{name}"
    )
    assert cells[2] == INFORMATION_MARKS[expected]
    assert len({first_picks(name, expected, seed) for seed in range(DRAWS)}) == 1


def first_picks(name: str, league: str, seed: int) -> tuple[int, ...]:
    """Return who starts at second 0, where run times that the league may not know are drawn."""
    dice, jobs = np.random.default_rng(7), 40
    known_s = dice.lognormal(7.0, 1.5, jobs)
    other_s = np.random.default_rng(seed).lognormal(7.0, 1.5, jobs)
    workload = Workload.of(
        name="all at once",
        submit_s=np.zeros(jobs),
        gpus=dice.choice([1, 2, 4, 8], jobs),
        duration_s=known_s if league == "clairvoyant" else other_s,
        estimate_s=other_s if league == "blind" else known_s,
    )
    started = simulate(workload, CLUSTER, f"policy:{name}").start_s == 0
    return tuple(np.flatnonzero(started).tolist())


def size(*folders: Path) -> int:
    return sum(file.stat().st_size for place in folders for file in place.rglob("*.*"))


@pytest.mark.parametrize("name", shipped_names())
def test_what_comes_along_has_a_card(name):
    """Data, steps, seeds, command, GPU minutes, results with intervals and limits are told."""
    check_card(name)


@pytest.mark.parametrize("name", shipped_names())
def test_what_comes_along_schedules(name):
    """Every policy that comes along places all jobs of a small workload."""
    check_schedule(name)


@pytest.mark.parametrize("name", shipped_names())
def test_what_comes_along_is_in_its_league(name):
    """What a table says a policy knows is what it was shown, and no more."""
    check_league(name)


@pytest.mark.parametrize("name", shipped_names())
def test_what_comes_along_says_where_it_comes_from(name):
    """Objective, training data and steps are in the file."""
    about = describe_shipped(name)
    assert "not stated" not in {about.objective, about.trained_on}
    assert about.steps > 0


def test_what_comes_along_is_small():
    """Policies and choosers with their cards are at most 1 MiB, and every card has its policy."""
    assert size(catalogue.SHIPPED, choosers.SHIPPED) <= MOST_BYTES
    assert {path.stem for path in catalogue.SHIPPED.glob("*.md")} <= set(shipped_names())


@pytest.mark.parametrize("information", INFORMATION)
def test_a_policy_put_there_comes_along(folder, information):
    """A file and a card in the folder are all it takes; the same checks pass."""
    ship(folder, "mine", information)
    assert shipped_names() == ["mine"]
    check_card("mine")
    check_schedule("mine")
    check_league("mine")


@pytest.mark.parametrize("missing", SECTIONS)
def test_a_card_must_tell_everything(folder, missing):
    """A card without one of its sections, or with an empty one, does not pass."""
    ship(folder, "mine")
    card = folder / "mine.md"
    text = card.read_text(encoding="utf-8")
    card.write_text(text.replace(f"## {missing}", f"### {missing}"), encoding="utf-8")
    with pytest.raises(AssertionError):
        check_card("mine")
    following = dict(pairwise((*SECTIONS, "End")))[missing]
    told = re.compile(f"## {missing}.*?(## {following}|\\Z)", re.DOTALL)
    emptied = told.sub(f"## {missing}\n\\1", text)
    card.write_text(emptied, encoding="utf-8")
    with pytest.raises(AssertionError):
        check_card("mine")


def test_a_policy_that_knows_more_than_it_says_is_caught(folder, monkeypatch):
    """The picks of a clairvoyant policy change with run times that a blind one could not know."""
    ship(folder, "mine", "clairvoyant")
    assert len({first_picks("mine", "blind", seed) for seed in range(DRAWS)}) > 1
    monkeypatch.setitem(SHOWN, "clairvoyant", "blind")
    with pytest.raises(AssertionError):
        check_league("mine")


def test_names_go_before_folders_and_need_no_copy(folder, tmp_path, monkeypatch):
    """A name means the file that comes along; a path means what lies there, as ever."""
    ship(folder, "mine", "blind")
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "mine"
    own.mkdir()
    write_policy(own / "policy.npz", random_policy(Sight(window=4)))
    assert str(parse_scheduler("policy:mine")) == "policy:mine"
    assert str(parse_scheduler("policy:mine@spread")) == "policy:mine@spread"
    assert parse_scheduler("policy:mine").policy.path == folder / "mine.npz"
    assert parse_scheduler("policy:mine").information == "blind"
    assert parse_scheduler("policy:./mine").information == "clairvoyant"
    assert parse_scheduler(f"policy:{own}").information == "clairvoyant"
    assert file_names(["policy:mine", "policy:mine@spread"]) == []
    assert file_names(["policy:./mine"]) == ["./mine/policy.npz"]


def test_misspelt_names_are_answered(folder, tmp_path, monkeypatch):
    """A name that is neither gets the nearest ones; a path is said to be missing."""
    monkeypatch.chdir(tmp_path)
    ship(folder, "jct-blind")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'jct-blind'\? Known: jct-blind\."):
        parse_scheduler("policy:jct-blnd")
    with pytest.raises(UnknownNameError, match="Did you mean 'jct-blind'"):
        parse_scheduler("policy:jct-blnd@spread")
    with pytest.raises(YardmasterError, match=r"no policy file runs/mine/policy\.npz"):
        parse_scheduler("policy:runs/mine")
    with pytest.raises(YardmasterError, match=r"no policy file mine\.npz"):
        parse_scheduler("policy:mine.npz")
    (tmp_path / "begun").mkdir()
    with pytest.raises(YardmasterError, match=r"no policy file begun/policy\.npz"):
        parse_scheduler("policy:begun")
    with pytest.raises(YardmasterError, match=r"leave out \+easy"):
        parse_scheduler("policy:jct-blind+easy")


def test_a_run_made_again_finds_its_copy(folder, tmp_path, monkeypatch):
    """The folder of a training run may be gone when a run that used it is made again."""
    monkeypatch.chdir(tmp_path)
    ship(folder, "jct-blind")
    copy = tmp_path / "copy.npz"
    write_policy(copy, random_policy(Sight(window=4)))
    monkeypatch.setitem(FILE_COPIES, "mine/policy.npz", copy)
    assert parse_scheduler("policy:mine").policy.path == copy


def test_nothing_may_come_along(folder):
    """Without any policy, or without the folder, nothing is listed and files are asked for."""
    for _ in range(2):
        assert shipped_names() == []
        with pytest.raises(YardmasterError, match=r"no policy file mine/policy\.npz"):
            parse_scheduler("policy:mine")
        with pytest.raises(UnknownNameError, match=r"Unknown policy 'mine'\. Known: none\."):
            model_card("mine")
        if folder.exists():
            folder.rmdir()


@pytest.mark.parametrize(
    ("about", "objective", "trained_on"),
    [
        ({"objective": "mean JCT", "trained_on": "Venus, April"}, "mean JCT", "Venus, April"),
        (
            {"task": {"reward": "wait", "workload": "lognormal", "cluster": "pool:8"}},
            "wait",
            "lognormal on pool:8",
        ),
        ({"task": {"reward": {"waiting": -1.0, "late": -5}}}, "-1 waiting, -5 late", "not stated"),
        ({}, "not stated", "not stated"),
    ],
    ids=["stated", "task", "weights", "nothing"],
)
def test_descriptions_say_what_is_known(folder, about, objective, trained_on):
    """What the file states comes first, then its task; what is not there is not made up."""
    ship(folder, "mine", "estimate", steps=1000, **about)
    found = describe_shipped("mine")
    assert found.information == "estimate-based"
    assert (found.objective, found.trained_on, found.steps) == (objective, trained_on, 1000)


def test_a_policy_without_a_card_is_named(folder):
    """The place where the card should be is in the message."""
    ship(folder, "mine")
    (folder / "mine.md").unlink()
    with pytest.raises(YardmasterError, match=r"Cannot read the card .*mine\.md"):
        model_card("mine")
