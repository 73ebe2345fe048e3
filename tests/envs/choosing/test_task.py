"""Tasks of choosing: plain values, changed by name, checked."""

from __future__ import annotations

import json

import pytest

from yardmaster.envs.choosing.task import CHOOSING_TASKS, ChoosingTask
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.schedulers.meta.menu import members_of, run_times_of
from yardmaster.workloads.regimes import regimes


@pytest.mark.parametrize("name", sorted(CHOOSING_TASKS))
def test_every_task_is_sound(name):
    """Its families exist, and its menu agrees with what the chooser is shown."""
    task = CHOOSING_TASKS[name]
    assert all(regimes(family) for family in task.families)
    run_times_of(members_of(task.sight.menu), task.sight.information)


@pytest.mark.parametrize("name", sorted(CHOOSING_TASKS))
def test_a_task_survives_plain_values(name):
    """Written as JSON and read back by `changed`, it is the same."""
    task = CHOOSING_TASKS[name].changed(reward={"late": -1.0}, tail=(0.5, 2.0), past=3)
    assert ChoosingTask().changed(**json.loads(json.dumps(task.to_table()))) == task


def test_settings_are_changed_by_name():
    """Those of the sight by their own; giving the time unit switches measuring off."""
    task = ChoosingTask().changed(episodes=3, every_s=60.0, menu=["fifo", "sjf"])
    assert (task.episodes, task.sight.every_s, task.sight.menu) == (3, 60.0, ("fifo", "sjf"))
    assert task.measured_unit
    assert not ChoosingTask().changed(time_unit_s=9.0).measured_unit


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"families": []}, "families must name at least one"),
        ({"episodes": 0}, "episodes must be 1 to"),
        ({"max_steps": -1}, "max_steps must be 0 or more"),
        ({"tail": [1.0, 0.5]}, "tail must be two ages"),
        ({"tail": [1.0]}, "tail must be two ages"),
        ({"menu": "fifo"}, "menu must be a list"),
        ({"reward": "jctt"}, "Did you mean 'jct'"),
        ({"randomised": "yes"}, "randomised"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_mistakes_are_named(changes, message):
    """Values that make no sense are refused by name."""
    with pytest.raises(YardmasterError, match=message):
        ChoosingTask().changed(**changes)
    with pytest.raises(UnknownNameError, match="Did you mean 'labelled'"):
        ChoosingTask().changed(labeled=True)
