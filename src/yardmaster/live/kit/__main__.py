"""The command line of the job kit: argparse alone, so that a job starts as fast as it can."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from yardmaster.live.kit.kinds import KINDS


def main(arguments: list[str] | None = None) -> int:
    """Run one job; print what it did as one line of JSON; return 0."""
    began_s = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m yardmaster.live.kit", description=__doc__)
    parser.add_argument("kind", choices=sorted(KINDS), help="what the job does")
    parser.add_argument("--runtime", type=float, required=True, metavar="S",
                        help="seconds of work, from when the job is ready")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of data and weights")
    parser.add_argument("--fail", action="store_true", help="end with exit code 1 after the work")
    options = parser.parse_args(arguments)
    if not 0 <= options.runtime <= 1e7:
        parser.error(f"--runtime must be between 0 and 10,000,000 s, got {options.runtime:g}")
    step = KINDS[options.kind](options.seed)
    step()  # the first step loads and compiles: it belongs to getting ready
    ready_s = time.monotonic()
    steps = 0
    while time.monotonic() - ready_s < options.runtime:
        step()
        steps += 1
    worked_s = time.monotonic() - ready_s
    done = {
        "kind": options.kind,
        "steps": steps,
        "ready_after_s": round(ready_s - began_s, 4),
        "worked_s": round(worked_s, 4),
    }
    sys.stdout.write(json.dumps(done) + "\n")
    return int(options.fail)


if __name__ == "__main__":
    CODE = main()
    sys.stdout.flush()
    # Not sys.exit: taking a GPU's context apart costs time, and now and then aborts the process.
    os._exit(CODE)
