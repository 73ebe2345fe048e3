"""How Slurm writes durations, states, memory and resources, one cell at a time.

Each function takes a cell that is not blank and raises `ValueError` if it makes no sense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from yardmaster.errors import UnknownNameError
from yardmaster.model.gpus import gpu_type
from yardmaster.workloads.traces.reading.cells import LARGEST_COUNT, LARGEST_SECONDS

NO_LIMIT = ("unlimited", "partition_limit", "infinite", "4294967295", "4294967294")
"""Time limits, in lower case, that say nothing about the job; the numbers are the database's."""

_DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,7}):)?(\d{1,9}):(\d{1,2})(?:\.\d+)?", re.ASCII)
_NUMBER = re.compile(r"\d{1,15}(?:\.0*)?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d+)?)([KMGTP]?)B?", re.ASCII | re.IGNORECASE)
_MIB = {"K": 2.0**-10, "": 1.0, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30}


def count(text: str) -> int:
    """Return a whole number from 0; exports through other tools write 8 as `8.0`."""
    if not _NUMBER.fullmatch(text) or float(text) > LARGEST_COUNT:
        raise ValueError(text)
    return int(float(text))


def amount(text: str) -> float:
    """Return a whole number from 0 that may be large, such as seconds or a priority."""
    if not _NUMBER.fullmatch(text) or float(text) > LARGEST_SECONDS:
        raise ValueError(text)
    return float(text)


def duration_s(text: str) -> float:
    """Return the seconds of `[DD-[HH:]]MM:SS`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def limit_s(text: str) -> float | None:
    """Return a time limit in seconds: `1-00:00:00`, or a number of minutes; None if unlimited."""
    if text.lower() in NO_LIMIT:
        return None
    seconds = duration_s(text) if ":" in text else amount(text) * 60.0
    return seconds or None


# --- states ---------------------------------------------------------------------------------------

WAITING = (
    "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT",
)  # fmt: skip
"""States of jobs that are in the queue, for the first time or again."""

UNFINISHED = (
    "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT",
)  # fmt: skip
"""States of jobs that hold their nodes."""

BASE_STATES = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL",
    "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
"""What the database's numbers mean, from 0."""

