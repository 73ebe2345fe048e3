"""What an order may see of the jobs: the columns its information class entitles it to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from yardmaster.errors import EntitlementError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Labels, Workload
from yardmaster.names import did_you_mean

Number = TypeVar("Number", np.float64, np.int64)

HOUR_S = 3600.0
_ROUNDING = 1e-9


class Information(StrEnum):
    """What a scheduler knows of run times before jobs have run."""

    CLAIRVOYANT = "clairvoyant"
    """Reads the true durations: an upper bound on what is possible, not a policy to deploy."""
    ESTIMATE_BASED = "estimate-based"
    """Reads the estimates that came with the jobs."""
    BLIND = "blind"
    """Reads neither."""


class RunTimes(StrEnum):
    """Where a scheduler that reads run times takes them from."""

    TRUE = "true"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True, eq=False)
class JobsView:
    """The jobs as an order sees them: all of them, or the waiting ones, one entry each.

    Run times are `run_s`, true or estimated as the scheduler was told, and only for orders that
    declare `reads_run_time`; nothing else gives them away.
    """

    submit_s: FloatArray
    gpus: IntArray
    priority: FloatArray
    """Larger is more urgent."""
    deadline_s: FloatArray
    """Second on the workload's clock; NaN where a job has none."""
    user: Labels
    tenant: Labels
    kind: Labels
    cluster_gpus: int
    price_per_kwh: tuple[float, ...]
    """Price of electricity in each hour of the day; empty or one number if it never changes."""
    _types: Labels
    _frugal_w: FloatArray
    """Watts above idle of the most frugal GPU type that each set of types allows."""
    _run_s: FloatArray | None
    _order: str

    @property
    def run_s(self) -> FloatArray:
        """Run time as far as the scheduler knows it, seconds."""
        if self._run_s is None:
            raise EntitlementError(
                f"The order {self._order!r} reads run_s but is declared blind;"
                " register it with reads_run_time=True."
            )
        return self._run_s

    @property
    def extra_w(self) -> FloatArray:
        """Watts the job adds while it runs, on the most frugal GPU type it may use."""
        per_gpu = self._frugal_w[self._types.codes.astype(np.int64) + 1]
        return np.asarray(per_gpu * self.gpus, dtype=np.float64)

    def cheapest_start_s(self, longest_wait_s: float) -> FloatArray:
        """Return the second at which each job would run at least cost, the first of several.

        Nobody waits longer than `longest_wait_s`, nor beyond the last start that meets the
        deadline. Without a price curve, that is the submission.
        """
        prices = np.array(self.price_per_kwh)
        best_s = self.submit_s.copy()
        if len(prices) < 2:
            return best_s
        in_time_s = np.where(np.isnan(self.deadline_s), np.inf, self.deadline_s - self.run_s)
        latest_s = np.maximum(np.minimum(best_s + longest_wait_s, in_time_s), best_s)
        best_cost = _price_between(prices, best_s, best_s + self.run_s)
        for start_s in self._turning_points(latest_s, longest_wait_s):
            cost = _price_between(prices, start_s, start_s + self.run_s)
            # Costs that differ by rounding are equal, and then the earlier start is better.
            is_cheaper = cost < best_cost * (1.0 - _ROUNDING)
            is_as_cheap = cost <= best_cost * (1.0 + _ROUNDING)
            is_better = (start_s <= latest_s) & (is_cheaper | (is_as_cheap & (start_s < best_s)))
            best_s = np.where(is_better, start_s, best_s)
            best_cost = np.where(is_better, cost, best_cost)
        return best_s

    def _turning_points(self, latest_s: FloatArray, longest_wait_s: float) -> Iterator[FloatArray]:
        """Yield starts among which a cheapest is: the last, and what starts or ends on the hour.

        Prices are constant within an hour, so between two such starts the cost is a straight line.
        """
        yield latest_s
        for offset_s in (np.zeros(len(self)), self.run_s):
            first_s = np.ceil((self.submit_s + offset_s) / HOUR_S) * HOUR_S - offset_s
            for hour in range(int(longest_wait_s // HOUR_S) + 1):
                yield np.maximum(first_s + HOUR_S * hour, self.submit_s)

    def __getattr__(self, name: str) -> Any:
        if name in ("duration_s", "estimate_s", "status"):
            raise EntitlementError(
                f"The order {self._order!r} may not read {name}; run times are `run_s`,"
                " for orders registered with reads_run_time=True."
            )
        known = [
            *(each for each in self.__slots__ if not each.startswith("_")), "run_s", "extra_w",
        ]  # fmt: skip
        raise AttributeError(
            f"jobs have no column {name!r}.{did_you_mean(name, known)} They have {', '.join(known)}"
        )

    def __len__(self) -> int:
        return len(self.submit_s)

    def take(self, rows: IntArray) -> JobsView:
        """Return the view restricted to some rows."""
        return JobsView(
            submit_s=self.submit_s[rows],
            gpus=self.gpus[rows],
            priority=self.priority[rows],
            deadline_s=self.deadline_s[rows],
            user=self.user.take(rows),
            tenant=self.tenant.take(rows),
            kind=self.kind.take(rows),
            cluster_gpus=self.cluster_gpus,
            price_per_kwh=self.price_per_kwh,
            _types=self._types.take(rows),
            _frugal_w=self._frugal_w,
            _run_s=None if self._run_s is None else self._run_s[rows],
            _order=self._order,
        )


def view_for(
    order: str, workload: Workload, cluster: Cluster, run_s: FloatArray | None
) -> JobsView:
    """Build the view of all jobs for one order; `run_s` is None for a blind one."""
    return JobsView(
        submit_s=_read_only(workload.submit_s),
        gpus=_read_only(workload.gpus),
        priority=_read_only(workload.priority),
        deadline_s=_read_only(workload.deadline_s),
        user=workload.user,
        tenant=workload.tenant,
        kind=workload.kind,
        cluster_gpus=cluster.gpus,
        price_per_kwh=cluster.site.power.price_per_kwh,
        _types=workload.gpu_types,
        _frugal_w=_frugal_watts(workload, cluster),
        _run_s=None if run_s is None else _read_only(run_s),
        _order=order,
    )


def _price_between(prices: FloatArray, begin_s: FloatArray, end_s: FloatArray) -> FloatArray:
    """Return the price of a steady kilowatt from one second to another, the day repeating."""
    return _price_until(prices, end_s) - _price_until(prices, begin_s)


def _price_until(prices: FloatArray, second: FloatArray) -> FloatArray:
    by_hour = np.concatenate(([0.0], np.cumsum(prices)))
    days, rest_h = np.divmod(second / HOUR_S, len(prices))
    hour = np.minimum(rest_h.astype(np.int64), len(prices) - 1)
    return np.asarray(days * by_hour[-1] + by_hour[hour] + (rest_h - hour) * prices[hour])


def _read_only(column: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the column such that an order cannot change the workload through it."""
    view = column.view()
    view.flags.writeable = False
    return view


def _frugal_watts(workload: Workload, cluster: Cluster) -> FloatArray:
    """Watts above idle of the most frugal allowed type, by label code + 1 (0: any type)."""
    from yardmaster.model.gpus import type_key

    here = {type_key(kind.name): kind.busy_w - kind.idle_w for kind in cluster.gpu_types}
    frugal = [min(here.values())]
    for label in workload.gpu_types.names:
        allowed = [here[key] for key in map(type_key, label.split("|")) if key in here]
        frugal.append(min(allowed, default=frugal[0]))
    return np.asarray(frugal, dtype=np.float64)
