"""What tenants get: guarantees against a flood, and dominant shares as in the paper."""

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Checkpoints, Quota, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

QUANTUM_S = 300.0


def held_by(schedule, tenant, moments_s):
    """Return the GPUs that a tenant holds at each moment (just after it)."""
    owner = np.array(schedule.workload.tenant.values())[schedule.segment_job]
    held = np.diff(schedule.segment_gpu_offset) * (owner == tenant)
    is_on = (schedule.segment_start_s <= moments_s[:, None]) & (
        moments_s[:, None] < schedule.segment_end_s
    )
    return is_on @ held


def flood(seed, late_s):
    """Return hundreds of jobs of tenant `flood`, and jobs of tenant `late` from `late_s` on."""
    dice = np.random.default_rng(seed)
    early = np.sort(dice.integers(0, 6000, 200))
    return Workload.of(
        submit_s=np.concatenate((early, np.full(40, late_s))),
        duration_s=dice.integers(100, 2000, 240),
        tenant=["flood"] * 200 + ["late"] * 40,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "scheduler",
    ["static-priority+preemptive", "fifo+preemptive"],
)
def test_a_flood_does_not_take_what_is_guaranteed(scheduler, seed):
    """One quantum after it has asked, a tenant has its guarantee, and keeps it while it asks."""
    late_s = 3333.0
    site = Site(
        quotas=(Quota("flood", 4), Quota("late", 4)),
        quantum_s=QUANTUM_S,
        checkpoints=Checkpoints(save_s=5.0, restore_s=10.0),
    )
    jobs = flood(seed, late_s)
    schedule = simulate(jobs, Cluster.of("2x V100:4").under(site), scheduler, compile_core="never")
    is_late = np.array(jobs.tenant.values()) == "late"
    last_start_s = schedule.start_s[is_late].max()
    moments_s = np.unique(np.concatenate((schedule.segment_start_s, schedule.segment_end_s)))
    asking = (moments_s >= late_s + QUANTUM_S) & (moments_s < last_start_s)
    assert asking.sum() > 20
    assert held_by(schedule, "late", moments_s[asking]).min() >= 4
    assert held_by(schedule, "flood", np.array([late_s - 1.0])).tolist() == [8]
    # Without stopping anybody, the guarantee has to wait until jobs of the flood end.
    patient = simulate(jobs, Cluster.of("2x V100:4").under(site), "fifo+skip", compile_core="never")
    soon = np.array([late_s + 1.0])
    assert held_by(patient, "late", soon) < held_by(schedule, "late", soon)


def test_reclaiming_stops_no_more_than_needed():
    """With equal priorities nobody is stopped but for a guarantee, and each victim only once."""
    site = Site(quotas=(Quota("flood", 2), Quota("late", 2)), quantum_s=10.0)
    jobs = Workload.of(
        submit_s=[0] * 4 + [50] * 4, duration_s=[100] * 8, tenant=["flood"] * 4 + ["late"] * 4
    )
    cluster = Cluster.of("V100:4").under(site)
    schedule = simulate(jobs, cluster, "static-priority+preemptive", compile_core="never")
    stopped = schedule.segment_cause == Cause.PREEMPTED
    assert schedule.segment_end_s[stopped].tolist() == [50, 50]
    assert schedule.start_s[4:6].tolist() == [50, 50]


@pytest.mark.parametrize("discipline", ["skip", "easy", "preemptive"])
def test_limits_hold_at_every_moment(discipline):
    """No tenant ever holds more than its limit, however empty the cluster is."""
    site = Site(quotas=(Quota("flood", 1, 3), Quota("late", 1, 2)))
    schedule = simulate(
        flood(1, 100.0),
        Cluster.of("2x V100:4").under(site),
        f"fifo+{discipline}",
        compile_core="never",
    )
    moments_s = np.unique(schedule.segment_start_s)
    assert held_by(schedule, "flood", moments_s).max() == 3
    assert held_by(schedule, "late", moments_s).max() == 2


def node(gpus, cores, memory_gib):
    """Return one node with so many GPUs, cores and GiB."""
    group = NodeGroup(
        count=1, gpu_type=gpu_type("V100"), gpus=gpus, cpus=cores, memory_gib=memory_gib
    )
    return from_groups([group], name="node")


def progressive_filling(total, demands):
    """Return how many tasks each tenant runs: the lowest dominant share goes next (Ghodsi et al.).

    As with jobs that are passed over, a tenant whose next task does not fit is left out.
    """
    total, used = np.array(total, dtype=float), np.zeros(len(total))
    tasks, open_to = [0] * len(demands), set(range(len(demands)))
    while open_to:
        shares = {who: max(tasks[who] * np.array(demands[who]) / total) for who in open_to}
        who = min(open_to, key=lambda who: (shares[who], who))
        if np.all(used + demands[who] <= total):
            used += demands[who]
            tasks[who] += 1
        else:
            open_to.discard(who)
    return tasks


def running_tasks(cluster, demands, scheduler="drf+skip"):
    """Return how many jobs of each tenant a saturated cluster runs; all ask for one GPU."""
    tenants = [f"t{who}" for who in range(len(demands)) for _ in range(40)]
    jobs = Workload.of(
        submit_s=np.zeros(len(tenants)),
        duration_s=np.full(len(tenants), 1000.0),
        cpus=np.repeat([float(cores) for _, cores, _ in demands], 40),
        memory_gib=np.repeat([float(memory) for _, _, memory in demands], 40),
        tenant=tenants,
    )
    schedule = simulate(jobs, cluster, scheduler, until_s=1.0, compile_core="never")
    counts = np.bincount(schedule.segment_job // 40, minlength=len(demands))
    return counts.tolist()


def test_the_example_of_the_paper():
    """9 cores and 18 GiB, tasks of <1, 4> and <3, 1>: three and two run, both at two thirds."""
    demands = [(1, 1, 4), (1, 3, 1)]
    assert running_tasks(node(18, 9, 18), demands) == [3, 2]
    assert running_tasks(node(18, 9, 18), demands, "fifo+skip") != [3, 2]


def test_gpus_are_a_resource_like_others():
    """With GPUs scarce, a tenant that wants little else is held to its share of GPUs."""
    demands = [(1, 1, 1), (1, 6, 1)]
    tasks = running_tasks(node(9, 36, 180), demands)
    assert sum(tasks) == 9
    shares = [tasks[0] / 9, tasks[1] * 6 / 36]
    assert abs(shares[0] - shares[1]) <= 1 / 6  # equal but for one task
    assert running_tasks(node(9, 36, 180), demands, "fifo+skip") == [9, 0]


@pytest.mark.parametrize("seed", range(25))
def test_shares_are_those_of_progressive_filling(seed):
    """For random demands the jobs that run are those of the algorithm in the paper."""
    dice = np.random.default_rng(seed)
    total = (int(dice.integers(4, 30)), int(dice.integers(8, 60)), int(dice.integers(8, 120)))
    demands = [
        (1, int(dice.integers(1, 9)), int(dice.integers(1, 17))) for _ in range(dice.integers(2, 5))
    ]
    assert running_tasks(node(*total), demands) == progressive_filling(total, demands)
