"""What a real cluster does to jobs, as numbers both engines read.

`Conditions` says how fast each request runs where, what it needs besides GPUs, who may hold how
much, what stopping a job costs and when nodes are away. `conditions_of` derives it from a workload
and a cluster; it is None when nothing of the kind applies, and the engines then do no more than
start jobs and end them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from yardmaster.model.site import Outage
from yardmaster.model.workload import FloatArray, IntArray

UNLIMITED = 1 << 50
"""An amount that nobody uses up: cores of a node whose cores are unknown, quotas without limit."""

MIG_SLICES = 7
MIG_SLICE_MILLI = 142
"""Thousandths of a GPU in one of its seven slices."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """Everything about jobs and machines beyond "so many GPUs for so many seconds".

    Tables over shapes have one row per distinct request (see `engine.requests.Shapes`).
    """

    speed: FloatArray
    """(shapes, types) work done per second; 1 where durations were measured."""
    node_factor: FloatArray
    """(shapes,) factor on the speed when the gang spans nodes of one rack."""
    rack_factor: FloatArray
    """(shapes,) factor on the speed when the gang spans racks."""
    milli: IntArray
    """(shapes,) thousandths of its GPU; 1000 for whole GPUs."""
    gpu_mib: IntArray
    """(shapes,) device memory a fractional job takes of its GPU, MiB; 0 if unknown."""
    cpu_milli: IntArray
    """(shapes,) thousandths of a core needed with every GPU; 0 if unknown."""
    host_mib: IntArray
    """(shapes,) host memory needed with every GPU, MiB; 0 if unknown."""
    tenant: IntArray
    """(shapes,) index of the tenant."""
    watts: IntArray
    """(shapes,) watts above idle, on the hungriest GPU type the request allows."""
    kind: IntArray
    """(shapes,) index into `pair`."""
    least_gpus: IntArray
    """(shapes,) fewest GPUs; equal to the shape's GPUs if rigid."""
    most_gpus: IntArray
    """(shapes,) most GPUs; equal to the shape's GPUs if rigid."""
    scale: FloatArray
    """(shapes, largest most_gpus + 1) factor on the speed when running on so many GPUs."""
    pair: FloatArray
    """(kinds, kinds) speed of the first kind beside the second on one shared GPU, alone = 1."""
    node_cpu_milli: IntArray
    """(nodes,) thousandths of a core; UNLIMITED if unknown."""
    node_mib: IntArray
    """(nodes,) host memory, MiB; UNLIMITED if unknown."""
    node_sharing: IntArray
    """(nodes,) a `Sharing`."""
    type_mib: IntArray
    """(types,) device memory of one GPU, MiB."""
    type_watts: FloatArray
    """(types,) watts above idle of one busy GPU."""
    node_wake_w: FloatArray
    """(nodes,) watts of waking the node from idleness (its idle draw and overhead); 0 if the
    site's nodes never sleep."""
    guaranteed_gpus: IntArray
    """(tenants,)"""
    limit_gpus: IntArray
    """(tenants,) UNLIMITED if none."""
    popularity: IntArray
    """(shapes,) jobs of the workload with this request: what `fgd` expects to come."""
    cap_watts: int = UNLIMITED
    every_s: float = math.inf
    save_s: float = 0.0
    restore_s: float = 0.0
    saves_on_preemption: bool = True
    quantum_s: float = 0.0
    retries: int = UNLIMITED
    outages: tuple[Outage, ...] = ()
    """In order of `down_s`."""
    levels_s: FloatArray = field(default_factory=lambda: np.zeros(0))
    """GPU-seconds at which a job sinks to the next queue (`las-2d`), ascending."""

    @property
    def efficiency(self) -> float:
        """Share of running time that is not spent saving."""
        return 1.0 if math.isinf(self.every_s) else (self.every_s - self.save_s) / self.every_s
