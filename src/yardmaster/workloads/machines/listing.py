"""What a publisher's list of machines says, before it becomes a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

if TYPE_CHECKING:
    import polars as pl

NO_GPU = "no GPU in the machine"
"""Why most machines are left out."""


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """What the user says about a list of machines.

    Attributes:
        stand_ins: the list's GPU type → type of the catalogue whose figures it takes, where the
            catalogue does not know it; under "" the one for all types that are not named.
        at: moment of a list that changes over time: a date or a second.
        rows: how rows are read: bad ones may be skipped, cores may make slots.
    """

    stand_ins: Mapping[str, str] = field(default_factory=dict)
    at: str | None = None
    rows: ImportOptions = field(default_factory=ImportOptions)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A GPU type that the catalogue does not know, and what it is taken for.

    Attributes:
        like: type of the catalogue that gives the figures.
        because: why, in words that end in "; the figures of … stand in".
        memory_gib: device memory if the list says so.
    """

    like: str
    because: str = "not in the catalogue"
    memory_gib: float | None = None


@dataclass(frozen=True, slots=True)
class MachineList:
    """The machines of one list that a cluster can be made of.

    Attributes:
        machines: one row per machine: `gpu_type` (the list's own name), `gpus`, and `cpus` and
            `memory_gib` (null if unknown).
        stand_ins: the list's GPU types that the publisher is known to use and the catalogue does
            not know, by name.
        sharing: how fractional jobs share a GPU on these machines.
        guarantees: GPUs that belong to each tenant.
        equal_speeds: whether GPU types and distances make no difference.
    """

    machines: pl.DataFrame
    stand_ins: Mapping[str, StandIn] = field(default_factory=dict)
    sharing: Literal["none", "mps"] = "none"
    guarantees: Mapping[str, int] = field(default_factory=dict)
    equal_speeds: bool = False


@dataclass(frozen=True, slots=True)
class MachineFormat:
    """One publisher's way to list machines.

    Attributes:
        name: what users call it; the same as that of the publisher's trace.
        reads: which of the publisher's files it reads.
        source: who published the list, when, under which licence.
        recognises: tells from a file's name and first lines whether it is such a list.
        read: turns the file into machines.
    """

    name: str
    reads: str
    source: str
    recognises: Callable[[TraceFile], bool]
    read: Callable[[TraceFile, MachineOptions, Ledger], MachineList]
