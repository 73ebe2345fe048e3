"""Play: schedulers tried out from the page, on clusters and workloads of the catalogues.

Only names of the catalogues and bounded numbers become words of a command: nothing that a page
sends can name a file or a module.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.security import require_intent
from yardmaster.dashboard.serving import answer, json_body
from yardmaster.names import did_you_mean

LIMITS: Mapping[str, tuple[float, float]] = {
    "jobs": (1, 50_000),
    "load": (0.05, 3.0),
    "seed": (0, 2**31 - 1),
    "seeds": (1, 16),
    "schedulers": (1, 12),
}
"""Smallest and largest of every number, so that nothing runs for hours."""
SUGGESTED = ("fifo+easy~estimate", "sjf+easy~estimate", "fifo+skip", "sjf+skip", "qssf+skip")
"""Schedulers that are ticked at first: what clusters run, and what one could run instead."""
MORE_SUGGESTIONS = (
    "fifo+strict",
    "fifo+conservative~estimate",
    "slurm-multifactor+easy~estimate",
    "smallest-first+skip",
    "sjf+easy",
    "saf+easy",
    "srpt+preemptive",
    "las-2d+preemptive",
)
FIGURES = ("mean_jct_s", "p95_jct_s", "mean_wait_s", "mean_bounded_slowdown", "utilisation")
_NAME = re.compile(
    r"(?P<order>[a-z0-9-]+)(\+(?P<discipline>[a-z]+))?(@(?P<placement>[a-z]+))?(~estimate)?"
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to see, checked."""

    cluster: str
    workload: str
    load: float
    jobs: int
    seed: int
    seeds: int
    schedulers: tuple[str, ...]

    def words(self, folder: Path) -> list[str]:
        """Return the command that shows it."""
        several = len(self.schedulers) > 1 or self.seeds > 1
        words = ["compare"] if several else ["simulate"]
        words.append(f"--{'schedulers' if several else 'scheduler'}={','.join(self.schedulers)}")
        words += [f"--seeds={self.seeds}"] if several else []
        return [
            *words, f"--workload={self.workload}", f"--cluster={self.cluster}",
            f"--jobs={self.jobs}", f"--load={self.load:g}", f"--seed={self.seed}",
            f"--out={folder}",
        ]  # fmt: skip


def routes(desk: Desk) -> list[BaseRoute]:
    """Say what can be chosen, and begin."""

    async def choices(_: Request) -> Response:
        return answer(await run_in_threadpool(catalogue))

    async def begin(request: Request) -> Response:
        require_intent(request, desk)
        wish = await run_in_threadpool(checked, await json_body(request))
        name = _free_name(desk.runs.path, wish)
        folder = desk.runs.path / name
        work = desk.bench.submit("play", wish.words(folder), run=name, folder=folder)
        return answer(work.told())

    def result(request: Request) -> Response:
        folder = desk.runs.resolve(request.query_params.get("run", ""))
        return answer({"rows": ranking(folder)})

    return [
        Route("/api/play/choices", choices),
        Route("/api/play", begin, methods=["POST"]),
        Route("/api/play/result", result),
    ]


@cache
def catalogue() -> dict[str, Any]:
    """Return everything that can be chosen, from the project's own lists."""
    from yardmaster.engine.state import Discipline
    from yardmaster.model.catalogue import cluster_descriptions, load_cluster
    from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS, READS_RUN_TIMES
    from yardmaster.schedulers.orders import ORDERS
    from yardmaster.workloads.synthetic import PRESETS

    machines = {name: load_cluster(name) for name in cluster_descriptions()}
    return {
        "clusters": [
            {"name": name, "text": text, "nodes": found.nodes, "gpus": found.gpus}
            for name, text in cluster_descriptions().items()
            for found in [machines[name]]
        ],
        "workloads": [{"name": name, "text": one.description} for name, one in PRESETS.items()],
        "orders": [
            {"name": one.name, "text": one.formula, "reads_run_times": one.reads_run_time}
            for one in ORDERS.values()
        ],
        "disciplines": [
            {
                "name": name,
                "text": text,
                "reads_run_times": Discipline[name.upper()] in READS_RUN_TIMES,
            }
            for name, text in DISCIPLINES.items()
        ],
        "placements": [{"name": name, "text": text} for name, text in PLACEMENTS.items()],
        "ready": [{"name": name, "text": text} for name, text in _ready().items()],
        "suggested": list(SUGGESTED),
        "more": list(MORE_SUGGESTIONS),
        "limits": {name: list(span) for name, span in LIMITS.items()},
    }


