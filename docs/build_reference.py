"""Write docs/reference: every command and every name that can be used, from the code itself.

The command line documents itself (`cyclopts`); names come from the catalogues that `yardmaster
list` shows, with the docstrings of their functions.

python docs/build_reference.py            # or: make reference
python docs/build_reference.py --check    # exits 1 if a page is not what the code says
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Written by docs/build_reference.py; change the code, then run `make reference`. -->\n"

Rows = Iterable[Mapping[str, object]]


def table(rows: Rows) -> str:
    """Return rows as a Markdown table; all of them have the same columns."""
    kept = list(rows)
    if not kept:
        return "None.\n"
    lines = ["| " + " | ".join(kept[0]) + " |", "|---" * len(kept[0]) + "|"]
    lines += ["| " + " | ".join(_cell(value) for value in row.values()) + " |" for row in kept]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    """Return a value as it can stand in a table."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.replace("|", "\\|").split())


def _documentation(thing: object) -> str:
    """Return the docstring of a function or module."""
    return inspect.getdoc(thing) or ""


def commands() -> str:
    """Return every command with its options, their defaults and choices."""
    from yardmaster.cli.app import app

    text = app.generate_docs()
    # Cyclopts lists the commands twice, as a table of contents and with their help.
    head, _, rest = text.partition("## Table of Contents\n")
    listed = rest.partition("**Commands**:\n")[2]
    return f"{head}Options that take names are explained by `yardmaster list`.\n{listed}"


def schedulers() -> str:
    """Return the scheduler language: orders, disciplines, placements, policies, choosers."""
    from yardmaster.cli.listing import rows_of
    from yardmaster.schedulers.orders import ORDERS

    parts = [
        "# Schedulers\n",
        (
            "A scheduler is `order+discipline@placement`, with `~estimate` behind it if it is to"
            " read the jobs' estimates instead of their true run times. Left out, the placement is"
            " `pack` and the discipline the order's own. Rules to the letter:"
            " [semantics](../semantics.md).\n"
        ),
        "## Orders\n",
        _documentation(inspect.getmodule(ORDERS["fifo"].function)).partition("\n\n")[2] + "\n",
    ]
    for entry in ORDERS.values():
        if not entry.function.__module__.startswith("yardmaster."):
            continue
        reads = "yes: true ones, or estimates with `~estimate`" if entry.reads_run_time else "no"
        parts.append(
            f"### `{entry.name}`\n\n{_documentation(entry.function)}\n\n"
            f"- key, lowest first: {entry.formula}\n"
            f"- reads run times: {reads}\n"
            f"- discipline if none is named: `{entry.discipline}`\n"
            f"- source: {entry.source or 'our own'}\n"
        )
    parts += ["## Disciplines\n", table(rows_of("disciplines"))]
    parts += ["## Placements\n", table(rows_of("placements"))]
    parts += [
        "## Trained policies\n",
        "`yardmaster list policies NAME` prints the model card.\n",
        table(rows_of("policies")),
    ]
    parts += ["## Choosers among schedulers\n", table(rows_of("choosers"))]
    return "\n".join(parts)


def metrics() -> str:
    """Return every metric with unit and definition."""
    from yardmaster.metrics.catalogue import METRICS

    parts = [
        "# Metrics\n",
        (
            "Units are in the names: `_s` seconds, `_h` hours, `_kwh`, `_kg`, `_w`. Everything is"
            " computed from the schedule and from nothing else. Metrics of *jobs* can be had for a"
            " part of them (a size, a tenant), those of the *schedule* for the whole only.\n"
        ),
    ]
    for entry in METRICS:
        better = (
            "neither way is better" if entry.better == "neither" else f"{entry.better} is better"
        )
        parts.append(
            f"### `{entry.name}`\n\n{entry.definition}\n\nUnit: {entry.unit}; {better}; of the"
            f" {entry.scope}.\n"
        )
    return "\n".join(parts)


