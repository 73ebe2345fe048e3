"""Which of RLMetaDQN's five rules is best in which regime: does one of them win everywhere?

Prints, for each family, way to run the rules and metric: in how many regimes each rule has the best
mean over seeds, in how many of these it beats the runner-up clearly (paired t > 2.13, 16 seeds; no
correction for so many comparisons), and how far it is from the best of each regime on average.

    python benchmarks/regimes.py hard drift      # a minute or two

The regimes were chosen while looking at seeds below 10; these are others.
"""

from __future__ import annotations

import sys

import numpy as np

import yardmaster as ym
from yardmaster.model.workload import FloatArray
from yardmaster.workloads.regimes import Regime, regimes

SEEDS = range(1000, 1016)
CLEAR_T = 2.13
"""Two-sided 5 % of Student's t with 15 degrees of freedom."""
RULES = ("srpt", "edf", "static-priority", "static-equal", "dynamic-heuristic")
WAYS = ("+skip~estimate", "+easy~estimate", "+skip")
METRICS = ("mean_jct_s", "p95_jct_s", "deadline_miss_rate")


def main() -> None:
    """Measure the families named on the command line; the hard one by default."""
    for family in sys.argv[1:] or ["hard"]:
        for way in WAYS:
            values = np.array([_values(regime, way) for regime in regimes(family)])
            for place, metric in enumerate(METRICS):
                _print(f"{family} {way} {metric}", values[..., place], metric)


def _values(regime: Regime, way: str) -> list[list[list[float]]]:
    """Return (rules, seeds, metrics) of one regime."""
    machines = regime.machines()
    workloads = [regime.jobs(seed) for seed in SEEDS]
    return [
        [_measured(jobs, machines, _scheduler(rule, way)) for jobs in workloads] for rule in RULES
    ]


def _measured(jobs: ym.Workload, machines: ym.Cluster, scheduler: str) -> list[float]:
    summary = ym.summarise(ym.simulate(jobs, machines, scheduler, compile_core="always"))
    return [summary[metric] for metric in METRICS]


def _scheduler(rule: str, way: str) -> str:
    """Leave ~estimate out where nobody would read it."""
    is_blind = rule != "srpt" and way.startswith("+skip")
    return rule + (way.removesuffix("~estimate") if is_blind else way)


def _print(title: str, values: FloatArray, metric: str) -> None:
    """Print one line per rule from (regimes, rules, seeds)."""
    means = values.mean(axis=2)
    best = means.min(axis=1, keepdims=True)
    is_share = metric == "deadline_miss_rate"
    gaps = 100 * (means - best if is_share else means / best - 1).mean(axis=0)
    winner = means.argmin(axis=1)
    clear = np.array([_is_clear(each) for each in values])
    print(f"{title}: {len(values)} regimes")
    for place, rule in enumerate(RULES):
        wins = winner == place
        unit = "points" if is_share else "%"
        print(
            f"  {rule:18s} best in {wins.sum():2d}, clearly in {(wins & clear).sum():2d};"
            f" {gaps[place]:5.1f} {unit} from the best"
        )


def _is_clear(values: FloatArray) -> bool:
    """Whether the best of (rules, seeds) beats the second best beyond chance."""
    first, second = np.argsort(values.mean(axis=1), kind="stable")[:2]
    differences = values[second] - values[first]
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    return bool(error > 0 and differences.mean() / error > CLEAR_T)


if __name__ == "__main__":
    main()
