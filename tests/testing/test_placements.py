"""The suite for placements: those that come along pass, and every rule can be broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.errors import ConformanceError, UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing import check_placement, placements
from yardmaster.testing.placements import judge_placement, not_allowed, torn_apart, wrong_number


@pytest.mark.parametrize("name", ["pack", "@random", "tier", "fgd", "fastest"])
def test_placements_that_come_along_conform(name: str):
    """Each keeps every rule, on pools of nodes, mixed types and nodes of many sizes."""
    found = judge_placement(name)
    assert [one.state for one in found.verdicts] == ["kept"] * 8, found.lines()


def test_solved_placements_have_no_reference(monkeypatch: pytest.MonkeyPatch):
    """Where the reference has no such placement, that rule alone is not tried."""
    monkeypatch.setattr(placements, "EXAMPLES", 3)
    found = judge_placement("milp")
    assert found.conforms
    assert found.verdicts[-1].state == "not tried"


def test_unknown_placements_are_suggested():
    """A name that does not exist is a misspelling."""
    with pytest.raises(UnknownNameError, match="Did you mean 'spread'"):
        check_placement("@spred")


JOBS = Workload.of(
    submit_s=[0, 0], duration_s=[5, 5], gpus=[2, 2], gpu_types=["", "T4"], max_gpus_per_node=[0, 1]
)
MACHINES = Cluster.of("2x V100:2", "2x T4:2")


def on(*gpus: int) -> Schedule:
    """Return a schedule of the two jobs on given GPUs, two each."""
    return replace(simulate(JOBS, MACHINES, "fifo"), gpu_ids=np.array(gpus, dtype=np.int32))


def test_rules_by_hand():
    """A gang torn apart, a wrong type, too many on a node, GPUs twice or from nowhere."""
    fine = on(0, 1, 4, 6)
    assert not torn_apart(fine)
    assert not not_allowed(fine)
    assert not wrong_number(fine)
    assert torn_apart(on(1, 2, 4, 6)) == "job 0 (2 GPUs) is on 2 nodes"
    assert not_allowed(on(0, 1, 2, 4)) == "job 1 is on a GPU type it does not take"
    assert not_allowed(on(0, 1, 4, 5)) == "job 1 has 2 GPUs on a node, at most 1 are allowed"
    assert "asks for 2 GPUs" in wrong_number(on(0, 0, 4, 6))
    assert wrong_number(on(0, 1, 4, 99)) == "job 1 holds GPUs that do not exist"


moods = itertools.count()


def fails(_: Schedule) -> Schedule:
    raise YardmasterError("There is no such placement in the core.")


def late(schedule: Schedule) -> Schedule:
    """Let everybody begin a second later."""
    return replace(schedule, start_s=schedule.start_s + 1)


def crowded(schedule: Schedule) -> Schedule:
    """Put all jobs at the beginning of the cluster."""
    sizes = np.diff(schedule.segment_gpu_offset)
    firsts = np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)
    return replace(schedule, gpu_ids=firsts)


def thin(schedule: Schedule) -> Schedule:
    """Give every job the same GPU as often as it asks for one."""
    sizes = np.diff(schedule.segment_gpu_offset)
    return replace(schedule, gpu_ids=np.repeat(np.arange(len(sizes)), sizes).astype(np.int32))


def moody(schedule: Schedule) -> Schedule:
    """Put everything one GPU further than the last time."""
    ids = (schedule.gpu_ids + next(moods)) % schedule.cluster.gpus
    return replace(schedule, gpu_ids=ids.astype(np.int32))


BROKEN: dict[str, Callable[[Schedule], Schedule]] = {
    "can be simulated": fails,
    "gives no GPU to two jobs at a time": crowded,
    "gives every job as many GPUs as it asks for": thin,
    "keeps gangs on one node where they could fit": moody,
    "keeps to the GPU types and GPUs per node of a job": crowded,
    "starts a job at once where nobody else is": late,
    "places the same twice": moody,
    "places as the plain reference does": moody,
}


@pytest.mark.parametrize("rule", BROKEN)
def test_every_rule_can_be_broken(rule: str, monkeypatch: pytest.MonkeyPatch):
    """Schedules as a broken core would make them break the rule, with a reason."""
    spoil = BROKEN[rule]

    def simulated(*given, **more) -> Schedule:
        schedule = simulate(*given, **more)
        return spoil(schedule) if more["engine"] == "core" else schedule

    monkeypatch.setattr(placements, "simulate", simulated)
    judged = judge_placement("pack")
    found = {one.rule: one for one in judged.verdicts}
    assert set(found) == set(BROKEN)
    assert found[rule].state == "broken", judged.lines()
    assert found[rule].reason
    with pytest.raises(ConformanceError, match="placement 'pack' breaks a rule"):
        judged.insist()