def workloads() -> str:
    """Return where jobs and machines come from: columns, formats, presets, regimes, clusters."""
    from yardmaster.cli.listing import rows_of
    from yardmaster.workloads.traces.formats import trace_formats

    formats = [
        {"format": f"`{entry.name}`", "reads": entry.reads, "source": entry.source}
        for entry in trace_formats().values()
    ]
    chapters: dict[str, tuple[str, Rows]] = {
        "Columns of a job table": ("", rows_of("columns")),
        "Trace formats": (
            "Where to get the traces, and under which licence: [data](../data.md).\n",
            formats,
        ),
        "Generated workloads": ("How to compose others: [generators](../generators.md).\n",
                                rows_of("workloads")),
        "Clusters": ("How to describe yours: [real clusters](../real-clusters.md).\n",
                     rows_of("clusters")),
        "GPU types": ("", rows_of("gpus")),
        "Disturbances": ("Regimes that they disturb: [regimes](../regimes.md).\n",
                         rows_of("perturbations")),
    }  # fmt: skip
    parts = ["# Workloads and clusters\n"]
    for title, (words, rows) in chapters.items():
        parts += [f"## {title}\n", words, table(rows)]
    return "\n".join(part for part in parts if part)


def learning() -> str:
    """Return what a policy can be trained for: tasks, rewards, and the terms of rewards."""
    from yardmaster.envs.rewards import REWARDS, TERM_MEANING
    from yardmaster.envs.task import TASKS

    tasks = [
        {
            "task": f"`{name}`",
            "workload": task.workload,
            "cluster": task.cluster,
            "jobs of an episode": task.jobs,
            "reward": task.reward if isinstance(task.reward, str) else "weights of its own",
            "window": task.sight.window,
            "told of run times": task.sight.information,
        }
        for name, task in TASKS.items()
    ]
    rewards = [
        {
            "reward": f"`{name}`",
            "what it is": reward.meaning,
            "weights": ", ".join(f"`{term}` {weight:g}" for term, weight in reward.weights.items()),
        }
        for name, reward in REWARDS.items()
    ]
    terms = [
        {"term": f"`{term.name.lower()}`", "meaning": meaning}
        for term, meaning in TERM_MEANING.items()
    ]
    return "\n".join(
        [
            "# Tasks and rewards\n",
            (
                "Of environments that pick jobs ([mdp](../mdp.md)); those that choose schedulers"
                " are in [mdp-choosing](../mdp-choosing.md), learners in"
                " [learning](../learning.md).\n"
            ),
            "## Tasks\n",
            table(tasks),
            "## Rewards\n",
            table(rewards),
            "## Terms of rewards\n",
            (
                "A reward of your own is weights of these, in a file's `[task]` table:"
                " `reward = { waiting = -1.0, late = -5.0 }`.\n"
            ),
            table(terms),
        ]
    )


def contents() -> str:
    """Return the page that leads to the others."""
    return (
        "# Reference\n\nWritten from the code; `make reference` writes it again.\n\n"
        "- [cli.md](cli.md): every command, its options, defaults and choices\n"
        "- [schedulers.md](schedulers.md): orders, disciplines, placements, policies, choosers\n"
        "- [metrics.md](metrics.md): every metric, its unit and definition\n"
        "- [workloads.md](workloads.md): columns, trace formats, generators, clusters, GPU types\n"
        "- [learning.md](learning.md): tasks, rewards and their terms\n"
    )


PAGES: dict[str, Callable[[], str]] = {
    "README.md": contents,
    "cli.md": commands,
    "schedulers.md": schedulers,
    "metrics.md": metrics,
    "workloads.md": workloads,
    "learning.md": learning,
}


def pages() -> dict[str, str]:
    """Return every page of the reference by the name of its file."""
    return {name: f"{NOTE}\n{make().rstrip()}\n" for name, make in PAGES.items()}


def main() -> int:
    """Write the pages, or say which are not what the code says."""
    parser = argparse.ArgumentParser(description="Write docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    is_check = parser.parse_args().check
    stale = []
    for name, text in pages().items():
        path = FOLDER / name
        if not path.is_file() or path.read_text("utf-8") != text:
            stale.append(name)
            if not is_check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, "utf-8")
    sys.stdout.write(f"{'stale' if is_check else 'written'}: {', '.join(stale) or 'none'}\n")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
