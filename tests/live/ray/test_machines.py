"""Counting GPUs of nodes: of others, held back, and of nodes that are away."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.local.commands import commands_of
from yardmaster.live.ray.cluster import check_sizes
from yardmaster.live.ray.machines import Machine, Machines


def machines() -> Machines:
    before = [{"name": name, "gpus": 4, "devices": []} for name in ("a", "b", "c")]
    known = Machines(None, before)  # type: ignore[arg-type]  (nobody is asked here)
    for machine in known.all[:2]:
        machine.id, machine.is_known, machine.host = f"id-{machine.name}", True, "h1"
    return known


def test_what_others_use_and_what_is_held_back_is_blocked():
    """GPUs of others, of ours whose jobs are over, and of nodes that are away are nobody's."""
    known = machines()
    known.all[0].used, known.all[1].used = 3, 1
    ours, kept = np.array([2, 1, 0]), np.array([0, 1, 0])
    assert known.blocked(ours, kept).tolist() == [1, 1, 4]
    known.all[0].used = 0  # Ray's books lag behind what we have just reserved
    assert known.blocked(ours, kept).tolist() == [0, 1, 4]


def test_nodes_keep_their_places():
    """A name leads to its place, a host to a living node, and all make a cluster."""
    known = machines()
    assert [known.number(name) for name in ("c", "a", "x")] == [2, 0, None]
    assert known.on_host("h1", "b") is known.all[1]
    assert known.on_host("h1", "gone") in known.all[:2]
    assert known.on_host("h2", "b") is None
    assert known.cluster.node_gpus.tolist() == [4, 4, 4]
    assert [one["name"] for one in known.records()] == ["a", "b", "c"]


def test_jobs_larger_than_every_node_are_refused():
    """One command runs on one node, so the largest node is the limit."""
    jobs = commands_of([{"id": "big", "command": "true", "gpus": 5}], name="w")
    with pytest.raises(YardmasterError, match="big asks for 5 GPUs; the largest node has 4"):
        check_sizes([Machine("a", 4)], jobs)
    check_sizes([Machine("a", 4), Machine("b", 8)], jobs)
