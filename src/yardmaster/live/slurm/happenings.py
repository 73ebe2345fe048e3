"""What happened to jobs between two readings: came, started, were requeued, ended.

A job that is gone from the queue has ended; when exactly, and whether it had started at all, the
accounts know. They are asked once per tick, and only about jobs that are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yardmaster.live.slurm.commands import SEPARATOR, Slurm, SlurmError
from yardmaster.live.slurm.observing import Observation

ACCOUNT_FIELDS = "JobIDRaw,State,Submit,Start,End,ExitCode,NNodes,NodeList"
MOST_AT_ONCE = 500
SETTLES_WITHIN_S = 60.0
"""The accounts hear of an end a little after the queue; without them it ended when seen."""
ASKED = ("gpus", "submit_s", "estimate_s")


class Happenings:
    """Compares each reading with the last one."""

    def __init__(self, slurm: Slurm, began_unix_s: float) -> None:
        """Begin with nothing known; moments are told in seconds since `began_unix_s`."""
        self._slurm, self._began = slurm, began_unix_s
        self._waiting: dict[str, dict[str, Any]] = {}
        self._running: dict[str, dict[str, Any]] = {}
        self._unsettled: dict[str, tuple[dict[str, Any], float]] = {}
        """Jobs that are gone, and when that was seen; the accounts do not know of their end yet."""

    def recall(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take up again what a log knows of jobs that had not ended when it broke off."""
        for line in lines:
            if line["what"] != "job":
                continue
            job, event = line["job"], line["event"]
            about = {name: line[name] for name in (*ASKED, "start_s", "node") if name in line}
            if event in {"submitted", "requeued"}:
                self._waiting[job] = about
            else:
                self._waiting.pop(job, None)
            if event != "submitted":
                self._running.pop(job, None)
            if event == "started":
                self._running[job] = about

    def since_last(self, observation: Observation) -> list[dict[str, Any]]:
        """Return what happened since the last reading, as `job` lines of the audit log."""
        waiting, running = self._sorted(observation)
        lines = [
            {"job": job, "event": "submitted", **about}
            for job, about in waiting.items()
            if job not in self._waiting and job not in self._running
        ]
        lines += [
            {"job": job, "event": "requeued", **about}
            for job, about in waiting.items()
            if job in self._running
        ]
        for job, about in running.items():
            if job in self._running:
                continue
            if job not in self._waiting:
                lines.append({"job": job, "event": "submitted", **_asked(about)})
            lines.append({"job": job, "event": "started", **about})
        for job in (*self._waiting, *self._running):
            if job not in waiting and job not in running:
                about = self._running.get(job) or self._waiting[job]
                self._unsettled[job] = (about, observation.state.time_s)
        lines += self._settled(observation.state.time_s)
        self._waiting, self._running = waiting, running
        return lines

    def _sorted(
        self, observation: Observation
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        state = observation.state
        jobs, names = state.jobs, state.node_names
        places: dict[int, list[str]] = {}
        for row, node, _ in state.holdings.tolist():
            places.setdefault(row, []).append(names[node])
        waits = np.isnan(state.since_s).tolist()
        submit_s = np.round(jobs.submit_s - self._began, 3).tolist()
        begun_s = np.round(state.since_s - self._began, 3).tolist()
        waiting: dict[str, dict[str, Any]] = {}
        running: dict[str, dict[str, Any]] = {}
        columns = zip(jobs.id.tolist(), jobs.gpus.tolist(), submit_s, jobs.duration_s.tolist(),
                      waits, strict=True)  # fmt: skip
        for row, (job, gpus, submitted_s, believed_s, wait) in enumerate(columns):
            about = {"gpus": gpus, "submit_s": submitted_s, "estimate_s": believed_s}
            if wait:
                waiting[job] = about
            else:
                about["start_s"] = begun_s[row]
                about["node"] = ",".join(places.get(row, ()))
                running[job] = about
        return waiting, running

    def _settled(self, now_s: float) -> Iterator[dict[str, Any]]:
        """Yield the ends of jobs that the accounts have heard of, or have not for too long."""
        jobs = list(self._unsettled)[:MOST_AT_ONCE]
        known = self._accounts(jobs) if jobs else {}
        for job in jobs:
            about, gone_s = self._unsettled[job]
            account = known.get(job, {})
            if "end_s" not in account and now_s - gone_s < SETTLES_WITHIN_S:
                continue
            del self._unsettled[job]
            end_s = round(gone_s - self._began, 3)
            yield {"job": job, "event": "ended", **about, "end_s": end_s, **account}

    def _accounts(self, jobs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what the accounts say of jobs; nothing if they cannot be asked."""
        try:
            text = self._slurm.read(
                "sacct", "-n", "-X", "-P", f"--delimiter={SEPARATOR}", "-o", ACCOUNT_FIELDS,
                "-j", ",".join(jobs),
            )  # fmt: skip
        except SlurmError:
            return {}
        found = {}
        for line in text.splitlines():
            cells = line.split(SEPARATOR)
            if len(cells) < 8:
                continue
            about: dict[str, Any] = {"detail": cells[1].split(" ")[0]}
            for name, cell in (("start_s", cells[3]), ("end_s", cells[4])):
                if cell.isdecimal():
                    about[name] = round(int(cell) - self._began, 3)
            code = cells[5].partition(":")[0]
            if code.isdecimal():
                about["exit_code"] = int(code)
            found[cells[0]] = about
        return found


def _asked(about: dict[str, Any]) -> dict[str, Any]:
    return {name: about[name] for name in ASKED}
