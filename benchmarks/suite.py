"""How quick experiments are: `python benchmarks/suite.py` (a minute; `--no-ray` half of that).

The matrix of 3,072 runs is made twice from nothing, by local processes and by Ray on this machine,
and both tables must be the same bytes. The bars: 60 s on two processors, and with Ray at most 5 ms
a run beyond drawing, simulating and measuring. The overhead counts processors' time from the first
batch to the last, so that waiting for each other is in it and starting up is not.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

from yardmaster.experiments.suite.document import load_suite
from yardmaster.experiments.suite.results import read_results
from yardmaster.experiments.suite.run import EngineName, run_suite
from yardmaster.experiments.suite.store import opened

BAR_S = 60.0
BAR_OVERHEAD_MS = 5.0


class Measurement(NamedTuple):
    """What one engine needed."""

    seconds: float
    """From the start to the table."""
    run_ms: float
    """Simulating and measuring one run, mean."""
    overhead_ms: float
    """Processor time of a run beyond that."""


def measure(engine: EngineName, folder: Path, workers: int) -> Measurement:
    """Make the whole matrix from nothing."""
    moments: list[tuple[float, int]] = []

    def progress(_label: str, done: int, _total: int) -> None:
        moments.append((time.perf_counter(), done))

    begun = time.perf_counter()
    run_suite(load_suite("matrix"), folder, engine=engine, workers=workers, progress=progress)
    seconds = time.perf_counter() - begun
    with opened(folder / "runs.sqlite", read_only=True) as store:
        taken = store.seconds(read_results(folder)["cell"].to_list())
    run_s = float(taken[taken > 0].mean())
    busy_s = (moments[-1][0] - moments[0][0]) * workers / moments[-1][1]
    return Measurement(seconds, 1000 * run_s, 1000 * (busy_s - run_s))


def main() -> None:
    """Measure both engines and hold them against the bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Ray's, about its own plans
    engines: list[EngineName] = ["local"] if options.no_ray else ["local", "ray"]
    tables = set()
    print(f"engine  3,072 runs (s)  a run (ms)  overhead (ms)   on {options.workers} processors")
    with tempfile.TemporaryDirectory() as place:
        for engine in engines:
            found = measure(engine, Path(place) / engine, options.workers)
            tables.add((Path(place) / engine / "results.parquet").read_bytes())
            is_met = found.seconds <= BAR_S and found.overhead_ms <= BAR_OVERHEAD_MS
            print(
                f"{engine:6} {found.seconds:15.1f} {found.run_ms:11.2f} {found.overhead_ms:14.2f}"
                f"   {'PASS' if is_met else 'MISS'}"
            )
    print(f"tables of all engines: {'the same bytes' if len(tables) == 1 else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
