"""Playing episodes to their end gives the metrics of their schedules."""

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import play
from yardmaster.envs.task import TASKS, Task
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.environments import GivenEpisodes

SMALL = TASKS["default"].changed(
    jobs=12, cluster="2x V100:4", load=1.5, window=12, gpu_slots=4, reservation=False
)
COLUMNS = (
    *("returns", "wait_s", "jct_s", "bounded_slowdown", "slowdown", "utilisation"),
    *("makespan_s", "unfinished", "decisions", "noops"),
)


def played(task, name="sjf", **options):
    return play(task, expert(name, task), **({"split": "val", "compiled": False} | options))


def test_results_are_the_metrics():
    """Means, makespan and utilisation are those of the simulated schedules, in order."""
    results = played(SMALL, episodes=4)
    episodes = Episodes(SMALL, "val")
    for number in range(4):
        schedule = simulate(episodes.workload(number), "2x V100:4", "sjf+skip")
        summary = summarise(schedule)
        assert results.jct_s[number] == pytest.approx(summary["mean_jct_s"])
        assert results.wait_s[number] == pytest.approx(summary["mean_wait_s"])
        assert results.bounded_slowdown[number] == pytest.approx(summary["mean_bounded_slowdown"])
        assert results.makespan_s[number] == pytest.approx(float(schedule.end_s.max()))
        work = float((schedule.workload.duration_s * schedule.workload.gpus).sum())
        assert results.utilisation[number] == pytest.approx(work / (schedule.end_s.max() * 8))
    assert results.unfinished.tolist() == [0, 0, 0, 0]
    assert results.decisions.tolist() == [12, 12, 12, 12]
    assert results.noops.tolist() == [0, 0, 0, 0]


def test_how_many_at_a_time_does_not_matter():
    """Results come in the order of the episodes, however they are played."""
    one, many = played(SMALL, episodes=5, size=1), played(SMALL, episodes=5, size=3)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name), err_msg=name)
        assert len(getattr(one, name)) == 5


def test_sets_are_played_apart():
    """Validation and report give different numbers."""
    val, report = (played(SMALL, episodes=2, split=split) for split in ("val", "report"))
    assert not np.array_equal(val.jct_s, report.jct_s)


def test_unfinished_jobs_are_counted():
    """Means are over finished jobs, and how many did not finish is beside them."""
    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[4, 20, 20], gpus=[1, 1, 1])
    task = Task(
        cluster=Cluster.pool(1),
        sight=Sight(window=4, gpu_slots=0, time_unit_s=10.0),
        measured_unit=False,
        time_limit_s=6.0,
    )
    results = played(task, "fifo", episodes=1, prepared=GivenEpisodes(task, [jobs]))
    assert results.unfinished.tolist() == [2]
    assert results.jct_s.tolist() == [4.0]
    assert results.wait_s.tolist() == [0.0]
    assert results.makespan_s.tolist() == [4.0]


def test_an_opened_set_is_used():
    """Episodes that were opened before are not opened again."""
    prepared = Episodes(SMALL, "val")
    again = played(SMALL, episodes=2, prepared=prepared)
    np.testing.assert_array_equal(again.jct_s, played(SMALL, episodes=2).jct_s)
