"""Running an experiment: what is not known yet is estimated, made, kept, and put into a table.

Whatever ends it (Ctrl-C, kill −9, a machine that goes away), the folder keeps every batch that was
finished, and the same command goes on from there. The table in the end does not show what happened
on the way.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from yardmaster.engine.compilation import is_cached
from yardmaster.engine.conditions import conditions_of
from yardmaster.engine.replay import Compile
from yardmaster.engine.requests import shapes_of
from yardmaster.errors import YardmasterError
from yardmaster.experiments.compare import COMPILE_ABOVE_JOB_RUNS, Progress
from yardmaster.experiments.suite.batch import Failure, Kit, Outcome, scene_of
from yardmaster.experiments.suite.cells import Cell, batches_of, cells_of
from yardmaster.experiments.suite.document import Suite
from yardmaster.experiments.suite.engines import Engine, carried_out
from yardmaster.experiments.suite.fingerprints import code_fingerprint
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.measuring import MEASURES
from yardmaster.experiments.suite.results import is_fixed, results_table, write_results
from yardmaster.experiments.suite.store import Store, opened
from yardmaster.experiments.training.folder import refuse_dry_overwrite, write_json
from yardmaster.experiments.training.interruption import asked_to_stop
from yardmaster.model.workload import FloatArray
from yardmaster.schedulers.language import order_files
from yardmaster.schedulers.neighbours import neighbours
from yardmaster.schedulers.simulation import simulate

if TYPE_CHECKING:
    import polars as pl

EngineName = Literal["local", "ray"]
Announce = Callable[[str], None]

MOST_SAMPLES = 12
"""Cells timed before the start, to say how long it will take."""
SAMPLED_OF = 8
"""At most one of so many cells is a sample."""
UNUSUAL = 20.0
"""Times the median beyond which a sample says nothing about other runs."""
BATCH_S = 0.3
"""What a batch should take: much more than handing it over, much less than anyone minds losing."""
MOST_IN_BATCH = 64
SOME_JOBS = 8
"""Jobs with which everything that a run needs is compiled."""
BATCHES_A_WORKER = 4
"""At least, so that nobody idles while the last ones run."""


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What came of an experiment."""

    folder: Path
    cells: int
    """Runs of the whole experiment."""
    reused: int
    """Runs that the folder held already."""
    made: int
    """Runs made now."""
    failures: tuple[Failure, ...]
    seconds: float
    is_complete: bool
    """Whether every run was tried: false if somebody asked to stop."""
    estimate_s: float
    """How long it was expected to take; 0 if there was nothing to do."""


