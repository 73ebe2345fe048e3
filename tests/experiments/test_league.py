"""The league: windows that share nothing, everybody in the right league, losses told as losses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.errors import InvalidWorkloadError, UnknownNameError, YardmasterError
from yardmaster.schedulers.language import parse_scheduler

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
JOBS = 20
SCENE = "small"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The study's scripts, with few windows."""
    sys.path.insert(0, str(FOLDER))
    import league_replays
    import league_scenes

    small = league_scenes.Scene(SCENE, "a small one", "lognormal", "2x V100:8", JOBS, 1.0)
    monkeypatch.setitem(league_scenes.SCENES, SCENE, small)
    monkeypatch.setitem(league_scenes.MOST_WINDOWS, "training", 3)
    monkeypatch.setitem(league_scenes.MOST_WINDOWS, "validation", 4)
    league_replays._windows.cache_clear()
    league_scenes.jobs_of.cache_clear()
    yield
    league_replays._windows.cache_clear()
    league_scenes.jobs_of.cache_clear()
    sys.path.remove(str(FOLDER))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A scene on a made-up log of 200 jobs, every tenth too large for its 16 GPUs."""
    import league_scenes

    submit_s = np.arange(200.0) * 60.0
    gpus = np.where(np.arange(200) % 10 == 0, 64, 1 + np.arange(200) % 8)
    jobs = ym.Workload.of(submit_s=submit_s, duration_s=submit_s + 1.0, gpus=gpus)
    monkeypatch.setitem(league_scenes.LOGS, "made-up", league_scenes.Log(Path("none.csv")))
    monkeypatch.setattr(league_scenes, "prepared", lambda _: jobs)
    return league_scenes.Scene("log", "a log", "made-up", "2x V100:8", JOBS, load=0.9)


def test_every_order_plays_under_every_discipline():
    """All orders but those that are others here play under five disciplines, each once."""
    from league_heuristics import DISCIPLINES, FLOOR, SAME_AS, everybody, heuristics

    from yardmaster.schedulers.orders import ORDERS

    built_in = {name for name, one in ORDERS.items() if one.function.__module__.endswith("orders")}
    drawn = FLOOR.partition("+")[0]
    orders = built_in - set(SAME_AS) - {drawn}
    told = [name for name in heuristics() if not name.endswith("~estimate")]
    assert set(told) >= {f"{order}+{how}" for order in orders for how in DISCIPLINES}
    assert len(set(everybody())) == len(everybody())


def test_leagues_hold_who_knows_as_much_or_nothing():
    """Estimates are read in the estimate-based league alone, true run times in the first alone."""
    from league_heuristics import LEAGUES, heuristics, knowledge, may_play

    for name in heuristics():
        leagues = [league for league in LEAGUES if may_play(knowledge(name), league)]
        scheduler = parse_scheduler(name)
        if not scheduler.reads_run_times:
            assert leagues == list(LEAGUES)
        else:
            assert leagues == ["estimate-based" if "~estimate" in name else "clairvoyant"]


def test_orders_that_are_left_out_are_others():
    """Where nobody is stopped, each order that does not play does as the one it is said to be."""
    from league_heuristics import SAME_AS

    jobs = ym.generate("lognormal", seed=3, jobs=60, gpus=16, load=1.2)
    for name, other in SAME_AS.items():
        for discipline in ("strict", "skip", "easy"):
            one, two = (
                ym.simulate(jobs, "2x V100:8", f"{order}+{discipline}") for order in (name, other)
            )
            np.testing.assert_array_equal(one.start_s, two.start_s)


def test_windows_of_a_log_share_no_job(log: Any):
    """Windows are consecutive, of both parts in turn; what is too large is in none of them."""
    from league_scenes import MOST_WINDOWS, PARTS, dropped_share, windows

    seen: list[float] = []
    for part in PARTS:
        found = windows(log, part, 100)
        assert (
            len(found)
            == len([row for row in range(200) if row % 10])
            * 0.2
            * (3 if part == "training" else 2)
            // JOBS
        )
        for window in found:
            assert len(window) == JOBS
            assert window.gpus.max() <= 16
            assert window.submit_s[0] == 0
            assert window.load(16) == pytest.approx(0.9, rel=1e-3)
            seen += window.duration_s.tolist()
        assert len(windows(log, part)) == min(len(found), MOST_WINDOWS[part])
        assert dropped_share(log, part) == pytest.approx(0.1)
    assert seen == sorted(set(seen))  # run times grow along this log


def test_generated_windows_have_seeds_of_their_own():
    """No window of the one part is a window of the other."""
    from league_scenes import SCENES, windows

    prints = [
        {jobs.fingerprint() for jobs in windows(SCENES[SCENE], part)}
        for part in ("training", "validation")
    ]
    assert [len(one) for one in prints] == [3, 4]
    assert not prints[0] & prints[1]


def test_windows_are_spread_evenly():
    """Few windows of many lie all over the part; of few, all are played."""
    from league_scenes import spread

    assert spread(3, 5) == [0, 1, 2]
    for count in range(5, 40):
        chosen = spread(count, 5)
        assert len(chosen) == 5
        gaps = np.diff([*chosen, count + chosen[0]])
        assert gaps.max() - gaps.min() <= 1


def test_a_log_too_short_for_a_window_is_refused(log: Any):
    """The error names the scene and both numbers of jobs."""
    from dataclasses import replace

    from league_scenes import windows

    with pytest.raises(InvalidWorkloadError, match="log: the training part has 108 jobs"):
        windows(replace(log, jobs=500), "training")


def test_unknown_scenes_are_refused_with_the_nearest():
    """A misspelt scene gets a suggestion."""
    from league_scenes import scene_named

    with pytest.raises(UnknownNameError, match="venus"):
        scene_named("venuss")


def test_logs_become_arrays_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A log is read from its trace once, with an estimate for everybody, then from arrays."""
    import league_scenes

    table = "submit_s,duration_s,gpus,user\n0,100,1,ann\n5,50,2,\n"
    (tmp_path / "log.csv").write_text(table)
    monkeypatch.setitem(league_scenes.LOGS, "once", league_scenes.Log(Path("log.csv")))
    first = league_scenes.prepared.__wrapped__("once", tmp_path, tmp_path / "inputs")
    (tmp_path / "log.csv").unlink()
    second = league_scenes.prepared.__wrapped__("once", tmp_path, tmp_path / "inputs")
    assert first.fingerprint() == second.fingerprint()
    assert (second.estimate_s >= second.duration_s).all()
    assert (second.user.codes < 0).tolist() == [False, True]


