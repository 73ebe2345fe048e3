"""Real clusters with long queues: both engines do the same thing, scheduler by scheduler."""

import os

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Checkpoints, Failures, Power, Quota, Sharing, Site
from yardmaster.model.speeds import kinds
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

CASES = int(os.environ.get("YARDMASTER_PROPERTY_EXAMPLES", "400")) // 8

ORDERS = ("fifo", "sjf", "srpt", "las", "las-2d", "edf", "drf", "fair-share", "saf")
DISCIPLINES = ("easy", "skip", "strict", "commit", "preemptive", "elastic", "defrag", "timeslice")
PLACEMENTS = (
    "pack", "first", "spread", "random", "tier", "defrag", "loadbalance", "fgd", "power", "fastest",
)  # fmt: skip


def cluster_of(dice):
    """Return one to nine nodes of one to three types under a few rules."""
    types = dice.choice(["T4", "V100", "A100", "K80"], int(dice.integers(1, 4)), replace=False)
    groups = [
        NodeGroup(
            count=int(dice.integers(1, 4)),
            gpu_type=gpu_type(name),
            gpus=int(dice.choice([2, 4, 8])),
            nodes_per_rack=int(dice.integers(1, 3)),
            cpus=float(dice.choice([np.nan, 16])),
            memory_gib=float(dice.choice([np.nan, 64])),
            sharing=Sharing(int(dice.choice([0, 0, 1, 2]))),
        )
        for name in types
    ]
    return from_groups(groups, name="drawn", site=site_of(dice))


def site_of(dice):
    """Return rules, each of them there about every other time."""
    limits = [None, int(dice.integers(6, 12))]
    quotas = tuple(
        Quota(name, int(dice.integers(0, 5)), limits[int(dice.integers(2))]) for name in "ab"
    )
    return Site(
        quotas=quotas if dice.random() < 0.4 else (),
        checkpoints=Checkpoints(
            every_s=float(dice.choice([np.inf, 50, 200])),
            save_s=float(dice.choice([0, 3])),
            restore_s=float(dice.choice([0, 5])),
        ),
        failures=Failures(
            mtbf_h=float(dice.choice([np.inf, 0.5])),
            mttr_h=0.05,
            retries=[None, 2][int(dice.integers(2))],
        ),
        power=Power(cap_w=float(dice.choice([np.inf, np.inf, 3000]))),
        quantum_s=float(dice.choice([20, 60])),
        splits_gangs=bool(dice.random() < 0.3),
    )


def jobs_of(dice):
    """Return up to 160 jobs, most of them waiting for each other."""
    count = int(dice.integers(60, 160))
    gpus = dice.choice([1, 1, 1, 2, 3, 4, 8, 12], count)
    duration_s = np.round(dice.lognormal(4, 1, count))
    span_s = dice.choice([50, 600, 2000])
    is_part = (gpus == 1) & (dice.random(count) < 0.4)
    is_elastic = (gpus <= 8) & (gpus > 1) & (dice.random(count) < 0.4)
    names = [*kinds(), None, None, None, None]
    return Workload.of(
        submit_s=np.sort(np.round(dice.uniform(0, span_s, count))),
        duration_s=duration_s,
        gpus=gpus,
        kind=[names[index] for index in dice.integers(0, len(names), count)],
        tenant=dice.choice(["a", "b", "c"], count),
        estimate_s=np.maximum(duration_s * dice.choice([0.5, 1, 2], count), 1),
        milli_gpu=np.where(is_part, dice.choice([150, 300, 500], count), 1000),
        cpus=np.where(dice.random(count) < 0.5, gpus * 2.0, np.nan),
        min_gpus=np.where(is_elastic, 1, 0),
    )


def scheduler_of(dice):
    """Return the name of a scheduler."""
    order, discipline = str(dice.choice(ORDERS)), str(dice.choice(DISCIPLINES))
    order = "fifo" if discipline == "timeslice" else order
    run_times = "~estimate" if dice.random() < 0.4 else ""
    return f"{order}+{discipline}@{dice.choice(PLACEMENTS)}{run_times}"


@pytest.mark.parametrize("block", range(4))
def test_engines_agree_on_long_queues(block):
    """Core and reference agree on every start, end, segment and GPU, all rules mixed."""
    compared = 0
    for seed in range(block * CASES // 4, (block + 1) * CASES // 4):
        dice = np.random.default_rng(seed)
        cluster, jobs, scheduler = cluster_of(dice), jobs_of(dice), scheduler_of(dice)
        options = {"seed": seed, "until_s": 20_000.0}
        try:
            core = simulate(jobs, cluster, scheduler, compile_core="never", **options)
        except YardmasterError:
            continue  # refused with a reason, which other tests look at
        reference = simulate(jobs, cluster, scheduler, engine="simpy", **options)
        assert core.event_log() == reference.event_log(), f"seed {seed}: {scheduler}"
        assert core.fingerprint() == reference.fingerprint(), f"seed {seed}: {scheduler}"
        compared += 1
    assert compared > CASES // 8
