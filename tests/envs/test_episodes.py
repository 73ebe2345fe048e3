"""Episodes: disjoint sets, seeded, filtered, with a time unit of their own."""

import numpy as np
import pytest

from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.places import Score
from yardmaster.envs.episodes import FIRST_SEED, Episodes, score_of
from yardmaster.envs.task import TASKS, Task
from yardmaster.errors import InvalidWorkloadError, UnknownNameError, YardmasterError
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

SMALL = TASKS["default"].changed(jobs=12, cluster="2x V100:4", episodes=6)
SPLITS = ("train", "val", "report")


def trace(jobs=200):
    """Return a trace whose durations tell the jobs apart."""
    dice = np.random.default_rng(0)
    return Workload.of(
        submit_s=np.sort(dice.uniform(0, 1000, jobs)), duration_s=1.0 + np.arange(jobs)
    )


def test_generated_sets_share_no_episode():
    """Training, validation and report draw from seeds of their own, a million apart."""
    drawn = {
        (split, number): Episodes(SMALL, split).workload(number).duration_s.tobytes()
        for split in SPLITS
        for number in range(6)
    }
    assert len(set(drawn.values())) == 18
    firsts = sorted(FIRST_SEED.values())
    assert np.diff(firsts).min() >= 1_000_000


def test_the_same_number_is_the_same_episode():
    """Episode n of a set never changes, and begins at second 0."""
    one, other = Episodes(SMALL), Episodes(SMALL)
    np.testing.assert_array_equal(one.workload(3).submit_s, other.workload(3).submit_s)
    assert one.workload(3).submit_s[0] == 0.0
    assert len(one.workload(3)) == 12


def test_a_trace_is_split_by_time():
    """Whatever is trained on was submitted before all that is validated and reported on."""
    task = Task(workload=trace(), cluster="pool:4", jobs=10, measured_unit=False)
    rows = {
        split: np.concatenate(
            [Episodes(task, split).workload(number).duration_s - 1 for number in range(60)]
        )
        for split in SPLITS
    }
    assert rows["train"].max() < 120 <= rows["val"].min()
    assert rows["val"].max() < 160 <= rows["report"].min()
    # Windows are drawn from all of their part.
    assert rows["train"].min() < 10
    assert rows["train"].max() >= 110
    window = Episodes(task, "train").workload(5).duration_s
    np.testing.assert_array_equal(np.diff(window), 1.0)


@pytest.mark.parametrize("split", ["val", "report"])
def test_measured_windows_share_no_job_while_there_are_enough(split):
    """As many windows as fit stand apart, the first few all over their part; the rest overlap."""
    task = Task(workload=trace(2000), cluster="pool:4", jobs=15, measured_unit=False)
    episodes = Episodes(task, split)
    windows = [episodes.workload(number).duration_s for number in range(40)]
    apart = 400 // 15
    assert len(set(np.concatenate(windows[:apart]).tolist())) == apart * 15
    assert len(set(np.concatenate(windows).tolist())) < 40 * 15
    assert all((np.diff(window) == 1.0).all() for window in windows)
    starts = np.sort([window[0] for window in windows[:6]])
    assert np.diff(starts).max() < 400 / 3  # evenly would be 400 / 6


def test_training_windows_begin_anywhere():
    """Windows to train on may overlap from the first."""
    task = Task(workload=trace(), cluster="pool:4", jobs=10, measured_unit=False)
    starts = [Episodes(task).workload(number).duration_s[0] for number in range(12)]
    assert np.diff(np.sort(starts)).min() < 10


def test_a_trace_that_is_too_short_is_refused():
    """Every part must hold an episode."""
    task = Task(workload=trace(), cluster="pool:4", jobs=50, measured_unit=False)
    assert len(Episodes(task, "train").workload(0)) == 50
    with pytest.raises(YardmasterError, match="40 jobs, fewer than the 50"):
        Episodes(task, "val").workload(0)


def test_the_time_unit_is_measured_on_training_episodes():
    """All sets share it: the mean run time of the first training episodes."""
    mean = np.mean([Episodes(SMALL).workload(number).duration_s.mean() for number in range(8)])
    for split in SPLITS:
        assert Episodes(SMALL, split).task.sight.time_unit_s == pytest.approx(mean)


def test_keep_lets_some_episodes_through():
    """Only training episodes between the quantiles of the baseline's score are drawn."""
    task = SMALL.changed(keep=(0.25, 0.75), episodes=12, baseline="fifo+strict")
    episodes = Episodes(task)
    scores = np.array([episodes.baseline_score(number) for number in range(12)])
    kept = set(episodes.numbers.tolist())
    assert 0 < len(kept) < 12
    low, high = np.quantile(scores, [0.25, 0.75])
    assert kept == {n for n in range(12) if low <= scores[n] <= high}
    assert len(Episodes(task, "val").numbers) == 12


@pytest.mark.parametrize(
    ("score", "metric"),
    [
        (Score.WAIT, "mean_wait_s"),
        (Score.TURNAROUND, "mean_jct_s"),
        (Score.BOUNDED_SLOWDOWN, "mean_bounded_slowdown"),
    ],
)
def test_scores_are_the_metrics(score, metric):
    """What a baseline scores is what the metrics say of its schedule."""
    jobs = Episodes(SMALL).workload(0)
    schedule = simulate(jobs, "2x V100:4", "fifo+strict")
    assert score_of(schedule, score) == pytest.approx(summarise(schedule)[metric])


def test_utilisation_and_slowdown_scores_by_hand():
    """GPU-seconds by all GPUs until the last end; completion by run time."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[10, 20], gpus=[1, 2])
    schedule = simulate(jobs, Cluster.pool(2), "fifo")
    assert score_of(schedule, Score.UTILISATION) == pytest.approx(50 / 60)
    assert score_of(schedule, Score.SLOWDOWN) == pytest.approx((1 + 1.5) / 2)


def test_the_baseline_travels_with_relative_rewards_only():
    """Other rewards simulate no baseline."""
    relative = Episodes(SMALL.changed(reward="relative_wait"))
    assert relative.prepared(1).facts[at.BASELINE] == pytest.approx(relative.baseline_score(1))
    assert np.isnan(Episodes(SMALL).prepared(1).facts[at.BASELINE])


def test_bad_sets_and_hopeless_episodes_are_refused():
    """A set that does not exist, and jobs none of which can run."""
    with pytest.raises(UnknownNameError, match="report"):
        Episodes(SMALL, "reprot")
    huge = Workload.of(submit_s=[0, 1, 2, 3, 4], duration_s=[1] * 5, gpus=[9] * 5)
    task = Task(workload=huge, cluster=Cluster.pool(2), jobs=1, measured_unit=False)
    with pytest.raises(InvalidWorkloadError, match="can ever run"):
        Episodes(task).prepared(0)
