"""A workload from what the user names: a preset, a recipe, or a file that can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.model.workload import COLUMN_NAMES, Workload
from yardmaster.workloads.arguments import LARGEST_JOBS, finite_number, whole_number
from yardmaster.workloads.arrivals import span_for_load, stretched
from yardmaster.workloads.files import missing
from yardmaster.workloads.recipes.document import find_recipe, is_recipe_file
from yardmaster.workloads.recipes.drawing import LOAD_TOLERANCE
from yardmaster.workloads.synthetic import PRESETS, generate
from yardmaster.workloads.tables import ALIASES, read_table

DEFAULT_JOBS = 2000
"""Jobs of a generated workload when the user does not say how many."""

DEFAULT_LOAD = 0.9
"""Offered load of a generated workload when the user does not say which."""


def _read_swf(path: Path) -> Workload:
    from yardmaster.workloads.traces.swf import read_swf

    return read_swf(path)


READERS: dict[str, Callable[[Path], Workload]] = {
    ".swf": _read_swf,
    ".swf.gz": _read_swf,
    ".csv": read_table,
    ".parquet": read_table,
}
"""File ending → reader."""

OWN_TABLES = (
    "yardmaster workload import csv FILE --map submit_s=… duration_s=… gpus=… -o jobs.parquet"
)
"""How tables with columns of their own are read."""


def is_generated(source: str | Path) -> bool:
    """Tell whether `source` names a preset or a recipe: every seed gives another workload."""
    is_preset = isinstance(source, str) and source.partition(":")[0] in PRESETS
    return is_preset or is_recipe_file(source)


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
        source: a preset of `PRESETS`, perhaps with options (`venus-like:kinds=measured`), a recipe
            (`mine.toml`), or the path of a file with jobs (a `Path` is always a file).
        jobs: how many jobs to generate (default what the recipe says, else 2,000), or how many of
            the file to keep, the earliest first (default all).
        seed: seed of a generated workload; a file with jobs does not depend on it.
        gpus: GPUs of the cluster that `load` refers to; needed with a load.
        load: offered load (default the pace of the recipe, else 0.9). For a file the time axis is
            stretched until it offers this load, which the notes say; by default a file keeps its
            own times.

    Raises:
        UnknownNameError: if `source` is neither a preset nor looks like a file.
        YardmasterError: if the file or an argument makes no sense.
    """
    if is_generated(source) or (isinstance(source, str) and not looks_like_file(source)):
        recipe = find_recipe(source)
        return generate(
            source,
            jobs=DEFAULT_JOBS if jobs is None and not recipe.has_number else jobs,
            seed=seed,
            gpus=gpus,
            load=DEFAULT_LOAD if load is None and not recipe.has_pace else load,
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
    scaled = workload.with_columns(submit_s=submit_s, deadline_s=deadline_s)
    reached = scaled.load(gpus)
    # Nothing is shorter than a second: a load far beyond all reason is not reached.
    said = f"{load:g}" if abs(reached - load) <= LOAD_TOLERANCE * load else f"{reached:.4g}"
    note = f"submit times were stretched by {old_load / reached:.4g}: load {old_load:.4g} → {said}"
    return scaled.renamed(workload.name, f"{note} on {gpus} GPUs")


def looks_like_file(source: str) -> bool:
    """Tell whether a name that is no preset is meant as a file."""
    return "/" in source or "\\" in source or _ending(source) != "" or Path(source).is_file()


def _ending(name: str) -> str:
    lower = name.lower()
    return next((ending for ending in READERS if lower.endswith(ending)), "")


def _read(path: Path) -> Workload:
    if not path.exists():
        raise missing(path)
    ending = _ending(path.name)
    if ending and (ending != ".csv" or _has_our_columns(path)):
        return READERS[ending](path)
    format_name = _trace_format(path)
    if ending == ".csv" and format_name in (None, "csv"):
        return _read_table(path)
    if format_name is None:
        known = ", ".join(READERS)
        raise InvalidWorkloadError(
            f"{path}: unknown kind of workload file. Known endings: {known}. Traces are known by"
            f" their content (`yardmaster workload list`); other tables are read with: {OWN_TABLES}"
        )
    from yardmaster.workloads.traces.formats import import_trace

    return import_trace([path], format_name).workload()


def _has_our_columns(path: Path) -> bool:
    """Tell whether every column of a text table is one of a job table's."""
    from yardmaster.workloads.traces.reading.trace_files import TraceFile

    return path.is_file() and set(TraceFile(str(path), path).columns()) <= {*COLUMN_NAMES, *ALIASES}


def _trace_format(path: Path) -> str | None:
    """Return the name of the publisher's format a file is in, None if it is in none."""
    from yardmaster.workloads.traces.formats import detected
    from yardmaster.workloads.traces.reading.trace_files import opened

    with opened([path]) as files:
        try:
            return detected(files).name
        except TraceFormatError:
            return None


def _read_table(path: Path) -> Workload:
    """Read a table whose columns are not all ours, or say how such tables are read."""
    try:
        return read_table(path)
    except InvalidWorkloadError as error:
        hint = f"\n  (tables with columns of their own: {OWN_TABLES})"
        raise InvalidWorkloadError(f"{error}{hint}") from None


def _first(workload: Workload, jobs: int) -> Workload:
    if len(workload) < jobs:
        note = f"{jobs} jobs were asked for, but the file has {len(workload)}"
        return workload.renamed(workload.name, note)
    note = f"the first {jobs} of {len(workload)} jobs"
    return workload.select(np.arange(jobs)).renamed(workload.name, note)
