"""`yardmaster live ray`, as a user runs it without a cluster."""

from __future__ import annotations

import pytest

from yardmaster.cli.live.ray import ray
from yardmaster.errors import YardmasterError


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "Cannot connect to Ray at 127.0.0.1:1"),
        ("ray://head:10001", "is not the address of a head"),
        ("local", "is not the address of a head"),
    ],
)
def test_no_cluster_is_said_in_one_sentence(address, said, tmp_path):
    """An address at which no head answers is named, soon, and nothing is left of the run."""
    (tmp_path / "jobs.toml").write_text('[[job]]\ncommand = "true"\n')
    with pytest.raises(YardmasterError, match=said):
        ray(tmp_path / "jobs.toml", address=address, out=tmp_path / "run")
    assert not (tmp_path / "run/live.json").exists()
