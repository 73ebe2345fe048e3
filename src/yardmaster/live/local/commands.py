"""Workloads of real commands, from a TOML or a CSV file.

```toml
name = "evening"                 # optional
[defaults]                       # optional: for jobs that do not say
estimate_s = 60

[[job]]
id = "train-a"                   # becomes a folder's name: letters, digits, . _ -
command = "python train.py -v"   # a text goes to the shell, a list is run as it is
gpus = 1
submit_s = 0                     # seconds after the begin
estimate_s = 120                 # believed run time
timeout_s = 600                  # stopped after so long; retries follow
retries = 1
priority = 0
```

A CSV has the same columns, one job a row. Further columns: `user`, `tenant`, `kind`, `deadline_s`,
`folder` (where it runs, from the file's own folder on) and, in TOML, `environment` (a table).
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from yardmaster.errors import InvalidWorkloadError
from yardmaster.names import did_you_mean

BELIEVED_S = 3600.0
"""What is believed of a job that says neither an estimate nor a time-out, seconds."""
LARGEST_S = 1e9
MOST_JOBS = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_NUMBERS = ("submit_s", "estimate_s", "timeout_s", "priority", "deadline_s")
_WHOLE = ("gpus", "retries")
_TEXTS = ("id", "user", "tenant", "kind", "folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One job: a command, and what it needs."""

    id: str
    command: tuple[str, ...]
    """Arguments; a text of the file became `/bin/sh -c TEXT`."""
    gpus: int = 1
    submit_s: float = 0.0
    estimate_s: float = math.nan
    timeout_s: float = math.inf
    retries: int = 0
    priority: float = 0.0
    deadline_s: float = math.nan
    user: str = ""
    tenant: str = ""
    kind: str = ""
    folder: str = "."
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def believed_s(self) -> float:
        """Run time that is believed: the estimate, else the time-out, else an hour."""
        if not math.isnan(self.estimate_s):
            return self.estimate_s
        return self.timeout_s if math.isfinite(self.timeout_s) else BELIEVED_S

    def record(self) -> dict[str, Any]:
        """Return it as plain values; what is not said is null."""
        values = asdict(self) | {"environment": dict(self.environment)}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }


@dataclass(frozen=True, slots=True)
class Commands:
    """A workload of real commands, by submit time."""

    name: str
    jobs: tuple[Command, ...]
    source: str = field(default="")

    def __len__(self) -> int:
        return len(self.jobs)


def read_commands(path: Path) -> Commands:
    """Read a workload file.

    Raises:
        InvalidWorkloadError: with the place of the first mistakes.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidWorkloadError(f"Cannot read {path}: {error}.") from None
    if path.suffix.lower() == ".csv":
        rows: Sequence[Mapping[str, Any]] = _csv_rows(path, text)
        return commands_of(rows, name=path.stem, source=path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidWorkloadError(f"{path}: {error}.") from None
    for key in document:
        if key not in {"name", "defaults", "job"}:
            known = ("name", "defaults", "job")
            raise InvalidWorkloadError(f"{path}: unknown entry {key!r}.{did_you_mean(key, known)}")
    rows, defaults = document.get("job", []), document.get("defaults", {})
    if not isinstance(rows, list) or not isinstance(defaults, dict):
        raise InvalidWorkloadError(f"{path}: write jobs as [[job]] and defaults as [defaults].")
    joined = [defaults | row if isinstance(row, dict) else row for row in rows]
    return commands_of(joined, name=str(document.get("name", path.stem)), source=path)


def _csv_rows(path: Path, text: str) -> list[dict[str, str]]:
    rows = []
    for number, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        if None in row:
            raise InvalidWorkloadError(f"{path}: line {number} has more cells than the header.")
        rows.append({key: value for key, value in row.items() if value not in {None, ""}})
    return rows


def commands_of(
    rows: Sequence[Mapping[str, Any]], *, name: str, source: Path | None = None
) -> Commands:
    """Check rows of plain values and return the workload.

    Raises:
        InvalidWorkloadError: with the place of the first mistakes.
    """
    where = str(source) if source is not None else name
    if not rows:
        raise InvalidWorkloadError(f"{where}: there are no jobs in it.")
    if len(rows) > MOST_JOBS:
        raise InvalidWorkloadError(f"{where}: more than {MOST_JOBS:,} jobs.")
    jobs, mistakes, seen = [], [], set()
    for number, row in enumerate(rows):
        try:
            job = _command(row, number)
        except ValueError as error:
            mistakes.append(f"job {number}: {error}")
            continue
        if job.id in seen:
            mistakes.append(f"job {number}: a second job is called {job.id!r}")
        seen.add(job.id)
        folder = (source.parent if source is not None else Path()) / job.folder
        jobs.append(replace(job, folder=str(folder.resolve())))
    if mistakes:
        listed = "\n".join(f"  - {mistake}" for mistake in mistakes[:10])
        raise InvalidWorkloadError(f"{where}: {len(mistakes)} mistakes\n{listed}")
    jobs.sort(key=lambda job: job.submit_s)
    return Commands(name, tuple(jobs), where)


def _command(row: Mapping[str, Any], number: int) -> Command:
    """Check one row; a ValueError says what is wrong."""
    if not isinstance(row, Mapping):
        raise ValueError("it is not a table")  # noqa: TRY004
    known = [item.name for item in fields(Command)]
    for key in row:
        if key not in known:
            raise ValueError(f"unknown column {key!r}.{did_you_mean(str(key), known)}")
    values: dict[str, Any] = {"id": f"job-{number:04d}", "command": _arguments(row.get("command"))}
    for key in _TEXTS:
        if key in row:
            values[key] = str(row[key])
            if "\0" in values[key]:
                raise ValueError(f"{key} holds a character of number 0")
    for key in _NUMBERS:
        if key in row:
            values[key] = _number(key, row[key])
    for key in _WHOLE:
        if key in row:
            values[key] = _whole(key, row[key])
    environment = row.get("environment", {})
    if not isinstance(environment, Mapping):
        raise ValueError("environment must be a table of texts")  # noqa: TRY004
    values["environment"] = tuple((str(key), str(value)) for key, value in environment.items())
    for name, value in values["environment"]:
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"environment: no process can be given {name!r}")
    job = Command(**values)
    if not _NAME.fullmatch(job.id):
        raise ValueError(f"id {job.id!r}: use letters, digits, . _ - and at most 128 of them")
    return job


def _arguments(command: object) -> tuple[str, ...]:
    if isinstance(command, str) and command.strip():
        arguments: tuple[str, ...] = ("/bin/sh", "-c", command)
    elif isinstance(command, list) and command and all(isinstance(part, str) for part in command):
        arguments = tuple(command)
    else:
        raise ValueError("command must be a text, or a list of texts")
    if any("\0" in part for part in arguments):
        raise ValueError("command holds a character of number 0, which no program can be given")
    return arguments


def _number(key: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{key} is {value!r}, not a number") from None
    smallest = -LARGEST_S if key == "priority" else 0.0
    if not smallest <= number <= LARGEST_S or (key in {"estimate_s", "timeout_s"} and number == 0):
        raise ValueError(f"{key} is {number:g}, out of bounds")
    return number


def _whole(key: str, value: object) -> int:
    number = _number(key, value)
    if number != int(number) or (key == "gpus" and number < 1):
        raise ValueError(
            f"{key} is {value!r}, not a whole number{' of at least 1' * (key == 'gpus')}"
        )
    return int(number)
