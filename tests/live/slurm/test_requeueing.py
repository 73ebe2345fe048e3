"""Beside a real Slurm: a running job makes room only where that was asked for and pays."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import read_lines
from yardmaster.live.decision import Decider
from yardmaster.live.folder import AUDIT
from yardmaster.live.slurm.changes import Requeue, apply_changes
from yardmaster.live.slurm.commands import Slurm
from yardmaster.live.slurm.driving import Settings
from yardmaster.live.slurm.observing import Allowed, Observation, observation
from yardmaster.live.slurm.reading import NodeRow, PriorityRow, QueueRow
from yardmaster.live.slurm.requeueing import Requeuer, Rules, read_details
from yardmaster.live.slurm.session import SlurmSession
from yardmaster.live.slurm.stops import Stopped, Stops

MAIN = Allowed(partitions=("main",))
SOON = Rules(least_run_s=0.0)
HOUR_S = 3600.0
NOW_S = 100_000.0
NODES = [NodeRow("n1", "alloc", 2, "a100", 2, ("main",)),
         NodeRow("n2", "alloc", 2, "a100", 2, ("main",))]  # fmt: skip
DETAILS = "1\x1f1\x1f0\x1f5\x1f\x1f(null)\x1f(null)\x1f(null)\x1fOK\x1fcpu=1,mem=1M,gres/gpu=2\x1f"
"""Can be requeued, is a batch job, was never restarted, priority 5, and asks for nothing else."""


def line(job: int, ran_s: float | None, limit_s: float, **cells: object) -> QueueRow:
    """A job of two GPUs; without `ran_s` it waits."""
    waits = ran_s is None
    row = QueueRow(
        str(job), str(job), "ann", "a", "main", "PENDING" if waits else "RUNNING", NOW_S - 9000.0,
        None if waits else NOW_S - ran_s, limit_s, 1, 2, "", 9, "Resources",
        "" if waits else f"n{job}", NOW_S - 9000.0,
    )  # fmt: skip
    return row._replace(**cells)


def seen(*rows: QueueRow, allowed: Allowed = MAIN) -> Observation:
    """Two nodes, full of jobs 1 and 2."""
    weights = {row.job: PriorityRow(row.priority, 0, row.priority, 0) for row in rows if row.waits}
    return observation(rows, NODES, weights, now_s=NOW_S, allowed=allowed)


def moment(unix_s: float | None) -> str:
    """As squeue writes it."""
    return "N/A" if unix_s is None else f"{unix_s:.0f}"


class Programs:
    """Slurm's programs, as scripts that print what a test says of each job."""

    def __init__(self, folder: Path, **details: str) -> None:
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        table = "".join(f"{job[1:]}\x1f{text}\n" for job, text in details.items())
        (folder / "details").write_text(table)
        for name, text in (
            ("squeue", f"cat {folder}/details"),
            ("sinfo", "printf '0/64/0/64\\037256000\\0370\\037\\n'"),
            ("scontrol", "echo '   ReqNodeList=(null) ExcNodeList=(null)'"),
        ):
            (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (bin_folder / name).chmod(0o755)
        self.slurm = Slurm(5.0, {"PATH": f"{bin_folder}:/usr/bin:/bin"})


LONG, OLD, SHORT = line(1, 700.0, 10 * HOUR_S), line(2, 9000.0, 10 * HOUR_S), line(3, None, 60.0)
PLAIN = {"j1": DETAILS, "j2": DETAILS, "j3": DETAILS}


def planned(
    folder: Path, *rows: QueueRow, rules: Rules | None = None, allowed: Allowed = MAIN,
    details: dict[str, str] | None = None, stopped: Stopped | None = None,
    is_first: bool = True, later: dict[str, QueueRow] | None = None,
) -> list[str]:  # fmt: skip
    """Return who would be requeued; jobs may be others `later`, when Slurm is asked about them."""
    folder.mkdir(exist_ok=True)
    stops = Stops(folder)
    if stopped is not None:
        stops.intend([stopped])
    decider = Decider("srpt+preemptive", may_stop=True)
    rows_then = {f"j{row.job}": row for row in rows} | (later or {})
    known = {**PLAIN, **(details or {})}
    told = {
        job: f"{known.get(job, DETAILS)}{row.state}\x1f{moment(row.start_s)}\x1f"
        for job, row in rows_then.items()
    }
    slurm = Programs(folder, **told).slurm
    requeuer = Requeuer(slurm, decider, rules or Rules(), stops)
    observed = seen(*rows, allowed=allowed)
    requeuer.see(observed)
    decision = decider.decide(observed.state)
    return [one.stop.job for one in requeuer.plan(observed, decision, is_first=is_first)]


def test_the_one_that_loses_least_makes_room(tmp_path: Path):
    """Of two long jobs the younger one is stopped for a short one, if it is old enough."""
    assert planned(tmp_path / "a", LONG, OLD, SHORT) == ["1"]
    young = line(1, 500.0, 10 * HOUR_S)
    assert planned(tmp_path / "b", young, OLD, SHORT) == ["2"]
    assert planned(tmp_path / "c", young, SHORT) == []
    assert planned(tmp_path / "d", young, SHORT, rules=replace(SOON)) == ["1"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("an array", {"label": "1_4"}),
        ("an array's last task", {"label": "1_4", "job": "1_4"}),
        ("a part of several", {"label": "1+0"}),
        ("several nodes", {"nodes": 2}),
        ("ending", {"state": "COMPLETING"}),
        ("not on the list", {"partition": "other"}),
        ("soon over", {"limit_s": 720.0}),
        ("not long enough to pay", {"limit_s": 700.0 + 1600.0}),
    ],
)
def test_lines_of_the_queue_protect_jobs(tmp_path: Path, name: str, change: dict[str, object]):
    """No array, gang, job of others, or one whose stop would cost more than half of the gain."""
    assert planned(tmp_path, LONG._replace(**change), SHORT) == [], name


