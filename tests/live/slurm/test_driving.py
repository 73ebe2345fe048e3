"""Beside a real Slurm: the order follows the scheduler, and whatever is killed, no job is hurt."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog, read_lines
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.folder import AUDIT, LiveFolder
from yardmaster.live.slurm.changes import Requeue, SetFactor
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.driving import LONGEST_PAUSE_S, Settings, SlurmDriver
from yardmaster.live.slurm.ledger import NAME
from yardmaster.live.slurm.observing import Allowed
from yardmaster.live.slurm.probing import Capabilities
from yardmaster.live.slurm.requeueing import Exchange, Rules
from yardmaster.live.slurm.restoring import restore
from yardmaster.live.slurm.stops import Stops

MINUTES = (7, 3, 9, 2, 8, 4)
"""Time limits: what the shortest-first scheduler goes by."""


def shortest_first(jobs: list[str]) -> list[str]:
    return [job for _, job in sorted(zip(MINUTES, jobs, strict=True))]


def test_jobs_start_in_the_schedulers_order(mini, tmp_path: Path):
    """Six jobs that each need a whole node start by their time limits, not by age."""
    blockers = mini.fill()
    jobs = [mini.submit(minutes=minutes) for minutes in MINUTES]
    driver = mini.driver(tmp_path / "run")
    tick = driver.tick()
    assert not tick.skipped
    assert mini.order() == shortest_first(jobs)
    mini.cancel(blockers[0])  # one node works the queue off, the other stays full
    mini.until(lambda: len(set(jobs) & set(mini.runs())) == len(jobs))
    started = [job for job in mini.runs("start") if job in jobs]
    assert started == shortest_first(jobs)
    assert mini.once(jobs)


def test_only_what_is_out_of_place_is_changed(mini, tmp_path: Path):
    """A second look changes nothing; one more short job costs one change."""
    mini.fill()
    for minutes in MINUTES:
        mini.submit(minutes=minutes)
    driver = mini.driver(tmp_path / "run")
    assert driver.tick().outcomes
    assert not driver.tick().outcomes
    newcomer = mini.submit(minutes=1)
    assert [outcome.job for outcome in driver.tick().outcomes] == [newcomer]
    assert mini.order()[0] == newcomer


def test_shadow_and_dry_run_touch_nothing(mini, tmp_path: Path):
    """Neither mode gives a factor; both log what they decided."""
    mini.fill()
    jobs = [mini.submit(minutes=minutes) for minutes in MINUTES]
    before = mini.order()
    for name, settings in (("a", {"mode": "shadow"}), ("b", {"dry_run": True})):
        driver = mini.driver(tmp_path / name, **settings)
        tick = driver.tick()
        assert tick.plan.changes
        lines = list(read_lines(tmp_path / name / AUDIT))
        decided = next(line for line in lines if line["what"] == "decide")
        assert decided["order"] == shortest_first(jobs)
    assert not mini.sites()
    assert mini.order() == before


def test_what_people_did_is_left_alone(mini, tmp_path: Path):
    """Held jobs, priorities and factors set by hand, and jobs off the list stay as they are."""
    mini.fill()
    by_hand, pinned, held, waits_for = (mini.submit(minutes=60 - one) for one in range(4))
    mini.cluster.run("scontrol", "update", f"jobid={by_hand}", "sitefactor=77")
    mini.cluster.run("scontrol", "update", f"jobid={pinned}", "priority=5")
    mini.cluster.run("scontrol", "hold", held)
    dependent = mini.submit(f"--dependency=afterok:{waits_for}", minutes=1)
    elsewhere = mini.submit("--partition=other", minutes=1)
    long, short = mini.submit(minutes=50), mini.submit(minutes=2)
    driver = mini.driver(tmp_path / "run", allowed=allowed("main"))
    touched = {outcome.job for outcome in driver.tick().outcomes}
    assert touched <= {waits_for, long, short}
    assert short in touched
    assert mini.sites()[by_hand] == 77
    ledger = (tmp_path / "run" / NAME).read_bytes()
    assert restore(mini.slurm, driver.ledger).others == 1
    assert (tmp_path / "run" / NAME).read_bytes() == ledger, "a run may be writing it"
    assert mini.sites() == {by_hand: 77}
    assert not {dependent, elsewhere, held, pinned} & touched


def allowed(partition: str):
    from yardmaster.live.slurm.observing import Allowed

    return Allowed(partitions=(partition,))


def test_rate_limits_hold(mini, tmp_path: Path):
    """No tick sends more changes than it may, nor a minute; the head of the order comes first."""
    mini.fill()
    jobs = [mini.submit(minutes=minutes) for minutes in MINUTES]
    driver = mini.driver(tmp_path / "run", updates_per_tick=2, updates_per_minute=3)
    first = driver.tick().outcomes
    assert len(first) == 2
    assert first[0].job == shortest_first(jobs)[0]
    assert len(driver.tick().outcomes) == 1
    assert not driver.tick().outcomes


def test_arrays_and_heterogeneous_jobs_are_one_each(mini, tmp_path: Path):
    """An array and a job of two parts are each moved as one, with one change."""
    mini.fill()
    long = mini.submit(minutes=50)
    array = mini.submit("--array=0-3%2", minutes=3)
    parts = ["--gpus=1", "--mem=1M", "--time=2", "-o", "/dev/null"]
    text = "#!/bin/sh\nsleep 0.1\n"
    answer = mini.cluster.run("sbatch", "--parsable", *parts, ":", *parts, text=text)
    pair = answer.stdout.strip()
    driver = mini.driver(tmp_path / "run")
    touched = [outcome.job for outcome in driver.tick().outcomes]
    assert set(touched) <= {long, array, pair}
    assert len(touched) == len(set(touched))
    seen = driver.observe()
    assert set(seen.row_of) >= {long, array, pair}
    mini.until(lambda: not driver.tick().outcomes)
    weights = mini.weights()
    assert weights[pair].priority > weights[array].priority > weights[long].priority


def test_killed_while_changing_then_restored(mini, tmp_path: Path):
    """Killed at random moments, jobs still run once; restoring brings back Slurm's order."""
    blockers = mini.fill()
    jobs = [mini.submit(minutes=1 + number % 9, gpus=1) for number in range(24)]
    own_order, folder, dice = mini.order(), tmp_path / "run", random.Random(3)
    for _ in range(2):
        process = mini.yardmaster(
            "live", "slurm", "--apply", "-o", str(folder), "--interval-s", "0.1", "--quiet"
        )
        mini.until(lambda one=process: bool(mini.sites()) or one.poll() is not None)
        time.sleep(dice.uniform(0.0, 0.3))
        process.kill()
        process.communicate()
    assert len(mini.states("PD")) == len(jobs)
    assert "sign of life" in mini.said("live", "restore", str(folder), "--if-stale-s", "3600")
    assert mini.sites()
    assert " 0 left" in mini.said("live", "restore", str(folder))
    assert not mini.sites()
    # Slurm weighs what was changed at once and all others within a minute (PriorityCalcPeriod).
    mini.until(lambda: mini.order() == own_order, limit_s=90.0)
    mini.cancel(*blockers)
    mini.until(lambda: mini.once(jobs))


