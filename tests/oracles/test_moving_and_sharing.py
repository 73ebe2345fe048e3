"""Moving, resizing and sharing through named schedulers: what it is worth, and times by hand."""

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Checkpoints, Sharing, Site
from yardmaster.model.speeds import colocation, kinds, scaling
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import generate

COSTS = Checkpoints(save_s=30.0, restore_s=60.0)


def test_moving_jobs_together_pays():
    """On 64 GPUs at 90 % load, moves at their full cost make jobs earlier by a tenth and more."""
    cluster = Cluster.of("8x V100:8").under(Site(checkpoints=COSTS, quantum_s=300.0))
    ratios, gang_ratios = [], []
    for seed in range(4):
        jobs = generate("venus-like", jobs=1000, seed=seed, gpus=64, load=0.9, max_gpus=8)
        ours, theirs = (
            simulate(jobs, cluster, name, compile_core="never")
            for name in ("fifo+defrag", "fifo+skip")
        )
        moves = np.count_nonzero(ours.segment_cause == Cause.MIGRATED)
        assert moves > 10
        assert ours.segment_wasted_s.sum() == pytest.approx(90.0 * moves, rel=0.1)
        times_s = [one.end_s - jobs.submit_s for one in (ours, theirs)]
        ratios.append(np.mean(times_s[0]) / np.mean(times_s[1]))
        is_gang = jobs.gpus == 8
        gang_ratios.append(np.mean(times_s[0][is_gang]) / np.mean(times_s[1][is_gang]))
    assert max(ratios) < 1.0
    assert np.mean(ratios) < 0.9
    assert np.mean(gang_ratios) < 0.75


@pytest.mark.parametrize(("save_s", "restore_s"), [(0.0, 0.0), (2.0, 3.0)])
def test_two_elastic_jobs_share_a_node(save_s, restore_s):
    """The second shrinks the first to three of four GPUs, and takes them all when it has gone."""
    pause_s = save_s + restore_s
    costs = Checkpoints(save_s=save_s, restore_s=restore_s)
    cluster = Cluster.of("V100:4").under(Site(checkpoints=costs))
    jobs = Workload.of(
        submit_s=[0, 40], duration_s=[100, 200], gpus=[4, 4], min_gpus=[1, 1], max_gpus=[4, 4]
    )
    schedule = simulate(jobs, cluster, "fifo+elastic", compile_core="never")
    on_three, on_one = (round((gpus / 4) ** scaling(None), 9) for gpus in (3, 1))
    first_s = 40 + pause_s + 60 / on_three  # 60 s of work are left when it must shrink
    left_s = 200 - (first_s - 40) * on_one
    assert schedule.end_s == pytest.approx([first_s, first_s + pause_s + left_s])
    assert np.diff(schedule.segment_gpu_offset).tolist() == [4, 3, 1, 4]
    assert schedule.segment_cause.tolist().count(Cause.RESIZED) == 2
    # Rigid, the second waits for all four GPUs.
    rigid = simulate(jobs, cluster, "fifo+skip", compile_core="never")
    assert rigid.end_s.tolist() == [100, 300]


def test_elastic_jobs_stay_small_if_growing_does_not_pay():
    """Who has less work left than stopping costs goes on with the GPUs it has."""
    cluster = Cluster.of("V100:4").under(Site(checkpoints=Checkpoints(restore_s=100.0)))
    jobs = Workload.of(
        submit_s=[0, 0], duration_s=[50, 60], gpus=[2, 2], min_gpus=[1, 1], max_gpus=[4, 4]
    )
    schedule = simulate(jobs, cluster, "fifo+elastic", compile_core="never")
    assert schedule.end_s.tolist() == [50, 60]
    assert len(schedule.segment_job) == 2


def one_gpu(sharing):
    """Return a node with one A100."""
    return from_groups(
        [NodeGroup(count=1, gpu_type=gpu_type("A100"), gpus=1, sharing=sharing)], name="one"
    )


def sevenths(jobs, **columns):
    """Return jobs that ask for a slice of a GPU and run for 100 s, submitted at once."""
    return Workload.of(
        submit_s=[0] * jobs, duration_s=[100] * jobs, milli_gpu=[142] * jobs, **columns
    )


@pytest.mark.parametrize("scheduler", ["fifo", "fifo+easy", "sjf+skip@fgd", "fifo@spread"])
def test_seven_slices_run_at_full_speed(scheduler):
    """Seven jobs of a seventh share one GPU without noticing each other; the eighth waits."""
    jobs = sevenths(8, kind=list(kinds()[:8]))
    schedule = simulate(jobs, one_gpu(Sharing.MIG), scheduler, compile_core="never")
    assert schedule.end_s.tolist() == [100] * 7 + [200]
    assert set(schedule.gpu_ids.tolist()) == {0}


def test_slices_are_whole():
    """A job a thousandth above one slice takes two, so that only three fit."""
    jobs = sevenths(4).with_columns(milli_gpu=[143] * 4)
    schedule = simulate(jobs, one_gpu(Sharing.MIG), "fifo", compile_core="never")
    assert schedule.end_s.tolist() == [100] * 3 + [200]


def test_sharing_without_slices_slows_jobs_down():
    """Under MPS two jobs run at the measured speed of their pair; unshared, one after another."""
    names = ["ResNet-50 (batch size 64)", "LM (batch size 80)"]
    jobs = sevenths(2, kind=names)
    shared = simulate(jobs, one_gpu(Sharing.MPS), "fifo", compile_core="never")
    slow = [colocation(names[0], names[1]), colocation(names[1], names[0])]
    assert max(slow) < 1.0
    first = int(np.argmax(slow))
    assert shared.end_s[first] == pytest.approx(100 / slow[first])
    left_s = 100 - (100 / slow[first]) * slow[1 - first]  # done alone, at full speed
    assert shared.end_s[1 - first] == pytest.approx(100 / slow[first] + left_s)
    alone = simulate(jobs, one_gpu(Sharing.NONE), "fifo", compile_core="never")
    assert alone.end_s.tolist() == [100, 200]
