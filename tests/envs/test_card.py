"""The MDP card tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yardmaster.envs import card
from yardmaster.envs.observation import LOOKAHEADS
from yardmaster.envs.rewards import REWARDS
from yardmaster.envs.task import TASKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mdp.md"


def test_the_page_is_up_to_date():
    """docs/mdp.md is what the environment says of itself now."""
    command = "python -m yardmaster.envs.card > docs/mdp.md"
    assert PAGE.read_text("utf-8") == card.page(), f"out of date: {command}"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]):
    """The example of the card runs and prints an episode's scores."""
    (code,) = re.findall(r"```python\n(.*?)```", card.page(), re.DOTALL)
    assert 'task="default"' in code
    exec(code.replace('task="default"', 'task="default", compiled=False, jobs=20'), {})  # noqa: S102 - our own page
    assert "'bounded_slowdown': " in capsys.readouterr().out


def test_every_task_is_described():
    """Every task stands in one of the two tables; those with mistakes beside the one without."""
    assert {*card.TASK_MEANING, *card.MISTAKES} == set(TASKS)
    assert all(name.removesuffix("-original") in card.TASK_MEANING for name in card.MISTAKES)


@pytest.mark.parametrize(
    ("name", "length"),
    [("gpu-optimizer", 210), ("drl-scheduler", 66), ("rltune", 896), ("default", 870)],
)
def test_observation_lengths_are_those_of_the_originals(name: str, length: int):
    """The table of tasks shows how many numbers an observation has: as many as the original's."""
    (row,) = re.findall(rf"^\| `{name}` \|.*$", card.page(), re.MULTILINE)
    assert f" {length} |" in row


def test_every_setting_has_a_meaning():
    """No cell of the table of settings is empty, and every reward and mode has a row."""
    settings = card.page().partition("## Settings")[2]
    rows = [line for line in settings.splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    assert all(cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)[1:-1])
    for name in (*REWARDS, *LOOKAHEADS):
        assert f"| `{name}` |" in card.page()
