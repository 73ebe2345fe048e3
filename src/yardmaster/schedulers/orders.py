"""Orders: which waiting job comes next.

An order gives every job a key; the lowest goes first, and ties break by submit time, then by row.
Most keys are fixed at submission. The others are written as `offset + rate · age`, so that the
compiled core can evaluate them at any moment.

In the formulas: s submit time, r run time (true or estimated, as the scheduler is told), n GPUs,
w waiting time, p priority, d deadline; seconds throughout. Run times below one second count as one
where a formula divides by them or takes their logarithm.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any, TypeVar

import numpy as np

from yardmaster.engine.orders import OrderKeys
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray
from yardmaster.names import Registry
from yardmaster.schedulers.views import JobsView

KeyFunction = Callable[..., Any]
Function = TypeVar("Function", bound=KeyFunction)


@dataclass(frozen=True, slots=True)
class Order:
    """A named order.

    `function(jobs)` returns keys that stay as they are, as an array or as `OrderKeys`;
    `function(jobs, now)` is asked for the waiting jobs' keys before every scheduling pass.
    """

    name: str
    function: KeyFunction
    reads_run_time: bool
    formula: str
    """The key in one line, lowest first."""
    source: str = ""
    discipline: str = "strict"
    """What the order runs under when the user names no discipline."""

    @property
    def is_asked_every_pass(self) -> bool:
        """Whether the keys come from a Python function before every pass."""
        return _arguments(self.function) > 1

    def keys(self, jobs: JobsView) -> OrderKeys:
        """Return what the engine needs to keep this order over all jobs.

        Raises:
            YardmasterError: if the order fails, or gives keys that cannot be compared.
        """
        if self.is_asked_every_pass:
            return OrderKeys.called(
                len(jobs),
                lambda rows, now: self._checked(self._asked(jobs.take(rows), now), len(rows)),
            )
        keys = self._asked(jobs)
        if not isinstance(keys, OrderKeys):
            return OrderKeys.fixed(self._checked(keys, len(jobs)))
        for column in (keys.offset, keys.rate, keys.since, keys.group):
            if column is not None:
                self._checked(column, len(jobs))
        return keys

    def _asked(self, jobs: JobsView, *now: float) -> object:
        """Call the function; a mistake in it becomes an error that names the order."""
        try:
            return self.function(jobs, *now)
        except YardmasterError:
            raise
        except Exception as error:
            raise YardmasterError(
                f"The order {self.name!r} failed: {type(error).__name__}: {error}{_place(error)}"
            ) from error

    def _checked(self, keys: object, jobs: int) -> FloatArray:
        """Refuse keys that cannot be compared, naming the order."""
        try:
            array = np.asarray(keys, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise YardmasterError(f"The order {self.name!r} must return numbers: {error}") from None
        if array.shape != (jobs,):
            raise YardmasterError(
                f"The order {self.name!r} returned an array of shape {array.shape} for {jobs} jobs."
            )
        if np.isnan(array).any():
            raise YardmasterError(f"The order {self.name!r} returned NaN keys.")
        return array


def _place(error: Exception) -> str:
    """Return the line of the user's own file at which something failed; nothing if unknown."""
    steps = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = str(Path(__file__).parents[1])
    file = next((file for file, _ in steps if not file.startswith(own)), None)
    lines = [line for each, line in steps if each == file]
    return f" (line {lines[-1]} of {Path(file).name})" if file is not None else ""


ORDERS: Registry[Order] = Registry("order")


def order(
    name: str,
    *,
    formula: str = "",
    reads_run_time: bool = False,
    source: str = "",
    discipline: str = "strict",
) -> Callable[[Function], Function]:
    """Register a function as an order under `name`, usable wherever an order is named.

    The function takes the jobs (a `JobsView`) and, if it wants to be asked again before every
    scheduling pass, the time now in seconds; it returns one key per job, lowest first.
    """

    def register(function: Function) -> Function:
        if name in ORDERS and _is_built_in(ORDERS[name].function) and not _is_built_in(function):
            raise YardmasterError(f"{name!r} is a built-in order; give yours another name.")
        text = formula or inspect.getdoc(function) or ""
        first_line = text.splitlines()[0] if text else ""
        ORDERS.add(name, Order(name, function, reads_run_time, first_line, source, discipline))
        return function

    return register