def test_measured_agrees_with_the_summary():
    """The four numbers of a window are those of the catalogue."""
    from league_replays import measured
    from league_store import METRICS

    jobs = ym.generate("lognormal", seed=1, jobs=80, gpus=16, load=1.1)
    schedule = ym.simulate(jobs, "2x V100:8", "sjf+easy")
    summary = ym.summarise(schedule)
    assert measured(schedule) == pytest.approx([summary[name] for name in METRICS])


def test_unfinished_jobs_are_refused():
    """A window that was cut has no mean."""
    from league_replays import measured

    jobs = ym.Workload.of(submit_s=[0], duration_s=[100])
    with pytest.raises(YardmasterError, match="unfinished"):
        measured(ym.simulate(jobs, "pool:1", "fifo", until_s=10.0))


def played(folder: Path, *schedulers: str, again: bool = False) -> list[str]:
    """Play in the small scene; return what was said."""
    from league_replays import play_all

    said: list[str] = []
    play_all([SCENE], schedulers, workers=1, again=again, say=said.append, folder=folder)
    return said


def test_nobody_plays_twice(tmp_path: Path):
    """What is kept stays as it is; only who is missing plays, unless asked to play again."""
    from league_store import read_record

    assert "2 of 2 plays" in played(tmp_path, "fifo+skip", "sjf+easy")[-1]
    assert "1 of 1 plays" in played(tmp_path, "fifo+skip", "sjf+easy", "sjf+skip~estimate")[-1]
    assert played(tmp_path, "fifo+skip") == []
    assert "1 of 1 plays" in played(tmp_path, "fifo+skip", again=True)[-1]
    record = read_record(SCENE, tmp_path)
    assert record is not None
    assert record.windows == (3, 4)
    assert {name: entry.information for name, entry in record.entries.items()} == {
        "fifo+skip": "blind", "sjf+easy": "clairvoyant", "sjf+skip~estimate": "estimate-based",
    }  # fmt: skip


