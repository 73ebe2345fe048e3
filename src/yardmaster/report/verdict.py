"""What a comparison may claim: which differences are clear, and the finding in plain sentences."""

from __future__ import annotations

from math import isnan

from yardmaster.experiments.comparison import Comparison, ComparisonRow, Estimate
from yardmaster.metrics.catalogue import metric
from yardmaster.report.values import PERCENT, interval, metric_title, number, plain

CLAIRVOYANT = "clairvoyant"


def headline(comparison: Comparison) -> str:
    """Return what the comparison found about its objective, against its baseline.

    A scheduler is called better only where its paired interval excludes zero; a clairvoyant one is
    followed by the best scheduler that could run on a real cluster.
    """
    if not comparison.rows:
        return "Nothing was compared."
    best = comparison.rows[0]
    sentences = [_finding(comparison, best)]
    if best.information == CLAIRVOYANT and not _is_tie(comparison):
        sentences.append(_without_oracle(comparison))
    return " ".join(sentences)


def clearly_better(comparison: Comparison, difference: Estimate) -> bool:
    """Whether a difference's 95 % interval lies wholly on the better side of zero."""
    # Comparisons with NaN are False: without an interval nothing is clear.
    return difference.high < 0 if better_is_lower(comparison) else difference.low > 0


def clearly_worse(comparison: Comparison, difference: Estimate) -> bool:
    """Whether a difference's 95 % interval lies wholly on the worse side of zero."""
    return difference.low > 0 if better_is_lower(comparison) else difference.high < 0


def better_is_lower(comparison: Comparison) -> bool:
    """Whether smaller values of the objective are better."""
    return metric(comparison.objective).better != "higher"


def _finding(comparison: Comparison, best: ComparisonRow) -> str:
    name = plain(best.scheduler)
    if len(comparison.rows) == 1:
        return f"Only {name} was run: there is nothing to compare it with."
    if not best.is_winner:
        return _unclear_finding(comparison, best)
    if best.scheduler == comparison.baseline:
        title = metric_title(comparison.objective)
        return f"The baseline {name} has the best {title}: every other scheduler is worse."
    return f"{name} {_change(comparison, best)}, and is better than every other scheduler."


def _is_tie(comparison: Comparison) -> bool:
    """Whether several schedulers have exactly the same value of the objective."""
    values = {row.metrics[comparison.objective].mean for row in comparison.rows}
    return len(comparison.rows) > 1 and len(values) == 1 and not isnan(values.pop())


def _unclear_finding(comparison: Comparison, best: ComparisonRow) -> str:
    """Say what can be said where no scheduler is better than every other one."""
    title, name = metric_title(comparison.objective), plain(best.scheduler)
    if _is_tie(comparison):
        waits = [row.metrics["mean_wait_s"].mean for row in comparison.rows]
        why = ": no job ever waited" if not any(waits) else ""
        return f"No difference: {title} is the same under all {len(waits)} schedulers{why}."
    if best.scheduler == comparison.baseline:
        return f"No scheduler is clearly better: the baseline {name} leads in {title}, but barely."
    if isnan(best.difference.low):
        return (
            f"{name} {_change(comparison, best)}, but without an interval: one measurement "
            "cannot tell a better scheduler from a lucky one."
        )
    if clearly_better(comparison, best.difference):
        return (
            f"{name} {_change(comparison, best)}, but it is not clearly better than every other "
            "scheduler."
        )
    size = _percent(best.difference, signed=True)
    return (
        f"No scheduler is clearly better: the best, {name}, changed {title} by {size} against "
        f"{plain(comparison.baseline)}, and the interval includes zero."
    )


def _change(comparison: Comparison, row: ComparisonRow) -> str:
    """Say "cut mean JCT by 31 % [28, 34] against fifo" for a row's difference."""
    title, baseline = metric_title(comparison.objective), plain(comparison.baseline)
    verb = "cut" if row.difference.mean < 0 else "raised"
    return f"{verb} {title} by {_percent(_size(row.difference))} against {baseline}"


def _size(difference: Estimate) -> Estimate:
    """Return how large a difference is, whichever way it points."""
    if difference.mean >= 0:
        return difference
    return Estimate(-difference.mean, -difference.high, -difference.low)


def _percent(difference: Estimate, *, signed: bool = False) -> str:
    parts = [abs(part) for part in (difference.mean, difference.low, difference.high)]
    places = 0 if all(part >= 0.02 or isnan(part) for part in parts) else 1
    mean = number(difference.mean, places, PERCENT, signed=signed)
    ends = interval(difference.low, difference.high, places, PERCENT, signed=signed)
    return f"{mean} % {ends}".rstrip()


def _without_oracle(comparison: Comparison) -> str:
    """Name the best scheduler that does not read true durations."""
    told = "It is clairvoyant: it reads true durations"
    honest = next((row for row in comparison.rows if row.information != CLAIRVOYANT), None)
    if honest is None:
        return f"{told}, as does every scheduler here."
    name = plain(honest.scheduler)
    if honest.scheduler == comparison.baseline:
        return f"{told}. Of those that do not, the baseline {name} is the best."
    size = _percent(honest.difference, signed=True)
    is_clear = clearly_better(comparison, honest.difference) or clearly_worse(
        comparison, honest.difference
    )
    hedge = "" if is_clear else ", not a clear difference"
    return (
        f"{told}. Of those that do not, the best is {name}: {size} against "
        f"{plain(comparison.baseline)}{hedge}."
    )