@cache
def _arguments(function: KeyFunction) -> int:
    return len(inspect.signature(function).parameters)


def _is_built_in(function: KeyFunction) -> bool:
    return function.__module__ == __name__


def _at_least_one(seconds: FloatArray) -> FloatArray:
    return np.maximum(seconds, 1.0)


@order("fifo", formula="s", source="first in, first out (FCFS)")
def fifo(jobs: JobsView) -> FloatArray:
    """First submitted first."""
    return jobs.submit_s


@order("static-equal", formula="s", source="RLMetaDQN's name for FCFS")
def static_equal(jobs: JobsView) -> FloatArray:
    """All jobs equal: first submitted first."""
    return jobs.submit_s


@order("lifo", formula="−s", source="last come, first served (LCFS)")
def lifo(jobs: JobsView) -> FloatArray:
    """Last submitted first."""
    return -jobs.submit_s


@order("sjf", formula="r", reads_run_time=True, source="shortest job first")
def sjf(jobs: JobsView) -> FloatArray:
    """Shortest run time first."""
    return jobs.run_s


@order(
    "srpt",
    formula="r left (equals sjf unless jobs are stopped: srpt+preemptive)",
    reads_run_time=True,
    source="shortest remaining processing time",
)
def srpt(jobs: JobsView) -> OrderKeys:
    """Shortest remaining run time first."""
    return OrderKeys.remaining(jobs.run_s)


@order("ljf", formula="−r", reads_run_time=True, source="longest job first (LPF)")
def ljf(jobs: JobsView) -> FloatArray:
    """Longest run time first."""
    return -jobs.run_s


@order("smallest-first", formula="n", source="RLScheduler, RLTune")
def smallest_first(jobs: JobsView) -> FloatArray:
    """Fewest GPUs first."""
    return jobs.gpus.astype(np.float64)


@order(
    "largest-shortest",
    formula="−n, then r",
    reads_run_time=True,
    source="largest first, shortest of equals: the best of simple rules for gpu-optimizer",
)
def largest_shortest(jobs: JobsView) -> FloatArray:
    """Most GPUs first; among equals the shortest run time."""
    return np.asarray(-jobs.gpus + jobs.run_s / (jobs.run_s + 1.0))


@order("largest-first", formula="−n", source="RLTune")
def largest_first(jobs: JobsView) -> FloatArray:
    """Most GPUs first."""
    return -jobs.gpus.astype(np.float64)


@order("saf", formula="r·n", reads_run_time=True, source="smallest area first")
def saf(jobs: JobsView) -> FloatArray:
    """Fewest GPU-seconds first."""
    return jobs.run_s * jobs.gpus


@order("laf", formula="−r·n", reads_run_time=True, source="largest area first")
def laf(jobs: JobsView) -> FloatArray:
    """Most GPU-seconds first."""
    return -jobs.run_s * jobs.gpus


@order("sexp", formula="(w + r)/n", reads_run_time=True, source="smallest expansion, RLTune")
def sexp(jobs: JobsView) -> OrderKeys:
    """Smallest response time per GPU first."""
    return OrderKeys.ageing(rate=1.0 / jobs.gpus, since=jobs.submit_s - jobs.run_s)


@order("lexp", formula="−(w + r)/n", reads_run_time=True, source="largest expansion, RLTune")
def lexp(jobs: JobsView) -> OrderKeys:
    """Largest response time per GPU first."""
    return OrderKeys.ageing(rate=-1.0 / jobs.gpus, since=jobs.submit_s - jobs.run_s)


@order("srf", formula="r/n", reads_run_time=True, source="smallest ratio first, RLTune")
def srf(jobs: JobsView) -> FloatArray:
    """Least run time per GPU first."""
    return jobs.run_s / jobs.gpus


