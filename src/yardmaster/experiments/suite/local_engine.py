"""Processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Hashable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import cast

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.batch import Batch, Kit, Outcome, run_batch
from yardmaster.experiments.worker_process import begin_worker

PATIENCE_S = 0.5
"""How long to wait for an outcome before looking whether somebody wants to stop."""


class LocalEngine:
    """A pool of processes, started again when one of them is killed."""

    def __init__(self, kit: Kit, workers: int) -> None:
        self._kit = kit
        self._workers = workers
        self._pool = self._started()

    def room(self) -> int:
        """Return two batches a process: one to work on, one to go on with."""
        return 2 * self._workers

    def submit(self, batch: Batch) -> Hashable:
        """Begin a batch."""
        try:
            return self._pool.submit(run_batch, self._kit, batch)
        except BrokenProcessPool:
            self._start_again()
            return self._pool.submit(run_batch, self._kit, batch)

    def finished(self, tickets: Iterable[Hashable]) -> dict[Hashable, Outcome | None]:
        """Wait a moment, and return what came of some batches."""
        futures = [cast("Future[Outcome]", ticket) for ticket in tickets]
        done, _ = wait(futures, timeout=PATIENCE_S, return_when=FIRST_COMPLETED)
        found: dict[Hashable, Outcome | None] = {}
        for future in done:
            try:
                found[future] = future.result()
            except BrokenProcessPool:
                found[future] = None
        return found

    def close(self, *, at_once: bool = False) -> None:
        """End the processes."""
        if at_once:
            # There is no other way to end those that are busy.
            for process in list((getattr(self._pool, "_processes", None) or {}).values()):
                process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start_again(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._started()
        try:
            self._pool.submit(os.getpid).result()
        except BrokenProcessPool:
            raise YardmasterError(
                "Worker processes die before they do anything. In a script of your own, call the"
                " experiment under `if __name__ == '__main__':`."
            ) from None

    def _started(self) -> ProcessPoolExecutor:
        # Fresh processes: a fork would copy threads' locks and whatever the caller had open.
        return ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), initializer=begin_worker
        )