def in_order(mini, jobs: list[str]) -> bool:
    """Whether these wait in the scheduler's order; a crash also brings back jobs of other tests."""
    return [job for job in mini.order() if job in jobs] == shortest_first(jobs)


def test_a_controller_that_dies_loses_nothing_of_ours(mini, tmp_path: Path):
    """While slurmctld is dead ticks are skipped and come later; what it lost is sent again."""
    blockers = mini.fill()
    jobs = [mini.submit(minutes=minutes) for minutes in MINUTES]
    driver = mini.driver(tmp_path / "run")
    time.sleep(6.5)  # Slurm itself loses jobs submitted just before it is killed
    driver.tick()
    given = mini.sites()
    mini.cluster.kill("slurmctld")  # what was changed a moment ago is not saved yet
    quick = type(mini.slurm)(2.0, mini.slurm.environment)
    driver._slurm = quick
    assert driver.tick().skipped
    assert driver.pause_s == 2 * driver.settings.interval_s <= LONGEST_PAUSE_S
    mini.cluster.start("slurmctld")
    mini.cluster.wait_until_ready()
    driver._slurm = mini.slurm
    mini.until(lambda: not driver.tick().skipped and in_order(mini, jobs))
    assert set(mini.sites()) >= set(given)
    node = mini.cluster.shape.node_names[0]
    mini.cluster.kill(node)
    mini.cluster.start(node)
    mini.cancel(*blockers)
    mini.until(lambda: mini.once(jobs))


