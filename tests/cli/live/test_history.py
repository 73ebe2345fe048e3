"""`yardmaster live history`, as a user mistypes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.cli.live.history import history
from yardmaster.errors import YardmasterError


@pytest.mark.parametrize("days", [float("nan"), float("inf"), 0.0, -1.0, 1e6])
def test_days_that_make_no_sense_are_refused(days: float, tmp_path: Path):
    """Not a number, none, and more than a century: one sentence, and no folder."""
    with pytest.raises(YardmasterError, match="--days is"):
        history(tmp_path / "week", days=days)
    assert not (tmp_path / "week").exists()
