"""Run directories: everything a run used and produced, enough to make it again.

```
config.toml        the plan, resolved
meta.json          versions, machine, command line, when, fingerprints of the schedules
cluster/           the cluster file, if the user gave one
snapshot/          the snapshot file, if the user gave one (`eta` only)
orders/            the files of the user's own orders, if there are any, with what they import
workloads/0.parquet …   the jobs, in the canonical schema
jobs/0.parquet …    one file per simulation, one row per job: start, end, wait, JCT, outcome
segments.parquet   one row per segment with its GPUs (`simulate` only)
summary.json       every metric of every simulation
report.html        tables and figures (not for `simulate`)
figures/           the figures as files (`whatif` and `eta`)
```

A directory is written under a temporary name and renamed when complete, so that an interrupted run
leaves nothing that looks like a result.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from yardmaster.errors import YardmasterError
from yardmaster.experiments.plan import EtaQuestion, Plan
from yardmaster.metrics import per_job
from yardmaster.model.documents import read_toml, validate
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import FILE_COPIES, file_names, order_files
from yardmaster.schedulers.neighbours import neighbours
from yardmaster.workloads.tables import read_table, write_table

REPRODUCED = (
    "segments.parquet", "*/*.parquet", "summary.json", "config.toml", "report.html",
    "figures/*.svg",
)  # fmt: skip
"""Files that a rerun must reproduce byte for byte."""

SHOWN_BEFORE, SHOWN_BEHIND = 30, 50
"""Characters shown before and behind the place where two lines part."""

_LIBRARIES = ("yardmaster", "numpy", "numba", "polars", "simpy", "pydantic")


@contextmanager
def new_run_directory(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block ends without an error.

    Raises:
        YardmasterError: if `path` exists and may not be replaced, or cannot be written.
    """
    if path.exists() and not (overwrite and is_run_directory(path)):
        hint = "" if is_run_directory(path) else " and is not a run directory"
        raise YardmasterError(f"{path} already exists{hint}; choose another place with --out.")
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    is_first = not path.parent.exists()
    try:
        (partial / "workloads").mkdir(parents=True)
    except OSError as error:
        raise YardmasterError(f"Cannot write to {path}: {error.strerror}.") from None
    try:
        yield partial
        if path.exists():
            shutil.rmtree(path)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_first and not path.exists():
            with suppress(OSError):  # somebody else may have put something there by now
                path.parent.rmdir()


def is_run_directory(path: Path) -> bool:
    """Whether a folder holds a complete run."""
    return (path / "config.toml").is_file() and (path / "meta.json").is_file()


