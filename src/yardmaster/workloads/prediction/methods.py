"""The ways to predict run times, by name, and filling a workload's estimates with one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.names import Registry
from yardmaster.workloads.prediction import history
from yardmaster.workloads.prediction.boosted import Progress, boosted, chosen_library
from yardmaster.workloads.prediction.history import Prediction
from yardmaster.workloads.prediction.past import Past, is_censored

MARK = "estimates are predictions"
"""What a note says of a workload whose requested times have been replaced."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to predict.

    Attributes:
        name: what users write.
        about: what is predicted, in a few words.
        predict: predicts every job from what was known at its submission.
        is_cheap: whether it takes about a second for a hundred thousand jobs, not a minute.
    """

    name: str
    about: str
    predict: Callable[[Past, Progress | None], Prediction]
    is_cheap: bool = True


def _without_progress(
    predict: Callable[[Past], Prediction],
) -> Callable[[Past, Progress | None], Prediction]:
    return lambda past, _: predict(past)


METHODS: Registry[Method] = Registry("prediction method")
for _name, _about, _predict in (
    ("user", "the requested time", history.user),
    ("mean", "mean of all jobs that have ended", history.mean),
    ("median", "median of all jobs that have ended", history.median),
    ("last-two", "mean of the user's last two", history.last_two),
    ("history", "median of the last five like jobs, the user's own first", history.history),
):
    METHODS.add(_name, Method(_name, _about, _without_progress(_predict)))
METHODS.add("boosted", Method("boosted", "history, corrected by trees", boosted, is_cheap=False))


def predict(
    workload: Workload,
    method: str = "history",
    *,
    ended_s: FloatArray | None = None,
    keep_existing: bool = False,
    progress: Progress | None = None,
) -> Workload:
    """Return the jobs with estimates predicted at each submission from jobs that had ended by then.

    Args:
        workload: the jobs; their estimates are the requested times, which predictions never exceed.
        method: a name of `METHODS`.
        ended_s: (jobs,) when each job ended, NaN if never; by default as the trace tells
            (`past.trace_ends_s`).
        keep_existing: predict only jobs without an estimate.
        progress: told how far a slow method is.

    Raises:
        UnknownNameError: if there is no such method.
        InvalidWorkloadError: if `ended_s` makes no sense, or the estimates are predictions already.
        YardmasterError: if the method needs a library that is not installed.
    """
    chosen = METHODS[method]
    refuse_predictions(workload)
    past = Past.of(workload, ended_s)
    return filled(past, method, chosen.predict(past, progress), keep_existing=keep_existing)


def refuse_predictions(workload: Workload) -> None:
    """Complain if the estimates are predictions: as requested times they would be taken for caps.

    Raises:
        InvalidWorkloadError: if so.
    """
    if any(MARK in note for note in workload.notes):
        raise InvalidWorkloadError(
            f"{workload.name}: its {MARK} already, and the requested times are gone;"
            " predict from the workload as it was before."
        )


def filled(past: Past, method: str, prediction: Prediction, *, keep_existing: bool) -> Workload:
    """Return the jobs with their predictions as estimates, and notes that say so."""
    jobs = past.workload
    there = ~np.isnan(jobs.estimate_s)
    kept = there & keep_existing
    if kept.all():
        return jobs.renamed(jobs.name, "every job has an estimate: nothing was predicted")
    estimate_s = np.where(kept, jobs.estimate_s, prediction.run_s)
    how = f"{method} with {chosen_library()}" if method == "boosted" else method
    some = "missing " if kept.any() else ""
    made = "made at each submission from jobs that had ended by then"
    notes = [
        f"{some}{MARK} ({how}), {made}; {past.source}",
        f"predictions rest on {shares_in_words(prediction)}",
    ]
    if there.any():
        median_s = float(np.median(jobs.estimate_s[there]))
        fate = "kept" if keep_existing else "predictions never exceed them"
        notes.append(
            f"{there.sum()} of {len(jobs)} jobs had estimates (median {median_s:g} s): {fate}"
        )
    if censored := int(np.count_nonzero(is_censored(jobs))):
        notes.append(f"{censored} censored jobs count as having run as long as is known")
    return jobs.with_columns(estimate_s=estimate_s).renamed(jobs.name, *notes)


def shares_in_words(prediction: Prediction) -> str:
    """Return what predictions rest on, with shares: `user and GPUs 61 %, user 20 %, …`."""
    shares = prediction.shares().items()
    return ", ".join(f"{name} {100 * share:.3g} %" for name, share in shares if share > 0)
