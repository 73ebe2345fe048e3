"""The accounts teach run times, and become a workload and a cluster that can be simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.live.slurm.history import REQUEUE_S, cluster_toml, read_history, run_times
from yardmaster.live.slurm.reading import NodeRow, QueueRow

HEADER = "JobIDRaw|User|ElapsedRaw|TimelimitRaw|State|AllocTRES\n"


def row(user: str, gpus: int, limit_s: float | None) -> QueueRow:
    return QueueRow(
        "1", "1", user, "a", "main", "PENDING", 0.0, None, limit_s, 1, gpus, "", 1, "Priority",
        "", 0.0,
    )  # fmt: skip


def past(user: str, gpus: int, minutes: int, *seconds: int, state: str = "COMPLETED") -> str:
    return "".join(f"1|{user}|{one}|{minutes}|{state}|cpu=1,gres/gpu={gpus}\n" for one in seconds)


def test_alike_jobs_of_a_user_count_first():
    """Three jobs of the same size and limit: their median; other sizes: the user's used share."""
    learnt = run_times(HEADER + past("ann", 2, 60, 100, 300, 200))
    alike, other = learnt.believe([row("ann", 2, 3600.0), row("ann", 4, 7200.0)])
    assert alike == 200.0
    assert other == pytest.approx(7200.0 * 200 / 3600)


def test_strangers_are_believed_like_everybody():
    """Without a past of one's own, the share that all used; without any past, the limit."""
    learnt = run_times(HEADER + past("ann", 1, 60, *[360] * 12))
    assert learnt.believe([row("bob", 1, 1000.0)]) == [pytest.approx(100.0)]
    assert run_times(HEADER).believe([row("bob", 1, 1000.0), row("bob", 1, None)]) == [
        1000.0, 86_400.0,
    ]  # fmt: skip


def test_cancelled_jobs_teach_nothing_and_limits_cap():
    """Who was cancelled or still runs does not count; nobody is believed beyond the limit."""
    text = HEADER + past("ann", 1, 60, 5, 5, 5, state="CANCELLED by 0") + "nonsense\n"
    assert run_times(text).jobs == 0
    assert run_times("").jobs == 0
    late = run_times(HEADER + past("ann", 1, 60, 9999, 9999, 9999))
    assert late.believe([row("ann", 1, 3600.0)]) == [3600.0]


def test_nodes_become_a_cluster_that_charges_for_requeueing(tmp_path: Path):
    """Equal nodes are one group, unknown types keep their name, a restart costs time."""
    from yardmaster.model.catalogue import load_cluster

    nodes = [NodeRow(f"n{n}", "idle", 8, "a100", 0, ("main",)) for n in range(3)]
    nodes.append(NodeRow("m1", "idle", 4, "odd-card", 0, ("main",)))
    path = tmp_path / "cluster.toml"
    path.write_text(cluster_toml(nodes), encoding="utf-8")
    cluster = load_cluster(str(path))
    assert (cluster.nodes, cluster.gpus) == (4, 28)
    assert [kind.name for kind in cluster.gpu_types] == ["A100", "odd-card"]
    assert cluster.site.checkpoints.restore_s == REQUEUE_S >= 120


def test_real_accounts_can_be_simulated(mini, tmp_path: Path):
    """The documented walk: history, import, simulate, with jobs that really ran."""
    import yardmaster as ym
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.workloads.sources import load_workload

    jobs = [mini.submit(gpus=gpus, minutes=2) for gpus in (1, 2, 1)]
    mini.until(lambda: set(jobs) <= set(mini.runs()))
    mini.until(lambda: read_history(mini.slurm, days=1).count("COMPLETED") >= len(jobs))
    folder = tmp_path / "week"
    assert "2 nodes" in mini.said("live", "history", str(folder), "--days", "1")
    workload = load_workload(folder / "sacct.txt")
    cluster = load_cluster(str(folder / "cluster.toml"))
    assert cluster.gpus == mini.cluster.shape.nodes * mini.cluster.shape.gpus
    assert len(workload) >= len(jobs)
    assert set(workload.gpus[-3:].tolist()) <= {1, 2}
    schedule = ym.simulate(workload, cluster, "sjf+easy~estimate")
    assert len(schedule.workload) == len(workload)