def run_suite(
    suite: Suite,
    folder: Path,
    *,
    source: str | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
    overwrite: bool = False,
    only_estimate: bool = False,
    progress: Progress | None = None,
    announce: Announce | None = None,
    described: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> SuiteResult:
    """Make every run of an experiment that its folder does not hold yet, and write the table.

    Args:
        suite: the experiment.
        folder: where it lives; one that was interrupted goes on.
        source: the file it was read from, for messages.
        engine: `local` processes or a `ray` cluster.
        workers: processes, or processors of the cluster, to use; by default all there are.
        address: the Ray cluster to use, such as `auto`; by default one is started here.
        overwrite: take the place of another experiment in the folder.
        only_estimate: say what there is to do and how long it will take, and do no more.
        progress: told how many of the runs that are to be made have been.
        announce: told in sentences what happens.
        described: given the table before it is written, to say more about its runs.

    Raises:
        InvalidConfigError: with every scheduler, regime, workload and cluster that cannot be used.
        YardmasterError: if two settings are the same, the folder holds something else, or the
            engine cannot be used.
    """
    if workers is not None and workers < 1:
        raise YardmasterError(f"workers must be at least 1, got {workers}.")
    if address is not None and engine != "ray":
        raise YardmasterError("An address belongs to the engine ray: --engine ray --address auto.")
    refuse_dry_overwrite(overwrite=overwrite, only_estimate=only_estimate)
    suite.refuse_mistakes(source or suite.name)
    cells = cells_of(suite)
    place = SuiteFolder(folder)
    with ExitStack() as stack:
        stack.enter_context(place.held())
        place.take_up(suite, overwrite=overwrite)
        store = stack.enter_context(opened(place.store))
        work = _Work(suite, cells, place, store, announce=announce or _nothing, progress=progress)
        work.described = described or work.described
        is_stopped = stack.enter_context(asked_to_stop(work.announce, work="the batches under way"))
        return work.carry_out(engine, workers, address, is_stopped, only_estimate=only_estimate)


def _nothing(_news: str) -> None:
    """Tell nobody."""


def _as_it_is(table: pl.DataFrame) -> pl.DataFrame:
    return table


class _Work:
    """An experiment under way."""

    def __init__(
        self,
        suite: Suite,
        cells: Sequence[Cell],
        place: SuiteFolder,
        store: Store,
        *,
        announce: Announce,
        progress: Progress | None,
    ) -> None:
        self.begun = time.monotonic()
        self.suite = suite
        self.cells = cells
        self.place = place
        self.store = store
        self.announce = announce
        self.progress = progress
        known = store.keys()
        self.by_key: dict[str, Cell] = {}
        for cell in cells:
            if cell.key not in known:
                self.by_key.setdefault(cell.key, cell)
        self.missing = list(self.by_key.values())
        self.failures: dict[str, Failure] = {}
        self.made = 0
        self.estimate_s = 0.0
        self.described: Callable[[pl.DataFrame], pl.DataFrame] = _as_it_is

    def carry_out(
        self,
        engine: EngineName,
        workers: int | None,
        address: str | None,
        is_stopped: Callable[[], bool],
        *,
        only_estimate: bool,
    ) -> SuiteResult:
        """Estimate, run, write."""
        to_do = len(self.missing)
        count = workers or len(os.sched_getaffinity(0))
        if to_do:
            made_by = self._engine(engine, workers, address)
            try:
                self._make(made_by, count, engine, is_stopped, only_estimate=only_estimate)
            except BaseException:
                made_by.close(at_once=True)
                raise
            made_by.close()
        elif not only_estimate:
            self.announce(f"All {len(self.cells):,} runs are known already; nothing to simulate.")
        is_complete = not self._rest()
        if is_complete:
            self._write(engine, count)
        return SuiteResult(
            folder=self.place.path,
            cells=len(self.cells),
            reused=len(self.cells) - to_do,
            made=self.made,
            failures=self._failed(),
            seconds=time.monotonic() - self.begun,
            is_complete=is_complete,
            estimate_s=self.estimate_s,
        )

    def _failed(self) -> tuple[Failure, ...]:
        """Return what failed, in the order of the cells."""
        return tuple(self.failures[cell.key] for cell in self.missing if cell.key in self.failures)

    def _make(
        self,
        made_by: Engine,
        workers: int,
        engine: str,
        is_stopped: Callable[[], bool],
        *,
        only_estimate: bool,
    ) -> None:
        """Make a few runs, say how long all will take, and make the others."""
        cell_s = self._sampled(made_by, workers, is_stopped)
        rest = self._rest()
        self._tell_estimate(len(rest), cell_s, workers, engine)
        if rest and not only_estimate and not is_stopped():
            most = _batch_size(len(rest), cell_s, workers, len(self.suite.schedulers))
            self._run(made_by, rest, most, is_stopped)

    def _rest(self) -> list[Cell]:
        """Return the cells that were neither made nor have failed."""
        done = self.store.keys() | self.failures.keys()
        return [cell for cell in self.missing if cell.key not in done]

    def _sampled(self, made_by: Engine, workers: int, is_stopped: Callable[[], bool]) -> float:
        """Make a few runs and return what one costs in seconds."""
        # At least two a process, the first of which loads the core; but not the whole experiment.
        count = min(max(2 * workers, MOST_SAMPLES), -(-len(self.missing) // SAMPLED_OF))
        places = np.linspace(0, len(self.missing) - 1, count).astype(np.int64)
        sample = [(self.missing[place],) for place in dict.fromkeys(places.tolist())]
        drawing_s: list[float] = []
        run_s: list[float] = []

        def take(outcome: Outcome) -> None:
            self.take(outcome)
            drawing_s.append(outcome.drawing_s)
            run_s.extend(run.seconds for run in outcome.runs if not math.isnan(run.seconds))

        begun = time.monotonic()
        carried_out(made_by, sample, take=take, is_stopped=is_stopped)
        if not run_s:  # every process was new: an upper bound is all we have
            return (time.monotonic() - begun) / len(sample)
        # What took very much longer than most loaded something that the others will find loaded.
        usual = np.array(run_s)[np.array(run_s) <= UNUSUAL * np.median(run_s)]
        return float(usual.mean() + np.median(drawing_s) / len(self.suite.schedulers))

    def _kit(self) -> Kit:
        """Decide whether the core is compiled: loading it takes seconds, running it much less."""
        compile_core: Compile = "auto"
        with suppress(Exception):  # the cell will fail and say why
            jobs = len(self.missing[0].setting.jobs(self.missing[0].seed))
            if jobs * len(self.missing) > COMPILE_ABOVE_JOB_RUNS:
                compile_core = "always"
        choosing = [name for name in self.suite.schedulers if not is_fixed(name)]
        if choosing or (compile_core == "always" and not (is_cached() and is_cached(is_real=True))):
            fixed = [name for name in self.suite.schedulers if is_fixed(name)]
            self._compile([*choosing, *(fixed[:1] if compile_core == "always" else ())])
        return Kit(code_fingerprint(), compile_core)

    def _compile(self, schedulers: Sequence[str]) -> None:
        """Let machine code be made that processes would otherwise each make, unannounced.

        There is a core for equal GPUs that never fail, and one for everything else: the beginning
        of one run of either kind has all made that is needed.
        """
        seen: set[bool] = set()
        alike: dict[object, Cell] = {}
        for cell in self.missing:
            alike.setdefault((id(cell.setting), cell.perturbation), cell)
        for cell in alike.values():
            if len(seen) == 2:
                return
            with suppress(Exception):  # the cells will fail and say why
                jobs, machines = scene_of(cell)
                is_real = conditions_of(jobs, machines, shapes_of(jobs, machines)) is not None
                if is_real in seen:
                    continue
                seen.add(is_real)
                some_s = float(jobs.submit_s[min(SOME_JOBS, len(jobs) - 1)])
                for name in schedulers:
                    with suppress(Exception):  # one that cannot run must not keep the others back
                        simulate(
                            jobs, machines, name, until_s=some_s, compile_core="always",
                            announce=self.announce,
                        )  # fmt: skip

    def _tell_estimate(self, rest: int, cell_s: float, workers: int, engine: str) -> None:
        self.estimate_s = rest * cell_s / workers
        to_do, known = len(self.missing), len(self.cells) - len(self.missing)
        of_all = f" of {len(self.cells):,} ({known:,} are known already)" if known else ""
        self.announce(
            f"{to_do:,} runs{of_all}: about {duration(self.estimate_s)} on {workers} processors,"
            f" {1000 * cell_s:.1f} ms each, engine {engine}."
        )

    def _engine(self, name: EngineName, workers: int | None, address: str | None) -> Engine:
        kit = self._kit()
        if name == "ray":
            from yardmaster.experiments.suite.ray_engine import RayEngine

            orders = order_files(self.suite.schedulers)
            files = orders | self.suite.files()
            sent = {place: path.read_bytes() for place, path in files.items()}
            beside = {
                place: {name: file.read_bytes() for name, file in neighbours(path).items()}
                for place, path in orders.items()
                if place.endswith(".py")
            }
            return RayEngine(Kit(kit.code, kit.compile_core, sent, beside), workers, address)
        from yardmaster.experiments.suite.local_engine import LocalEngine

        return LocalEngine(kit, workers or len(os.sched_getaffinity(0)))

    def _run(
        self, made_by: Engine, rest: Sequence[Cell], most: int, is_stopped: Callable[[], bool]
    ) -> None:
        """Make all runs that are left."""
        before = self.made + len(self.failures)
        if self.progress is not None:
            self.progress(self.suite.name, 0, len(rest))

        def take(outcome: Outcome) -> None:
            self._take_and_show(outcome, before, len(rest))

        carried_out(made_by, batches_of(rest, most), take=take, is_stopped=is_stopped)

    def take(self, outcome: Outcome) -> None:
        """Keep what came of a batch."""
        self.store.add(MEASURES, outcome.runs)
        self.store.add_failures(outcome.failures)
        self.made += len(outcome.runs)
        for key, reason in outcome.failures:
            self.failures[key] = Failure(self.by_key[key], reason)

    def _take_and_show(self, outcome: Outcome, before: int, total: int) -> None:
        """Keep what came of a batch and say how far we are, samples left out."""
        self.take(outcome)
        if self.progress is not None:
            failed = f", {len(self.failures):,} failed" if self.failures else ""
            done = self.made + len(self.failures) - before
            self.progress(f"{self.suite.name}{failed}", done, total)

    def _write(self, engine: str, workers: int) -> None:
        """Write the table and what belongs to it."""
        known = [cell for cell in self.cells if cell.key not in self.failures]
        table = results_table(known, self.store, self.suite.objectives)
        write_results(self.described(table), self.place.results)
        if self.failures:
            lost = [{"run": str(one.cell), "reason": one.reason} for one in self._failed()]
            write_json(self.place.failures, lost)
        else:
            self.place.failures.unlink(missing_ok=True)
        if self.made or not self.place.timings.is_file():
            write_json(self.place.timings, self._timings(known, engine, workers))

    def _timings(self, known: Sequence[Cell], engine: str, workers: int) -> dict[str, object]:
        """Return what the runs cost, by scheduler, and this session as a whole."""
        seconds = self.store.seconds([cell.key for cell in known])
        names = np.array([cell.scheduler for cell in known])
        return {
            "engine": engine,
            "workers": workers,
            "made": self.made,
            "seconds": time.monotonic() - self.begun,
            "estimate_s": self.estimate_s,
            "mean_run_s": {name: _mean(seconds[names == name]) for name in dict.fromkeys(names)},
        }


def _mean(seconds: FloatArray) -> float:
    """Return the mean of the values that are there; NaN if none is."""
    known = seconds[~np.isnan(seconds)]
    return float(known.mean()) if len(known) else math.nan


def _batch_size(cells: int, cell_s: float, workers: int, schedulers: int) -> int:
    """Return how many cells make a good batch; whole groups that share jobs, if small enough."""
    most = min(
        int(BATCH_S / max(cell_s, 1e-6)), MOST_IN_BATCH, -(-cells // (BATCHES_A_WORKER * workers))
    )
    most = max(most, 1)
    return most - most % schedulers if most > schedulers else most


def duration(seconds: float) -> str:
    """Write a duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
