"""The job kit: real work, sized by seconds."""

from __future__ import annotations

import importlib.util
import json

import pytest

from yardmaster.live.kit.__main__ import main
from yardmaster.live.kit.kinds import KINDS

NEEDS_TORCH = set(KINDS) - {"prepare"}
HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_job_works_as_long_as_it_is_told(kind, capsys):
    """Every kind does some steps for the asked time and says so."""
    if kind in NEEDS_TORCH and not HAS_TORCH:
        pytest.skip("torch is not installed")
    assert main([kind, "--runtime", "0.15"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["kind"] == kind
    assert said["steps"] > 0
    assert 0.15 <= said["worked_s"] < 1.5


def test_a_job_can_fail_on_purpose(capsys):
    """With --fail it does its work and ends with exit code 1."""
    assert main(["prepare", "--runtime", "0", "--fail"]) == 1
    assert json.loads(capsys.readouterr().out)["steps"] == 0


def test_nonsense_is_refused(capsys):
    """A runtime below nothing ends with a usage message and exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(["prepare", "--runtime", "-1"])
    assert caught.value.code == 2
    assert "--runtime" in capsys.readouterr().err
