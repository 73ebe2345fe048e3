"""What Ray runs for us: one reservation of GPUs per attempt, and short looks at a node.

A reservation is a detached actor named by the attempt's submission id and pinned to its node. It
holds the GPUs in Ray's books from before the command starts until the GPUs are *really* free: if
something of the job lives on there, nobody gets them, neither from us nor from Ray.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.local.attempts import EXIT
from yardmaster.live.local.telemetry import Nvml
from yardmaster.live.ray.keeping import BUSY, report_of, tails_of
from yardmaster.live.ray.occupants import identities, occupants
from yardmaster.live.ray.orders import Order, own_version

POLL_S = 0.1
LOOK_AROUND_S = 0.5
TIDYING_S = 0.5
"""How long the keeper may take to end what a job left behind in its session."""
FULL_LOOK_EVERY = 10
"""Every so many looks for an exit code, the processes are looked at as well."""
STARTING_TAKES_S = 60.0
LINGER_S = 10.0
"""How long a reservation waits for somebody to take note, after its GPUs are free."""
_OVER = frozenset({"ended", "refused", "never"})


def hello() -> dict[str, Any]:
    """Return what a node is: its version of Yardmaster, its host, its real GPUs."""
    return {
        "version": own_version(),
        "host": os.uname().nodename,
        "devices": [device.record() for device in Nvml().devices],
    }


class Reservation:
    """The GPUs of one attempt, and the keeper that runs its command."""

    def __init__(self) -> None:
        """Reserve; nothing runs before `start`."""
        self._place: Path | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._gpus: list[str] = []
        self._release: asyncio.Task[None] | None = None

    async def start(self, order: Order, numbers: list[str] | None = None) -> dict[str, Any]:
        """Start the command unless that was done before; return how it stands.

        Raises:
            YardmasterError: if this node runs another version, or the keeper does not come up.
        """
        if order.version != own_version():
            raise YardmasterError(
                f"Node {order.node} has Yardmaster {own_version()}, not {order.version}."
            )
        if self._place is None:  # nothing is awaited in here: a second call finds it done
            self._place = order.place()
            given = _given() if numbers is None else numbers
            self._gpus = identities(given, order.node, Nvml().devices)
            self._keeper = self._begin(order, self._place)
            self._release = asyncio.get_running_loop().create_task(self._let_go_some_day())
        until = time.monotonic() + STARTING_TAKES_S
        while (report := report_of(self._place))["state"] in {"unclaimed", "starting"}:
            if time.monotonic() > until:
                raise YardmasterError(f"The keeper of {order.submission} does not come up.")
            await asyncio.sleep(0.02)
        return report | {"gpus": self._gpus, "is_shared": not self._is_elsewhere(order)}

    def _is_elsewhere(self, order: Order) -> bool:
        return self._place is None or not self._place.is_relative_to(order.run_folder)

    def _begin(self, order: Order, place: Path) -> subprocess.Popen[bytes]:
        place.mkdir(parents=True, exist_ok=True)
        with (place / "keeper.log").open("ab") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "yardmaster.live.ray.keeping"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        message = {"order": order.record(), "gpus": self._gpus, "place": str(place)}
        assert keeper.stdin is not None  # noqa: S101  (it was asked for)
        keeper.stdin.write(json.dumps(message).encode() + b"\n")
        keeper.stdin.flush()
        return keeper

    async def ended(self) -> dict[str, Any]:
        """Wait until the attempt is over; return how, and who is `left` on its GPUs."""
        assert self._place is not None  # noqa: S101  (it was started)
        for look in range(sys.maxsize):
            is_over = (self._place / EXIT).exists() or look % FULL_LOOK_EVERY == 0
            if is_over and (report := report_of(self._place))["state"] in _OVER:
                return report | {"left": await self.freed(TIDYING_S)}
            await asyncio.sleep(POLL_S)
        return {"state": "unknown"}

    async def stop(self) -> None:
        """Ask the command to end."""
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.write(b"stop\n")
            self._keeper.stdin.flush()

    async def freed(self, within_s: float) -> list[str]:
        """Return who is on our GPUs though the attempt is over; nobody: wait no longer."""
        until = time.monotonic() + within_s
        for _ in range(sys.maxsize):  # nobody tells when a process ends that is not ours
            if not (found := occupants(self._gpus)) or time.monotonic() >= until:
                break
            await asyncio.sleep(POLL_S if within_s <= TIDYING_S else LOOK_AROUND_S)
        return found

    async def tails(self) -> dict[str, bytes]:
        """Return the ends of the logs, for where the run's folder is out of this node's sight."""
        return {} if self._place is None else tails_of(self._place)

    async def _let_go_some_day(self) -> None:
        """End ourselves if nobody does: a GPU must not stay reserved because nobody came back."""
        await self.ended()
        await self.freed(math.inf)
        await asyncio.sleep(LINGER_S)
        os._exit(0)


def is_busy(report: dict[str, Any]) -> bool:
    """Whether an attempt was refused as its GPUs are not really free."""
    return bool(report["state"] == "refused" and report["why"] == BUSY)


def _given() -> list[str]:
    import ray

    return [str(number) for number in ray.get_gpu_ids()]
