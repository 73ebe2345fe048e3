"""Policies found by evolution: begin as a heuristic, keep what does better on training windows.

`python experiments/policy_search.py NAME … --generations 150` searches for policies, one after the
other, and goes on where it was left. A policy is the small network that `train` makes too, but its
first weights are set by hand so that it decides nearly as `saf+easy` (or `qssf+skip`, if blind)
does. Candidates, drawn around the best weights so far (CMA-ES), play windows of the training parts,
on many machines at many loads, from the first job to the last. What counts is the metric itself,
against the best of a few heuristics on the same window, so nothing has to be said about rewards or
discounts. No torch, no GPU; `cmaes` is needed.

Windows are drawn from training parts alone, and from seeds that the league does not judge by.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cmaes import CMA
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
SEARCHED = {"head.0.weight": 0.5, "noop": 0.5, "noop_bias": 1.0}
"""Weights that are searched for, and how much of each a step of 1 is."""
CANDIDATES = 16
"""Of a generation."""
FIRST_STEP = 0.2
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
    # log: nodes, loads (None: its own times), jobs of windows, windows
    "venus": ((12, 16, 24, 32, 48), (0.8, 1.3), (512, 512, 512, 1536), 12),
    "philly": ((8, 12, 16, 24, 40), (0.9, 2.5), (512, 512, 512, 1536), 12),
    "lublin": ((), None, (256, 256, 768), 6),
    "kth": ((), None, (256, 256, 768), 6),
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
GENERATED_EACH = 4
"""Windows of every generator."""
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


def matches(information: str) -> list[Match]:
    """Return the windows that every candidate plays, the same every time."""
    found = []
    for jobs, machines in _windows(np.random.default_rng(1)):
        played = [
            measured(simulate(jobs, machines, rival, compile_core="always"))[: len(METRICS)]
            for rival in RIVALS[information]
        ]
        found.append(Match(jobs, machines, np.min(played, axis=0)))
    return found


def _windows(dice: np.random.Generator) -> Iterator[tuple[Workload, Cluster]]:
    for source, (nodes, loads, sizes, count) in LOGS.items():
        for number in range(count):
            cluster = f"{dice.choice(nodes)}x V100:8" if nodes else POOLS[source]
            load = None if loads is None else float(dice.uniform(*loads))
            scene = Scene(source, source, source, cluster, sizes[number % len(sizes)], load)
            jobs = jobs_of(Scene(source, source, source, cluster), "training")
            first = int(dice.integers(0, len(jobs) - scene.jobs))
            yield window(scene, jobs, first), scene.machines
    for source, (cluster, loads) in GENERATED.items():
        for number in range(GENERATED_EACH):
            size, load = 512 if number % 4 else 1536, float(dice.uniform(*loads))
            scene = Scene(source, source, source, cluster, size, load)
            yield generated(scene, FIRST_SEED + number), scene.machines


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
    """A search under way: a cloud of weights that moves to where candidates do well (CMA-ES).

    Only what is made of the first layers' units is searched for, in coordinates in which a step of
    1 is about as much everywhere: the weights of the sum, and what waiting is worth.

    Attributes:
        aim: what is searched for.
        cloud: where candidates are drawn.
        seed: of all chance.
        generation: those that are done.
    """

    aim: Aim
    cloud: CMA
    seed: int
    generation: int = 0

    @classmethod
    def begun(cls, aim: Aim, seed: int) -> Search:
        """Return a search at its beginning: the heuristic."""
        size = sum(first_weights(aim)[name].size for name in SEARCHED)
        cloud = CMA(np.zeros(size), FIRST_STEP, population_size=CANDIDATES)
        return cls(aim, cloud, seed)

    def advance(self, played: list[Match]) -> FloatArray:
        """Take one generation; return how far the best was behind on average, by metric."""
        # A cloud that was written and read again has forgotten where its dice were.
        self.cloud.reseed_rng(self.seed * 1_000_003 + self.generation)
        told: list[tuple[FloatArray, float]] = []
        found = []
        for _ in range(self.cloud.population_size):
            step = self.cloud.ask()
            policy = self.policy(step)
            found.append(np.array([behind(policy, match) for match in played]))
            told.append((step, self.cost(found[-1])))
        self.cloud.tell(told)
        self.generation += 1
        best = int(np.argmin([cost for _, cost in told]))
        return np.asarray(found[best].mean(axis=0), dtype=np.float64)

    def cost(self, found: FloatArray) -> float:
        """Return what windows × metrics of being behind come to."""
        weights = np.array([self.aim.weights.get(name, 0.0) for name in METRICS])
        return float(((found + LOSING * np.maximum(found, 0.0)) @ weights).mean())

    @property
    def middle(self) -> FloatArray:
        """The middle of the cloud: what is kept, as it owes less to luck than any candidate."""
        return np.asarray(self.cloud.mean, dtype=np.float64)

    def policy(self, step: FloatArray) -> LearnedPolicy:
        """Return a candidate, ready to play."""
        file = self.file(step, {})
        net, weights, scratch = pack(file)
        return LearnedPolicy(Path(), file, self.aim.sight, net, weights.astype(np.float32), scratch)

    def file(self, step: FloatArray, about: dict[str, Any]) -> PolicyFile:
        """Return a policy file: the first weights, so many steps away."""
        weights, at = first_weights(self.aim), 0
        for name, scale in SEARCHED.items():
            size = weights[name].size
            weights[name] = weights[name] + scale * step[at : at + size].reshape(
                weights[name].shape
            )
            at += size
        sight = self.aim.sight
        kept = {name: part.astype(np.float32) for name, part in weights.items()}
        return PolicyFile("kernel", sight.layout(), sight.to_table(), kept, about)


def search(name: str, generations: int, seed: int, out: Path) -> None:
    """Search for a policy; what there is is kept every ten generations."""
    played, path = matches(name.rsplit("-", 1)[1]), out / f"{name}.state.pkl"
    going, begun = _taken_up(name, seed, path), time.monotonic()
    first = going.generation
    while going.generation < generations:
        best = going.advance(played)
        if going.generation % 10 and going.generation < generations:
            continue
        _keep(going, name, played, out)
        left_s = (
            (time.monotonic() - begun)
            / (going.generation - first)
            * (generations - going.generation)
        )
        told = zip(METRICS, np.exp(best), strict=True)
        print(
            f"{name}: {going.generation}/{generations} generations, {left_s / 60:.0f} min left; to"
            " the best heuristic of each window, ×:",
            ", ".join(f"{metric} {value:.3f}" for metric, value in told),
            flush=True,
        )


def _taken_up(name: str, seed: int, path: Path) -> Search:
    if not path.is_file():
        return Search.begun(AIMS[name], seed)
    cloud, generation = pickle.loads(path.read_bytes())  # noqa: S301  (written by this script)
    return Search(AIMS[name], cloud, seed, generation)


def _keep(going: Search, name: str, played: list[Match], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / f"{name}.state.pkl", overwrite=True) as path:
        written = pickle.dumps((going.cloud, going.generation))
        path.write_bytes(written)
    # Written, a cloud loses a little in rounding; who goes on must not differ from who resumes.
    going.cloud, _ = pickle.loads(written)  # noqa: S301  (just written)
    candidates = going.generation * going.cloud.population_size
    about = {
        "learner": "evolution",
        "steps": candidates * sum(len(match.jobs) for match in played),
        "generations": going.generation,
        "candidates": candidates,
        "objective": name.rsplit("-", 1)[0],
        "trained_on": TRAINED_ON,
        "teacher": "saf+easy" if going.aim.waits_for_blocked else "qssf+skip",
        "seed": going.seed,
        "device": "cpu",
    }
    write_policy(out / f"{name}.npz", going.file(going.middle, about))


def main() -> None:
    """Search for what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=tuple(AIMS), metavar="NAME")
    parser.add_argument("--generations", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    for name in asked.names:
        search(name, asked.generations, asked.seed, asked.out)


if __name__ == "__main__":
    main()
