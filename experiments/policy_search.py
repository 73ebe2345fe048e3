"""Policies found by evolution: begin as a heuristic, keep what does better on training windows.

`python experiments/policy_search.py NAME … --generations 600` searches for policies, one after the
other, and goes on where it was left. A policy is the small network that `train` makes too, but its
first weights are set by hand so that it decides nearly as `saf+easy` (or `qssf+skip`, if blind)
does. Every generation draws windows of the training parts, on many machines at many loads; pairs of
opposite changes of the weights play them from the first job to the last; the weights move towards
those who did better. What counts is the metric itself, against the best of a few heuristics on the
same window, so nothing has to be said about rewards or discounts. No torch, no GPU.

Windows are drawn from training parts alone, and from seeds that the league does not judge by.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from league_replays import measured
from league_scenes import HEAVY_TAILS, Scene, generated, jobs_of, window

from yardmaster.engine.picking.sight import Sight
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.learned.driving import drive_policy
from yardmaster.schedulers.learned.packing import pack
from yardmaster.schedulers.learned.policy import LearnedPolicy
from yardmaster.schedulers.learned.policy_file import PolicyFile, write_policy
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.files import whole_file

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "runs" / "policies" / "search"
UNITS = 24
"""Units of both hidden layers."""
METRICS = ("bounded_slowdown", "jct", "p95")
"""The first metrics of `league_store.METRICS`, by the names of objectives."""
LOSING = 1.0
"""What being behind the best heuristic of a window counts beyond what being ahead of it does."""
_KNOWING = ("sjf+easy", "saf+easy", "saf+conservative", "saf+strict")
RIVALS = {
    "clairvoyant": _KNOWING,
    "estimate": tuple(f"{name}~estimate" for name in _KNOWING),
    "blind": ("qssf+skip", "qssf+strict", "lifo+skip", "smallest-first+skip"),
}
"""Heuristics the best of which, in each window and by each metric, is what is to be beaten."""


class Aim(NamedTuple):
    """What a policy knows, how it begins, and what counts."""

    sight: Sight
    waits_for_blocked: bool
    """Whether it begins by starting only what does not delay the first blocked job."""
    weights: dict[str, float]
    """Of the logarithms of metrics."""


def _sight(information: str, order: str) -> Sight:
    return Sight(information=information, window_order=order, ranks=(order,), noop="when_blocked")


OBJECTIVES = {
    "slowdown": {"bounded_slowdown": 1.0, "jct": 1.0},
    "jct": {"jct": 1.0},
    "p95": {"p95": 1.0},
    "mixed": {"bounded_slowdown": 0.3, "jct": 1.0, "p95": 1.0},
}
AIMS = {
    f"{objective}-{information}": Aim(
        _sight(information, "qssf" if information == "blind" else "saf"),
        information != "blind",
        weights,
    )
    for objective, weights in OBJECTIVES.items()
    for information in RIVALS
}

LOGS = {
    # log: nodes, loads (None: its own times), jobs of windows, windows in a generation
    "venus": ((12, 16, 24, 32, 48), (0.8, 1.3), (512, 512, 512, 1536), 4),
    "philly": ((8, 12, 16, 24, 40), (0.9, 2.5), (512, 512, 512, 1536), 4),
    "lublin": ((), None, (256, 256, 768), 3),
    "kth": ((), None, (256, 256, 768), 3),
}
POOLS = {"lublin": "pool:256", "kth": "100x V100:1"}
GENERATED = {
    "venus-like": ("24x V100:8", (0.8, 1.2)),
    "philly-like": ("16x V100:8", (0.8, 2.0)),
    "lognormal": ("8x V100:8", (0.8, 1.3)),
    "acme-like": ("32x A100:8", (0.7, 1.2)),
    HEAVY_TAILS: ("12x V100:8", (0.7, 1.2)),
    "mm": ("2x V100:8", (0.7, 1.1)),
}
KEPT = 48
"""Windows of every log, and a quarter as many of every generator, that generations draw from."""
FIRST_SEED = 2_000_000
"""Of generated windows; the league's are elsewhere."""
TRAINED_ON = (
    "Venus until June 2020, Philly until September 2017, the first 60 % of Lublin-256 and KTH-SP2,"
    " generated jobs; windows of 256 to 1,536 jobs"
)


class Match(NamedTuple):
    """A window, and what the best heuristic reaches in it, by each metric."""

    jobs: Workload
    machines: Cluster
    best: FloatArray


def matches(information: str) -> dict[str, list[Match]]:
    """Return the windows of each source that are played, the same every time."""
    found: dict[str, list[Match]] = {}
    for source, jobs, machines in _windows(np.random.default_rng(1)):
        played = [
            measured(simulate(jobs, machines, rival, compile_core="always"))[: len(METRICS)]
            for rival in RIVALS[information]
        ]
        found.setdefault(source, []).append(Match(jobs, machines, np.min(played, axis=0)))
    return found