def test_changed_windows_are_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Numbers of other jobs are never mixed with those of these."""
    import league_replays
    import league_scenes

    played(tmp_path, "fifo+skip", "sjf+easy")
    monkeypatch.setitem(league_scenes.FIRST_SEED, "validation", 13_000_000)
    league_replays._windows.cache_clear()
    assert "have changed" in played(tmp_path, "fifo+skip")[0]


def test_errands_hold_everybody_once():
    """However many play, each is in one errand."""
    from league_replays import AT_ONCE, errands_for

    for count in range(20):
        names = [f"{number}" for number in range(count)]
        errands = errands_for(SCENE, names)
        assert sorted(names) == sorted(name for errand in errands for name in errand.schedulers)
        assert all(len(errand.schedulers) <= AT_ONCE for errand in errands)


def test_damaged_results_name_their_file(tmp_path: Path):
    """A file that cannot be read is named, not trusted."""
    from league_store import read_record

    (tmp_path / f"{SCENE}.npz").write_bytes(b"nothing")
    with pytest.raises(YardmasterError, match=f"{SCENE}.npz is damaged"):
        read_record(SCENE, tmp_path)
    assert read_record("venus", tmp_path) is None


def record_of(policy_by: float) -> Any:
    """Made-up results: sjf+easy is best on training, saf+easy on validation; a policy beside."""
    from league_store import Entry, Record

    dice = np.random.default_rng(0)
    base = {"training": dice.uniform(5, 6, (8, 1)), "validation": dice.uniform(5, 6, (12, 1))}

    def entry(information: str, training: float, validation: float, goal: str = "") -> Entry:
        noise = {part: dice.normal(0, 0.01, (len(base[part]), 4)) for part in base}
        values = {
            "training": base["training"] * training + noise["training"],
            "validation": base["validation"] * validation + noise["validation"],
        }
        return Entry(information, goal, values)  # type: ignore[arg-type]

    entries = {
        "sjf+easy": entry("clairvoyant", 1.0, 1.2),
        "saf+easy": entry("clairvoyant", 1.1, 1.0),
        "sjf+easy~estimate": entry("estimate-based", 0.1, 0.1),
        "fifo+skip": entry("blind", 2.0, 2.0),
        "srpt+preemptive": entry("clairvoyant", 0.1, 0.1),
        "policy:p": entry("clairvoyant", policy_by, policy_by, "bounded_slowdown"),
    }
    return Record("venus", "digest", (0.0, 0.0), entries)


def test_who_is_chosen_does_not_see_validation():
    """The rival is the best on training windows; the other is known in hindsight only."""
    from league_standings import standing

    record = record_of(0.9)
    found = standing(record, "policy:p", "mean_bounded_slowdown")
    assert (found.chosen, found.best) == ("sjf+easy", "saf+easy")
    ratio = found.value / found.chosen_value - 1.0
    assert found.to_chosen.mean == pytest.approx(ratio)
    assert found.to_chosen.low < ratio < found.to_chosen.high
    assert found.to_best.mean == pytest.approx(-0.1, abs=0.01)


@pytest.mark.parametrize(
    ("policy_by", "said"),
    [
        (0.8, "policy:p beats the chosen heuristic in venus"),
        (1.1, "policy:p is behind the best in hindsight in venus"),
        (1.5, "policy:p **loses to** the chosen heuristic in venus"),
        (1.2, "policy:p differs clearly"),
    ],
)
def test_the_page_tells_losses_as_losses(policy_by: float, said: str, tmp_path: Path):
    """Who wins is said by the interval over windows, whoever it is."""
    from league_page import write_page

    text = write_page([record_of(policy_by)], tmp_path / "results.md").read_text()
    if policy_by == 1.2:
        assert "**loses to**" not in text
        assert "beats the chosen" not in text
    else:
        assert said in text
    assert ("reached" in text.split("## policy:p")[0]) == (policy_by < 1.0)
    assert "sjf+easy~estimate" in text.split("## The estimate-based league")[1]
    assert "srpt+preemptive" not in text.split("## Who may stop jobs")[0].split("## In short")[1]


def test_higher_utilisation_is_better():
    """A policy with a higher utilisation wins, with a lower one loses."""
    from league_standings import ranked, standing, verdict

    for policy_by, word in ((3.0, "wins"), (0.5, "loses")):
        found = standing(record_of(policy_by), "policy:p", "utilisation")
        assert found.chosen == "fifo+skip"
        assert verdict(found.to_chosen, "utilisation") == word
    assert ranked(record_of(1.0), ["sjf+easy", "fifo+skip"], "training", "utilisation")[0] == (
        "fifo+skip"
    )


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("mean JCT", "mean_jct_s"),
        ("p95 JCT", "p95_jct_s"),
        ("p95_jct_s", "p95_jct_s"),
        ("bounded_slowdown", "mean_bounded_slowdown"),
        ("mean JCT and p95 JCT", "mean_bounded_slowdown"),
        ("mixed", "mean_jct_s"),
        ("", "mean_bounded_slowdown"),
    ],
)
def test_policies_are_judged_by_what_they_were_trained_for(objective: str, metric: str):
    """One objective judges alone; of several, or none, the bounded slowdown does."""
    from league_standings import judged_by

    assert judged_by(objective) == metric


def test_policies_play_in_the_league_of_what_they_see(tmp_path: Path):
    """A policy's file says what it knows and what it was trained for; it plays every time."""
    from league_store import read_record

    from yardmaster.engine.picking.sight import Sight
    from yardmaster.schedulers.learned.policy_file import write_policy
    from yardmaster.testing.policies import random_policy

    path = tmp_path / "blind.npz"
    write_policy(path, random_policy(Sight(information="blind"), objective="mean JCT"))
    played(tmp_path, f"policy:{path}")
    record = read_record(SCENE, tmp_path)
    assert record is not None
    entry = record.entries[f"policy:{path}"]
    assert (entry.information, entry.objective) == ("blind", "mean JCT")
    assert (entry.values["validation"] > 0).all()


def test_a_page_without_policies_says_so(tmp_path: Path):
    """Heuristics alone make a page, too."""
    from league_page import write_page

    record = record_of(1.0)
    del record.entries["policy:p"]
    text = write_page([record], tmp_path / "results.md").read_text()
    assert "No policy has played yet." in text
    assert "| venus | clairvoyant | sjf+easy" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.count("|") >= 3 for line in rows)


def test_the_command_refuses_what_is_not_there(tmp_path: Path):
    """No page without results, no policy and no scene that nobody knows."""
    from league import main

    store = ["--store", str(tmp_path)]
    with pytest.raises(SystemExit, match="Nothing has been played"):
        main(["page", *store])
    with pytest.raises(SystemExit, match="Unknown policy"):
        main(["policies", "policy:nobodys", *store])
    with pytest.raises(SystemExit, match="Did you mean"):
        main(["best", "--scenes", "venuss", *store])
