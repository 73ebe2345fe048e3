"""`yardmaster live history`: the last days of this Slurm as a job table and a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say
from yardmaster.errors import YardmasterError

MOST_DAYS = 36_525.0
"""A century; beyond it dates make no sense to Slurm."""


def check_days(option: str, days: float) -> None:
    """Refuse a number of days that makes no sense.

    Raises:
        YardmasterError: naming the option.
    """
    if not 0.0 < days <= MOST_DAYS:
        raise YardmasterError(f"{option} is {days:g}; it must be above 0, at most {MOST_DAYS:g}.")


def too_few(ended: int, runs: int) -> str:
    """Return a warning where at most half of the runs have ended, "" else."""
    if 2 * ended > runs:
        return ""
    return (
        f"Warning: only {ended} of {runs} runs have started and ended. The import drops those that"
        " wait and cuts off those that run, and a comparison of so few says little. Wait until more"
        " jobs have ended, or look further back (--days)."
    )


def history(
    out: Annotated[Path, Parameter(help="Folder to write: sacct.txt and cluster.toml.")],
    *,
    days: Annotated[float, Parameter(help="How far back.")] = 7.0,
    timeout_s: Annotated[float, Parameter(help="How long sacct may take.")] = 120.0,
) -> None:
    """Read what is needed to ask what another scheduler would have made of the last days."""
    from yardmaster.live.slurm import reading
    from yardmaster.live.slurm.commands import Slurm
    from yardmaster.live.slurm.history import cluster_toml, finished, read_history

    check_days("--days", days)
    slurm = Slurm(timeout_s)
    text = read_history(slurm, days=days)
    nodes = reading.node_rows(slurm.read(*reading.nodes_command()))
    if not nodes:
        raise YardmasterError("No node of this Slurm has GPUs.")
    out.mkdir(parents=True, exist_ok=True)
    (out / "sacct.txt").write_text(text, encoding="utf-8")
    (out / "cluster.toml").write_text(cluster_toml(nodes), encoding="utf-8")
    ended, runs = finished(text)
    say(f"{runs} runs of jobs, {len(nodes)} nodes: {out}")
    warning = too_few(ended, runs)
    if warning:
        remark(warning)
    remark(
        f"Next: yardmaster workload import slurm {out}/sacct.txt -o {out}/jobs.parquet\n"
        f"      yardmaster compare -w {out}/jobs.parquet -c {out}/cluster.toml"
        " --schedulers fifo+easy~estimate,sjf+easy~estimate"
    )
