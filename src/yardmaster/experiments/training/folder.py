"""The folder of a training run: what is where, and how it is written so that nothing is lost.

```
config.toml          everything the run was asked to do, resolved
run.json             versions, machine, command, status, warnings, the heuristics' scores
progress.jsonl       one line per update: the learner's scalars, steps, seconds
evaluations.jsonl    one line per evaluation on the validation episodes
curve.csv            both of them, one row per evaluation; curve.png is drawn from it
checkpoints/last.pt  everything needed to go on
checkpoints/best.pt  the network that did best on the validation episodes
policy.npz           the same network, for use in a scheduler's place
tensorboard/         event files, if wanted
```

Unlike the directories of other runs it grows in place: it is read while training goes on, and what
a killed run leaves is where the next one begins.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError

Record = dict[str, Any]


class RunFolder:
    """The paths of a training run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.about = path / "run.json"
        self.progress = path / "progress.jsonl"
        self.evaluations = path / "evaluations.jsonl"
        self.curve = path / "curve.csv"
        self.picture = path / "curve.png"
        self.last = path / "checkpoints" / "last.pt"
        self.best = path / "checkpoints" / "best.pt"
        self.policy = path / "policy.npz"
        self.tensorboard = path / "tensorboard"

    def create(self, *, overwrite: bool = False) -> None:
        """Make the folder.

        Raises:
            YardmasterError: if it is there already and not empty, unless it is the folder of a
                training run that may be replaced; or if it cannot be written.
        """
        try:
            if overwrite and self.is_run():
                shutil.rmtree(self.path)
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                hint = f" --resume {self.path} goes on with it." if self.is_run() else ""
                raise YardmasterError(
                    f"{self.path} already exists; choose another place with --out.{hint}"
                )
            self.last.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise YardmasterError(f"Cannot write to {self.path}: {error.strerror}.") from None

    def is_run(self) -> bool:
        """Whether a training run was begun here."""
        return self.config.is_file() and self.about.is_file()

    def refuse_if_not_run(self) -> None:
        """Complain about a folder that cannot be resumed.

        Raises:
            YardmasterError: if no training run was begun here.
        """
        if not self.is_run():
            missing = "has no config.toml and run.json" if self.path.is_dir() else "does not exist"
            raise YardmasterError(f"{self.path} is not the folder of a training run: it {missing}.")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep a second process from training in the same folder; death lets go of it too.

        Raises:
            YardmasterError: if somebody trains here already.
        """
        with (self.path / ".lock").open("a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise YardmasterError(f"Another process is training in {self.path}.") from None
            yield


def default_path(command: str, learner: str, task: str) -> Path:
    """Return a fresh place under `runs/`, named after the command, the learner and the task."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in f"{command}-{learner}-{task}")
    base = Path("runs") / f"{name}-{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a file so that readers, and a machine that fails, see the old text or the new."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON; what is not finite becomes null."""
    write_whole(path, json.dumps(_finite(value), indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        YardmasterError: if it is missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise YardmasterError(f"Cannot read {path}: {error}.") from None


def add_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record to a file of JSON lines."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(_finite(record), ensure_ascii=False) + "\n")


def read_lines(path: Path) -> list[Record]:
    """Read a file of JSON lines; a last line that a killed run left half written is dropped."""
    if not path.is_file():
        return []
    records: list[Record] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def cut_back(path: Path, updates: int) -> None:
    """Drop the lines that were written after so many updates."""
    kept = [record for record in read_lines(path) if record["updates"] <= updates]
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
    write_whole(path, text)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_dry_overwrite(*, overwrite: bool, only_estimate: bool) -> None:
    """Refuse to take the place of other work only to say how long that would take.

    Raises:
        YardmasterError: if both are asked for.
    """
    if overwrite and only_estimate:
        raise YardmasterError("A dry run changes nothing: leave out --overwrite or --dry-run.")
