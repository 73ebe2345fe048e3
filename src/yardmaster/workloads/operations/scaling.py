"""The same jobs submitted faster or slower."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.arguments import finite_number
from yardmaster.workloads.arrivals import LONGEST_SPAN_S, stretched
from yardmaster.workloads.clock import DAY_S
from yardmaster.workloads.sources import with_load


def scaled_to_load(workload: Workload, *, gpus: int, load: float) -> Workload:
    """Stretch or compress submissions until the jobs offer `load` to `gpus` GPUs.

    Run times stay, and deadlines keep their distance from the submission. The first submission
    stays where it is. Days are stretched with everything else, so the result knows no dates, and
    its rush hours come at other hours; where those matter, thin the workload instead
    (`operations.sampling`). Recorded waits are forgotten: nobody waited so at this load.

    Raises:
        InvalidWorkloadError: if an argument makes no sense, or all jobs are submitted at once.
    """
    return _hypothetical(workload, with_load(workload, gpus=gpus, load=load))


def scaled_by(workload: Workload, factor: float) -> Workload:
    """Submit the same jobs `factor` times as fast: 1.2 is 20 % more load, 0.5 half of it.

    What else happens is as in `scaled_to_load`. Whole seconds stay whole, so the span, and with it
    the load, is exact up to the rounding of the span to a second.

    Raises:
        InvalidWorkloadError: if the factor is not positive, or all jobs are submitted at once.
    """
    factor = finite_number("factor", factor, above=0)
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    if span_s == 0:
        raise InvalidWorkloadError(
            f"{workload.name}: all jobs are submitted at one instant, which nothing can stretch."
        )
    if span_s / factor > LONGEST_SPAN_S:
        years = span_s / factor / (365 * DAY_S)
        raise InvalidWorkloadError(
            f"factor {factor:g} is too small: the jobs would arrive over {years:,.0f} years."
        )
    submit_s = stretched(workload.submit_s, span_s / factor)
    deadline_s = workload.deadline_s + (submit_s - workload.submit_s)
    faster = workload.with_columns(submit_s=submit_s, deadline_s=deadline_s)
    note = f"submissions come {factor:g} times as fast; run times stay"
    return _hypothetical(workload, faster.renamed(workload.name, note))


def _hypothetical(before: Workload, after: Workload) -> Workload:
    """Forget what stretched submissions make untrue: dates and recorded waits."""
    notes = []
    if before.begins:
        notes.append("dates were dropped: a stretched day is no calendar day")
    if not np.isnan(before.recorded_wait_s).all():
        notes.append("recorded waits were dropped: nobody waited so at this load")
        after = after.with_columns(recorded_wait_s=None)
    return replace(after, begins="").renamed(after.name, *notes)
