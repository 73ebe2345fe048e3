"""Live runs: what a scheduler of real machines sees and does, read from its folder as it grows.

Nothing but the folder is read (see `yardmaster.live.folder` for what is in it): the scheduler knows
nothing of who watches.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.plain_files import read_plain
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.serving import PULSE_S, answer, event_stream
from yardmaster.dashboard.signs_of_life import live_state
from yardmaster.dashboard.tails import Record, Tail

MOST_DECISIONS = 40
MOST_JOBS = 120
"""Running jobs, and ended ones, that a page is told of."""
MOST_SAMPLES = 1_200
"""Samples of a telemetry curve that are sent at first."""
MOST_COMPARED = 500
QUEUE_SHOWN = 50
_OPEN = ("running", "waiting")


def routes(desk: Desk) -> list[BaseRoute]:
    """Show a live run, and follow it."""

    def folder(request: Request) -> Path:
        name = request.query_params.get("run", "")
        path = desk.runs.resolve(name)
        if not (path / "live.json").is_file():
            raise Refusal(404, f"{name} is not a live run.")
        return path

    def about(request: Request) -> Response:
        return answer({"about": about_run(folder(request))})

    async def events(request: Request) -> Response:
        return event_stream(desk, request, _changes(folder(request)))

    return [Route("/api/live", about), Route("/api/live/events", events)]


async def _changes(path: Path) -> AsyncIterator[dict[str, Any] | None]:
    watched = Watched(path)
    while True:
        news = await run_in_threadpool(watched.news)
        if news is not None:
            yield news
        await asyncio.sleep(PULSE_S)
        yield None


def about_run(path: Path) -> Record:
    """Return what live.json says, and whether the scheduler gives signs of life."""
    about = _json(path / "live.json")
    kept = (
        "kind", "mode", "scheduler", "workload", "began_unix_s", "ended_unix_s", "host", "pid",
        "nodes", "jobs", "restarts", "telemetry",
    )  # fmt: skip
    return {key: about.get(key) for key in kept} | {"state": live_state(path, about)}


class Watched:
    """A live run that a page looks at: gathers what the journals say."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._audit = Tail(path / "audit.jsonl")
        self._telemetry = Tail(path / "telemetry.jsonl")
        self._about: Record | None = None
        self._jobs: dict[str, Record] = {}
        self._decisions: deque[Record] = deque(maxlen=MOST_DECISIONS)
        self._deeds: deque[Record] = deque(maxlen=MOST_DECISIONS)
        self._queue: Record = {}
        self._seen: Record = {}
        self._wanted_s: dict[str, float] = {}
        self._time_s: float | None = None

    def news(self) -> Record | None:
        """Return what has changed since the last time; None if nothing has."""
        found: Record = {}
        about = about_run(self._path)
        if about != self._about:
            found["about"] = self._about = about
        is_new = False
        while lines := self._audit.read():  # piece by piece: an audit of weeks is long
            is_new = True
            for line in lines:
                self._take(line)
        if is_new:
            found["book"] = self._book()
        samples = self._telemetry.read_all()
        if samples:
            found["telemetry"] = telemetry_columns(samples, MOST_SAMPLES)
        return found or None

    def _take(self, line: Record) -> None:
        """Add one line of the audit to what is known."""
        self._time_s = line.get("time_s", self._time_s)
        match line.get("what"):
            case "observe":
                self._seen = line
            case "decide":
                self._decide(line)
            case "apply":
                self._deeds.append(line)
            case "job":
                self._job(line)
            case "skip" | "end":
                self._deeds.append(line)

    def _decide(self, line: Record) -> None:
        order = [str(job) for job in _list(line.get("order"))[:QUEUE_SHOWN]]
        scores, why = _list(line.get("scores")), _mapping(line.get("why"))
        self._queue = {
            "time_s": line.get("time_s"),
            "waiting": line.get("waiting"),
            "rows": [
                {"job": job, "score": scores[place] if place < len(scores) else None,
                 "why": str(why.get(job, ""))}
                for place, job in enumerate(order)
            ],
        }  # fmt: skip
        starts = [one for one in _list(line.get("starts")) if isinstance(one, dict)]
        for start in starts:
            self._wanted_s.setdefault(str(start.get("job")), float(line.get("time_s") or 0.0))
        if starts:
            self._decisions.append(
                {
                    "time_s": line.get("time_s"),
                    "tick": line.get("tick"),
                    "chosen": line.get("chosen"),
                    "waiting": line.get("waiting"),
                    "took_ms": line.get("took_ms"),
                    "starts": [
                        {"job": str(one.get("job")), "nodes": one.get("nodes"),
                         "why": str(why.get(str(one.get("job")), ""))}
                        for one in starts
                    ],
                }
            )  # fmt: skip

    def _job(self, line: Record) -> None:
        name = str(line.get("job"))
        # The latest come last, whichever were first heard of.
        job = self._jobs.pop(name, {"job": name})
        job |= {key: value for key, value in line.items() if key not in {"what", "unix_s"}}
        event = str(line.get("event"))
        now = {"submitted": "waiting", "requeued": "waiting", "retrying": "waiting"}
        job["state"] = {**now, "started": "running"}.get(event, event)
        if event == "started":
            job.setdefault("first_start_s", line.get("start_s", line.get("time_s")))
        self._jobs[name] = job

    def _book(self) -> Record:
        """Return everything that the audit has told so far, the long lists cut."""
        jobs = list(self._jobs.values())
        running = [job for job in jobs if job.get("state") == "running"]
        is_seen_later = _number(self._seen) > max((_number(job) for job in jobs), default=-1)
        ended = [job for job in jobs if job.get("state") not in _OPEN]
        counts: dict[str, int] = {}
        for job in jobs:
            counts[str(job.get("state"))] = counts.get(str(job.get("state")), 0) + 1
        queued = {row["job"]: self._jobs.get(row["job"], {}) for row in self._queue.get("rows", ())}
        return {
            "time_s": self._time_s,
            "counts": counts,
            "running": running[:MOST_JOBS],
            "running_jobs": len(running),
            "held_gpus": sum(_gpus(job) for job in running),
            "ended": ended[-MOST_JOBS:][::-1],
            "queue": self._queue | {"jobs": queued},
            "seen": self._seen,
            "is_seen_later": is_seen_later,
            "decisions": list(self._decisions)[::-1],
            "deeds": list(self._deeds)[::-1],
            "shadow": self._compared(),
        }

    def _compared(self) -> Record:
        """Return when we would have started jobs and when they really started.

        No average: a job is wanted only while it waits, so that no wanted one ever started earlier
        than we would have had it. Those that did are among the ones nobody wanted.
        """
        real_s = {
            name: job["first_start_s"]
            for name, job in self._jobs.items()
            if job.get("first_start_s") is not None
        }
        unwanted = [name for name in real_s if name not in self._wanted_s]
        shown = [*unwanted[-MOST_COMPARED:], *list(self._wanted_s)[-MOST_COMPARED:]]
        return {
            "wanted": len(self._wanted_s),
            "wanted_started": sum(name in real_s for name in self._wanted_s),
            "unwanted_started": len(unwanted),
            "rows": [
                {"job": name, "wanted_s": self._wanted_s.get(name), "real_s": real_s.get(name)}
                for name in reversed(shown)
            ],
        }


