"""What jobs ask for, reduced to shapes."""

import numpy as np
import pytest

from yardmaster.engine import requests
from yardmaster.engine.requests import shapes_of
from yardmaster.errors import UnknownNameError
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import gpu_types
from yardmaster.model.workload import Workload

MIXED = Cluster.of("2x V100:4", "1x T4:8", "1x A100:2")
V100, T4, A100 = 1, 2, 4


def shape_of(cluster, **request):
    """Return (gpus, most per node, types, single) of one request, or None if impossible."""
    columns = {name: [value] for name, value in request.items()}
    shapes = shapes_of(Workload.of(submit_s=[0], duration_s=[1], **columns), cluster)
    if shapes.of_job[0] < 0:
        return None
    fields = (shapes.gpus, shapes.cap, shapes.types, shapes.single)
    return tuple(int(field[0]) for field in fields)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"gpus": 1}, (1, 8, V100 | T4 | A100, 1)),
        ({"gpus": 8}, (8, 8, V100 | T4 | A100, 1)),
        ({"gpus": 9}, (9, 8, V100 | T4 | A100, 0)),
        ({"gpus": 18}, (18, 8, V100 | T4 | A100, 0)),
        ({"gpus": 19}, None),
        ({"gpus": 4, "gpu_types": "V100"}, (4, 4, V100, 1)),
        ({"gpus": 5, "gpu_types": "V100"}, (5, 4, V100, 0)),
        ({"gpus": 9, "gpu_types": "V100"}, None),
        ({"gpus": 3, "gpu_types": "A100|V100"}, (3, 4, A100 | V100, 1)),
        ({"gpus": 3, "gpu_types": "A100"}, None),
        ({"gpus": 2, "max_gpus_per_node": 2}, (2, 2, V100 | T4 | A100, 1)),
        ({"gpus": 3, "max_gpus_per_node": 2}, (3, 2, V100 | T4 | A100, 0)),
        ({"gpus": 8, "max_gpus_per_node": 2}, (8, 2, V100 | T4 | A100, 0)),
        ({"gpus": 9, "max_gpus_per_node": 2}, None),
        ({"gpus": 4, "max_gpus_per_node": 1}, (4, 1, V100 | T4 | A100, 0)),
        ({"gpus": 4, "max_gpus_per_node": 99}, (4, 8, V100 | T4 | A100, 1)),
        ({"gpus": 10**12}, None),
        ({"gpus": 1, "gpu_types": "H100"}, None),
        ({"gpus": 1, "gpu_types": "H100|T4"}, (1, 8, T4, 1)),
        ({"gpus": 1, "gpu_types": "tesla v100"}, (1, 4, V100, 1)),
    ],
)
def test_requests(request_, expected):
    """Gangs stay on one node if one could hold them; what never fits has no shape."""
    assert shape_of(MIXED, **request_) == expected


def test_misspelt_types():
    """A type that no catalogue knows is a mistake, not a job that never fits."""
    with pytest.raises(UnknownNameError, match=r"V1000.*Did you mean 'V100'"):
        shape_of(MIXED, gpus=1, gpu_types="V1000")


@pytest.mark.parametrize("cluster", [MIXED, Cluster.pool(20_000), Cluster.of("40x V100:3")])
def test_shapes_of_many_jobs(cluster):
    """Each job's shape is its own request; equal requests share one, different ones do not."""
    dice = np.random.default_rng(1)
    jobs = Workload.of(
        submit_s=np.zeros(300),
        duration_s=np.ones(300),
        gpus=dice.integers(1, 30, 300),
        max_gpus_per_node=dice.integers(0, 5, 300),
        gpu_types=dice.choice(["", "V100", "T4", "V100|A100"], 300),
    )
    shapes = shapes_of(jobs, cluster)
    types = jobs.gpu_types.values()
    seen = {}
    for row, shape in enumerate(shapes.of_job.tolist()):
        own = shape_of(
            cluster,
            gpus=jobs.gpus[row],
            max_gpus_per_node=jobs.max_gpus_per_node[row],
            gpu_types=types[row],
        )
        if shape < 0:
            assert own is None
            continue
        fields = (shapes.gpus, shapes.cap, shapes.types, shapes.single)
        assert own == tuple(int(field[shape]) for field in fields)
        request = (jobs.gpus[row], jobs.max_gpus_per_node[row], types[row])
        seen.setdefault(request, set()).add(shape)
    assert all(len(numbers) == 1 for numbers in seen.values())


def test_large_codes():
    """Where requests are too varied for a table, sorting finds the same distinct ones."""
    code = np.array([60_000_000, 3, 60_000_000, 7])
    number, example = requests._numbered(code)
    assert number.tolist() == [2, 0, 2, 1]
    assert example.tolist() == [1, 3, 0]
    number, example = requests._numbered(np.array([5, 3, 5]))
    assert number.tolist() == [1, 0, 1]
    assert example.tolist() == [1, 0]


def test_every_type_of_the_catalogue():
    """A cluster of all GPU types keeps them apart."""
    names = [kind.name for kind in gpu_types()]
    cluster = Cluster.of(*(f"{name}:2" for name in names))
    for index, name in enumerate(names):
        assert shape_of(cluster, gpus=2, gpu_types=name) == (2, 2, 1 << index, 1)
