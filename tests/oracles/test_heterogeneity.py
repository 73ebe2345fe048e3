"""Three generations of GPUs: sending jobs where they run fastest pays, on the same jobs."""

import numpy as np
import pytest

from yardmaster.engine.conditions import reference_gpu
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.site import Site
from yardmaster.model.speeds import speed
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.demands import Demands, Kinds
from yardmaster.workloads.synthetic import generate

CLUSTER = load_cluster("mixed-3-types")
MEASURED = Demands(kinds=Kinds.MEASURED)


def mean_speed(jobs):
    """Return how fast the cluster is for these jobs: over jobs, the mean over its GPUs."""
    reference = reference_gpu(CLUSTER)
    gpus = np.bincount(CLUSTER.node_type, weights=CLUSTER.node_gpus)
    of_kind = [
        gpus @ [speed(kind, one, reference) for one in CLUSTER.gpu_types] / CLUSTER.gpus
        for kind in jobs.kind.names
    ]
    return float(np.mean(np.array(of_kind)[jobs.kind.codes]))


def jobs_at(preset, seed, load):
    """Return jobs of 1 to 8 GPUs and of measured kinds that offer `load` to the real capacity."""
    asked = {"jobs": 2000, "seed": seed, "gpus": CLUSTER.gpus, "max_gpus": 8, "demands": MEASURED}
    capacity = mean_speed(generate(preset, load=load, **asked))  # the same kinds at any load
    return generate(preset, load=load * capacity, **asked)


@pytest.mark.parametrize(
    ("preset", "scheduler", "cut"),
    [
        ("lognormal", "sjf+skip", 0.25),
        ("lognormal", "fifo+skip", 0.25),
        ("venus-like", "sjf+skip", 0.15),
    ],
)
def test_knowing_types_pays(preset, scheduler, cut):
    """At 90 % of what the cluster can do, jobs are done by a quarter earlier than by `pack`.

    With the long run times of Venus, which keep fast GPUs taken for days, it is a little less.
    """
    ratios = []
    for seed in range(3):
        jobs = jobs_at(preset, seed, 0.9)
        times_s = [
            np.mean(simulate(jobs, CLUSTER, f"{scheduler}@{placement}").end_s - jobs.submit_s)
            for placement in ("fastest", "pack")
        ]
        ratios.append(times_s[0] / times_s[1])
    assert max(ratios) < 1.0
    assert np.mean(ratios) < 1.0 - cut


def test_where_types_do_not_matter_nothing_is_gained():
    """If all GPUs are taken as equally fast, the fastest node is the tightest: `pack` itself."""
    jobs = jobs_at("lognormal", 0, 0.9)
    plain = CLUSTER.under(Site(equal_speeds=True))
    fastest, pack = (simulate(jobs, plain, f"fifo+skip@{name}") for name in ("fastest", "pack"))
    assert fastest.event_log() == pack.event_log()
