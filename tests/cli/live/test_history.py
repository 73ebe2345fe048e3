"""`yardmaster live history`, as a user mistypes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.cli.live.history import history, too_few
from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.history import finished


@pytest.mark.parametrize("days", [float("nan"), float("inf"), 0.0, -1.0, 1e6])
def test_days_that_make_no_sense_are_refused(days: float, tmp_path: Path):
    """Not a number, none, and more than a century: one sentence, and no folder."""
    with pytest.raises(YardmasterError, match="--days is"):
        history(tmp_path / "week", days=days)
    assert not (tmp_path / "week").exists()


def test_a_young_cluster_is_warned_about():
    """Where most jobs still wait or run, a comparison would stand on the few that ended."""
    text = """JobIDRaw|Start|End|ElapsedRaw|State
1|1794937400|1794937460|60|COMPLETED
2|1794937400|Unknown|600|RUNNING
3|Unknown|Unknown|0|PENDING
4|None|1794937460|0|CANCELLED
"""
    assert finished(text) == (1, 4)
    assert "only 1 of 4 runs" in too_few(*finished(text))
    assert too_few(3, 4) == ""
    assert "only 0 of 0" in too_few(*finished(""))