def _windows(dice: np.random.Generator) -> Iterator[tuple[str, Workload, Cluster]]:
    for source, (nodes, loads, sizes, _) in LOGS.items():
        for number in range(KEPT):
            cluster = f"{dice.choice(nodes)}x V100:8" if nodes else POOLS[source]
            load = None if loads is None else float(dice.uniform(*loads))
            scene = Scene(source, source, source, cluster, sizes[number % len(sizes)], load)
            jobs = jobs_of(Scene(source, source, source, cluster), "training")
            first = int(dice.integers(0, len(jobs) - scene.jobs))
            yield source, window(scene, jobs, first), scene.machines
    for source, (cluster, loads) in GENERATED.items():
        for number in range(KEPT // 4):
            size, load = 512 if number % 4 else 1536, float(dice.uniform(*loads))
            scene = Scene(source, source, source, cluster, size, load)
            yield source, generated(scene, FIRST_SEED + number), scene.machines


def drawn(found: dict[str, list[Match]], seed: int, generation: int) -> list[Match]:
    """Return the windows of a generation."""
    dice = np.random.default_rng((seed, generation, 1))
    return [
        kept[place]
        for source, kept in found.items()
        for place in dice.choice(len(kept), LOGS[source][3] if source in LOGS else 1, replace=False)
    ]


def behind(policy: LearnedPolicy, match: Match) -> FloatArray:
    """Return how far a policy is behind the best heuristic: logarithm of the ratio, by metric."""
    schedule, _ = drive_policy(
        match.jobs, match.machines, policy, placement=policy.sight.placement, called="candidate"
    )
    return np.log(np.array(measured(schedule)[: len(METRICS)]) / match.best)


def first_weights(aim: Aim) -> dict[str, FloatArray]:
    """Return weights that decide as the heuristic does, in two units; the others say nothing yet.

    The first unit is how far in front a job stands, the second whether it does no harm to the first
    blocked job. Waiting is worth less than a harmless job, and more than any other.
    """
    layout, dice = aim.sight.layout(), np.random.default_rng(1)
    features = layout.job_features
    context = len(layout.global_features) + layout.gpu_slots
    weights = {
        "token.weight": dice.normal(0, 0.35, (len(features), UNITS)),
        "context.weight": dice.normal(0, 0.12, (context, UNITS)),
        "context.bias": dice.normal(0, 0.2, UNITS),
        "hidden.0.weight": dice.normal(0, 0.25, (UNITS, UNITS)),
        "hidden.0.bias": dice.normal(0, 0.1, UNITS),
        "noop": dice.normal(0, 0.3, UNITS),
        "head.0.weight": np.zeros((UNITS, 1)),
        "head.0.bias": np.zeros(1),
        "noop_bias": np.full(1, 2.5 if aim.waits_for_blocked else -1.0),
    }
    own = slice(0, 2)
    weights["token.weight"][:, own] = weights["context.weight"][:, own] = 0.0
    weights["context.bias"][own] = weights["hidden.0.bias"][own] = 0.0
    weights["hidden.0.weight"][:, own] = np.eye(UNITS)[:, own]
    weights["noop"][own] = -2.0, 0.0
    weights["context.bias"][0] = 2.0
    weights["token.weight"][features.index(f"rank_{aim.sight.window_order}"), 0] = -2.0
    weights["token.weight"][features.index("harmless"), 1] = 1.0
    weights["head.0.weight"][own, 0] = 1.0, 3.0 if aim.waits_for_blocked else 0.0
    return weights


@dataclass
class Search:
    """Weights on their way: evolution by pairs of opposite changes, ranked, with momentum.

    Attributes:
        aim: what is searched for.
        centre: the weights now, in one row.
        mean: a slow average of them over generations, which is what is kept.
        momentum: average of the steps asked for.
        spread: average of their squares.
        generation: those that are done.
    """

    aim: Aim
    centre: FloatArray
    mean: FloatArray
    momentum: FloatArray
    spread: FloatArray
    generation: int = 0
    pairs: int = 10
    change: float = 0.04
    """Standard deviation of a change of a weight."""
    rate: float = 0.02
    """How far a weight moves in a generation, at most about."""

    @classmethod
    def begun(cls, aim: Aim) -> Search:
        """Return a search at its beginning."""
        row = np.concatenate([part.ravel() for part in first_weights(aim).values()])
        return cls(aim, row, row.copy(), np.zeros_like(row), np.zeros_like(row))

    def advance(self, played: list[Match], seed: int) -> FloatArray:
        """Take one generation; return how far its candidates were behind on average, by metric."""
        dice = np.random.default_rng((seed, self.generation, 2))
        changes = dice.standard_normal((self.pairs, len(self.centre)))
        costs, seen = np.zeros((self.pairs, 2)), []
        for pair, change in enumerate(changes):
            for side, sign in enumerate((1.0, -1.0)):
                policy = self.policy(self.centre + sign * self.change * change)
                found = np.array([behind(policy, match) for match in played])
                costs[pair, side] = self.cost(found)
                seen.append(found.mean(axis=0))
        # Ranks, so that one wild window does not decide.
        ranks = np.argsort(np.argsort(costs, axis=None)).reshape(costs.shape) / (costs.size - 1)
        self._step(((ranks[:, 1] - ranks[:, 0])[:, None] * changes).mean(axis=0))
        return np.asarray(np.mean(seen, axis=0), dtype=np.float64)

    def cost(self, found: FloatArray) -> float:
        """Return what windows × metrics of being behind come to."""
        weights = np.array([self.aim.weights.get(name, 0.0) for name in METRICS])
        return float(((found + LOSING * np.maximum(found, 0.0)) @ weights).mean())

    def _step(self, wanted: FloatArray) -> None:
        self.generation += 1
        self.momentum += 0.1 * (wanted - self.momentum)
        self.spread += 0.01 * (wanted**2 - self.spread)
        step = self.momentum / (1.0 - 0.9**self.generation)
        size = np.sqrt(self.spread / (1.0 - 0.99**self.generation)) + 1e-8
        self.centre = self.centre + self.rate * step / size
        share = max(0.02, 1.0 / self.generation)
        self.mean = self.mean + share * (self.centre - self.mean)

    def policy(self, row: FloatArray) -> LearnedPolicy:
        """Return a candidate, ready to play."""
        file = self.file(row, {})
        net, weights, scratch = pack(file)
        return LearnedPolicy(Path(), file, self.aim.sight, net, weights.astype(np.float32), scratch)

    def file(self, row: FloatArray, about: dict[str, Any]) -> PolicyFile:
        """Return a policy file of these weights."""
        weights, at = {}, 0
        for name, part in first_weights(self.aim).items():
            weights[name] = row[at : at + part.size].reshape(part.shape).astype(np.float32)
            at += part.size
        sight = self.aim.sight
        return PolicyFile("kernel", sight.layout(), sight.to_table(), weights, about)


def search(name: str, generations: int, seed: int, out: Path) -> None:
    """Search for a policy; what there is is kept every ten generations."""
    found, aim = matches(name.rsplit("-", 1)[1]), AIMS[name]
    going, begun = _taken_up(aim, out / f"{name}.state.npz"), time.monotonic()
    first, lines = going.generation, []
    while going.generation < generations:
        lines.append(going.advance(drawn(found, seed, going.generation), seed))
        if going.generation % 10 and going.generation < generations:
            continue
        _keep(going, name, found, seed, out)
        rate = (going.generation - first) / (time.monotonic() - begun)
        behind_by = ", ".join(
            f"{metric} {math.exp(value):.3f}"
            for metric, value in zip(METRICS, np.mean(lines[-10:], axis=0), strict=True)
        )
        left_s = (generations - going.generation) / rate
        print(
            f"{name}: {going.generation}/{generations} generations, {left_s / 60:.0f} min left;"
            f" to the best heuristic of each window, ×: {behind_by}",
            flush=True,
        )


def _taken_up(aim: Aim, path: Path) -> Search:
    going = Search.begun(aim)
    if not path.is_file():
        return going
    with np.load(path, allow_pickle=False) as kept:
        rows = {name: kept[name] for name in ("centre", "mean", "momentum", "spread")}
        return replace(going, generation=int(kept["generation"]), **rows)


def _keep(going: Search, name: str, found: dict[str, list[Match]], seed: int, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / f"{name}.state.npz", overwrite=True) as path, path.open("wb") as file:
        np.savez(
            file,
            centre=going.centre,
            mean=going.mean,
            momentum=going.momentum,
            spread=going.spread,
            generation=going.generation,
        )
    played = [drawn(found, seed, number) for number in range(going.generation)]
    about = {
        "learner": "evolution",
        "steps": 2 * going.pairs * sum(len(match.jobs) for each in played for match in each),
        "generations": going.generation,
        "candidates": 2 * going.pairs * going.generation,
        "objective": name.rsplit("-", 1)[0],
        "trained_on": TRAINED_ON,
        "teacher": "saf+easy" if going.aim.waits_for_blocked else "qssf+skip",
        "seed": seed,
        "device": "cpu",
    }
    write_policy(out / f"{name}.npz", going.file(going.mean, about))


def main() -> None:
    """Search for what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=tuple(AIMS), metavar="NAME")
    parser.add_argument("--generations", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    for name in asked.names:
        search(name, asked.generations, asked.seed, asked.out)


if __name__ == "__main__":
    main()