INTERRUPTED = (*WAITING, *UNFINISHED, "RESIZING", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL")
"""States of records that a later record of the same job carries on."""

_FLAGS = {0x400: "REQUEUED", 0x800: "REQUEUED", 0x2000: "RESIZING", 0x80000: "REVOKED"}
_WORDS = (*WAITING, *UNFINISHED, *BASE_STATES, "RESIZING", "REVOKED")
_WORD = re.compile(r"[A-Z][A-Z_]+")


def state(text: str) -> str:
    """Return a job's state as one word, such as `CANCELLED` for `CANCELLED by 1000`.

    A `+` stands where a column was too narrow, or follows the state of a job that has several.
    """
    if _NUMBER.fullmatch(text):
        return _numbered_state(int(float(text)))
    word = text.upper().replace(",", " ").split(" ")[0]
    if word.endswith("+"):
        start = word.rstrip("+")
        word = next((known for known in _WORDS if len(start) > 3 and known.startswith(start)), "")
    if not _WORD.fullmatch(word):
        raise ValueError(text)
    return word


def _numbered_state(number: int) -> str:
    for flag, word in _FLAGS.items():
        if number & flag:
            return word
    if number & 0xFF >= len(BASE_STATES):
        raise ValueError(number)
    return BASE_STATES[number & 0xFF]


# --- resources ------------------------------------------------------------------------------------


class Resources(NamedTuple):
    """What a job asked for or got, over all its nodes; None where nothing is said.

    Attributes:
        gpus: whole GPUs.
        types: types of them, in our catalogue's words where it has one.
        shares: whether there are shares of GPUs (shards, MPS), whose size is not said.
        guessed: whether some number was taken for GPUs because its name is unknown.
        cpus: cores.
        memory_mib: host memory.
    """

    gpus: int | None = None
    types: str | None = None
    shares: bool = False
    guessed: bool = False
    cpus: int | None = None
    memory_mib: float | None = None


TRES_NAMES = {
    "1": "cpu", "2": "mem", "3": "energy", "4": "node", "5": "billing", "6": "fs/disk",
    "7": "vmem", "8": "pages",
}  # fmt: skip
"""Numbers that every database gives to resources; those from 1001 differ from site to site."""

_TRES = re.compile(r"([^=,]+)=(\d+(?:\.\d+)?[A-Za-z]*)")
_GPU, _GPU_OF_TYPE = "gres/gpu", "gres/gpu:"
_FIRST_OWN_NUMBER = 1001


def tres(text: str, names: Mapping[str, str] = TRES_NAMES) -> Resources:
    """Read `billing=4,cpu=4,gres/gpu=2,gres/gpu:v100=2,mem=128800M`, or `1=4,2=128800,1001=2`.

    Slurm may write the total of all GPUs, the number of each type, or both; both are the same GPUs.

    Args:
        text: the cell.
        names: the names of numbered resources.
    """
    amounts = dict(_tres_amounts(text, names))
    typed = {
        name.removeprefix(_GPU_OF_TYPE): count(value)
        for name, value in amounts.items()
        if name.startswith(_GPU_OF_TYPE)
    }
    total = count(amounts[_GPU]) if _GPU in amounts else sum(typed.values())
    own = [count(value) for name, value in amounts.items() if name.isdecimal()]
    return Resources(
        gpus=total or _without_the_total(own) or None,
        types=_joined(kind for kind, number in typed.items() if number),
        shares="gres/shard" in amounts or "gres/mps" in amounts,
        guessed=not total and any(own),
        cpus=count(amounts["cpu"]) if "cpu" in amounts else None,
        memory_mib=memory_mib(amounts["mem"]) if "mem" in amounts else None,
    )


def _tres_amounts(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for entry in text.split(","):
        match = _TRES.fullmatch(entry.strip())
        if match is None:
            raise ValueError(text)
        name = names.get(match[1], match[1]).lower()
        if not name.isdecimal() or int(name) >= _FIRST_OWN_NUMBER:
            yield name, match[2]


def _without_the_total(numbers: list[int]) -> int:
    """Return the sum of numbers, one of which may be the sum of the others."""
    total = sum(numbers)
    return max(numbers) if len(numbers) > 1 and 2 * max(numbers) == total else total


_GRES = re.compile(r"[\w./-]+(?:[:=][\w./-]+)*")
_GRES_PREFIX = re.compile(r"^(?:PER_\w+:)?(?:gres[:/])?")
GPU_PLUGIN = "7696487"
"""Slurm's number for the name `gpu`, which some versions left in the database."""


def gres(text: str) -> Resources:
    """Read `gpu:v100:2`, `gpu:2` or `gres:gpu:2(S:0-1)`, several of them joined by commas."""
    gpus: int | None = None
    types: list[str] = []
    shares = False
    for entry in re.sub(r"\([^)]*\)", "", text).split(","):
        if not _GRES.fullmatch(entry.strip()):
            raise ValueError(text)
        words = re.split(r"[:=]", _GRES_PREFIX.sub("", entry.strip()))
        number = count(words.pop()) if len(words) > 1 and words[-1].isdecimal() else 1
        shares = shares or words[0] in ("shard", "mps")
        if words[0] in ("gpu", GPU_PLUGIN):
            gpus = (gpus or 0) + number
            types += words[1:]
    return Resources(gpus=gpus or None, types=_joined(types), shares=shares)


def _joined(types: Iterator[str] | list[str]) -> str | None:
    return "|".join(dict.fromkeys(map(catalogued, types))) or None


def catalogued(name: str) -> str:
    """Return our catalogue's name of a GPU type; types it does not have keep theirs."""
    try:
        return gpu_type(name).name
    except UnknownNameError:
        return name


def memory_mib(text: str) -> float:
    """Return memory such as `4G` or `128800M` in MiB; MiB is also what no unit means."""
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _MIB[match[2].upper()]


def requested_mib(text: str) -> tuple[float, str]:
    """Return requested memory and whom it is for: `n` each node, `c` each core, `` the job."""
    each = text[-1] if text[-1] in "nc" else ""
    return memory_mib(text.removesuffix(each)), each
