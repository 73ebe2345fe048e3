"""The MDP card as a page: what `PickJobEnv` says of itself, and tables of all it can be made of.

`python -m yardmaster.envs.card > docs/mdp.md` writes the page anew.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from typing import Any

from yardmaster.engine.picking.sight import SCHEMA, Sight
from yardmaster.envs import observation
from yardmaster.envs.pick_job import PickJobEnv
from yardmaster.envs.registration import PICK_JOB
from yardmaster.envs.rewards import REWARDS, TERM_MEANING
from yardmaster.envs.task import TASKS, Task

TASK_MEANING = {
    "default": "log-normal run times at load 1 on 64 GPUs, true run times shown",
    "estimates": "the same, with the jobs' own estimates shown",
    "blind": "the same, with no run times shown",
    "gpu-optimizer": "8 GPUs, bursts of 400 jobs, reward for work done early",
    "drl-scheduler": "56 GPUs of four types, flooded with 2,000 jobs, shaped reward",
    "rltune": "windows of 256 jobs, judged at the end against a baseline on the same jobs",
}

MISTAKES = {
    "gpu-optimizer-original": "exactly one event passes per action, so that two jobs can never"
    " start at one instant and half of all decisions are forced no-ops",
    "drl-scheduler-original": "one decision a second, so at most one start a second; no mask, and"
    " picking what does not fit does nothing; episodes are cut after 2,000 decisions, before the"
    " mean job has finished",
    "rltune-original": "a chosen job that does not fit blocks the whole cluster, in the environment"
    " and in the baseline it is judged against",
}
"""What each `-original` task does as the original program did, and better not."""

UNSAID = {
    "cluster": "A named cluster, a TOML file, groups such as `8x V100:8`, or a Cluster.",
    "placement": "Which GPUs a job gets: any placement of the scheduler language but milp.",
    "longest_s": "Run time that counts as 1 where features divide by it, seconds.",
    "tick_s": 'Seconds between two decisions with `pace="tick"`.',
}
"""Meaning of settings that say nothing themselves."""


def page() -> str:
    """Return the whole page, Markdown."""
    parts = [
        f"# `{PICK_JOB}`: the MDP card",
        "<!-- Written by `python -m yardmaster.envs.card > docs/mdp.md`; change it there. -->",
        inspect.getdoc(PickJobEnv) or "",
        f"# Tables\n\nVersion {SCHEMA} of the observation.",
        *(_features(name) for name in observation.JOB_FIELDS),
        _lookaheads(),
        _rewards(),
        _terms(),
        _tasks(),
        _originals(),
        _settings(),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table, Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(cell: object) -> str:
    return str(cell).replace("|", "\\|")


def _range(field: observation.Field) -> str:
    if field.low == -observation.ANY:
        return "any"
    return f"{field.low:g} … {'' if field.high == observation.ANY else f'{field.high:g}'}"


def _features(name: str) -> str:
    """Return the table of one feature set."""
    rows = [
        (part, f"`{field.name}`", _range(field), field.meaning)
        for part, found in (
            ("job", observation.JOB_FIELDS[name]),
            ("global", observation.GLOBAL_FIELDS[name]),
        )
        for field in found
    ]
    extra = ""
    if name == "standard":
        extra = (
            "\n\nWith `ranks=`, a token goes on with `rank_…` for each order: the job's place in"
            " the window under that order, 1/n for the first, 1 for the last."
        )
    return f"## Features: `{name}`\n\n{table(('part', 'name', 'range', 'meaning'), rows)}{extra}"


def _lookaheads() -> str:
    rows = [(f"`{name}`", meaning) for name, meaning in observation.LOOKAHEADS.items()]
    return (
        "## GPU slots\n\n"
        "Time left runs from 0 (free) to 1: t / (t + unit), or t / `longest_s` and at most 1 with"
        " the `gpu_optimizer` features. A blind policy sees 1 for every GPU in use.\n\n"
        + table(("`lookahead`", "slots say"), rows)
    )


def weighed(weights: Iterable[tuple[str, float]]) -> str:
    """Return the weights of a reward's terms in words."""
    return ", ".join(f"{weight:g} · `{term}`" for term, weight in weights)


