"""How long an import takes beside a bare polars scan-and-parse of the same columns.

    python benchmarks/importing.py [--rows 3000000] [--repeats 5]

Writes a Helios-shaped log of made-up jobs, then, alternating in fresh processes, (a) scans it with
polars, parses the same columns and throws the result away, and (b) imports it into a Parquet file
with its account. Prints medians of the times, their ratio and the largest memory of each. The bare
scan is of the nine columns that the importer needs, and of all twelve.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

COLUMNS = (
    "job_id",
    "user",
    "vc",
    "gpu_num",
    "cpu_num",
    "state",
    "submit_time",
    "duration",
    "queue",
)
"""What the importer reads of a Helios log."""

MEASURED = """
import json, re, sys, time
{preparation}
begun = time.perf_counter()
{work}
took = time.perf_counter() - begun
most = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(json.dumps([took, int(most[1]) / 1024]))
"""
BARE = MEASURED.format(
    preparation="import polars as pl",
    work=f"""
pl.scan_csv(sys.argv[1]).select({list(COLUMNS)!r}).with_columns(
    pl.col("submit_time").str.to_datetime("%Y-%m-%d %H:%M:%S")
).collect()
""",
)
WHOLE = BARE.replace(f".select({list(COLUMNS)!r})", "").replace(
    'pl.col("submit_time")', 'pl.col("submit_time", "start_time", "end_time")'
)
IMPORT = MEASURED.format(
    preparation="""
from pathlib import Path
from yardmaster.workloads.traces.formats import import_trace, trace_formats
import yardmaster.workloads.tables
trace_formats()
""",
    work='import_trace([sys.argv[1]], "helios").write(Path(sys.argv[2]), overwrite=True)',
)


def made_up_log(path: Path, rows: int) -> None:
    """Write a log with the columns, the share of CPU jobs and the spread of Helios."""
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(1_585_699_200, 1_601_510_400, rows))
    queue = np.where(
        rng.random(rows) < 0.7, rng.integers(0, 10, rows), rng.integers(0, 90_000, rows)
    )
    duration = np.exp(rng.normal(5.8, 2.6, rows)).astype(np.int64).clip(0, 1_209_700)
    gpus = np.where(rng.random(rows) < 0.53, 0, rng.choice([1, 2, 4, 8, 16, 32], rows))
    states = ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"]

    def dates(seconds: npt.NDArray[np.int64]) -> pl.Series:
        moments = pl.Series(seconds) * 1_000_000
        return moments.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d %H:%M:%S")

    def names(prefix: str, count: int) -> pl.Series:
        known = pl.Series([f"{prefix}{number:04d}" for number in range(count)])
        return known.gather(rng.integers(0, count, rows))

    pl.DataFrame(
        {
            "job_id": np.arange(rows) + 300_000,
            "user": names("u", 300),
            "vc": names("vc", 25),
            "gpu_num": gpus,
            "cpu_num": rng.integers(1, 64, rows),
            "node_num": np.maximum(1, gpus // 8),
            "state": rng.choice(states, rows, p=[0.7, 0.15, 0.13, 0.01, 0.01]),
            "submit_time": dates(submit),
            "start_time": dates(submit + queue),
            "end_time": dates(submit + queue + duration),
            "duration": duration,
            "queue": queue,
        }
    ).write_csv(path)


def measured(script: str, *arguments: str) -> tuple[float, float]:
    """Run a script in a process of its own; return seconds and MiB."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own)
    seconds, mib = json.loads(done.stdout)
    return seconds, mib


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder) / "cluster_log.csv", Path(folder) / "out.parquet"
        made_up_log(log, chosen.rows)
        size = log.stat().st_size / 2**20
        print(f"{chosen.rows:,} rows, {size:.0f} MiB; medians of {chosen.repeats}, alternating")
        found: dict[str, list[tuple[float, float]]] = {
            "bare": [],
            "all 12 columns": [],
            "import": [],
        }
        for _ in range(chosen.repeats):
            found["bare"].append(measured(BARE, str(log)))
            found["all 12 columns"].append(measured(WHOLE, str(log)))
            found["import"].append(measured(IMPORT, str(log), str(out)))
    base = statistics.median(seconds for seconds, _ in found["bare"])
    for name, runs in found.items():
        seconds = statistics.median(run[0] for run in runs)
        most = max(run[1] for run in runs)
        print(f"{name:15} {seconds:6.2f} s  {seconds / base:5.2f} x  {most:5.0f} MiB")


if __name__ == "__main__":
    main()