@order("lrf", formula="−r/n", reads_run_time=True, source="largest ratio first, RLTune")
def lrf(jobs: JobsView) -> FloatArray:
    """Most run time per GPU first."""
    return -jobs.run_s / jobs.gpus


def _log10_submit(jobs: JobsView) -> FloatArray:
    return np.log10(_at_least_one(jobs.submit_s))


_CARASTAN = "Carastan-Santos and de Camargo, SC 2017"


@order("f1", formula="log10(r)·n + 870·log10(s)", reads_run_time=True, source=_CARASTAN)
def f1(jobs: JobsView) -> FloatArray:
    """Learned from simulations; s is the second on the workload's clock."""
    return np.log10(_at_least_one(jobs.run_s)) * jobs.gpus + 870.0 * _log10_submit(jobs)


@order("f2", formula="√r·n + 25600·log10(s)", reads_run_time=True, source=_CARASTAN)
def f2(jobs: JobsView) -> FloatArray:
    """Learned from simulations; s is the second on the workload's clock."""
    return np.sqrt(jobs.run_s) * jobs.gpus + 25_600.0 * _log10_submit(jobs)


@order("f3", formula="r·n + 6860000·log10(s)", reads_run_time=True, source=_CARASTAN)
def f3(jobs: JobsView) -> FloatArray:
    """Learned from simulations; s is the second on the workload's clock."""
    return jobs.run_s * jobs.gpus + 6_860_000.0 * _log10_submit(jobs)


@order("f4", formula="r·√n + 530000·log10(s)", reads_run_time=True, source=_CARASTAN)
def f4(jobs: JobsView) -> FloatArray:
    """Learned from simulations; s is the second on the workload's clock."""
    return jobs.run_s * np.sqrt(jobs.gpus) + 530_000.0 * _log10_submit(jobs)


@order("wfp3", formula="−(w/r)³·n", reads_run_time=True, source="Tang et al., CLUSTER 2009")
def wfp3(jobs: JobsView) -> OrderKeys:
    """Longest wait relative to run time first, large jobs favoured.

    The cube root of the key has the same order and is linear in the waiting time.
    """
    return OrderKeys.ageing(
        rate=-np.cbrt(jobs.gpus) / _at_least_one(jobs.run_s), since=jobs.submit_s
    )


@order("unicep", formula="−w/(log2(n)·r)", reads_run_time=True, source="UNICEF, Tang et al. 2009")
def unicep(jobs: JobsView) -> OrderKeys:
    """Longest wait relative to run time first, small jobs favoured.

    One GPU would divide by zero: as in RLScheduler, 1e-15 is added to the wait and to n, which puts
    waiting one-GPU jobs before all others.
    """
    rate = -1.0 / (np.log2(jobs.gpus + 1e-15) * _at_least_one(jobs.run_s))
    return OrderKeys.ageing(rate=rate, since=jobs.submit_s, offset=1e-15 * rate)


@order(
    "slurm-multifactor",
    formula="−[1000·min(w/12 h, 1) + 1000·(1 − n/N)], N = GPUs of the cluster",
    source="Slurm's age and job-size factors; age saturates at PriorityMaxAge",
)
def slurm_multifactor(jobs: JobsView) -> OrderKeys:
    """Age and size factors with equal weight; age grows while the job waits and then saturates."""
    max_age_s = 12 * 3600.0
    return OrderKeys.ageing(
        rate=np.full(len(jobs), -1000.0 / max_age_s),
        since=jobs.submit_s,
        offset=-1000.0 * (1.0 - jobs.gpus / jobs.cluster_gpus),
        clip_s=(0.0, max_age_s),
    )


@order("edf", formula="d (jobs without a deadline last)", source="earliest deadline first")
def edf(jobs: JobsView) -> FloatArray:
    """Earliest deadline first; jobs without one come last, first submitted first."""
    return np.where(np.isnan(jobs.deadline_s), np.inf, jobs.deadline_s)


@order("static-priority", formula="−p", source="RLMetaDQN")
def static_priority(jobs: JobsView) -> FloatArray:
    """Highest priority first, then first submitted."""
    return -jobs.priority


