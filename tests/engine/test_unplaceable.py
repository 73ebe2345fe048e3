"""Why jobs can never be placed."""

import pytest

from yardmaster.engine.requests import shapes_of
from yardmaster.engine.unplaceable import unplaceable_reasons
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Power, Quota, Site
from yardmaster.model.workload import Workload

CLUSTER = Cluster.of("2x A100:4")


def reasons(cluster: Cluster = CLUSTER, **columns: list[object]) -> tuple[str, ...]:
    """Return why jobs can never be placed, given their columns."""
    jobs = len(next(iter(columns.values())))
    workload = Workload.of(submit_s=[0] * jobs, duration_s=[1] * jobs, **columns)
    return unplaceable_reasons(workload, cluster, shapes_of(workload, cluster))


def test_alike_jobs_are_told_together():
    """Types first, the most frequent reason first, with the first jobs of each."""
    found = reasons(
        gpus=[1, 1, 1, 2, 9, 12, 1, 1],
        gpu_types=["V100", "V100|T4", "V100", "V100", None, None, "A100", "V100"],
    )
    assert found == (
        "4 ask for V100, the cluster has A100 (jobs 0, 2, 3, …)",
        "2 ask for 9 to 12 GPUs, the cluster has 8 (jobs 4, 5)",
        "1 asks for V100 or T4, the cluster has A100 (job 1)",
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"gpus": [1], "gpu_memory_gib": [500.0]}, "needs more memory on a GPU"),
        ({"gpus": [3], "max_gpus_per_node": [1]}, "asks for 3 GPUs, at most 1 on a node"),
        ({"gpus": [1], "cpus": [99.0]}, "needs more cores or memory"),
        ({"gpus": [3], "tenant": ["a"]}, "asks for 3 GPUs, more than tenant a may hold"),
        ({"gpus": [8]}, "would draw more power"),
    ],
)
def test_every_bound_has_its_reason(columns: dict[str, list[object]], expected: str):
    """Memory, GPUs on a node, the host, the tenant's limit and the power cap are told apart."""
    site = Site(quotas=(Quota("a", 0, 2),), power=Power(cap_w=2000.0))
    group = NodeGroup(count=2, gpu_type=gpu_type("A100"), gpus=4, cpus=32.0)
    cluster = from_groups([group], name="small").under(site)
    (reason,) = reasons(cluster, **columns)
    assert reason.startswith(f"1 {expected}")


def test_many_reasons_are_cut():
    """Beyond the most frequent ones, jobs are only counted."""
    types = ["V100", "T4", "P100", "K80", "H100", "H100"]
    found = reasons(gpus=[1] * 6, gpu_types=types)
    assert found[0].startswith("2 ask for H100")
    assert found[-1] == "1 for other reasons"
