"""The MDP card of choosing as a page: what `PickSchedulerEnv` says of itself, and tables.

`python -m yardmaster.envs.choosing.card > docs/mdp-choosing.md` writes the page anew.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable

from yardmaster.engine.choosing.showing import (
    AGE_FEATURES,
    AHEAD_FEATURES,
    PAST_FEATURES,
    QUEUE_FEATURES,
    SLACK_FEATURES,
)
from yardmaster.engine.choosing.sight import SCHEMA, ChoiceSight
from yardmaster.envs.card import settings_of, table, weighed
from yardmaster.envs.choosing.observation import lowest
from yardmaster.envs.choosing.pick_scheduler import PickSchedulerEnv
from yardmaster.envs.choosing.rewards import CHOOSING_REWARDS, TERM_MEANING
from yardmaster.envs.choosing.task import CHOOSING_TASKS, ChoosingTask
from yardmaster.envs.registration import PICK_SCHEDULER

COMMAND = "python -m yardmaster.envs.choosing.card > docs/mdp-choosing.md"

CHOICE_FEATURES = (
    ("is_…", "1 while that scheduler of the menu is at work; all 0 at the first decision"),
    ("label_…", "numbers that name the regime, with `labelled=True` only"),
)


def page() -> str:
    """Return the whole page, Markdown."""
    parts = [
        f"# `{PICK_SCHEDULER}`: the MDP card",
        f"<!-- Written by `{COMMAND}`; change it there. -->",
        inspect.getdoc(PickSchedulerEnv) or "",
        f"# Tables\n\nVersion {SCHEMA} of the observation.",
        _now(),
        _past(),
        _rewards(),
        _terms(),
        _tasks(),
        settings_of(ChoosingTask, ChoiceSight, left_out=("sight", "labels")),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(part: str, features: Iterable[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    return [(part, f"`{name}`", f"{lowest(name):g} … 1", meaning) for name, meaning in features]


def _now() -> str:
    rows = [
        *_rows("queue and cluster", QUEUE_FEATURES),
        *_rows("ages (`ages=True`)", AGE_FEATURES),
        *_rows("slacks", SLACK_FEATURES),
        *_rows("lookahead", AHEAD_FEATURES),
        *_rows("choice (`shows_choice=True`), labels", CHOICE_FEATURES),
    ]
    return (
        "## Numbers of now\n\nThose about run times are 0 for a blind chooser; its slacks are times"
        " to the deadline.\n\n" + table(("part", "name", "range", "meaning"), rows)
    )


def _past() -> str:
    rows = _rows("span", PAST_FEATURES)
    return (
        "## Numbers of the recent past\n\nThe same numbers for each of `past` spans, the one that"
        " is now first; spans before the first submission are 0.\n\n"
        + table(("part", "name", "range", "meaning"), rows)
    )


def _rewards() -> str:
    rows = [
        (f"`{name}`", reward.meaning, weighed(reward.weights.items()))
        for name, reward in CHOOSING_REWARDS.items()
    ]
    return "## Rewards\n\n" + table(("`reward`", "meaning", "weights"), rows)


def _terms() -> str:
    rows = [
        (f"`{term.name.lower()}`", " ".join(meaning.split()))
        for term, meaning in TERM_MEANING.items()
    ]
    return "## Terms of a reward\n\n" + table(("term", "what it counts"), rows)


def _tasks() -> str:
    rows = [
        (
            f"`{name}`",
            ", ".join(f"`{family}`" for family in task.families),
            ", ".join(f"`{member}`" for member in task.sight.menu),
            task.sight.information,
            task.sight.layout().length,
            f"every {task.sight.every_s:g} s" if task.sight.every_s else "at every event",
            f"`{task.reward}`",
        )
        for name, task in CHOOSING_TASKS.items()
    ]
    head = ("`task`", "families", "menu", "run times", "observation", "decisions", "reward")
    return "## Tasks\n\n" + table(head, rows)


if __name__ == "__main__":
    sys.stdout.write(page())
