"""Make a page of results again: `python experiments/results.py NAME`.

    python experiments/results.py --list      the names, the commands, and how long they take
    python experiments/results.py league      run the commands of one, in order

Each command goes on where it was interrupted, so that the same line can be given again. They are
run in the root of the repository and write what the page names: the page itself, or a folder below
`runs` with the tables and figures in it.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Result:
    """A page of results, the commands that make it, and what they take."""

    page: str
    commands: tuple[str, ...]
    takes: str


RESULTS = {
    "league": Result(
        "docs/results.md",
        (
            "python experiments/league.py inputs",
            "python experiments/league.py heuristics",
            "python experiments/league.py policies",
            "python experiments/league.py page",
        ),
        "long: 234 schedulers on every scene; needs the traces of docs/data.md",
    ),
    "learners": Result(
        "docs/results/README.md",
        ("python experiments/learning.py",),
        "long: the pages say how many trainings and minutes; needs the traces of docs/data.md",
    ),
    "lookahead": Result(
        "docs/results/lookahead.md",
        (
            "python experiments/learning.py prepare",
            "python experiments/learning.py run --study lookahead",
            "python experiments/learning.py report",
        ),
        "long; the last step writes the pages of all studies that were run",
    ),
    "choosing": Result(
        "docs/results/choosing.md",
        (
            "python experiments/meta_training.py inputs",
            "python experiments/meta_training.py train runs/choosers",
            "python experiments/meta_room.py runs/meta-results",
            "python experiments/meta_results.py runs/choosers runs/meta-results",
        ),
        "long: five trainings for each family and objective",
    ),
    "ablation": Result(
        "docs/results/choosing-ablation.md",
        (
            (
                "yardmaster experiment ablation --family rlmetadqn --reward mixed --seeds 5"
                " --steps 60000 --test-seeds 4 -o runs/ablation"
            ),
            "yardmaster report runs/ablation",
        ),
        "ten minutes",
    ),
    "robustness": Result(
        "docs/results/robustness.md",
        (
            "yardmaster experiment robustness -o runs/experiment-robustness",
            "python experiments/robustness_page.py runs/experiment-robustness",
        ),
        "minutes",
    ),
    "hard": Result("docs/regimes.md", ("python benchmarks/regimes.py hard drift",), "two minutes"),
    "live": Result(
        "docs/results/live.md",
        ("python experiments/live_node.py runs/live-node --slots-per-gpu 16 --limit-s 500",),
        "25 minutes on a machine with a GPU, in slices: again, until all cells have run",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the commands of one page, or list them all."""
    parser = argparse.ArgumentParser(description="Make a page of results again.")
    parser.add_argument("name", nargs="?", choices=RESULTS, help="which page")
    parser.add_argument("--list", action="store_true", help="show names and commands; run nothing")
    chosen = parser.parse_args(arguments)
    if chosen.list or chosen.name is None:
        for name, result in RESULTS.items():
            print(f"{name}: {result.page} ({result.takes})")
            print("".join(f"    {command}\n" for command in result.commands), end="")
        return 0
    for command in RESULTS[chosen.name].commands:
        print(f"$ {command}", flush=True)
        done = subprocess.run(as_run(command), cwd=ROOT, check=False)  # noqa: S603  (our own)
        if done.returncode:
            return done.returncode
    return 0


def as_run(command: str) -> list[str]:
    """Return a command line with this Python in place of `python` and `yardmaster`."""
    program, *rest = shlex.split(command)
    return [sys.executable, *(["-m", "yardmaster"] if program == "yardmaster" else []), *rest]


if __name__ == "__main__":
    sys.exit(main())
