"""Making the runs of a batch: what worker processes and Ray's tasks do, and nothing else.

A run is a pure function of its cell: where and when it is made, and beside which others, leaves no
trace in its numbers.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from yardmaster.engine.compilation import is_compiled
from yardmaster.engine.replay import Compile
from yardmaster.errors import YardmasterError
from yardmaster.experiments.contents import digest_of_parts
from yardmaster.experiments.suite.cells import Cell
from yardmaster.experiments.suite.fingerprints import code_fingerprint
from yardmaster.experiments.suite.measuring import measured
from yardmaster.experiments.suite.store import Kept
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import FILE_COPIES
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.regimes import perturbed

Batch = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Kit:
    """What all batches of an experiment have in common.

    Attributes:
        code: digest of the code that the cells were named after.
        compile_core: whether the core runs compiled.
        files: orders, policies, jobs and clusters that other machines may not have, by the path
            written.
        beside: modules that orders among them import from their own folder: by the order's path,
            by their own within its folder.
    """

    code: str
    compile_core: Compile = "auto"
    files: Mapping[str, bytes] = field(default_factory=dict)
    beside: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)


class Failure(NamedTuple):
    """A run that could not be made."""

    cell: Cell
    reason: str


class Outcome(NamedTuple):
    """What came of a batch: runs, and those that failed."""

    runs: tuple[Kept, ...]
    failures: tuple[tuple[str, str], ...]
    """(key, reason) of each."""
    drawing_s: float = 0.0
    """What it took to draw the jobs and put up the machines."""


class OtherCodeError(YardmasterError):
    """The sources differ from those that the cells were named after."""


_loaded: set[str] = set()
"""What this process has loaded: the first run of its kind loads, or even compiles, the core."""


def run_batch(kit: Kit, batch: Sequence[Cell]) -> Outcome:
    """Make the runs of a batch; cells that share jobs and stand together draw them once.

    Raises:
        OtherCodeError: if the code here is not the one the cells were named after.
    """
    if code_fingerprint() != kit.code:
        raise OtherCodeError(
            "The sources of Yardmaster changed after the experiment was started, or another"
            " machine has other sources. Nothing made so far is lost; start it again."
        )
    _unpack(kit)
    runs: list[Kept] = []
    failures: list[tuple[str, str]] = []
    scene: tuple[Workload, Cluster] | None = None
    drawing_s = 0.0
    for place, cell in enumerate(batch):
        try:
            if scene is None or not cell.shares_jobs_with(batch[place - 1]):
                scene = None  # should drawing fail, the next cell must not see older jobs
                begun = time.perf_counter()
                scene = scene_of(cell)
                drawing_s += time.perf_counter() - begun
            runs.append(_run(cell, *scene, kit.compile_core))
        except Exception as error:  # noqa: BLE001  (whatever is wrong with one, others go on)
            failures.append((cell.key, _reason(error)))
    return Outcome(tuple(runs), tuple(failures), drawing_s)


def scene_of(cell: Cell) -> tuple[Workload, Cluster]:
    """Draw the jobs of a cell and put up its machines."""
    jobs, machines = cell.setting.jobs(cell.seed), cell.setting.machines()
    return perturbed(jobs, machines, cell.perturbation, cell.seed)


def _run(cell: Cell, jobs: Workload, machines: Cluster, compile_core: Compile) -> Kept:
    begun = time.perf_counter()
    schedule = simulate(
        jobs,
        machines,
        cell.scheduler,
        seed=cell.seed,
        until_s=math.inf if cell.until_s is None else cell.until_s,
        compile_core=compile_core,
    )
    # Empty means and the like have no value, and NaN says so.
    with np.errstate(all="ignore"):
        numbers, quantiles = measured(schedule, cell.setting.changes_s)
    taken_s = time.perf_counter() - begun
    return Kept(cell.key, numbers, quantiles, math.nan if _has_loaded() else taken_s)


def _has_loaded() -> bool:
    """Whether something was loaded since the last call."""
    here = {"python"} | {f"core {real}" for real in (False, True) if is_compiled(is_real=real)}
    has_loaded = not here <= _loaded
    _loaded.update(here)
    return has_loaded


def _reason(error: Exception) -> str:
    """Return what went wrong in one line; mistakes of ours with their kind."""
    text = " ".join(str(error).split())
    return text if isinstance(error, YardmasterError) else f"{type(error).__name__}: {text}"


_unpacked: dict[str, str] = {}
"""Path as written → digest of the content that was unpacked in this process."""


def _unpack(kit: Kit) -> None:
    """Put the files that came along where schedulers and settings find them."""
    for place, content in kit.files.items():
        own = Path(place).name
        parts = {**kit.beside.get(place, {}), own: content}
        digest = digest_of_parts(sorted(parts.items()))
        if _unpacked.get(place) == digest:
            continue
        folder = Path(tempfile.mkdtemp(prefix="yardmaster-files-"))
        for name, part in parts.items():
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(part)
        FILE_COPIES[place] = folder / own
        _unpacked[place] = digest
