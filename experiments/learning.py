"""How good the learners are: `python experiments/learning.py`.

Three steps, each of which can be repeated; what is finished is not done again:

    python experiments/learning.py prepare                 traces as arrays (needs polars)
    python experiments/learning.py run --workers 16        train and evaluate (NumPy, Numba, torch)
    python experiments/learning.py report                  write docs/results (needs Matplotlib)

Without a step, all three. `run` may happen on another machine: take the folder of inputs there,
and bring its folder of results back. With `--minutes` it stops in time, and goes on the next time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from learning_studies import STUDIES

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("prepare", "run", "report", "all")
COUNTED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""How many threads libraries use is decided when they are loaded: one each, for many trainings."""


def run(chosen: argparse.Namespace) -> int:
    """Train and evaluate; return how many jobs are left."""
    for name in COUNTED:
        os.environ.setdefault(name, "1")
    from learning_runs import carry_out_all, jobs_of

    deadline = float("inf") if chosen.minutes is None else time.time() + 60.0 * chosen.minutes
    jobs = jobs_of(
        [STUDIES[name] for name in chosen.study],
        out=chosen.out,
        seeds=chosen.seeds,
        only=chosen.only,
        steps=chosen.steps,
        episodes=chosen.episodes,
        device=chosen.device,
        deadline=deadline,
    )
    return carry_out_all(jobs, chosen.workers, lambda text: print(text, flush=True))


def report(chosen: argparse.Namespace) -> None:
    """Write the pages."""
    from learning_pages import write_pages
    from learning_results import read_results

    found = {name: read_results(STUDIES[name], chosen.out) for name in chosen.study}
    known = {name: results for name, results in found.items() if results is not None}
    for path in write_pages(known, chosen.docs, chosen.ran_on):
        print(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do the steps asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", nargs="?", choices=STEPS, default="all")
    parser.add_argument("--study", type=_names, default=list(STUDIES), help=", ".join(STUDIES))
    parser.add_argument("--only", type=_names, default=[], help="learners, or cells of a study")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each")
    parser.add_argument("--steps", type=int, help="environment steps, in place of the settings'")
    parser.add_argument("--episodes", type=int, default=60, help="of VAL and of REPORT")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="of PPO's networks"
    )
    parser.add_argument("--minutes", type=float, help="stop after so long; the next run goes on")
    parser.add_argument("--ran-on", default="", help="machine of the trainings, for the pages")
    parser.add_argument("--traces", type=Path, default=ROOT / ".." / "shared" / "traces")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "learning")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "results")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.study if name not in STUDIES]
    if unknown:
        parser.error(f"no study {', '.join(unknown)}; there are {', '.join(STUDIES)}")
    left = 0
    if chosen.step in ("prepare", "all"):
        from learning_inputs import prepare

        wanted = {STUDIES[name].trace for name in chosen.study} - {""}
        for path in prepare(chosen.out / "inputs", chosen.traces, wanted):
            print(path)
    if chosen.step in ("run", "all"):
        left = run(chosen)
    if chosen.step in ("report", "all"):
        report(chosen)
    sys.exit(1 if left else 0)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    main()