def _rewards() -> str:
    rows = [
        (f"`{name}`", reward.meaning, weighed(reward.weights.items()))
        for name, reward in REWARDS.items()
    ]
    return "## Rewards\n\n" + table(("`reward`", "meaning", "weights"), rows)


def _terms() -> str:
    rows = [(f"`{term.name.lower()}`", meaning) for term, meaning in TERM_MEANING.items()]
    return "## Terms of a reward\n\n" + table(("term", "what it counts"), rows)


def _tasks() -> str:
    rows = [_task(name, TASKS[name], meaning) for name, meaning in TASK_MEANING.items()]
    head = ("`task`", "what", "window", "features", "observation", "actions", "reward", "cut")
    return "## Tasks\n\n" + table(head, rows)


def _task(name: str, task: Task, meaning: str) -> list[Any]:
    layout = task.sight.layout()
    return [
        f"`{name}`",
        meaning,
        f"{task.sight.window} by {task.sight.window_order}",
        task.sight.features,
        layout.length,
        layout.actions,
        f"`{task.reward}`",
        _cut(task),
    ]


def _cut(task: Task) -> str:
    limits = []
    if task.time_limit_s is not None:
        limits.append(f"second {task.time_limit_s:,.0f}")
    if task.horizon_factor is not None:
        limits.append(f"last submission + {task.horizon_factor:g} × work / GPUs")
    if task.max_steps:
        limits.append(f"{task.max_steps:,} decisions")
    return " or ".join(limits) or "never"


def _originals() -> str:
    """Return the table of tasks that also make the mistakes of the programs they come from."""
    rows = [
        (f"`{name}`", meaning, _difference(TASKS[name], TASKS[name.removesuffix("-original")]))
        for name, meaning in MISTAKES.items()
    ]
    return (
        "## Tasks with their mistakes\n\n"
        "Observation length, reward and episode of the three tasks that come from other programs"
        " are as there; what those programs did wrong is off, and on again in these.\n\n"
        + table(("`task`", "mistake", "settings"), rows)
    )


def _difference(task: Task, other: Task) -> str:
    mine, theirs = task.to_table(), other.to_table()
    return ", ".join(f"`{name}={mine[name]!r}`" for name in mine if mine[name] != theirs.get(name))


def _settings() -> str:
    """Return the table of all that can be changed of a task."""
    return settings_of(Task, Sight, left_out=("sight",))


def settings_of(*owners: type[Any], left_out: Sequence[str]) -> str:
    """Return the table of all fields of some dataclasses, with their defaults and meanings."""
    rows = [
        (f"`{field.name}`", _default(field), meaning)
        for owner in owners
        for field, meaning in _documented(owner)
        if field.name not in left_out
    ]
    return (
        "## Settings\n\n"
        "Any of these may be given to `gymnasium.make` beside `task`.\n\n"
        + table(("setting", "default", "meaning"), rows)
    )


def _documented(owner: type[Any]) -> list[tuple[Field[Any], str]]:
    """Return the fields of a dataclass, each with what is written below it."""
    (tree,) = ast.parse(inspect.getsource(owner)).body
    said: dict[str, str] = {}
    for node, below in pairwise(tree.body if isinstance(tree, ast.ClassDef) else []):
        match node, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                said[name] = " ".join(text.split())
    return [(field, said.get(field.name, UNSAID.get(field.name, ""))) for field in fields(owner)]


def _default(field: Field[Any]) -> str:
    return "" if field.default is MISSING else f"`{field.default!r}`"


if __name__ == "__main__":
    sys.stdout.write(page())