def default_path(plan: Plan) -> Path:
    """Return a fresh place under `runs/`, named after the plan and the time."""
    source = "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(plan.source).stem)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    base = Path("runs") / f"{plan.command}-{source}-{stamp}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def write_inputs(folder: Path, plan: Plan, workloads: Iterable[Workload]) -> None:
    """Save what the run is made from: the plan, the user's files and the jobs."""
    saved = plan
    if Path(plan.cluster).is_file():
        saved = plan.model_copy(update={"cluster": _kept(folder, "cluster", plan.cluster)})
    if plan.eta is not None and plan.eta.snapshot is not None:
        saved = _with_snapshot(saved, _kept(folder, "snapshot", plan.eta.snapshot))
    for place, source in order_files(plan.schedulers).items():
        _keep_order(folder / "orders", place, source)
    document = saved.model_dump(exclude_none=True)
    (folder / "config.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    for number, workload in enumerate(workloads):
        write_table(workload, folder / "workloads" / f"{number}.parquet")


def _kept(folder: Path, kind: str, source: str) -> str:
    """Copy a user's file under its own name, after which jobs and machines may be called."""
    copy = Path(kind) / Path(source).name
    (folder / kind).mkdir()
    shutil.copyfile(source, folder / copy)
    return copy.as_posix()


def read_inputs(path: Path) -> tuple[Plan, list[Workload]]:
    """Read a run directory's plan and jobs.

    Raises:
        YardmasterError: if it is not a run directory or something in it is damaged.
    """
    if not is_run_directory(path):
        raise YardmasterError(
            f"{path} is not a run directory: it has no config.toml and meta.json."
        )
    config = path / "config.toml"
    plan = validate(Plan, read_toml(config), str(config))
    for place in file_names(plan.schedulers):
        for copy in _copies(path / "orders", place):
            if copy.is_file():
                FILE_COPIES[place] = copy
    if plan.cluster.endswith(".toml"):
        plan = plan.model_copy(update={"cluster": str(path / plan.cluster)})
    workloads = [
        read_table(path / "workloads" / f"{number}.parquet")
        for number in range(plan.workload_files)
    ]
    if plan.eta is not None and plan.eta.snapshot is not None:
        plan = _with_snapshot(plan, str(path / plan.eta.snapshot))
    return plan, workloads


def _with_snapshot(plan: Plan, snapshot: str) -> Plan:
    """Return the plan with its snapshot file at another place."""
    question = (plan.eta or EtaQuestion()).model_copy(update={"snapshot": snapshot})
    return plan.model_copy(update={"eta": question})


def _keep_order(folder: Path, place: str, source: Path) -> None:
    """Copy a user's order file, and the modules that it imports from beside it."""
    beside = neighbours(source) if place.endswith(".py") else {}
    alone, in_company = _copies(folder, place)
    copy = in_company if beside else alone
    for target, file in ((copy, source), *((copy.parent / k, v) for k, v in beside.items())):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _copies(folder: Path, place: str) -> tuple[Path, Path]:
    """Return where a user's order file is kept; unlike paths do not collide.

    One that imports modules beside it has a folder of its own, in which they have their names.
    """
    name, digest = Path(place).name, hashlib.sha256(place.encode()).hexdigest()[:8]
    return folder / f"{digest}-{name}", folder / digest / name


def write_summary(folder: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Save the metrics of every simulation; what has no value is null."""
    clean = [{key: _json_value(value) for key, value in row.items()} for row in rows]
    text = json.dumps(clean, indent=1, ensure_ascii=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_jobs(folder: Path, number: int, schedule: Schedule) -> None:
    """Save what happened to every job in one simulation."""
    import polars as pl

    jobs = len(schedule.workload)
    names = [outcome.name.lower() for outcome in Outcome]
    (folder / "jobs").mkdir(exist_ok=True)
    pl.DataFrame(
        {
            "scheduler": pl.repeat(schedule.scheduler, jobs, dtype=pl.String, eager=True),
            "workload": pl.repeat(schedule.workload.name, jobs, dtype=pl.String, eager=True),
            "id": schedule.workload.id,
            "submit_s": schedule.workload.submit_s,
            "start_s": schedule.start_s,
            "end_s": schedule.end_s,
            "wait_s": per_job.wait_s(schedule),
            "jct_s": per_job.jct_s(schedule),
            "bounded_slowdown": per_job.bounded_slowdown(schedule),
            "outcome": np.asarray(names)[schedule.outcome],
        }
    ).write_parquet(folder / "jobs" / f"{number}.parquet", statistics=False)


def write_segments(folder: Path, schedule: Schedule) -> None:
    """Save every segment: why it ended, what was lost, and the numbers of the GPUs it held."""
    import polars as pl

    causes = [cause.name.lower() for cause in Cause]

    begin, end = schedule.segment_gpu_offset[:-1], schedule.segment_gpu_offset[1:]
    gpus = [schedule.gpu_ids[a:b] for a, b in zip(begin, end, strict=True)]
    pl.DataFrame(
        {
            "id": schedule.workload.id[schedule.segment_job],
            "start_s": schedule.segment_start_s,
            "end_s": schedule.segment_end_s,
            "cause": np.asarray(causes)[schedule.segment_cause],
            "wasted_s": schedule.segment_wasted_s,
            "gpus": pl.Series(gpus, dtype=pl.List(pl.Int32)),
        }
    ).write_parquet(folder / "segments.parquet", statistics=False)


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def recorded_command(path: Path) -> str:
    """Return the command that made a run directory."""
    meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
    return str(meta["command"])


def write_meta(
    folder: Path, fingerprints: Mapping[str, str], notes: Iterable[str], started: datetime
) -> None:
    """Save where the numbers come from: versions, machine, command, fingerprints."""
    meta = {
        "command": command_line(),
        "started": started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "notes": list(notes),
        "schedules": dict(fingerprints),
    }
    text = json.dumps(meta, indent=1, ensure_ascii=False)
    (folder / "meta.json").write_text(text + "\n", encoding="utf-8")


def differences(old: Path, new: Path) -> list[str]:
    """Return what a rerun did not reproduce: files that differ, or are missing on one side."""
    names = {
        file.relative_to(folder).as_posix()
        for folder in (old, new)
        for pattern in REPRODUCED
        for file in folder.glob(pattern)
    }
    return sorted(name for name in names if _digest(old / name) != _digest(new / name))


def first_difference(old: Path, new: Path) -> str:
    """Return where two text files part, with both lines; nothing if one is no text, or missing."""
    try:
        before, after = (path.read_text(encoding="utf-8").splitlines() for path in (old, new))
    except (OSError, UnicodeDecodeError):
        return ""
    pairs = enumerate(zip_longest(before, after, fillvalue=""), start=1)
    line, (a, b) = next(((line, pair) for line, pair in pairs if pair[0] != pair[1]), (0, ("", "")))
    if not line:  # the same lines with other ends
        return ""
    place = next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    return f"line {line}: {_around(a, place)} became {_around(b, place)}"


def _around(text: str, place: int) -> str:
    """Return the part of a line about a place, in quotes; a line of a page may be a megabyte."""
    begin, end = max(place - SHOWN_BEFORE, 0), place + SHOWN_BEHIND
    return f"‘{'…' * (begin > 0)}{text[begin:end]}{'…' * (end < len(text))}’"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