@order("dynamic-heuristic", formula="max(d − now, 1)/(p + 1)", source="RLMetaDQN")
def dynamic_heuristic(jobs: JobsView) -> OrderKeys:
    """Least slack per priority first; jobs without a deadline come last.

    Priorities below zero count as zero, so that urgency never turns around.
    """
    has_deadline = ~np.isnan(jobs.deadline_s)
    return OrderKeys.ageing(
        rate=np.where(has_deadline, -1.0 / (np.maximum(jobs.priority, 0.0) + 1.0), 0.0),
        since=np.where(has_deadline, jobs.deadline_s, jobs.submit_s),
        offset=np.where(has_deadline, 0.0, np.inf),
        clip_s=(-np.inf, -1.0),
    )


@order(
    "las",
    formula="seconds it has run (equals fifo unless jobs are stopped: las+preemptive)",
    source="least attained service",
)
def las(jobs: JobsView) -> OrderKeys:
    """Least attained service first; a job that never ran has none."""
    return OrderKeys.attained(len(jobs), weighted=False)


TIRESIAS_LEVELS_GPU_S = (3_250.0, 7_200.0, 18_000.0)
"""GPU-seconds at which a job sinks to the next queue of `las-2d`."""


@order(
    "las-2d",
    formula="queue by GPU-seconds it has run (3250, 7200, 18000), then s; with +preemptive",
    source="two-dimensional, discretised LAS: Tiresias, NSDI 2019",
)
def las_2d(jobs: JobsView) -> OrderKeys:
    """Fewest attained GPU-seconds first, in four queues; first submitted first within each."""
    return OrderKeys.attained(len(jobs), weighted=True, levels_s=TIRESIAS_LEVELS_GPU_S)


@order(
    "fair-share",
    formula="GPU-hours of the tenant so far / its guarantee",
    source="usage over time, as fair-share plugins count it (without decay)",
)
def fair_share(jobs: JobsView) -> OrderKeys:
    """Jobs of the tenant that has had least, by what it is guaranteed, first."""
    return OrderKeys.by_tenant(len(jobs), over_time=True)


@order(
    "drf",
    formula="largest of the tenant's shares of GPUs, cores and memory now",
    source="dominant resource fairness, Ghodsi et al., NSDI 2011",
)
def drf(jobs: JobsView) -> OrderKeys:
    """Jobs of the tenant with the smallest dominant share first."""
    return OrderKeys.by_tenant(len(jobs), over_time=False)


@order(
    "off-peak",
    formula="held back to the cheapest hour within 12 h and its deadline; then first come",
    reads_run_time=True,
    source="price curve of the site ([power] price_per_kwh)",
    discipline="easy",
)
def off_peak(jobs: JobsView) -> OrderKeys:
    """First released first, where every job waits for cheap electricity as long as it may."""
    return OrderKeys.released(jobs.cheapest_start_s(longest_wait_s=12 * 3600.0))


@order(
    "qssf",
    formula="n · mean run time of the user's finished jobs",
    source="quasi-shortest service first, Helios, SC 2021 (rolling part of its predictor)",
)
def qssf(jobs: JobsView) -> OrderKeys:
    """Least predicted GPU time first, predicted on arrival from the user's own past.

    A user without finished jobs is predicted by everybody's mean. Reads no run time of a waiting
    job, so it is blind.
    """
    # Jobs of unknown users share one group of their own.
    codes = jobs.user.codes.astype(np.int64)
    return OrderKeys.history(np.where(codes < 0, len(jobs.user.names), codes))


@order("power-aware", formula="n · watts above idle", source="least added power draw first")
def power_aware(jobs: JobsView) -> FloatArray:
    """Fewest added watts first, on the most frugal GPU type the job may use."""
    return jobs.extra_w


@order(
    "random-feasible",
    formula="drawn anew for every decision",
    source="uniform over the jobs that fit; the floor any policy must beat",
    discipline="skip",
)
def random_feasible(jobs: JobsView) -> OrderKeys:
    """Uniformly random among the jobs that fit now."""
    return OrderKeys.shuffled(len(jobs))
