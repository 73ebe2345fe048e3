"""What is to be checked is found out from its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.errors import InvalidWorkloadError, UnknownNameError, YardmasterError
from yardmaster.testing import judge

MINE = """
from yardmaster.envs.rewards import Reward
from yardmaster.workloads.recipes.recipe import Recipe
from yardmaster.workloads.traces.formats import TraceFormat

REWARD = Reward("mine", {"waiting": -1.0})
WEIGHTS = {"idle": -1.0}
RECIPE = Recipe(jobs=20, load=0.5)
FORMAT = TraceFormat("mine", "", "", lambda file: False, lambda *_: None)
NUMBER = 7

def shortest(jobs):
    return jobs.gpus

class Learner:
    def __init__(self, *_, **__):
        raise OSError("not today")
    update = state = load = network = None

PRESETS = {"default": None}
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return str(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("REWARD", "reward"),
        ("WEIGHTS", "reward"),
        ("RECIPE", "recipe"),
        ("shortest", "order"),
        ("shortest+easy@spread", "order"),
        ("Learner", "learner"),
    ],
)
def test_objects_are_told_apart(name: str, kind: str, mine: str):
    """What stands in a file is judged for what it is."""
    assert judge(f"{mine}:{name}").kind == kind


def test_a_format_needs_a_sample(mine: str, tmp_path: Path):
    """A trace format is judged by its sample, and asked for one."""
    with pytest.raises(InvalidWorkloadError, match="--sample"):
        judge(f"{mine}:FORMAT")
    sample = tmp_path / "a.csv"
    sample.write_text("a,b\n1,2\n3,4\n")
    found = judge(f"{mine}:FORMAT", [sample])
    assert (found.kind, found.verdicts[0].state) == ("trace format", "broken")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("f1", "order"),
        ("sjf+easy~estimate", "order"),
        ("spread", "placement"),
        ("@first", "placement"),
        ("wait", "reward"),
        ("mm", "recipe"),
    ],
)
def test_names_are_told_apart(name: str, kind: str):
    """What comes along is found by its name alone."""
    found = judge(name)
    assert found.kind == kind
    assert found.conforms, found.lines()


def test_mistakes_are_answered(mine: str):
    """Unknown names are suggested, and what is no plug-in is told."""
    with pytest.raises(UnknownNameError, match="Did you mean 'wfp3'"):
        judge("wfp33")
    with pytest.raises(UnknownNameError, match="has no order 'nothing'"):
        judge(f"{mine}:nothing")
    with pytest.raises(YardmasterError, match="is of type int: neither an order"):
        judge(f"{mine}:NUMBER")
    with pytest.raises(UnknownNameError, match=r"no file .*nowhere\.py"):
        judge("nowhere.py:x")
