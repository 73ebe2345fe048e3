"""Write docs/results/robustness.md: `python experiments/robustness_page.py FOLDER [PAGE]`.

FOLDER is what `yardmaster experiment robustness` wrote; the page is made from its
`results.parquet` and from nothing else.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "robustness.md"
T_OF_8 = 2.3646
"""Student's t for a 95 % interval over eight seeds; other numbers of seeds are refused."""
SEEDS = 8
CLEAN = "none"

WORDS = """# Robustness: what goes wrong, and who stands it

RLMetaDQN's 16 regimes of medium and high intensity on 4 and 8 GPUs, each as it is and under [five
kinds of disturbance](../regimes.md#perturbations) of four severities, and the 28 regimes of the
[drift family](../regimes.md#the-drift-family), undisturbed; {seeds} seeds ({first} to {last}),
{runs:,} runs. Made by `python experiments/results.py robustness`, which runs `yardmaster experiment
robustness -o runs/experiment-robustness` and `python experiments/robustness_page.py
runs/experiment-robustness`; under six minutes on two busy cores.

Schedulers run the same jobs. *Change*: mean JCT of the disturbed regime / that of the same regime
and seed as it is − 1, averaged over regimes. *Gap*: value / least value of the five fixed rules on
the same jobs − 1; below 0 is better than all of them in hindsight. Brackets: 95 % intervals over
the {seeds} seeds (Student's t). They speak of these regimes with other jobs, not of other regimes.
`srpt`, the two choosers (`meta:`) and the bandit read true run times, the other four rules none.

Seeds 0 to 7 are those with which the hard and drifting regimes were looked at when they were
designed. The choosers were trained on RLMetaDQN's regimes with other seeds, half of the episodes
disturbed in such ways ([choosing](choosing.md)); drift they had not met. A change alone is no
verdict on a scheduler: the worse it does undisturbed, the less there is to lose.
"""


def interval(values: np.ndarray, sign: str = "+") -> str:
    """Return the mean over seeds with its interval, in percent."""
    half = T_OF_8 * values.std(ddof=1) / math.sqrt(len(values))
    mean = values.mean()
    low, high = mean - half, mean + half
    return " ".join(
        [f"{100 * mean:{sign}.1f}", f"[{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"]
    ).replace("-", "−")


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; the first column holds names."""
    lines = ["| " + " | ".join(head) + " |", "| :--- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def by_seed(frame: pl.DataFrame, column: str, **of: object) -> np.ndarray:
    """Return the mean of a column over regimes, one number for each seed."""
    chosen = frame.filter(**of).group_by("seed").agg(pl.col(column).mean()).sort("seed")
    return chosen[column].to_numpy()


def changes(frame: pl.DataFrame) -> pl.DataFrame:
    """Add what each disturbed run changed against the same regime, seed and scheduler as it is."""
    keys = ["regime", "seed", "scheduler"]
    clean = frame.filter(pl.col("perturbation") == CLEAN).select(
        *keys, clean_jct_s="mean_jct_s", clean_gap="oracle_gap_mean_jct_s"
    )
    disturbed = frame.filter(pl.col("perturbation") != CLEAN).join(clean, on=keys)
    return disturbed.with_columns(change=pl.col("mean_jct_s") / pl.col("clean_jct_s") - 1)


def page_of(frame: pl.DataFrame) -> str:
    """Return the whole page."""
    seeds = frame["seed"].unique().sort().to_list()
    if len(seeds) != SEEDS:
        raise SystemExit(f"The page is about {SEEDS} seeds, and the folder has {len(seeds)}.")
    known = frame.filter(family="rlmetadqn")
    compared = changes(known)
    schedulers = frame["scheduler"].unique(maintain_order=True).to_list()
    kinds = compared["perturbation"].unique(maintain_order=True).to_list()
    strongest = compared.filter(pl.col("severity") == pl.col("severity").max().over("perturbation"))
    mild = compared.filter(pl.col("severity") == pl.col("severity").min().over("perturbation"))
    parts = [
        WORDS.format(seeds=len(seeds), first=seeds[0], last=seeds[-1], runs=len(frame)),
    ]
    for title, part in (("the strongest severity", strongest), ("the mildest severity", mild)):
        rows = [
            [name, *(interval(by_seed(part, "change", scheduler=name, perturbation=kind))
                     for kind in kinds)]
            for name in schedulers
        ]  # fmt: skip
        parts += [f"## Change of mean JCT at {title}, %\n", table(["scheduler", *kinds], rows)]
    rows = [
        [
            name,
            interval(by_seed(known, "oracle_gap_mean_jct_s", scheduler=name, perturbation=CLEAN)),
            *(interval(by_seed(strongest, "oracle_gap_mean_jct_s", scheduler=name,
                               perturbation=kind)) for kind in kinds),
        ]
        for name in schedulers
    ]  # fmt: skip
    parts += [
        "## Gap in mean JCT: undisturbed, and at the strongest severity, %\n",
        table(["scheduler", "undisturbed", *kinds], rows),
    ]
    drift = frame.filter(family="drift")
    columns = ("oracle_gap_mean_jct_s", "oracle_gap_p95_jct_s", "oracle_gap_mixed_cost")
    rows = [
        [name, *(interval(by_seed(drift, column, scheduler=name)) for column in columns)]
        for name in schedulers
    ]
    parts += [
        "## Drift: gaps where the regime changes on the way, %\n",
        table(["scheduler", "mean JCT", "p95 JCT", "mixed cost"], rows),
    ]
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    folder = Path(sys.argv[1])
    page = Path(sys.argv[2]) if len(sys.argv) > 2 else PAGE
    page.write_text(page_of(pl.read_parquet(folder / "results.parquet")), "utf-8")
    print(page)


if __name__ == "__main__":
    main()
