"""`yardmaster live slurm`, as a user mistypes it: told in one sentence, without asking Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.cli.live.slurm import slurm
from yardmaster.errors import YardmasterError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shadow": True, "apply": True}, "name one"),
        ({"ticks": 0}, "--ticks is 0"),
        ({"history_days": -1.0}, "--history-days is -1"),
        ({"history_days": float("nan")}, "--history-days is nan"),
        ({"max_advance_s": float("nan")}, "max_advance_s is nan"),
        ({"scheduler": "sjff+easy"}, "Did you mean"),
    ],
)
def test_mistakes_are_told_before_slurm_is_asked(
    options, said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Options that make no sense are refused where no Slurm answers, and nothing is begun."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(YardmasterError, match=said):
        slurm(out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