def test_a_failing_scheduler_touches_nothing(mini, tmp_path: Path):
    """A decision that raises, comes late or is about other jobs is not carried out."""
    mini.fill()
    for minutes in MINUTES:
        mini.submit(minutes=minutes)
    driver = mini.driver(tmp_path / "run", latest_s=0.01)
    assert "late" in driver.tick().skipped
    driver = mini.driver(tmp_path / "other")
    decide = driver._decider.decide

    def odd(state):
        decision = decide(state)
        object.__setattr__(decision, "order", decision.order[:-1])
        return decision

    driver._decider.decide = odd
    assert "not about the jobs" in driver.tick().skipped
    driver._decider.decide = lambda _: 1 / 0
    assert "ZeroDivisionError" in driver.tick().skipped
    assert driver.failures == 2
    assert not mini.sites()


def test_it_refuses_to_change_what_it_must_not(mini, tmp_path: Path):
    """With a reason against it, `apply` refuses and names the reason; `shadow` does not."""
    from dataclasses import replace

    driver = mini.driver(tmp_path / "run", mode="shadow")
    bad = replace(driver._capabilities, refusals=("PriorityWeightAge is 0",))
    parts = (mini.slurm, driver._decider, bad)
    rest = {"began_unix_s": 0.0}
    settings = replace(driver.settings, mode="apply")
    with pytest.raises(YardmasterError, match="PriorityWeightAge is 0"):
        type(driver)(*parts, settings, driver._folder, driver._audit, **rest)


def beside(folder: Path, scontrol: str, **settings: object) -> SlurmDriver:
    """A driver whose `scontrol` is a script."""
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\n{scontrol}\n")
    program.chmod(0o755)
    capabilities = Capabilities(
        "22.05", "mini", 100_000, 7 * 86_400.0, 300.0, ages_always=False, refusals=(), remarks=()
    )
    chosen = Settings(mode="apply", **settings)
    held = LiveFolder(folder / "run")
    decider = Decider("srpt+preemptive", may_stop=True)
    held.begin("slurm", chosen.mode, decider.name, nodes=[], settings={})
    return SlurmDriver(
        Slurm(5.0, {"PATH": f"{folder}:/usr/bin:/bin"}), decider, capabilities, chosen, held,
        AuditLog(folder / "run" / AUDIT, LiveClock.since(0.0)), began_unix_s=0.0,
    )  # fmt: skip


def test_what_a_failing_program_may_have_sent_counts(tmp_path: Path):
    """One `scontrol` of several may fail after the others have sent: the rate is bounded still."""
    driver = beside(tmp_path, "cat > /dev/null; echo gone >&2; exit 1", updates_per_minute=40)
    changes = [SetFactor(str(job), 5) for job in range(1, 61)]
    with pytest.raises(SlurmError, match="gone"):
        driver._carry_out(changes)
    assert driver._carry_out(changes) == []


def test_a_requeue_without_an_answer_is_logged(tmp_path: Path, monkeypatch):
    """The job may have been stopped: the audit log says so, and the bounds count it."""
    mine = Allowed(partitions=("main",))
    driver = beside(tmp_path, "echo gone >&2; exit 1", requeue=Rules(), allowed=mine)
    exchange = Exchange(Requeue("7"), "9", 700.0, "for job 9")
    monkeypatch.setattr(driver._requeuer, "plan", lambda *_, **__: [exchange])
    assert [stop.outcome for stop in driver._make_room(None, None)] == ["failed"]
    logged = [one for one in read_lines(tmp_path / "run" / AUDIT) if one["what"] == "apply"]
    assert [(one["operation"], one["job"]) for one in logged] == [("requeue", "7")]
    assert "perhaps stopped: scontrol failed: gone, for job 9" in logged[0]["detail"]
    assert [one.waiting for one in Stops(tmp_path / "run").of("7")] == ["9"]


def test_whose_jobs_may_be_stopped_must_be_said_to_a_driver_too(tmp_path: Path):
    """Not by the command line alone: without a list everybody's would be."""
    with pytest.raises(YardmasterError, match="say whose"):
        beside(tmp_path, "exit 1", requeue=Rules())
