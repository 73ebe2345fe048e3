"""The folder of a live run, the same for every kind of system.

```
FOLDER/
  live.json         what this run is (JSON, replaced as a whole)
  audit.jsonl       everything seen, decided and done (append-only, one JSON object a line)
  telemetry.jsonl   measurements of the machine (append-only; `local` only)
  heartbeat.json    the last sign of life (JSON, replaced every tick, at most once a second)
  jobs/NAME/        one folder per job (`local` and `ray`)
```

Times: `time_s` counts from the begin of the run, the same clock for all files; `unix_s` is seconds
since 1970. A line without a newline at the end of a `.jsonl` was cut off by a crash and is no line.

**live.json**: `format` = "yardmaster-live", `version` = 1, `kind` (local | slurm | ray), `mode`
(run | shadow | apply), `scheduler`, `workload` (name or ""), `began_unix_s`, `host`, `pid`,
`nodes` = [{`name`, `gpus` (slots), `gpu_type`, `devices` = [{`uuid`, `name`, `index`}]}], `jobs`
(how many, null if not known beforehand), `state` (running | finished | stopped | failed),
`ended_unix_s` (null while running), `restarts` (how often it was taken up again), `telemetry`
("nvml", or the reason why there is none of GPUs), and `settings` (whatever else was asked for).

**audit.jsonl**: every line has `n` (1, 2, 3 …), `time_s`, `unix_s` and `what`:

- `begin`: `pid`, `restart` (0 the first time).
- `observe`: `tick`, `digest`, `waiting`, `running`, `held`, `free_gpus` (per node), `took_ms`; only
  when the digest is a new one.
- `decide`: `tick`, `digest`, `scheduler`, `chosen`, `waiting` (jobs in the order), `order` (the
  first 50 ids), `scores` (of those; null: not looked at), `why` (id → sentence, of those),
  `starts` = [{`job`, `nodes` = [[node, gpus], …]}], `took_ms`.
- `apply`: `tick`, `operation` (start, stop, factor, requeue, …), `job` (where it concerns one),
  `outcome` (done | failed | skipped), `detail`.
- `job`: `job`, `event` (submitted, started, ended, requeued, retrying, gave up, timed out,
  stopped), `attempt` (0 for submitted), and what is known: `gpus`, `slots`, `submit_s`, `start_s`,
  `end_s`, `exit_code`, `energy_j`, `estimate_s`, `kind`, `found_again` (true if it was running when
  the run was taken up again).
- `skip`: `tick`, `reason` (a tick in which nothing was done, and why).
- `end`: `state`, `finished`, `failed`.

**telemetry.jsonl**: `time_s`, `unix_s`, `cpu_percent`, `load`, `memory_gib` (host, in use) and
`gpus` = [{`index`, `uuid`, `utilisation_percent`, `memory_mib`, `power_w`, `energy_j` (since the
runner began), `temperature_c`}]; a number that the card does not tell is null.

**jobs/NAME/**: `job.json` (`id`, `command`, `gpus`, `submit_s`, `estimate_s`, `timeout_s`,
`retries`, …), and of each attempt k = 1, 2, …: `attempt-k/process.json` (`pid`, `pid_start`,
`boot`, `start_s`, `slots`, `devices`), `attempt-k/begun` (empty: the command may have run),
`attempt-k/exit.json` (`exit_code`, `end_unix_s`), `attempt-k/stdout.log`, `attempt-k/stderr.log`,
and, of one that was ended because the run stopped, `attempt-k/stopped` (`unix_s`, `is_asked`).
On `ray` also `attempt-k/submission.json` (where it was sent, before it is) and
`attempt-k/outcome.json` (`fate`: ended | lost | stopped | never ran); the rest of an attempt's
files lie on its node where that does not see this folder, and only the ends of its logs come back.
Events there also have `node`, and `ended` has `is_lost`.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError

FORMAT = "yardmaster-live"
VERSION = 1
ABOUT, AUDIT, TELEMETRY, HEARTBEAT, JOBS, LOCK = (
    "live.json", "audit.jsonl", "telemetry.jsonl", "heartbeat.json", "jobs", "lock",
)  # fmt: skip


def write_json(path: Path, record: Mapping[str, Any], *, is_durable: bool = True) -> None:
    """Replace a JSON file as a whole: nobody ever reads half of it.

    What is durable is on the disk before it takes the old file's place, so that a power cut leaves
    the one or the other; that costs a few milliseconds.
    """
    with _part_of(path).open("w", encoding="utf-8") as file:
        file.write(json.dumps(record, indent=1, allow_nan=False) + "\n")
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    _part_of(path).replace(path)


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        YardmasterError: if it is none.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise YardmasterError(f"Cannot read {path}: {error}.") from None
    if not isinstance(record, dict):
        raise YardmasterError(f"{path} is not a JSON object.")
    return record


def read_whole(path: Path, *needed: str) -> dict[str, Any] | None:
    """Return a JSON object with these entries; None if it is missing, or a power cut spoilt it."""
    try:
        record = read_json(path)
    except YardmasterError:
        return None
    return record if all(name in record for name in needed) else None


class LiveFolder:
    """The folder of one live run, held by one process at a time."""

    def __init__(self, path: Path) -> None:
        """Make the folder if need be, and hold it.

        Raises:
            YardmasterError: if another process works in it, or it is something else.
        """
        self.path = path
        there = {entry.name for entry in path.iterdir()} if path.exists() else set()
        begun = {LOCK, _part_of(path / ABOUT).name}  # what a crash at the very begin leaves
        if there - begun and ABOUT not in there:
            raise YardmasterError(f"{path} holds something else; name an empty folder.")
        path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise YardmasterError(f"Another process works in {path}.") from None
        self._beat_s = 0.0
        self.about = read_json(path / ABOUT) if (path / ABOUT).exists() else {}

    def begin(
        self,
        kind: str,
        mode: str,
        scheduler: str,
        *,
        nodes: list[dict[str, Any]],
        workload: str = "",
        jobs: int | None = None,
        telemetry: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> int:
        """Say what this run is; return how often it was taken up again, 0 the first time.

        Raises:
            YardmasterError: if the folder is that of another kind of run.
        """
        if self.about and (self.about.get("format"), self.about.get("kind")) != (FORMAT, kind):
            raise YardmasterError(f"{self.path} is not the folder of a live {kind} run.")
        restarts = int(self.about["restarts"]) + 1 if self.about else 0
        self.about = {
            "format": FORMAT, "version": VERSION, "kind": kind, "mode": mode,
            "scheduler": scheduler, "workload": workload,
            "began_unix_s": self.about.get("began_unix_s", time.time()),
            "host": socket.gethostname(), "pid": os.getpid(), "nodes": nodes, "jobs": jobs,
            "state": "running", "ended_unix_s": None, "restarts": restarts,
            "telemetry": telemetry, "settings": dict(settings or {}),
        }  # fmt: skip
        write_json(self.path / ABOUT, self.about)
        return restarts

    def end(self, state: str) -> None:
        """Say how the run ended: finished, stopped or failed."""
        self.about |= {"state": state, "ended_unix_s": time.time()}
        write_json(self.path / ABOUT, self.about)

    def beat(self, **fields: Any) -> None:
        """Give a sign of life, at most once a second."""
        now = time.monotonic()
        if now - self._beat_s >= 1.0:
            self._beat_s = now
            record = {"unix_s": round(time.time(), 3), "pid": os.getpid(), **fields}
            write_json(self.path / HEARTBEAT, record, is_durable=False)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._lock)
