"""Traces as plain arrays, so that a machine with nothing but NumPy can train on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from yardmaster.model.workload import Workload
from yardmaster.workloads.sources import READERS

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"


def read_arrays(path: Path) -> Workload:
    """Read jobs that `prepare` wrote."""
    with np.load(path, allow_pickle=False) as columns:
        return Workload.of(name=path.stem, **{name: columns[name] for name in columns.files})


READERS[".npz"] = read_arrays  # tasks name their workload by its file


def prepare(folder: Path) -> list[Path]:
    """Write the traces of all studies as arrays; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, read in {"lublin": _lublin, "venus": _venus}.items():
        jobs = read()
        path = folder / f"{name}.npz"
        np.savez_compressed(
            path, submit_s=jobs.submit_s, duration_s=jobs.duration_s, gpus=jobs.gpus
        )
        made.append(path)
    return made


def _lublin() -> Workload:
    from yardmaster.workloads.sources import load_workload

    return load_workload(TRACES / "swf_lublin" / "lublin_256.swf")


def _venus() -> Workload:
    import polars as pl

    table = pl.read_csv(TRACES / "helios" / "venus_until_2020-07.csv")
    return Workload.of(
        submit_s=table["arrival_s"].to_numpy(),
        duration_s=table["service_sec"].to_numpy(),
        gpus=table["gpu_count"].to_numpy(),
    )