@pytest.mark.parametrize(
    ("place", "value"), [(0, "0"), (1, "0"), (2, "1"), (3, "0")],
    ids=["cannot be requeued", "no batch job", "restarted before", "held"],
)  # fmt: skip
def test_what_slurm_says_protects_jobs(tmp_path: Path, place: int, value: str):
    """A job that may not be requeued, was restarted, or is held is never stopped."""
    cells = DETAILS.split("\x1f")
    cells[place] = value
    assert planned(tmp_path, LONG, SHORT, details={"j1": "\x1f".join(cells)}) == []


@pytest.mark.parametrize(
    ("place", "value"), [(4, "n9"), (5, "fast"), (6, "tomorrow"), (7, "matlab"), (8, "NO"),
                         (9, "cpu=99,mem=1M,gres/gpu=2"), (9, "cpu=1,mem=999G,gres/gpu=2")],
)  # fmt: skip
def test_for_a_job_that_asks_for_more_nobody_is_stopped(tmp_path: Path, place: int, value: str):
    """Nodes, features, reservations, licences, a node alone, too many cores, too much memory."""
    cells = DETAILS.split("\x1f")
    cells[place] = value
    assert planned(tmp_path, LONG, SHORT, details={"j3": "\x1f".join(cells)}) == []


@pytest.mark.parametrize(
    ("name", "later"),
    [
        ("it has just ended", {"j1": LONG._replace(state="COMPLETING")}),
        ("it began anew", {"j1": LONG._replace(start_s=NOW_S - 1.0)}),
        ("it was requeued", {"j1": LONG._replace(state="PENDING", start_s=None)}),
        ("the other one runs", {"j3": SHORT._replace(state="RUNNING", start_s=NOW_S)}),
    ],
)
def test_what_happened_since_the_look_protects_jobs(tmp_path: Path, name: str, later):
    """Nobody is stopped who has ended or begun anew, or for a job that has started, since then."""
    assert planned(tmp_path, LONG, SHORT, later=later) == [], name


