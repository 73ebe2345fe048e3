"""From `sacct` to a comparison: import with an account, describe, compare on what users asked for.

The log here is made up; yours comes from the `sacct` line of docs/workloads.md.

python examples/03_your_slurm_log.py
"""

import tempfile
from pathlib import Path

import numpy as np

import yardmaster as ym
from yardmaster.workloads.description.summary import describe

HEADER = "JobID|User|Account|Submit|Eligible|Start|End|ElapsedRaw|State|TimelimitRaw|NCPUS|ReqTRES"
"""What the import needs of `sacct -P`."""


def made_up_log(jobs: int) -> str:
    """Return `sacct` output of so many jobs; every tenth asked for no GPU."""
    dice = np.random.default_rng(5)
    begin = np.datetime64("2024-05-06T08:00:00")
    lines = [HEADER]
    for number in range(jobs):
        submit = begin + np.timedelta64(int(dice.integers(0, 200_000)), "s")
        start = submit + np.timedelta64(int(dice.integers(0, 3_600)), "s")
        run_s = int(dice.lognormal(7, 1.5)) + 60
        end = start + np.timedelta64(run_s, "s")
        limit_min = (run_s // 60 + 1) * int(dice.integers(1, 6))
        gpus = int(dice.choice([1, 2, 4, 8]))
        asked = "cpu=8,node=1" + (f",gres/gpu={gpus}" if number % 10 else "")
        user = f"u{dice.integers(1, 9)}"
        times = f"{submit}|{submit}|{start}|{end}|{run_s}"
        lines.append(f"{1000 + number}|{user}|lab|{times}|COMPLETED|{limit_min}|8|{asked}")
    return "\n".join(lines) + "\n"


with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "may.txt"
    log.write_text(made_up_log(300))
    trace = ym.import_trace([log])

print(*trace.account.lines()[1:], sep="\n")
jobs = trace.workload()
cluster = ym.Cluster.of("4x A100:8")
print(f"\nmedian run time {describe(jobs).duration_s.quantiles['p50'] / 60:.0f} min")

# Slurm knows time limits, not run times: ~estimate lets every scheduler know as much and no more.
schedulers = ["fifo+strict", "fifo+easy~estimate", "sjf+easy~estimate", "qssf+skip"]
print(ym.table(ym.compare(jobs, cluster, schedulers)))