@cache
def _ready() -> dict[str, str]:
    """Return trained policies, choosers and bandits by name, with a few words on each."""
    from yardmaster.schedulers.learned.catalogue import describe_shipped, shipped_names
    from yardmaster.schedulers.meta.bandits import BANDITS
    from yardmaster.schedulers.meta.choosers import shipped_names as chooser_names

    found = {
        f"policy:{name}": f"trained policy, {describe_shipped(name).information}:"
        f" {describe_shipped(name).objective}"
        for name in shipped_names()
    }
    found |= {f"meta:{name}": "trained to choose among schedulers" for name in chooser_names()}
    return found | {f"bandit:{name}": kind.summary for name, kind in BANDITS.items()}


def checked(body: Mapping[str, Any]) -> Wish:
    """Return a page's wish if every part of it is in the catalogues and within the limits.

    Raises:
        Refusal: with the first mistake.
    """
    from yardmaster.model.catalogue import cluster_names
    from yardmaster.workloads.synthetic import PRESETS

    unknown_keys = set(body) - set(Wish.__dataclass_fields__)
    if unknown_keys:
        raise Refusal(400, f"Not known: {', '.join(sorted(map(repr, unknown_keys)))}.")
    names = body.get("schedulers")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refusal(400, "schedulers must be a list of names.")
    schedulers = tuple(dict.fromkeys(name.strip() for name in names))
    least, most = LIMITS["schedulers"]
    if not least <= len(schedulers) <= most:
        raise Refusal(400, f"Choose {least:g} to {most:g} schedulers, not {len(schedulers)}.")
    for name in schedulers:
        refuse_unlisted(name)
    return Wish(
        cluster=_one_of("cluster", body.get("cluster"), cluster_names()),
        workload=_one_of("workload", body.get("workload"), tuple(PRESETS)),
        load=_number("load", body.get("load", 0.9)),
        jobs=int(_number("jobs", body.get("jobs", 2000))),
        seed=int(_number("seed", body.get("seed", 0))),
        seeds=int(_number("seeds", body.get("seeds", 1))),
        schedulers=schedulers,
    )


def refuse_unlisted(name: str) -> None:
    """Complain about a scheduler that the lists do not hold; its name is never looked up as a file.

    Raises:
        Refusal: naming the part that is wrong.
    """
    from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS
    from yardmaster.schedulers.orders import ORDERS

    if name in _ready():
        return
    found = _NAME.fullmatch(name)
    if found is None:
        hint = did_you_mean(name, [*_ready(), *ORDERS])
        raise Refusal(
            400, f"Cannot read scheduler {name!r}: write ORDER+DISCIPLINE@PLACEMENT.{hint}"
        )
    for part, known in (("order", ORDERS), ("discipline", DISCIPLINES), ("placement", PLACEMENTS)):
        word = found[part]
        if word is not None and word not in known:
            raise Refusal(400, f"Unknown {part} {word!r}.{did_you_mean(word, known)}")


def ranking(folder: Path) -> list[dict[str, Any]]:
    """Return the main figures of every scheduler of a run, the shortest mean JCT first.

    Raises:
        Refusal: if the run has no results.
    """
    try:
        rows = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        by_name: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            by_name.setdefault(str(row["scheduler"]), []).append(row)
        found = [
            {"scheduler": name, "workloads": len(group)}
            | {key: fmean(float(one[key]) for one in group) for key in FIGURES}
            for name, group in by_name.items()
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise Refusal(404, "This run has no results to show.") from None
    return sorted(found, key=lambda row: row["mean_jct_s"])


def _one_of(what: str, name: object, known: tuple[str, ...]) -> str:
    if not isinstance(name, str) or name not in known:
        raise Refusal(400, f"Unknown {what} {name!r}.{did_you_mean(str(name), known)}")
    return name


def _number(what: str, value: object) -> float:
    least, most = LIMITS[what]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:  # type: ignore[arg-type,operator]
        raise Refusal(400, f"{what} must be a number from {least:g} to {most:g}, not {value!r}.")
    if what != "load" and value != int(value):  # type: ignore[call-overload]
        raise Refusal(400, f"{what} must be a whole number, not {value!r}.")
    return float(value)  # type: ignore[arg-type]


def _free_name(runs: Path, wish: Wish) -> str:
    """Return a name for the run that nothing in the folder has."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    base = f"play-{wish.workload}-{stamp}"
    name, number = base, 1
    while (runs / name).exists():
        number += 1
        name = f"{base}-{number}"
    return name
