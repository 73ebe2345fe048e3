"""Judge the project by its checklist: run what can be run, and print the score.

Rows are in checklist.toml. A row gets 2 if its tests pass, its files hold what they should and its
checks succeed, 0 if not; a row that is known to fall short is capped, with the reason. Rows whose
tests were skipped here (no browser, no Slurm) are not judged and count nothing. What no command can
judge is printed beside the row.

python benchmarks/checklist.py               # a few minutes; or: make checklist
python benchmarks/checklist.py --rows 1,7    # some rows only
python benchmarks/checklist.py --list        # the rows, and how each is judged; runs nothing
"""

from __future__ import annotations

import argparse
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
FULL = 2
BAR, ALL_OF_WEIGHT = 190, 3
"""Points to reach, and the weight whose rows must all have full marks."""

BARE = """
import socket, sys
sys.modules |= dict.fromkeys(("torch", "ray", "optuna", "sklearn", "lightgbm", "tensorboardX"))
def refused(*_):
    raise OSError("there is no network here")
socket.socket.connect = refused
from yardmaster.cli.app import app
app(["demo", "--quick", "-q"])
"""
"""The quick demo where connecting and importing what is optional both fail."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a row: points, None if it could not be judged; and words."""

    points: int | None
    words: str = ""


def command(folder: Path, *arguments: str) -> bool:
    """Whether a command succeeds in a folder, on the CPU alone."""
    done = subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    return done.returncode == 0


def bare_machine(folder: Path) -> str:
    """Say what is wrong where there is no GPU, no network and no torch."""
    is_well = command(folder, "-c", BARE) and (folder / "demo" / "report.html").is_file()
    return "" if is_well else "the quick demo fails without torch, GPU and network"


def all_schedulers(folder: Path) -> str:
    """Say what is wrong with comparing every order at once."""
    compare = ("-m", "yardmaster", "compare", "--schedulers", "all", "--jobs", "60", "--seeds", "2")
    return "" if command(folder, *compare, "-q", "-o", "all") else "compare --schedulers all fails"


def parquet_results(folder: Path) -> str:
    """Say what is wrong with the Parquet files of a run directory."""
    simulate = ("-m", "yardmaster", "simulate", "--jobs", "50", "-q", "-o", "run")
    is_well = command(folder, *simulate) and list((folder / "run" / "jobs").glob("*.parquet"))
    return "" if is_well else "a run directory holds no jobs as Parquet"


def import_speed(folder: Path) -> str:
    """Say what is wrong with the processor time that importing three million rows takes."""
    made = runpy.run_path(str(ROOT / "benchmarks" / "importing.py"), run_name="importing")
    log = folder / "cluster_log.csv"
    made["made_up_log"](log, 3_000_000)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    is_well = command(folder, "-m", "yardmaster", "workload", "import", log.name, "-o", "x.parquet")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not is_well:
        return "importing a made-up Helios log fails"
    return (
        "" if took_s <= 3.0 else f"importing 3,000,000 rows took {took_s:.1f} s of processor time"
    )


CHECKS: Mapping[str, Callable[[Path], str]] = {
    "bare_machine": bare_machine,
    "all_schedulers": all_schedulers,
    "parquet_results": parquet_results,
    "import_speed": import_speed,
}


def run_tests(names: Sequence[str]) -> dict[str, str]:
    """Run tests together; return `passed`, `skipped` or `failed` by `file::test[case]`."""
    if not names:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        options = ("-q", "-p", "no:cacheprovider", f"--junitxml={results}", "-o", "addopts=")
        modes = ("--import-mode=importlib", "--strict-markers")
        subprocess.run(  # noqa: S603  (our own tests)
            [sys.executable, "-m", "pytest", *options, *modes, *names], cwd=ROOT, check=False
        )
        if not results.is_file():
            return {}
        cases = ET.parse(results).iter("testcase")  # noqa: S314  (written by our own tests)
        return {_node(case): _outcome(case) for case in cases}


def _node(case: ET.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def judged(row: Mapping[str, Any], outcomes: Mapping[str, str], folder: Path) -> Verdict:
    """Return a row's points, and what there is to say about them."""
    wrong: list[str] = []
    skipped: list[str] = []
    for name in row.get("tests", ()):
        found = [(node, how) for node, how in outcomes.items() if _is_of(node, name)]
        if not found:
            wrong.append(f"{name} was not found")
        wrong += [f"{node} failed" for node, how in found if how == "failed"]
        skipped += [node for node, how in found if how == "skipped"]
    for named in row.get("files", ()):
        file, _, text = named.partition(": ")
        path = ROOT / file
        if not path.is_file() or text not in path.read_text("utf-8"):
            wrong.append(f"{named} is missing")
    wrong += [words for name in row.get("checks", ()) if (words := CHECKS[name](folder))]
    if wrong:
        return Verdict(0, "; ".join(wrong))
    if skipped:
        return Verdict(None, f"{len(skipped)} of its tests were skipped, such as {skipped[0]}")
    return Verdict(row.get("most", FULL), row.get("why", ""))


def _is_of(node: str, name: str) -> bool:
    """Whether a case belongs to what was named: itself, its test, or its file."""
    return node == name or node.startswith((f"{name}[", f"{name}::"))


def report(rows: Sequence[Mapping[str, Any]], verdicts: Sequence[Verdict]) -> int:
    """Print rows and score; return 0 if the bar is reached on what was judged."""
    points = reachable = 0
    short: list[int] = []
    for row, verdict in zip(rows, verdicts, strict=True):
        weight, got = row["weight"], verdict.points
        print(f"{row['number']:3d}  w{weight}  {'–' if got is None else got}/2  {row['what']}")
        for words in filter(None, (verdict.words, row.get("look"))):
            print(f"{'':15}{words}")
        if got is not None:
            points += got * weight
            reachable += FULL * weight
        if weight == ALL_OF_WEIGHT and got != FULL:
            short.append(row["number"])
    total = sum(FULL * row["weight"] for row in rows)
    print(f"\n{points} of {reachable} points judged here, {total} in all (bar: {BAR} of 210)")
    if short:
        print(f"below full marks, though of weight {ALL_OF_WEIGHT}: {', '.join(map(str, short))}")
    return 0 if not short and points >= BAR * total / 210 else 1


def main() -> int:
    """Judge all rows, or those asked for."""
    parser = argparse.ArgumentParser(description="Judge the project by its checklist.")
    parser.add_argument("--rows", default="", help="numbers of rows, separated by commas")
    parser.add_argument("--list", action="store_true", help="show how rows are judged; run nothing")
    options = parser.parse_args()
    rows = tomllib.loads((Path(__file__).parent / "checklist.toml").read_text("utf-8"))["row"]
    if options.rows:
        wanted = {int(number) for number in options.rows.split(",")}
        rows = [row for row in rows if row["number"] in wanted]
    if options.list:
        for row in rows:
            ways = [*row.get("tests", ()), *row.get("files", ()), *row.get("checks", ())]
            print(f"{row['number']:3d}  w{row['weight']}  {row['what']}: {'; '.join(ways) or '–'}")
        return 0
    outcomes = run_tests(sorted({name for row in rows for name in row.get("tests", ())}))
    verdicts = []
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            verdicts.append(judged(row, outcomes, Path(folder)))
    return report(rows, verdicts)


if __name__ == "__main__":
    sys.exit(main())