def telemetry_columns(samples: list[Record], most: int) -> Record:
    """Turn samples into columns, thinned to every k-th: time, the host, and each GPU's."""
    every = -(-len(samples) // most)
    kept = samples[::every]
    uuids = dict.fromkeys(
        str(gpu.get("uuid") or gpu.get("index"))
        for sample in kept
        for gpu in _list(sample.get("gpus"))
        if isinstance(gpu, dict)
    )
    by_uuid = [
        {str(gpu.get("uuid") or gpu.get("index")): gpu for gpu in _list(one.get("gpus"))}
        for one in kept
    ]
    return {
        "time_s": [one.get("time_s") for one in kept],
        "host": {
            key: [one.get(key) for one in kept] for key in ("cpu_percent", "load", "memory_gib")
        },
        "gpus": {
            uuid: {
                key: [row.get(uuid, {}).get(key) for row in by_uuid]
                for key in ("index", "utilisation_percent", "memory_mib", "power_w")
            }
            for uuid in uuids
        },
    }


def _gpus(job: Record) -> float:
    gpus = job.get("gpus")
    return gpus if isinstance(gpus, int | float) else 0


def _number(line: Record) -> int:
    """Return the number of a line of the audit; −1 if there is none."""
    number = line.get("n")
    return number if isinstance(number, int) else -1


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: Path) -> Record:
    try:
        found = json.loads(read_plain(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
