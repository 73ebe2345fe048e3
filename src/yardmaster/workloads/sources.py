"""A workload from what the user names: a preset, or a file in any format that can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.arguments import LARGEST_JOBS, finite_number, whole_number
from yardmaster.workloads.arrivals import span_for_load, stretched
from yardmaster.workloads.files import missing
from yardmaster.workloads.swf import read_swf
from yardmaster.workloads.synthetic import PRESETS, generate
from yardmaster.workloads.tables import read_table

DEFAULT_JOBS = 2000
"""Jobs of a generated workload when the user does not say how many."""

DEFAULT_LOAD = 0.9
"""Offered load of a generated workload when the user does not say which."""

READERS: dict[str, Callable[[Path], Workload]] = {
    ".swf": read_swf,
    ".swf.gz": read_swf,
    ".csv": read_table,
    ".parquet": read_table,
}
"""File ending → reader."""


def is_generated(source: str | Path) -> bool:
    """Tell whether `source` names a preset, of which every seed gives another workload."""
    return isinstance(source, str) and source.partition(":")[0] in PRESETS


def load_workload(
    source: str | Path,
    *,
    jobs: int | None = None,
    seed: int = 0,
    gpus: int | None = None,
    load: float | None = None,
) -> Workload:
    """Return the workload that `source` names.

    Args:
        source: a preset of `PRESETS`, perhaps with demands (`venus-like:kinds=measured`; see
            `workloads.demands.Demands`), or the path of a file (a `Path` is always a file).
        jobs: how many jobs to generate (default 2,000), or how many of the file to keep, the
            earliest first (default all).
        seed: seed of a generated workload; a file does not depend on it.
        gpus: GPUs of the cluster that `load` refers to; needed for presets and with `load`.
        load: offered load (default 0.9 for presets). For a file the time axis is stretched until
            it offers this load, which the notes say; by default a file keeps its own times.

    Raises:
        UnknownNameError: if `source` is neither a preset nor looks like a file.
        YardmasterError: if the file or an argument makes no sense.
    """
    if isinstance(source, str) and (is_generated(source) or not _looks_like_file(source)):
        return generate(
            source,
            jobs=DEFAULT_JOBS if jobs is None else jobs,
            seed=seed,
            gpus=_needed(gpus),
            load=DEFAULT_LOAD if load is None else load,
        )
    workload = _read(Path(source))
    if jobs is not None:
        workload = _first(workload, whole_number("jobs", jobs, smallest=1, largest=LARGEST_JOBS))
    return workload if load is None else with_load(workload, gpus=_needed(gpus), load=load)


def _needed(gpus: int | None) -> int:
    if gpus is None:
        raise InvalidWorkloadError("gpus is needed: a load refers to a number of GPUs.")
    return gpus


def with_load(workload: Workload, *, gpus: int, load: float) -> Workload:
    """Stretch or compress the time axis of submissions until they offer `load` to `gpus` GPUs.

    Durations stay; deadlines keep their distance from the submission. Whole seconds stay whole, so
    the load is exact up to the rounding of the span to a second.

    Raises:
        InvalidWorkloadError: if an argument makes no sense, or all jobs are submitted at once.
    """
    gpus = whole_number("gpus", gpus, smallest=1)
    load = finite_number("load", load, above=0)
    old_load = workload.load(gpus)
    if not np.isfinite(old_load):
        raise InvalidWorkloadError(
            f"{workload.name}: load cannot be set, because all jobs are submitted at one instant."
        )
    submit_s = stretched(workload.submit_s, span_for_load(workload.work_gpu_s, gpus, load))
    deadline_s = workload.deadline_s + (submit_s - workload.submit_s)
    note = f"submit times were stretched by {old_load / load:.4g}: load {old_load:.4g} → {load:g}"
    return workload.with_columns(submit_s=submit_s, deadline_s=deadline_s).renamed(
        workload.name, f"{note} on {gpus} GPUs"
    )


def _looks_like_file(source: str) -> bool:
    return "/" in source or "\\" in source or _ending(source) != "" or Path(source).is_file()


def _ending(name: str) -> str:
    lower = name.lower()
    return next((ending for ending in READERS if lower.endswith(ending)), "")


def _read(path: Path) -> Workload:
    if not path.exists():
        raise missing(path)
    ending = _ending(path.name)
    if not ending:
        known = ", ".join(READERS)
        raise InvalidWorkloadError(
            f"{path}: unknown kind of workload file. Known endings: {known}."
        )
    return READERS[ending](path)


def _first(workload: Workload, jobs: int) -> Workload:
    if len(workload) < jobs:
        note = f"{jobs} jobs were asked for, but the file has {len(workload)}"
        return workload.renamed(workload.name, note)
    note = f"the first {jobs} of {len(workload)} jobs"
    return workload.select(np.arange(jobs)).renamed(workload.name, note)
