"""Traces as plain arrays, so that a machine with nothing but NumPy can train on them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from yardmaster.model.workload import Workload
from yardmaster.workloads.sources import READERS

FILES = {
    "lublin": Path("swf_lublin", "lublin_256.swf"),
    "venus": Path("helios", "venus_until_2020-07.csv"),
}
"""Where the traces are in their folder: the Lublin-256 file of RLScheduler, and Helios Venus in the
columns of a common conversion."""


def read_arrays(path: Path) -> Workload:
    """Read jobs that `prepare` wrote."""
    with np.load(path, allow_pickle=False) as columns:
        return Workload.of(name=path.stem, **{name: columns[name] for name in columns.files})


READERS[".npz"] = read_arrays  # tasks name their workload by its file


def prepare(folder: Path, traces: Path, wanted: Collection[str]) -> list[Path]:
    """Write the wanted traces as arrays; return the files.

    Raises:
        SystemExit: if a trace is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, read in {"lublin": _lublin, "venus": _venus}.items():
        if name not in wanted:
            continue
        source = traces / FILES[name]
        if not source.is_file():
            raise SystemExit(f"There is no {source}: name the folder of traces with --traces.")
        jobs = read(source)
        path = folder / f"{name}.npz"
        np.savez_compressed(
            path, submit_s=jobs.submit_s, duration_s=jobs.duration_s, gpus=jobs.gpus
        )
        made.append(path)
    return made


def _lublin(path: Path) -> Workload:
    from yardmaster.workloads.sources import load_workload

    return load_workload(path)


def _venus(path: Path) -> Workload:
    import polars as pl

    table = pl.read_csv(path)
    return Workload.of(
        submit_s=table["arrival_s"].to_numpy(),
        duration_s=table["service_sec"].to_numpy(),
        gpus=table["gpu_count"].to_numpy(),
    )
