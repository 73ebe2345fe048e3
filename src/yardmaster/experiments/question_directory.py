"""Run directories of questions (`whatif`, `eta`): what was asked, of which jobs, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomli_w

from yardmaster.experiments.run_directory import write_meta, write_summary
from yardmaster.model.workload import Workload
from yardmaster.workloads.tables import write_table


def fresh_path(command: str, source: str) -> Path:
    """Return a fresh place under `runs/`, named after the question and the time."""
    stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(source).stem)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    base = Path("runs") / f"{command}-{stem}-{stamp}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def write_question(
    folder: Path,
    question: Mapping[str, Any],
    workloads: Sequence[Workload],
    records: Iterable[Mapping[str, Any]],
    *,
    fingerprints: Mapping[str, str],
    notes: Iterable[str],
    started: datetime,
) -> None:
    """Save the options, the jobs, every number of the answer, and where they come from."""
    said = {key: _plain(value) for key, value in question.items() if value is not None}
    (folder / "config.toml").write_text(tomli_w.dumps(said), encoding="utf-8")
    for number, workload in enumerate(workloads):
        write_table(workload, folder / "workloads" / f"{number}.parquet")
    write_summary(folder, records)
    write_meta(folder, fingerprints, notes, started)


def _plain(value: Any) -> Any:
    """Return what TOML can hold."""
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
