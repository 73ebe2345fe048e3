"""Measure Yardmaster's replay beside plain Python and SimPy: `python benchmarks/run.py`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from yardmaster.experiments.benchmark import checkout_rivals, measure
from yardmaster.experiments.benchmark_tables import to_record, to_text
from yardmaster.experiments.measurements import FULL, QUICK


def main() -> None:
    """Measure, print the tables, and write the numbers where the caller wants them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="at most 10,000 jobs, half a minute")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    arguments = parser.parse_args()
    benchmark = measure(
        QUICK if arguments.quick else FULL, rivals=checkout_rivals(), progress=_report_progress
    )
    print(to_text(benchmark, colour=sys.stdout.isatty()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(to_record(benchmark), indent=2) + "\n")


def _report_progress(label: str, fraction: float) -> None:
    print(f"[{fraction:4.0%}] {label}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
