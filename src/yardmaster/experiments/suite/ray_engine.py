"""Machines of a Ray cluster (`ray start` on each), or Ray processes on this one.

Every batch is a task that Ray does not repeat by itself: what is lost with a worker or a machine
comes back to `engines.carried_out`, which knows what to do. All machines need the same version of
Yardmaster; each checks that before it works. Files of orders, policies, jobs and clusters travel
with the tasks: machines share nothing but the network.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.ray_connection import connected
from yardmaster.experiments.suite.batch import Batch, Kit, OtherCodeError, Outcome, run_batch

PATIENCE_S = 0.5
COUNT_EVERY_S = 2.0
"""How often to look how many processors the cluster has: machines come and go."""


class RayEngine:
    """Tasks of a Ray cluster."""

    def __init__(self, kit: Kit, workers: int | None, address: str | None) -> None:
        self._ray = _connected(workers, address)
        self._kit = self._ray.put(kit)
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(run_batch)
        self._workers = workers
        self._processors = 1
        self._counted_at = -COUNT_EVERY_S

    def room(self) -> int:
        """Return two batches a processor of the cluster, or as many as were asked for."""
        now = time.monotonic()
        if now - self._counted_at >= COUNT_EVERY_S:
            self._counted_at = now
            self._processors = max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        return 2 * min(self._processors, self._workers or self._processors)

    def submit(self, batch: Batch) -> Hashable:
        """Begin a batch."""
        ticket: Hashable = self._task.remote(self._kit, batch)
        return ticket

    def finished(self, tickets: Iterable[Hashable]) -> dict[Hashable, Outcome | None]:
        """Wait a moment, and return what came of some batches."""
        waiting = list(tickets)
        done, _ = self._ray.wait(waiting, num_returns=1, timeout=PATIENCE_S)
        if done:  # and whoever else is there
            done, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return {ticket: self._outcome(ticket) for ticket in done}

    def _outcome(self, ticket: Hashable) -> Outcome | None:
        """Return what came of a batch; None if worker, machine or outcome were lost."""
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(ticket)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, OtherCodeError):
                raise cause from None
            raise YardmasterError(f"A machine of the cluster failed: {error}") from None
        except errors.RayError:
            return None
        return outcome

    def close(self, *, at_once: bool = False) -> None:
        """Leave the cluster; it goes on without us, unless we started it."""
        del at_once  # tasks of a driver that leaves are ended by Ray
        self._ray.shutdown()


def _connected(workers: int | None, address: str | None) -> Any:
    """Return Ray, connected to a cluster or to processes started on this machine."""
    own = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    return connected(address, needed_by="The engine ray", **own)
