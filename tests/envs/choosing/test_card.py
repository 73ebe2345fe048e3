"""The MDP card of choosing tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.envs.choosing import card
from yardmaster.envs.choosing.rewards import CHOOSING_REWARDS
from yardmaster.envs.choosing.task import CHOOSING_TASKS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mdp-choosing.md"


def test_the_page_is_up_to_date():
    """docs/mdp-choosing.md is what the environment says of itself now."""
    assert PAGE.read_text("utf-8") == card.page(), f"out of date: {card.COMMAND}"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]):
    """The example of the card runs and prints an episode's scores."""
    (code,) = re.findall(r"```python\n(.*?)```", card.page(), re.DOTALL)
    assert 'task="regimes"' in code
    small = 'task="regimes", compiled=False, regimes=["base-low-2"], episodes=1'
    exec(code.replace('task="regimes"', small), {})  # noqa: S102 - our own page
    assert "'jct_gap': " in capsys.readouterr().out


def test_everything_is_described():
    """Every number, reward, term, task and setting has a row, and no cell of it is empty."""
    page = card.page()
    sight = ChoiceSight(past=1)
    shown = [name for name, _ in sight.features() if not name.startswith("is_")]
    shown += [name.removesuffix("_0") for name in sight.layout().past_features]
    for name in (*shown, *CHOOSING_REWARDS, *CHOOSING_TASKS, "in_system", "every_s", "menu"):
        assert f"`{name}` |" in page
    tables = page.partition("# Tables")[2]
    rows = [line for line in tables.splitlines() if line.startswith("| ")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
    assert len(rows) > 80
    assert sum(not cell.strip() for cell in cells) <= 1  # the menu's default stands with the tasks
