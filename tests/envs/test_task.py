"""Tasks: plain values that travel, presets, and settings that make no sense."""

import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.rewards import REWARDS
from yardmaster.envs.task import TASKS, Task
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload


@pytest.mark.parametrize("name", list(TASKS))
def test_presets_survive_being_written_down(name):
    """A preset read back from its table is the same task."""
    assert Task.from_table(TASKS[name].to_table()) == TASKS[name]


def test_a_table_changes_a_preset():
    """`task` names where to begin; everything else changes it, the sight by its own names."""
    task = Task.from_table(
        {"task": "blind", "jobs": 32, "window": 8, "ranks": ["fifo"], "keep": [0.1, 0.9]}
    )
    assert (task.jobs, task.sight.window, task.sight.ranks) == (32, 8, ("fifo",))
    assert task.sight.information == "blind"
    assert task.keep == (0.1, 0.9)


def test_a_trace_keeps_its_own_times():
    """A log in place of generated jobs is stretched to a load only if one is asked for."""
    base = TASKS["default"]
    assert base.load == 1.0
    assert base.changed(workload="may.parquet").load is None
    assert base.changed(workload="may.parquet", load=0.9).load == 0.9
    assert base.changed(workload="venus-like").load == 1.0


def test_a_given_time_unit_is_not_measured():
    """Whoever gives a time unit gets that one."""
    assert TASKS["default"].measured_unit
    assert not TASKS["default"].changed(time_unit_s=60.0).measured_unit


def test_originals_differ_only_in_their_mistakes():
    """What ends in `-original` is the same task with the rules of the program it comes from."""
    assert TASKS["gpu-optimizer-original"].changed(pace="decision") == TASKS["gpu-optimizer"]
    original = TASKS["drl-scheduler-original"]
    assert original.changed(pace="decision", masked=True, max_steps=0) == TASKS["drl-scheduler"]
    original = TASKS["rltune-original"]
    assert original.changed(pace="decision", baseline="fifo+skip") == TASKS["rltune"]


def test_rewards_of_ones_own_survive():
    """Weights come back; a reward whose meaning a table cannot hold is refused or kept whole."""
    weights = {"waiting": -1.0, "finished": 2.0}
    assert Task.from_table(Task(reward=weights).to_table()).reward == weights
    task = Task(reward=REWARDS["drl_scheduler"], load=1.0, jobs=4)
    try:
        again = Task.from_table(task.to_table())
    except YardmasterError:
        return
    assert Episodes(again).reward.row(60.0).tolist() == task.reward.row(60.0).tolist()


def test_objects_cannot_be_written_down():
    """A task that holds a cluster object says so."""
    with pytest.raises(YardmasterError, match="cluster"):
        Task(cluster=Cluster.pool(4)).to_table()


@pytest.mark.parametrize(
    ("table", "meant"),
    [
        ({"task": "defualt"}, "default"),
        ({"windw": 4}, "window"),
        ({"reward": "jtc"}, "jct"),
        ({"reward": {"wating": 1.0}}, "waiting"),
        ({"pace": "tik"}, "tick"),
    ],
    ids=["task", "setting", "reward", "term", "pace"],
)
def test_misspelt_names_are_refused(table, meant):
    """Unknown names come with what was meant."""
    with pytest.raises(UnknownNameError, match=meant):
        Task.from_table(table)


@pytest.mark.parametrize(
    "values",
    [
        {"jobs": 0},
        {"episodes": 0},
        {"max_steps": -1},
        {"load": 0.0},
        {"time_limit_s": -5.0},
        {"horizon_factor": 0.0},
        {"keep": (0.9, 0.1)},
        {"keep": (0.0, 1.5)},
    ],
    ids=["jobs", "episodes", "steps", "load", "limit", "horizon", "keep", "keep-beyond"],
)
def test_impossible_numbers_are_refused(values):
    """Numbers that make no task are refused, and named."""
    with pytest.raises(YardmasterError, match=next(iter(values))):
        Task(**values)


@pytest.mark.parametrize(
    "table",
    [
        {"window": "8"},
        {"jobs": "many"},
        {"jobs": 2.5},
        {"keep": [0.1]},
        {"ranks": "sjf"},
        {"reward": {"waiting": "much"}},
        {"load": "1.0"},
    ],
    ids=["text", "word", "fraction", "half-a-pair", "no-list", "weight", "text-for-real"],
)
def test_values_of_the_wrong_kind_are_refused(table):
    """A file with text for a number, or half of a pair, gets a message that names the place."""
    (name,) = table
    place = "waiting" if name == "reward" else name
    with pytest.raises(YardmasterError, match=place):
        Task.from_table(table)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window_order": "sjff"}, "sjf"),
        ({"window_order": "drf"}, "drf"),
        ({"information": "blind", "window_order": "sjf"}, "blind"),
        ({"information": "blind", "ranks": ["sjf"]}, "blind"),
        ({"ranks": ["wfp3"]}, "wfp3"),
        ({"placement": "milp"}, "placement"),
        ({"baseline": "ffo", "reward": "relative_wait"}, "fifo"),
        ({"cluster": "8y V100:8"}, "8y V100:8"),
        ({"workload": "no-such-preset"}, "no-such-preset"),
    ],
    ids=[
        "order",
        "moving",
        "blind-order",
        "blind-rank",
        "moving-rank",
        "placement",
        "baseline",
        "cluster",
        "workload",
    ],
)
def test_what_cannot_be_played_is_refused(changes, message):
    """Orders, clusters and workloads that cannot serve are refused when episodes are made."""
    with pytest.raises(YardmasterError, match=message):
        Episodes(TASKS["default"].changed(jobs=4, **changes)).prepared(0)


def test_estimates_must_be_there():
    """A policy that is shown estimates needs jobs that have them."""
    jobs = Workload.of(submit_s=range(10), duration_s=[1.0] * 10)
    task = Task(workload=jobs, cluster="pool:2", jobs=2, sight=Sight(information="estimate"))
    with pytest.raises(YardmasterError, match="estimate"):
        Episodes(task).prepared(0)