def test_nobody_is_stopped_for_a_job_that_was_held_since(tmp_path: Path):
    """It would not start in the room that is made."""
    cells = DETAILS.split("\x1f")
    cells[3] = "0"
    assert planned(tmp_path, LONG, SHORT, details={"j3": "\x1f".join(cells)}) == []


def test_on_a_node_that_drains_nobody_is_stopped(tmp_path: Path, monkeypatch):
    """Nobody starts there: the next one who loses little makes room instead."""
    drains = [replace(NODES[0], state="drng"), NODES[1]]
    monkeypatch.setattr(f"{__name__}.NODES", drains)
    assert planned(tmp_path / "a", LONG, SHORT) == []
    assert planned(tmp_path / "b", LONG, OLD, SHORT) == ["2"]


def test_for_an_array_nobody_is_stopped(tmp_path: Path):
    """Its tasks are one in the order, and room would be made for one of many."""
    assert planned(tmp_path, LONG, SHORT._replace(label="3_[0-5%2]")) == []


def test_slurm_itself_must_say_that_resources_are_lacking(tmp_path: Path):
    """Else jobs without GPUs may stand before it, or a limit that Slurm has not looked at yet."""
    for number, reason in enumerate(("Priority", "None", "QOSMaxGRESPerUser")):
        behind = SHORT._replace(reason=reason)
        assert planned(tmp_path / str(number), LONG, behind) == []
    assert planned(tmp_path / "s", LONG, SHORT._replace(reason="None"), is_first=False) == ["1"]


def test_bounds_hold_across_restarts(tmp_path: Path):
    """Per hour, per job and per waiting job: what was done before counts."""
    now = time.time()
    before = Stopped("1", "77", now - 2 * HOUR_S, 9.0)
    assert planned(tmp_path / "a", LONG, OLD, SHORT, stopped=before) == ["2"]
    before = Stopped("77", "3", now - 2 * HOUR_S, 9.0)
    assert planned(tmp_path / "b", LONG, OLD, SHORT, stopped=before) == []
    before, once = Stopped("77", "78", now - 60.0, 9.0), Rules(per_hour=1)
    assert planned(tmp_path / "c", LONG, OLD, SHORT, stopped=before, rules=once) == []
    none = Rules(per_tick=0)
    assert planned(tmp_path / "d", LONG, OLD, SHORT, rules=none) == []


def test_room_is_made_for_the_first_in_slurms_order_alone(tmp_path: Path):
    """Somebody else whom Slurm would look at first would be given the GPUs."""
    rival = line(4, None, 5 * HOUR_S, priority=10)
    assert planned(tmp_path / "a", LONG, SHORT, rival) == []
    assert planned(tmp_path / "b", LONG, SHORT, rival, is_first=False) == ["1"]
    elsewhere = rival._replace(
        partition="main,other", reason="Nodes required for job are DOWN, DRAINED or reserved"
    )
    assert planned(tmp_path / "d", LONG, SHORT, elsewhere) == []
    waits_for = rival._replace(reason="Dependency")
    assert planned(tmp_path / "c", LONG, SHORT, waits_for) == ["1"]


def test_a_job_in_somebodys_hands_is_not_stopped_when_it_runs(tmp_path: Path):
    """Held or pinned while it waited: it is left alone for good."""
    held = line(1, None, 10 * HOUR_S, priority=0, reason="JobHeldUser")
    assert planned(tmp_path, held, OLD, SHORT, rules=Rules(per_tick=0)) == []
    assert Stops(tmp_path).is_in_hands("1")
    (tmp_path / "bin").rename(tmp_path / "old")
    assert planned(tmp_path, LONG, SHORT) == []


def test_settings_that_make_no_sense_are_refused():
    """A list of whose jobs may be stopped is needed; negative bounds and no gain are refused."""
    with pytest.raises(YardmasterError, match="say whose"):
        Settings(requeue=Rules()).check()
    with pytest.raises(YardmasterError, match="per_hour is -1"):
        Settings(requeue=Rules(per_hour=-1), allowed=MAIN).check()
    with pytest.raises(YardmasterError, match="least_gain is 0"):
        Settings(requeue=Rules(least_gain=0.5), allowed=MAIN).check()
    Settings(requeue=Rules(), allowed=MAIN).check()


