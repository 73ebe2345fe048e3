"""The league table of schedulers: `python experiments/league.py STEP`.

    python experiments/league.py inputs                    logs as arrays (needs polars)
    python experiments/league.py heuristics                every heuristic on every scene
    python experiments/league.py policies [policy:a …]     trained policies on the same windows
    python experiments/league.py best                      the best heuristics of each scene
    python experiments/league.py page                      write docs/results.md

What has been played is kept in `runs/league`; heuristics do not play twice, policies that are named
do. The page is written from what is kept, and from nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from league_scenes import LOGS, ROOT, SCENES, prepared, scene_named
from league_store import STORE, Record, read_record

from yardmaster.errors import YardmasterError

STEPS = ("inputs", "heuristics", "policies", "best", "page")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do the step asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("schedulers", nargs="*", help="policy:NAME or policy:PATH; by default all"
                        " that come with Yardmaster")  # fmt: skip
    parser.add_argument("--scenes", type=_names, default=list(SCENES), help=", ".join(SCENES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="heuristics play again, too")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results.md")
    chosen = parser.parse_args(arguments)
    try:
        carry_out(chosen)
    except YardmasterError as error:
        sys.exit(f"{error}")


def carry_out(chosen: argparse.Namespace) -> None:
    """Do one step."""
    scenes = [scene_named(name).name for name in chosen.scenes]
    if chosen.step == "inputs":
        for name in LOGS:
            _say(f"{name}: {len(prepared(name)):,} jobs")
    elif chosen.step in ("heuristics", "policies"):
        _play(chosen, scenes)
    elif chosen.step == "best":
        from league_standings import best_page

        print(best_page(_records(chosen, scenes)))
    else:
        from league_page import write_page

        print(write_page(_records(chosen, scenes), chosen.page))


def _play(chosen: argparse.Namespace, scenes: Sequence[str]) -> None:
    from league_heuristics import everybody
    from league_replays import play_all

    from yardmaster.schedulers.learned.catalogue import shipped_names

    is_policies = chosen.step == "policies"
    policies = chosen.schedulers or [f"policy:{name}" for name in shipped_names()]
    play_all(
        scenes,
        policies if is_policies else everybody(),
        workers=chosen.workers,
        again=chosen.again or is_policies,
        say=_say,
        folder=chosen.store,
    )


def _records(chosen: argparse.Namespace, scenes: Sequence[str]) -> list[Record]:
    """Return what was played in these scenes; those where nothing was are left out."""
    found = [read_record(name, chosen.store) for name in scenes]
    records = [record for record in found if record is not None]
    if not records:
        raise YardmasterError(f"Nothing has been played yet: there is nothing in {chosen.store}.")
    return records


def _say(text: str) -> None:
    print(text, flush=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    main()
