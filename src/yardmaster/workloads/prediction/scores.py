"""How good predictions are, against what came true.

Errors are factors, so they are measured in doublings: log2(predicted / true) is +1 for twice and −1
for half the run time. Jobs whose true run time is unknown (censored) are not scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.model.workload import BoolArray, Workload
from yardmaster.workloads.prediction.history import Prediction
from yardmaster.workloads.prediction.past import LEAST_S, is_censored
from yardmaster.workloads.ranks import rank_correlation

WARM_SHARE = 0.5
"""This share of the jobs, the last ones, is also scored alone: there is a past for them."""


@dataclass(frozen=True, slots=True)
class Score:
    """How predictions came true; NaN where there is nothing to score.

    Attributes:
        jobs: jobs scored.
        median_error: median of |log2(predicted / true)|, doublings.
        within_2: share predicted within a factor of two.
        bias: mean of log2(predicted / true), doublings; negative is too short.
        rank_correlation: Spearman's, of predicted and true: 1 if shortest first is right.
        underestimated: share predicted shorter than true.
        cold: share predicted without what the method is meant to rest on.
    """

    jobs: int
    median_error: float
    within_2: float
    bias: float
    rank_correlation: float
    underestimated: float
    cold: float


def score(workload: Workload, prediction: Prediction, part: BoolArray | None = None) -> Score:
    """Score the predictions of all jobs, or of those in `part` (a mask)."""
    scored = ~is_censored(workload)
    if part is not None:
        scored &= part
    if not scored.any():
        nothing = float("nan")
        return Score(0, nothing, nothing, nothing, nothing, nothing, nothing)
    true_s = np.maximum(workload.duration_s[scored], LEAST_S)
    predicted_s = np.maximum(prediction.run_s[scored], LEAST_S)
    error = np.log2(predicted_s) - np.log2(true_s)
    return Score(
        jobs=int(np.count_nonzero(scored)),
        median_error=float(np.median(np.abs(error))),
        within_2=float(np.mean((predicted_s <= 2 * true_s) & (true_s <= 2 * predicted_s))),
        bias=float(np.mean(error)),
        rank_correlation=rank_correlation(predicted_s, true_s),
        underestimated=float(np.mean(predicted_s < true_s)),
        cold=float(np.mean(prediction.is_cold[scored])),
    )


def after_warm_up(workload: Workload) -> BoolArray:
    """Return the mask of the last jobs, for which there is a past to learn from."""
    first = len(workload) - int(np.ceil(WARM_SHARE * len(workload)))
    return np.arange(len(workload)) >= first
