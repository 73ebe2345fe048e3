"""What happened between two readings is told once: came, started, ended."""

from __future__ import annotations

from pathlib import Path

from yardmaster.live.slurm.commands import Slurm
from yardmaster.live.slurm.happenings import SETTLES_WITHIN_S, Happenings
from yardmaster.live.slurm.observing import Allowed, Observation, observation
from yardmaster.live.slurm.reading import NodeRow, PriorityRow, QueueRow

NODES = [NodeRow("n1", "idle", 8, "a100", 0, ("main",))]
WEIGHTS = {str(job): PriorityRow(9, 0, 9, 0) for job in range(1, 9)}


def seen(now_s: float, **jobs: float | None) -> Observation:
    """A queue at a moment: job="j1" with the second it started, None while it waits."""
    rows = [
        QueueRow(
            name[1:], name[1:], "ann", "a", "main", "PENDING" if start is None else "RUNNING",
            100.0, start, 60.0, 1, 1, "", 9, "Priority", "" if start is None else "n1", 100.0,
        )
        for name, start in jobs.items()
    ]  # fmt: skip
    return observation(rows, NODES, WEIGHTS, now_s=now_s, allowed=Allowed())


def told(lines: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(line["job"], line["event"]) for line in lines]


def without_accounts(tmp_path: Path) -> Happenings:
    return Happenings(Slurm(1.0, {"PATH": str(tmp_path)}), 100.0)


def test_each_event_is_told_once(tmp_path: Path):
    """A job comes, starts and goes; another is first seen running, so it is told to have come."""
    happenings = without_accounts(tmp_path)
    assert told(happenings.since_last(seen(110, j1=None))) == [("1", "submitted")]
    lines = happenings.since_last(seen(120, j1=115.0, j2=118.0))
    assert told(lines) == [("1", "started"), ("2", "submitted"), ("2", "started")]
    assert (lines[0]["start_s"], lines[0]["node"], lines[0]["submit_s"]) == (15.0, "n1", 0.0)
    assert happenings.since_last(seen(121, j1=115.0, j2=118.0)) == []


def test_an_end_waits_for_the_accounts_but_not_for_ever(tmp_path: Path):
    """Without accounts, a job that is gone has ended when that was seen, told a minute later."""
    happenings = without_accounts(tmp_path)
    happenings.since_last(seen(110, j1=105.0, j2=None))
    assert happenings.since_last(seen(120, j2=None)) == []
    lines = happenings.since_last(seen(121 + SETTLES_WITHIN_S, j2=None))
    assert told(lines) == [("1", "ended")]
    assert lines[0]["end_s"] == 20.0


def test_a_broken_off_log_is_taken_up_again(tmp_path: Path):
    """What was known before a crash is not told anew, and who is gone since then has ended."""
    first = without_accounts(tmp_path)
    lines = [{"what": "job", **line} for line in first.since_last(seen(110, j1=105.0, j2=None))]
    second = without_accounts(tmp_path)
    second.recall([{"what": "begin"}, *lines])
    assert second.since_last(seen(130, j2=None)) == []
    ended = second.since_last(seen(131 + SETTLES_WITHIN_S, j2=None))
    assert told(ended) == [("1", "ended")]
