"""Policies against schedulers: the same episodes, honest ties, sets that share nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.experts import expert
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.evaluation import (
    evaluate,
    refuse_folder,
    sets_for,
    task_of,
    units_of,
    write_contest,
)
from yardmaster.experiments.players import Policy
from yardmaster.model.workload import Workload
from yardmaster.report.evaluation import contest_figure, contest_tables, findings
from yardmaster.workloads.tables import write_table

SIGHT = Sight(window=12, gpu_slots=4, time_unit_s=3000.0)
TASK = Task(cluster="2x V100:4", jobs=30, load=1.2, sight=SIGHT, measured_unit=False)


def policy(order: str = "sjf", *, name: str = "copy", sight: Sight = SIGHT) -> Policy:
    """Return a policy that decides as a heuristic does; the keys of jobs differ between sets."""
    players: dict[str, Any] = {}

    def choose(batch: Any) -> Any:
        return players.setdefault(batch.episodes.split, expert(order, TASK))(batch)

    return Policy(name, sight, choose, TASK)


def trace(jobs: int = 200) -> Workload:
    dice = np.random.default_rng(0)
    return Workload.of(
        name="trace",
        submit_s=np.sort(dice.uniform(0, 100_000, jobs)),
        duration_s=dice.lognormal(7, 1, jobs),
        gpus=dice.integers(1, 5, jobs),
    )


def numbers(contest: Any) -> list[Any]:
    return [
        values.tolist()
        for entry in contest.entries
        for scores in entry.scores.values()
        for values in scores.values()
    ]


def test_a_perfect_copy_ties_with_what_it_copies():
    """Who decides as a heuristic does differs from it by exactly 0, by every metric."""
    for metric in ("returns", "wait_s", "bounded_slowdown"):
        contest = evaluate([policy()], TASK, against=["sjf", "fifo"], episodes=6, metric=metric)
        mine, same, other = contest.entries
        for split in ("val", "report"):
            assert contest.difference(mine, same, split) == (0.0, 0.0, 0.0)
            assert contest.verdict(mine, same, split) == "no difference"
            assert contest.difference(mine, other, split).mean != 0.0


def test_playing_again_gives_the_same_numbers():
    """Nothing depends on what was played before, random schedulers included."""
    arguments: dict[str, Any] = {"against": ["random-feasible", "saf+conservative"], "episodes": 5}
    first = evaluate([policy()], TASK, **arguments)
    again = evaluate([policy()], TASK, **arguments)
    np.testing.assert_equal(numbers(first), numbers(again))
    alone = evaluate([policy()], TASK, **arguments, splits=["report"])
    for one, other in zip(first.entries, alone.entries, strict=True):
        np.testing.assert_equal(dict(one.scores["report"]), dict(other.scores["report"]))


def test_a_policy_that_is_worse_is_called_worse():
    """Longest first loses to shortest first on waiting, and the sentences say so."""
    contest = evaluate(
        [policy("ljf", name="bad")], TASK, against=["sjf"], episodes=16, metric="wait_s"
    )
    bad, good = contest.entries
    assert contest.verdict(bad, good, "report") == "worse"
    assert any("bad loses to sjf+skip" in said for said in findings(contest))
    table = contest_tables(contest)[1]
    assert [row[0].text for row in table.rows] == ["sjf+skip", "bad"]
    assert "worse" in [cell.text for cell in table.rows[0]]


def test_sets_of_generated_episodes_share_no_jobs():
    """Training, validation and report episodes are all different workloads."""
    prints = [
        Episodes(TASK, split).workload(number).fingerprint()
        for split in ("train", "val", "report")
        for number in range(8)
    ]
    assert len(set(prints)) == len(prints)


def test_sets_of_a_trace_come_from_different_times():
    """No job of a trace is in two sets, and the report is of the latest."""
    task = replace(TASK, workload=trace(), load=None)
    jobs = {
        split: {
            job
            for number in range(20)
            for job in Episodes(task, split).workload(number).id.tolist()
        }
        for split in ("train", "val", "report")
    }
    assert max(jobs["train"]) < min(jobs["val"])
    assert max(jobs["val"]) < min(jobs["report"])


def test_windows_that_overlap_are_one_unit():
    """First windows of units share nothing, every other window overlaps that of its unit."""
    episodes = Episodes(replace(TASK, workload=trace(), jobs=15, load=None), "train")
    units = units_of(episodes, 30)
    windows = [set(episodes.workload(number).id.tolist()) for number in range(30)]
    firsts = [windows[int(np.argmax(units == unit))] for unit in range(units.max() + 1)]
    assert 2 <= len(firsts) <= 120 // 15
    assert sum(map(len, firsts)) == len(set().union(*firsts))
    assert all(window & firsts[unit] for window, unit in zip(windows, units, strict=True))
    assert units_of(Episodes(TASK, "val"), 5).tolist() == [0, 1, 2, 3, 4]


def test_overlapping_windows_are_said():
    """The notes tell how many independent units there are."""
    task = replace(TASK, workload=trace(), load=None)
    contest = evaluate([policy()], task, against=[], episodes=10, splits=["val"])
    assert any("windows of val overlap" in note for note in contest.notes)
    assert any("trained on other jobs" in note for note in contest.notes)


def test_returns_are_in_one_unit_for_all_policies():
    """A policy trained with another time unit is rewarded on the same scale."""
    longer = replace(SIGHT, time_unit_s=50_000.0)
    players = [policy("fifo"), policy("fifo", sight=longer)]
    contest = evaluate(players, TASK, against=["fifo"], episodes=4)
    scores = [entry.scores["val"]["returns"].tolist() for entry in contest.entries]
    assert scores[0] == scores[1] == scores[2]
    assert [entry.name for entry in contest.entries] == ["copy", "copy (2)", "fifo+skip"]


def test_everybody_says_what_they_know():
    """Information classes and how each was run stand in the table."""
    blind = replace(SIGHT, information="blind")
    contest = evaluate(
        [policy("fifo", sight=blind)], TASK, against=["fifo", "sjf", "fifo+conservative"],
        episodes=3, metric="jct_s",
    )  # fmt: skip
    known = {entry.name: (entry.information, entry.how) for entry in contest.entries}
    assert known == {
        "copy": ("blind", "policy"),
        "fifo+skip": ("blind", "played"),
        "sjf+skip": ("clairvoyant", "played"),
        "fifo+conservative": ("clairvoyant", "simulated"),
    }
    cells = {cell.text for row in contest_tables(contest)[0].rows for cell in row}
    assert {"blind", "clairvoyant", "simulated", "in the environment"} <= cells


def test_what_is_simulated_has_no_returns():
    """A scheduler outside the environment is shown without a return, and not judged by it."""
    contest = evaluate([policy()], TASK, against=["sjf+conservative"], episodes=3, metric="returns")
    mine, other = contest.entries
    assert contest.verdict(mine, other, "val") == "not comparable"
    assert any("for sjf+conservative use --metric wait_s" in note for note in contest.notes)
    assert "cannot be compared with sjf+conservative" in findings(contest)[0]
    assert contest_figure(contest).svg.startswith("<svg")


@pytest.mark.parametrize(
    ("reward", "metric"), [("wait", "wait_s"), ("bounded_slowdown", "bounded_slowdown")]
)
def test_everybody_is_judged_by_something_they_have(reward: str, metric: str):
    """Where an opponent has no returns, what the reward is about counts unless told otherwise."""
    task = replace(TASK, reward=reward, jobs=12)
    arguments: dict[str, Any] = {"episodes": 5, "splits": ["val"]}
    assert evaluate([policy()], task, against=["fifo"], **arguments).metric == "returns"
    contest = evaluate([policy()], task, against=["sjf+conservative"], **arguments)
    assert contest.metric == metric
    assert contest.verdict(*contest.entries, "val") in {"better", "worse", "no difference"}


def test_a_file_nobody_was_trained_on_is_judged_whole(tmp_path: Path):
    """All of another file is one set; of the file of the training, validation and report."""
    for name, jobs in (("mine", 200), ("copy", 200), ("other", 100)):
        write_table(trace(jobs), tmp_path / f"{name}.parquet")
    task = replace(TASK, workload=str(tmp_path / "mine.parquet"), load=None, jobs=20)
    player = replace(policy(), task=task)
    assert sets_for([player], task) == ("val", "report")
    assert sets_for([player], replace(task, workload=str(tmp_path / "copy.parquet"))) == (
        "val", "report",
    )  # fmt: skip
    other = replace(task, workload=str(tmp_path / "other.parquet"))
    assert sets_for([player], other) == ("all",)
    assert sets_for([policy()], TASK) == ("val", "report")
    contest = evaluate([player], other, against=["sjf"], episodes=8)
    assert contest.splits == ("all",)
    assert contest.units_in("all") == 5
    assert contest.verdict(*contest.entries, "all") == "no difference"
    windows = [Episodes(other, "all").workload(number).id.tolist() for number in range(5)]
    assert sorted(job for window in windows for job in window) == trace(100).id.tolist()
    seen = evaluate([player], task, against=[], episodes=5, splits=["all"])
    assert any("no fair judgement" in note for note in seen.notes)


def test_a_short_file_is_one_episode_and_no_interval():
    """Episodes are no longer than the file, and too few units for an interval are said."""
    task = replace(TASK, workload=trace(25), load=None)
    contest = evaluate([policy("fifo")], task, against=["sjf"], metric="wait_s")
    assert (contest.episodes, contest.units_in("all")) == (1, 1)
    assert contest.notes[0] == "the file has 25 jobs: it is one episode"
    assert any(note.startswith("1 unit: too few for an interval") for note in contest.notes)
    assert "copy played on too few units to tell it from sjf+skip" in findings(contest)[0]
    with pytest.raises(YardmasterError, match="no `all` of them"):
        evaluate([policy()], TASK, splits=["all"])


def test_who_reads_true_run_times_is_said_of_opponents():
    """A policy with estimates is pointed to opponents with estimates."""
    seeing = replace(SIGHT, information="estimate")
    contest = evaluate(
        [policy("fifo", sight=seeing)], TASK, against=["sjf", "fifo"], episodes=5, splits=["val"]
    )
    assert (
        "sjf+skip reads true run times, copy does not: fairer are sjf+skip~estimate."
        in (findings(contest)[0])
    )


def test_results_are_written_per_episode(tmp_path: Path):
    """One row per player, set and episode, and everything that was concluded beside it."""
    against = ["sjf+conservative", "fifo"]
    contest = evaluate([policy()], TASK, against=against, episodes=4, metric="wait_s")
    write_contest(contest, tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out/episodes.parquet")
    assert rows.height == 3 * 2 * 4
    part = rows.filter(pl.col("player") == "fifo+skip", pl.col("set") == "report")
    assert part["wait_s"].to_list() == contest.entries[2].scores["report"]["wait_s"].tolist()
    written = json.loads((tmp_path / "out/evaluation.json").read_text())
    assert written["metric"] == "wait_s"
    assert len(written["rows"]) == 6
    with pytest.raises(YardmasterError, match="--overwrite replaces it"):
        refuse_folder(tmp_path / "out")
    refuse_folder(tmp_path / "out", overwrite=True)
    (tmp_path / "out/mine.txt").touch()
    with pytest.raises(YardmasterError, match="not empty"):
        refuse_folder(tmp_path / "out", overwrite=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "return"}, r"Unknown metric 'return'. Did you mean 'returns'"),
        ({"splits": ["rapport"]}, "Unknown set of episodes"),
        ({"splits": []}, "no set of episodes"),
        ({"episodes": 0}, "at least 1"),
        ({"against": ["sjff"]}, "Unknown order 'sjff'. Did you mean 'sjf'"),
    ],
    ids=["metric", "set", "no-set", "episodes", "scheduler"],
)
def test_nonsense_is_refused_before_anybody_plays(arguments: dict[str, Any], message: str):
    """Wrong names cost no time."""

    def never(_batch: object) -> Any:
        raise AssertionError("somebody played")

    with pytest.raises(YardmasterError, match=message):
        evaluate([Policy("p", SIGHT, never)], TASK, **arguments)


def test_there_must_be_a_policy_and_a_task():
    """Nobody to judge, or nothing to play, is said plainly."""
    with pytest.raises(YardmasterError, match="no policy to evaluate"):
        evaluate([], TASK)
    stranger = Policy("stranger", SIGHT, expert("sjf", TASK))
    with pytest.raises(YardmasterError, match="--task"):
        task_of([stranger], {})
    assert task_of([stranger, policy()], {"jobs": 7}) == replace(TASK, jobs=7)
    assert task_of([policy()], {"task": "default", "load": 0.5}) == Task(load=0.5)
    with pytest.raises(YardmasterError, match="Unknown task"):
        task_of([policy()], {"task": "defalt"})
