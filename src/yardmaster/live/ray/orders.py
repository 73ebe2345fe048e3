"""What a node is asked to run, and where on that node it is written down.

One attempt at a job has one submission id, made of the run, the job and the attempt's number. Asked
for twice, it is the same reservation in Ray and the same folder on its node, and a folder can be
claimed once: by the keeper that will run the command, or by whoever closes it for good.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.folder import ABOUT, JOBS, read_json, write_json
from yardmaster.live.local.processes import boot_id, process_of

CLAIM = "claim.json"
PREFIX = "yardmaster"


def own_version() -> str:
    """Return the version of Yardmaster that is installed here; empty if nobody says."""
    try:
        return metadata.version("yardmaster")
    except metadata.PackageNotFoundError:
        return ""


def submission_id(run: str, job: str, attempt: int) -> str:
    """Return the name of one attempt, the same whoever asks and however often."""
    return f"{PREFIX}-{run}-{job}-{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt at a job, to be run on a node.

    Attributes:
        run: id of the live run.
        run_folder: its folder, where the one who ordered sees it.
        began_unix_s: when the run began.
        node_folder: folder for attempts on the node; empty: the run's own where the node sees it,
            else one in the user's cache.
        node: name of the node.
        timeout_s: seconds it may run; None for ever.
        grace_s: seconds between asking it to end and killing it.
        version: version of Yardmaster that ordered it.
    """

    run: str
    run_folder: str
    began_unix_s: float
    node_folder: str
    node: str
    job: str
    attempt: int
    gpus: int
    command: tuple[str, ...]
    folder: str
    environment: tuple[tuple[str, str], ...]
    timeout_s: float | None
    grace_s: float
    version: str

    @property
    def submission(self) -> str:
        """The name of this attempt."""
        return submission_id(self.run, self.job, self.attempt)

    def place(self) -> Path:
        """Return the attempt's folder, as the node on which this is asked sees it."""
        inside = Path(JOBS) / self.job / f"attempt-{self.attempt}"
        if not self.node_folder and self.is_shared():
            return Path(self.run_folder) / inside
        base = self.node_folder or str(Path.home() / ".cache" / "yardmaster" / "ray")
        return Path(base) / self.run / inside

    def is_shared(self) -> bool:
        """Whether this node sees the run's own folder."""
        try:
            about = read_json(Path(self.run_folder) / ABOUT)
        except YardmasterError:
            return False
        return bool(about.get("settings", {}).get("run") == self.run)

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Order:
        """Return the order of a record."""
        return cls(
            **{
                **record,
                "command": tuple(record["command"]),
                "environment": tuple((name, value) for name, value in record["environment"]),
            }
        )


def view() -> str:
    """Return what tells whose process numbers we see: this boot and this container of a machine."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{boot_id()} {space}"


def claim(place: Path, by: str) -> bool:
    """Take an attempt's folder, once and for all; return whether it was still to be had."""
    place.mkdir(parents=True, exist_ok=True)
    me = process_of(os.getpid())
    record = {
        "by": by, "view": view(), "host": os.uname().nodename, "pid": os.getpid(),
        "pid_start": me.start_ticks if me else 0, "boot": boot_id(),
    }  # fmt: skip
    part = place / f".claim-{secrets.token_hex(8)}"
    # Linked when it is whole: nobody ever finds half a claim, and two cannot have it.
    write_json(part, record)
    try:
        os.link(part, place / CLAIM)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True
