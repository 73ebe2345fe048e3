"""What a run's folder says of itself at a glance: its kind, how it stands, its main figures.

Only small text files are read, so that a thousand runs are listed in a moment. A folder that cannot
be read has a card too, with a sentence that says why.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from yardmaster.dashboard.plain_files import open_plain, read_plain
from yardmaster.dashboard.signs_of_life import live_state

Record = Mapping[str, Any]
TAIL = 4096
"""Bytes at the end of a growing file in which its last line is looked for."""
SHOWN = ("mean_jct_s", "mean_wait_s", "utilisation")


@dataclass(frozen=True, slots=True)
class Card:
    """A run in the list.

    Attributes:
        name: path below the folder of runs.
        kind: simulate, compare, whatif, eta, train, tune, experiment, evaluate, live or unknown.
        status: finished, running, interrupted, killed, silent, failed, stopped or damaged.
        sentence: what is wrong, where something is.
        headline: the main result in a few words.
        workload: what was run.
        cluster: on what.
        scheduler: the only scheduler, or the best.
        schedulers: how many there were.
        started_s: seconds since 1970.
        took_s: seconds from begin to end.
        metrics: main metrics of that scheduler.
        progress: share of the work that is done, where it is known.
        report: whether there is a report.html.
        pending: whether the folder has not been read yet.
    """

    name: str
    kind: str = "unknown"
    status: str = "finished"
    sentence: str = ""
    headline: str = ""
    workload: str = ""
    cluster: str = ""
    scheduler: str = ""
    schedulers: int = 0
    started_s: float | None = None
    took_s: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    progress: float | None = None
    report: bool = False
    pending: bool = False


class _DamagedError(Exception):
    """A file that should be there and is not, or makes no sense."""


def is_run(path: Path) -> bool:
    """Whether a folder looks like a run of any kind, complete or not."""
    return ".partial-" in path.name or any((path / marker).exists() for marker in _READERS)


def watched_files(path: Path) -> tuple[Path, ...]:
    """Return files that grow or are written again while a run goes on."""
    return tuple(path / name for name in ("progress.jsonl", "live.json", "study.db", "runs.sqlite"))


def card_of(name: str, path: Path) -> Card:
    """Read a run's folder; never fails."""
    card = Card(name, report=(path / "report.html").is_file())
    if ".partial-" in path.name:
        return _unfinished(card, path)
    for marker, read in _READERS.items():
        if not (path / marker).exists():
            continue
        try:
            return read(card, path)
        except (_DamagedError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            why = str(error) if isinstance(error, _DamagedError) else f"{marker} makes no sense"
            return replace(
                card, kind=_kind_by_name(path), status="damaged", sentence=f"Damaged: {why}.",
                started_s=_modified_s(path),
            )  # fmt: skip
    return replace(
        card, status="damaged", sentence="Nothing in this folder is known as a run.",
        started_s=_modified_s(path),
    )  # fmt: skip


def _simulated(card: Card, path: Path) -> Card:
    """Read a run of `simulate`, `compare`, `whatif` or `eta`."""
    plan, meta = _toml(path / "config.toml"), _json(path / "meta.json")
    rows = _json(path / "summary.json")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _DamagedError("summary.json is not a list of results")
    kind = str(plan["command"])
    begun, ended = _unix_s(meta["started"]), _unix_s(meta.get("finished"))
    card = replace(
        card,
        kind=kind,
        workload=_source(plan),
        cluster=_last_part(str(plan["cluster"])),
        schedulers=len(plan["schedulers"]),
        started_s=begun,
        took_s=ended - begun if begun is not None and ended is not None else None,
    )
    if kind in {"simulate", "compare"}:
        return _ranked(card, rows, str(plan.get("objective", "mean_jct_s")))
    scheduler = str(plan["schedulers"][0])
    noun = "prediction" if kind == "eta" else "simulation"
    headline = f"{len(rows)} {noun}{'s' if len(rows) != 1 else ''}"
    return replace(card, scheduler=scheduler, headline=headline)


def _ranked(card: Card, rows: list[Record], objective: str) -> Card:
    """Find the best scheduler by the objective, averaged over workloads."""
    from yardmaster.metrics.catalogue import metric

    by_name: dict[str, list[Record]] = {}
    for row in rows:
        by_name.setdefault(str(row["scheduler"]), []).append(row)
    sign = -1.0 if metric(objective).better == "higher" else 1.0
    means = {name: _mean(row.get(objective) for row in group) for name, group in by_name.items()}
    known = {name: value for name, value in means.items() if value is not None}
    best = min(known, key=lambda name: sign * known[name]) if known else next(iter(by_name), "")
    found = {name: _mean(row.get(name) for row in by_name.get(best, [])) for name in SHOWN}
    jobs = rows[0].get("jobs") if rows else None
    headline = "" if jobs is None else f"{int(jobs):,} jobs".replace(",", "\u202f")
    workloads = len({row.get("workload") for row in rows})
    if card.kind == "compare":
        headline += f", {len(by_name)} schedulers"
        headline += f", {workloads} workloads" if workloads > 1 else ""
    return replace(
        card,
        scheduler=best,
        schedulers=len(by_name),
        headline=headline,
        metrics={name: value for name, value in found.items() if value is not None},
    )


def _trained(card: Card, path: Path) -> Card:
    """Read a run of `train`."""
    config, about = _toml(path / "config.toml"), _json(path / "run.json")
    total, learner = config["train"]["steps"], config.get("learner", {})
    last = _last_line(path / "progress.jsonl")
    steps = max(int(about.get("steps") or 0), int(last.get("steps") or 0))
    status = str(about["status"])
    if status == "running" and not _is_held(path / ".lock"):
        status = "killed"
    metric, best = str(about["metric"]), about.get("best")
    words = f"{steps:,} of {total:,} steps" if steps < total else f"{steps:,} steps"
    words = words.replace(",", "\u202f")
    if best is not None:
        words += f", best {metric} {best:.4g}"
    begun = _unix_s(about.get("started"))
    return replace(
        card,
        kind="train",
        status="stopped" if status == "stopped early" else status,
        headline=words,
        scheduler=str(learner.get("name", learner.get("learner", "")) or ""),
        workload=_jobs_of(config),
        cluster=_short(config.get("task", {}).get("cluster", "")),
        started_s=begun if begun is not None else _modified_s(path),
        took_s=_number(about.get("seconds")),
        progress=min(steps / total, 1.0) if total else None,
    )


def _jobs_of(config: Mapping[str, Any]) -> str:
    """Return where the jobs of a training come from: the task's workload, or its scenes'."""
    scenes = config.get("scenes", [])
    if scenes:
        return _short(", ".join(str(one.get("name") or one["workload"]) for one in scenes))
    return str(config.get("task", {}).get("workload", ""))


def _tuned(card: Card, path: Path) -> Card:
    """Read a sweep of `tune`."""
    trials = len(_inside(path / "trials"))
    is_done = (path / "best.toml").is_file()
    return replace(
        card,
        kind="tune",
        status="finished" if is_done else "running" if _is_recent(path) else "interrupted",
        headline=f"{trials} trials",
        started_s=_modified_s(path / "config.toml"),
    )


def _studied(card: Card, path: Path) -> Card:
    """Read an experiment: runs of a document."""
    document = _toml(path / "experiment.toml")
    is_held = _is_held(path / ".lock")
    is_done = (path / "results.parquet").is_file()
    lost = len(_json(path / "failures.json")) if (path / "failures.json").is_file() else 0
    schedulers = len(document["schedulers"])
    words = f"{schedulers} schedulers, {document.get('seeds', 1)} seeds"
    return replace(
        card,
        kind="experiment",
        status="running" if is_held else "finished" if is_done else "interrupted",
        sentence=f"{lost} runs could not be made." if lost else "",
        headline=words,
        workload=str(document.get("name", "")),
        schedulers=schedulers,
        started_s=_modified_s(path / "experiment.toml"),
    )


def _trainings(card: Card, path: Path) -> Card:
    """Read a study of many trainings."""
    folder = path / "trainings"
    made = sum(one.is_dir() for one in _inside(folder))
    return replace(
        card,
        kind="experiment",
        status="running" if _is_recent(folder) else "finished",
        headline=f"{made} trainings",
        started_s=_modified_s(path / "trainings.toml"),
    )


def _evaluated(card: Card, path: Path) -> Card:
    """Read results of `evaluate`."""
    found = _json(path / "evaluation.json")
    players = len({row.get("player") for row in found["rows"]})
    return replace(
        card,
        kind="evaluate",
        headline=f"{players} players, {found['episodes']} episodes",
        workload=_short(found.get("task", "")),
        started_s=_unix_s(found.get("started")),
    )


def _live(card: Card, path: Path) -> Card:
    """Read the folder of a live run."""
    found = _json(path / "live.json")
    status = live_state(path, {"state": found["state"], "began_unix_s": found.get("began_unix_s")})
    begun, ended = _number(found.get("began_unix_s")), _number(found.get("ended_unix_s"))
    gpus = sum(int(node.get("gpus", 0)) for node in found.get("nodes", ()))
    return replace(
        card,
        kind="live",
        status=status,
        scheduler=str(found.get("scheduler", "")),
        workload=str(found.get("workload", "")),
        headline=f"{found.get('kind', 'live')}, {found.get('mode', '')}, {gpus} GPUs",
        started_s=begun,
        took_s=ended - begun if begun is not None and ended is not None else None,
    )


def _unfinished(card: Card, path: Path) -> Card:
    """Describe a run that is being written under a temporary name."""
    name, _, pid = path.name.lstrip(".").rpartition(".partial-")
    alive = pid.isdigit() and Path(f"/proc/{pid}").exists()
    plan: Record = {}
    if (path / "config.toml").is_file():
        try:
            plan = _toml(path / "config.toml")
        except _DamagedError:
            plan = {}
    return replace(
        card,
        kind=str(plan.get("command") or _kind_by_name(Path(name))),
        status="running" if alive else "interrupted",
        headline=f"{name} is being made" if alive else f"{name} was left half written",
        workload=_source(plan) if plan else "",
        cluster=_last_part(str(plan.get("cluster", ""))),
        schedulers=len(plan.get("schedulers", ())),
        started_s=_modified_s(path),
    )


_READERS: dict[str, Callable[[Card, Path], Card]] = {
    "live.json": _live,
    "experiment.toml": _studied,
    "trainings.toml": _trainings,
    "evaluation.json": _evaluated,
    "run.json": _trained,
    "study.db": _tuned,
    "meta.json": _simulated,
    "config.toml": _simulated,
    "summary.json": _simulated,
}
"""A file that tells the kind of a run → what reads it; the first that is there decides."""


def _kind_by_name(path: Path) -> str:
    kinds = ("simulate", "compare", "whatif", "eta", "train", "tune", "experiment", "evaluate")
    return next((kind for kind in kinds if path.name.startswith(kind)), "unknown")


def _last_part(text: str) -> str:
    """Return the name of a file; what is no file, such as `8x A100:8`, as it is."""
    return Path(text).name if text.endswith(".toml") else text


def _source(plan: Record) -> str:
    question = plan.get("eta") or {}
    return Path(str(question.get("snapshot") or plan["workload"])).name


def _json(path: Path) -> Any:
    return _parsed(path, json.loads)


def _toml(path: Path) -> Record:
    return _parsed(path, tomllib.loads)  # type: ignore[no-any-return]


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(read_plain(path))
    except FileNotFoundError:
        raise _DamagedError(f"{path.name} is missing") from None
    except (OSError, ValueError, RecursionError):
        raise _DamagedError(f"{path.name} cannot be read") from None


def _inside(folder: Path) -> list[Path]:
    """Return what is in a folder of a run; nothing if it is a link."""
    return list(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _last_line(path: Path) -> Record:
    """Return the last whole record of a file of JSON lines; empty if there is none."""
    try:
        with open_plain(path) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL, 0))
            lines = file.read().split(b"\n")[:-1]
        found = json.loads(lines[-1]) if lines else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_held(lock: Path) -> bool:
    """Whether a process holds a folder's lock, without touching the lock."""
    try:
        status = lock.stat()
        held = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return False
    return any(line.split()[5].endswith(f":{status.st_ino}") for line in held.splitlines() if line)


def _is_recent(path: Path) -> bool:
    """Whether somebody wrote here in the last two minutes."""
    import time

    modified = _modified_s(path)
    return modified is not None and time.time() - modified < 120.0


def _modified_s(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _unix_s(text: object) -> float | None:
    return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _mean(values: Iterable[object]) -> float | None:
    known = [float(value) for value in values if isinstance(value, int | float)]
    return sum(known) / len(known) if known else None


def _short(value: object) -> str:
    text = (
        value
        if isinstance(value, str)
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else ""
    )
    return text if len(text) <= 60 else text[:59] + "…"