def test_a_long_job_is_requeued_for_a_short_one(mini, tmp_path: Path):
    """Only the one that may be requeued is, only if asked for, and the short job starts at once."""
    stays = mini.submit("--no-requeue", seconds=600, minutes=60)
    goes = mini.submit(seconds=600, minutes=60)
    mini.until(lambda: set(mini.runs("start")) >= {stays, goes})
    short = mini.submit(minutes=1)
    mini.until(lambda: short in mini.weights())
    details = read_details(mini.slurm, [stays, goes, short])
    assert [details[job].can_requeue for job in (stays, goes, short)] == [False, True, True]
    assert (details[goes].restarts, details[goes].is_held, details[goes].is_bound) == (
        0,
        False,
        False,
    )
    plain = mini.driver(tmp_path / "plain", "srpt+easy", allowed=MAIN)
    assert not plain.tick().stops
    for name, chosen in (("shadow", {"mode": "shadow"}), ("dry", {"dry_run": True})):
        asked = {"allowed": MAIN, "requeue": SOON, **chosen}
        looks = mini.driver(tmp_path / name, "srpt+preemptive", **asked)
        stops = [stop for _ in range(2) for stop in looks.tick().stops]
        assert {(stop.job, stop.outcome) for stop in stops} == {(goes, "skipped")}
        logged = [one for one in read_lines(tmp_path / name / AUDIT) if one["what"] == "apply"]
        assert [one["job"] for one in logged if one["operation"] == "requeue"] == [goes]
    assert set(mini.states("R")) == {stays, goes}
    folder = tmp_path / "run"
    driver = mini.driver(folder, "srpt+preemptive", allowed=MAIN, requeue=SOON)
    stops = []
    mini.until(lambda: bool(stops.extend(driver.tick().stops)) or bool(stops))
    assert [(stop.job, stop.outcome) for stop in stops] == [(goes, "done")]
    assert f"for job {short}, which can start now instead of in" in stops[0].detail
    mini.until(lambda: short in mini.runs())
    mini.until(lambda: goes in mini.states("PD"))
    for _ in range(2):
        assert not driver.tick().stops
    events = [
        (one["job"], one["event"]) for one in read_lines(folder / AUDIT) if one["what"] == "job"
    ]
    assert (goes, "requeued") in events
    why = mini.said("live", "why", goes, "--folder", str(folder))
    assert "stopped it at" in why
    assert f"so that job {short} could start" in why
    assert "not before" in why
    assert mini.states("R") == [stays]
    assert mini.runs("start").count(stays) == 1


def test_a_job_that_has_ended_is_not_run_again(mini):
    """`scontrol requeue` would: between looking and stopping a job may end by itself."""
    ended = mini.submit("--requeue", seconds=0.0)
    mini.until(lambda: ended in mini.runs() and not mini.states("R,CG"))
    apply_changes(mini.slurm, [Requeue(ended)], may_requeue=True)
    about = mini.slurm.read("scontrol", "show", "job", ended)
    assert "JobState=COMPLETED" in about
    assert "Restarts=0" in about


def test_a_run_must_be_asked_to_stop_jobs(mini, tmp_path: Path):
    """A scheduler that stops jobs needs the option, and the option such a scheduler."""
    with pytest.raises(YardmasterError, match="--preempt-requeue"):
        SlurmSession(mini.slurm, "srpt+preemptive", Settings(), tmp_path / "run")
    asked = Settings(requeue=SOON, allowed=MAIN)
    with pytest.raises(YardmasterError, match="stops no job"):
        SlurmSession(mini.slurm, "sjf+easy", asked, tmp_path / "run")
    said = mini.said("live", "slurm", "-s", "srpt+preemptive", "--preempt-requeue", "--ticks", "1")
    assert "say whose" in said
    assert not (tmp_path / "run").exists()
