"""When GPUs become free: four modes, one shape."""

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.task import Task
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import given_batch

# The first job takes GPU 0, the second the two GPUs of the other node; the third still fits, so
# that time does not pass. With a unit of 10 s, their GPUs show 10/20 and 30/40.
JOBS = Workload.of(
    submit_s=[0, 0, 0], duration_s=[10, 30, 5], estimate_s=[30, 10, 5], gpus=[1, 2, 1]
)


def slots(**choices):
    """Return the GPU slots when the first two jobs run."""
    sight = Sight(**({"window": 3, "gpu_slots": 4, "time_unit_s": 10.0} | choices))
    task = Task(cluster=Cluster.of("2x V100:2"), sight=sight, measured_unit=False)
    batch = given_batch(task, JOBS)
    for _ in range(2):
        batch.step(np.array([0]))
    assert batch.now_s[0] == 0.0
    return batch.layout.gpus(batch.observations)[0].tolist()


@pytest.mark.parametrize(
    ("lookahead", "expected"),
    [
        ("off", [0.0, 0.0, 0.0, 0.0]),
        ("per_gpu", [0.5, 0.0, 0.75, 0.75]),
        ("sorted", [0.0, 0.5, 0.75, 0.75]),
        ("cdf", [0.25, 0.5, 1.0, 1.0]),
    ],
)
def test_every_mode_fills_the_same_slots(lookahead, expected):
    """The values of each mode are known on a state made by hand."""
    assert slots(lookahead=lookahead) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("lookahead", "expected"),
    [("per_gpu", [0.25, 0.75]), ("sorted", [0.25, 0.75]), ("cdf", [0.5, 1.0])],
)
def test_fewer_slots_share_the_gpus(lookahead, expected):
    """With fewer slots than GPUs, neighbours share one and show their mean."""
    assert slots(lookahead=lookahead, gpu_slots=2) == pytest.approx(expected)


def test_more_slots_than_gpus_leave_gaps():
    """With more slots than GPUs, the GPUs are spread over them."""
    assert slots(lookahead="per_gpu", gpu_slots=8) == pytest.approx(
        [0.5, 0.0, 0.0, 0.0, 0.75, 0.0, 0.75, 0.0]
    )


def test_a_policy_goes_by_what_it_is_told():
    """Under estimates the slots show expected ends, not true ones."""
    assert slots(lookahead="per_gpu", information="estimate") == pytest.approx(
        [0.75, 0.0, 0.5, 0.5]
    )


@pytest.mark.parametrize(
    ("lookahead", "expected"),
    [
        ("per_gpu", [1.0, 0.0, 1.0, 1.0]),
        ("sorted", [0.0, 1.0, 1.0, 1.0]),
        ("cdf", [0.25, 0.25, 0.25, 1.0]),
    ],
)
def test_a_blind_policy_sees_only_that_gpus_are_in_use(lookahead, expected):
    """Without run times every GPU in use counts as taken for long."""
    assert slots(lookahead=lookahead, information="blind") == pytest.approx(expected)


def test_gpu_optimizer_measures_by_the_longest_run_time():
    """Its slots show time left by the longest run time, cut at 1."""
    shown = slots(lookahead="per_gpu", features="gpu_optimizer", longest_s=20.0)
    assert shown == pytest.approx([0.5, 0.0, 1.0, 1.0])


def test_a_job_that_outlives_its_estimate_is_expected_to_end_at_once():
    """Its GPU counts as free from its expected end on."""
    sight = Sight(
        window=2, gpu_slots=2, time_unit_s=10.0, information="estimate", lookahead="per_gpu"
    )
    jobs = Workload.of(submit_s=[0, 8], duration_s=[20, 1], estimate_s=[5, 1], gpus=[1, 1])
    batch = given_batch(Task(cluster=Cluster.pool(2), sight=sight, measured_unit=False), jobs)
    batch.step(np.array([0]))
    assert batch.now_s[0] == 8.0
    assert batch.layout.gpus(batch.observations)[0].tolist() == [0.0, 0.0]
