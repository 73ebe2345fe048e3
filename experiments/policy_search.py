"""Policies found by evolution: begin as a heuristic, keep what does better on training windows.

`python experiments/policy_search.py inputs` lays out windows (needs the traces); `python
experiments/policy_search.py search NAME …` searches for policies, all at once, and goes on where it
was left (needs NumPy and Numba alone). A policy is the small network that `train` makes too. Its
first weights are set by hand so that it decides nearly as `saf+easy` (or `qssf+skip`, if blind)
does, or are those of a policy that there is already (`--begin NAME=FILE`). Every generation moves
the weights at random, there and back, lets all candidates play the same windows of the training
parts from the first job to the last, and steps towards those that did better. What counts is the
metric itself, against the heuristic that is best on the training windows of the same log, so that
nothing has to be said about rewards or discounts.

Windows are drawn from training parts alone, and from seeds that the league does not judge by.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import multiprocessing
import os
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from league_replays import measured

from yardmaster.engine.picking.sight import Sight
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.learned.driving import drive_policy
from yardmaster.schedulers.learned.packing import pack
from yardmaster.schedulers.learned.policy import LearnedPolicy
from yardmaster.schedulers.learned.policy_file import PolicyFile, read_policy, write_policy
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.files import whole_file

Rows = npt.NDArray[np.int64]

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "runs" / "policies" / "search"
PAIRS = 24
"""Of candidates in a generation: a random step, and the same step back."""
STEP = 0.04
"""How far candidates stand from the middle."""
RATE, RATE_END = 0.02, 0.004
"""How far the middle moves, in the first generation and in the last."""
KEEP_EVERY = 10
"""Generations after which a search is written."""
UNITS = 24
"""Units of both hidden layers."""
METRICS = ("bounded_slowdown", "jct", "p95")
"""The first metrics of `league_store.METRICS`, by the names of objectives."""
LOSING = 2.0
"""What being behind the best heuristic of a log counts beyond what being ahead of it does."""
_KNOWING = ("sjf+easy", "saf+easy", "sjf+conservative", "saf+conservative", "saf+strict")
RIVALS = {
    "clairvoyant": (*_KNOWING, "sjf+strict"),
    "estimate": tuple(f"{name}~estimate" for name in (*_KNOWING, "sexp+easy")),
    "blind": (
        "qssf+skip",
        "qssf+strict",
        "lifo+skip",
        "smallest-first+skip",
        "smallest-first+strict",
        "slurm-multifactor+skip",
    ),
}
"""Heuristics the best of which, on the windows of a log and by each metric, is to be beaten."""


class Aim(NamedTuple):
    """What a policy knows, how it begins, and what counts."""

    sight: Sight
    waits_for_blocked: bool
    """Whether it begins by starting only what does not delay the first blocked job."""
    weights: dict[str, float]
    """Of the logarithms of metrics."""


def _sight(objective: str, information: str) -> Sight:
    ranks = ("qssf",) if information == "blind" else ("saf", "sjf")
    # Short jobs find room at once where long ones, told by their run times, had to wait for it.
    waits_at_will = objective == "slowdown" and information != "blind"
    noop = "always" if waits_at_will else "when_blocked"
    return Sight(information=information, window_order=ranks[0], ranks=ranks, noop=noop)


OBJECTIVES = {
    "slowdown": {"bounded_slowdown": 1.0, "jct": 0.5},
    "jct": {"jct": 1.0},
    "p95": {"p95": 1.0, "jct": 0.3},
    "mixed": {"bounded_slowdown": 0.3, "jct": 1.0, "p95": 1.0},
}
AIMS = {
    f"{objective}-{information}": Aim(
        _sight(objective, information), information != "blind", weights
    )
    for objective, weights in OBJECTIVES.items()
    for information in RIVALS
}

LOGS = {
    # log: nodes, loads (None: its own times), jobs of windows, windows kept, played at a time
    "venus": ((12, 16, 24, 32, 48), (0.8, 1.3), (512, 512, 512, 1536), 480, 36),
    "philly": ((8, 12, 16, 24, 40), (0.9, 2.5), (512, 512, 512, 1536), 216, 24),
    "lublin": ((), None, (256, 256, 768), 60, 12),
    "kth": ((), None, (256, 256, 768), 96, 15),
    "sdsc-blue": ((), None, (512, 512, 1536), 72, 10),
}
POOLS = {"lublin": "pool:256", "kth": "100x V100:1", "sdsc-blue": "pool:1152"}
GENERATED = {
    "venus-like": ("24x V100:8", (0.8, 1.2)),
    "philly-like": ("16x V100:8", (0.8, 2.0)),
    "lognormal": ("8x V100:8", (0.8, 1.3)),
    "acme-like": ("32x A100:8", (0.7, 1.2)),
    "heavy-tails": ("12x V100:8", (0.7, 1.2)),
    "mm": ("2x V100:8", (0.7, 1.1)),
}
GENERATED_EACH, GENERATED_PLAYED = 40, 6
"""Windows of every generator that are kept, and that a generation plays."""
WIDENED_EVERY = 3
"""Of the windows of a log whose clusters vary, one of so many has gangs as wide as its cluster."""
FIRST_SEED = 2_000_000
"""Of generated windows; the league's are elsewhere."""
TRAINED_ON = (
    "Venus until June 2020, Philly until September 2017, the first 60 % of Lublin-256, KTH-SP2"
    " and SDSC-BLUE, some with wider gangs, generated jobs; windows of 256 to 1,536 jobs"
)


@dataclass(frozen=True, slots=True)
class Field:
    """Windows of one log or generator, and what the heuristic to be beaten reaches in each.

    Attributes:
        name: the log or the generator.
        windows: the jobs and the machines of each.
        rivals: (windows, metrics), of the heuristic that is best on average, metric by metric.
        played: windows that a generation plays.
    """

    name: str
    windows: tuple[tuple[Workload, Cluster], ...]
    rivals: FloatArray
    played: int


def lay_out(out: Path) -> None:
    """Draw the windows, let the heuristics play them, and keep both for each information."""
    out.mkdir(parents=True, exist_ok=True)
    drawn = list(_windows(np.random.default_rng(1)))
    for information, rivals in RIVALS.items():
        fields = []
        for name, windows, played in drawn:
            values = np.array(
                [
                    [
                        measured(simulate(*window, rival, compile_core="always"))[: len(METRICS)]
                        for window in windows
                    ]
                    for rival in rivals
                ]
            )
            best = values.mean(axis=1).argmin(axis=0)
            told = zip(METRICS, best, strict=True)
            print(information, name, {metric: rivals[index] for metric, index in told}, flush=True)
            columns = [values[index, :, metric] for metric, index in enumerate(best)]
            # Plain values: a class of the script that is run goes by another name elsewhere.
            fields.append((name, windows, np.stack(columns, axis=1), played))
        with gzip.open(out / f"{information}.pkl.gz", "wb", 3) as file:
            pickle.dump(fields, file)


def _windows(
    dice: np.random.Generator,
) -> Iterator[tuple[str, tuple[tuple[Workload, Cluster], ...], int]]:
    from league_scenes import Scene, generated, jobs_of, window

    for source, (nodes, loads, sizes, count, played) in LOGS.items():
        found = []
        for number in range(count):
            cluster = f"{dice.choice(nodes)}x V100:8" if nodes else POOLS[source]
            load = None if loads is None else float(dice.uniform(*loads))
            scene = Scene(source, source, source, cluster, sizes[number % len(sizes)], load)
            jobs = jobs_of(Scene(source, source, source, cluster), "training")
            first = int(dice.integers(0, len(jobs) - scene.jobs))
            jobs = jobs.select(np.arange(first, first + scene.jobs))
            if nodes and number % WIDENED_EVERY == 0:
                jobs = widened(jobs, scene.machines, dice)
            found.append((window(scene, jobs, 0), scene.machines))
        yield source, tuple(found), played
    for source, (cluster, loads) in GENERATED.items():
        found = []
        for number in range(GENERATED_EACH):
            size, load = 512 if number % 4 else 1536, float(dice.uniform(*loads))
            scene = Scene(source, source, source, cluster, size, load)
            found.append((generated(scene, FIRST_SEED + number), scene.machines))
        yield source, tuple(found), GENERATED_PLAYED


def widened(jobs: Workload, machines: Cluster, dice: np.random.Generator) -> Workload:
    """Let some short jobs of a stretch of time ask for much of the cluster.

    Somebody who tries out large gangs may come any month. Whoever does not keep room for them lets
    jobs of seconds wait for days.
    """
    length = int(len(jobs) * dice.uniform(0.1, 0.4))
    first = int(dice.integers(0, len(jobs) - length))
    is_short = jobs.estimate_s <= np.median(jobs.estimate_s)
    rows = np.flatnonzero(is_short[first : first + length]) + first
    rows = rows[dice.random(len(rows)) < dice.uniform(0.1, 0.6)]
    gpus, node = jobs.gpus.copy(), int(machines.node_gpus[0])
    nodes = np.ceil(dice.uniform(0.25, 0.9, len(rows)) * len(machines.node_gpus))
    gpus[rows] = nodes.astype(np.int64) * node
    return jobs.with_columns(gpus=gpus)


def behind(policy: LearnedPolicy, field_: Field, chosen: Rows) -> FloatArray:
    """Return how far a policy is behind on some windows of a log: logarithms, by metric.

    Half of it is the ratio of means, which the worst windows decide, as they do in the league; half
    is the mean of ratios, which all windows decide.
    """
    found = np.array([_played(policy, *field_.windows[number]) for number in chosen])
    rivals = field_.rivals[chosen]
    of_means = np.log(found.mean(axis=0) / rivals.mean(axis=0))
    return np.asarray(0.5 * of_means + 0.5 * np.log(found / rivals).mean(axis=0))


def _played(policy: LearnedPolicy, jobs: Workload, machines: Cluster) -> tuple[float, ...]:
    schedule, _ = drive_policy(
        jobs, machines, policy, placement=policy.sight.placement, called="candidate"
    )
    return measured(schedule)[: len(METRICS)]


def first_file(aim: Aim) -> PolicyFile:
    """Return a network that decides as the heuristic does, in two units; the others say nothing.

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
    kept = {name: part.astype(np.float32) for name, part in weights.items()}
    return PolicyFile("kernel", layout, aim.sight.to_table(), kept, {})


@dataclass
class Search:
    """A search under way: weights that step towards candidates that did better (OES with Adam).

    Attributes:
        name: what is searched for.
        base: the network it began with.
        seed: of all chance.
        generations: those that are planned: steps become smaller towards the last.
        weights: of the logarithms of metrics.
        middle: (weights,) where candidates are drawn around.
        average: (weights,) a running mean of the middle: what is kept, as it owes less to luck.
        first, second: (weights,) moments of steps.
        generation: those that are done.
    """

    name: str
    base: PolicyFile
    seed: int
    generations: int
    weights: dict[str, float]
    middle: FloatArray = field(init=False)
    average: FloatArray = field(init=False)
    first: FloatArray = field(init=False)
    second: FloatArray = field(init=False)
    generation: int = 0

    def __post_init__(self) -> None:
        self.middle = np.concatenate(
            [part.ravel() for part in self.base.weights.values()], dtype=np.float64
        )
        self.average = self.middle.copy()
        self.first, self.second = np.zeros_like(self.middle), np.zeros_like(self.middle)

    @property
    def beginning(self) -> dict[str, str]:
        """What must be the same for a search to be taken up."""
        network = hashlib.sha256(repr(self.base.sight).encode())
        for name, part in self.base.weights.items():
            network.update(name.encode() + part.tobytes())
        return {
            "seed": str(self.seed),
            "generations": str(self.generations),
            "weights": str(self.weights),
            "network": network.hexdigest()[:16],
        }

    def advance(self, fields: list[Field], players: Any) -> FloatArray:
        """Take one generation; return how far the middle is behind, logs × metrics."""
        dice = np.random.default_rng((self.seed, self.generation))
        chosen = [dice.choice(len(one.windows), one.played, replace=False) for one in fields]
        steps = dice.standard_normal((PAIRS, len(self.middle)))
        candidates = [self.middle, *(self.middle + STEP * steps), *(self.middle - STEP * steps)]
        asked = [(self.file(weights, {}), chosen) for weights in candidates]
        found = players.map(play, asked, chunksize=1)
        costs = np.array([self.cost(one) for one in found[1:]]).reshape(2, PAIRS)
        # Ranks, so that one wild window does not decide.
        ranks = costs.ravel().argsort().argsort().reshape(costs.shape) / (costs.size - 1)
        self._move(((ranks[1] - ranks[0])[:, None] * steps).mean(axis=0))
        return np.asarray(found[0], dtype=np.float64)

    def _move(self, slope: FloatArray) -> None:
        self.generation += 1
        self.first += 0.1 * (slope - self.first)
        self.second += 0.01 * (slope**2 - self.second)
        told = self.first / (1 - 0.9**self.generation)
        spread = np.sqrt(self.second / (1 - 0.99**self.generation)) + 1e-8
        settled = min(self.generation / self.generations, 1.0)
        self.middle += (RATE + settled * (RATE_END - RATE)) * told / spread
        share = max(1.0 / self.generation, 0.03)
        self.average += share * (self.middle - self.average)

    def cost(self, found: FloatArray) -> float:
        """Return what logs × metrics of being behind come to."""
        weights = np.array([self.weights.get(name, 0.0) for name in METRICS])
        return float(((found + LOSING * np.maximum(found, 0.0)) @ weights).mean())

    def file(self, weights: FloatArray, about: dict[str, Any]) -> PolicyFile:
        """Return a network with these weights, as a policy file."""
        parts, at = {}, 0
        for name, part in self.base.weights.items():
            parts[name] = weights[at : at + part.size].reshape(part.shape).astype(np.float32)
            at += part.size
        base = self.base
        return PolicyFile(base.architecture, base.layout, base.sight, parts, about, base.choice)


_FIELDS: list[Field] = []
"""What is played, in every process of a search."""


def play(asked: tuple[PolicyFile, list[Rows]]) -> list[FloatArray]:
    """Return how far one candidate is behind, log by log."""
    file, chosen = asked
    net, weights, scratch = pack(file)
    sight = Sight.from_table(file.sight)
    policy = LearnedPolicy(Path(), file, sight, net, weights.astype(np.float32), scratch)
    return [behind(policy, one, rows) for one, rows in zip(_FIELDS, chosen, strict=True)]


def search(name: str, asked: argparse.Namespace) -> None:
    """Search for a policy until the time is over; what there is is kept every ten generations."""
    with gzip.open(asked.out / f"{name.rsplit('-', 1)[1]}.pkl.gz", "rb") as file:
        _FIELDS[:] = [Field(*one) for one in pickle.load(file)]  # noqa: S301  (made here)
    going, until = _taken_up(name, asked), time.monotonic() + 60 * asked.minutes
    begun, asker = time.monotonic(), os.getppid()
    # Players come after the windows are read, and so have them without being sent them.
    with multiprocessing.get_context("fork").Pool(asked.workers) as players:
        recent: list[FloatArray] = []
        while going.generation < asked.generations and time.monotonic() < until:
            if os.getppid() != asker:  # Killed: the same search begun again would meet this one.
                break
            recent = [*recent[-9:], going.advance(_FIELDS, players)]
            if going.generation % KEEP_EVERY == 0:
                _keep(going, asked.out)
                _tell(going, np.mean(recent, axis=0), time.monotonic() - begun)
        _keep(going, asked.out)


def _tell(going: Search, recent: FloatArray, seconds: float) -> None:
    told = zip(METRICS, np.exp(recent.mean(axis=0)), np.exp(recent.max(axis=0)), strict=True)
    print(
        f"{going.name}: {going.generation} generations, {seconds:.0f} s; to the best heuristics, ×"
        " (worst log):",
        ", ".join(f"{metric} {value:.3f} ({worst:.3f})" for metric, value, worst in told),
        flush=True,
    )


def _taken_up(name: str, asked: argparse.Namespace) -> Search:
    begin = dict(word.split("=", 1) for word in asked.begin)
    base = _waiting_as_aimed(name, Path(begin[name])) if name in begin else first_file(AIMS[name])
    weights = AIMS[name].weights | dict(asked.weigh)
    going = Search(name, base, asked.seed, asked.generations, weights)
    path = asked.out / f"{name}.state.npz"
    if path.is_file():
        with np.load(path) as state:
            then = {key: str(state[key]) for key in going.beginning if key in state}
            other = [key for key, value in then.items() if value != going.beginning[key]]
            if other:
                raise SystemExit(
                    f"{path} was begun with another {' and '.join(other)}: ask for the same, or"
                    " remove it."
                )
            going.generation = int(state["generation"])
            for part in ("middle", "average", "first", "second"):
                setattr(going, part, state[part])
    return going


def _waiting_as_aimed(name: str, path: Path) -> PolicyFile:
    """Return a policy that there is already, with the aim's rule of when it may wait."""
    file = read_policy(path)
    return replace(file, sight=file.sight | {"noop": AIMS[name].sight.noop})


def _keep(going: Search, out: Path) -> None:
    kept: dict[str, Any] = {"generation": going.generation, **going.beginning}
    kept |= {part: getattr(going, part) for part in ("middle", "average", "first", "second")}
    with whole_file(out / f"{going.name}.state.npz", overwrite=True) as path, path.open("wb") as to:
        np.savez(to, **kept)
    candidates = going.generation * (2 * PAIRS + 1)
    windows = [len(jobs) for one in _FIELDS for jobs, _ in one.windows]
    played = sum(one.played for one in _FIELDS)
    about = {
        "learner": "evolution",
        "steps": int(candidates * played * np.mean(windows)),
        "generations": going.generation,
        "asked_generations": going.generations,
        "candidates": candidates,
        "objective": going.name.rsplit("-", 1)[0],
        "weights": going.weights,
        "trained_on": TRAINED_ON,
        "teacher": "saf+easy" if AIMS[going.name].waits_for_blocked else "qssf+skip",
        "seed": going.seed,
        "device": "cpu",
    }
    if going.base.about:
        about["teacher"] = f"a policy by {going.base.about['learner']}"
        about["began"] = dict(going.base.about)
    write_policy(out / f"{going.name}.npz", going.file(going.average, about))


def weight(word: str) -> tuple[str, float]:
    """Return a metric and what it counts, out of a word like `jct=1.5`."""
    metric, _, value = word.partition("=")
    if metric not in METRICS:
        raise argparse.ArgumentTypeError(f"{word}: metrics are {', '.join(METRICS)}")
    return metric, float(value)


def main() -> None:
    """Lay windows out, or search for what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("inputs", "search"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(AIMS))
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--generations", type=int, default=400)
    parser.add_argument("--workers", type=int, default=1, help="processes of each search")
    parser.add_argument("--begin", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument(
        "--weigh",
        nargs="*",
        default=[],
        type=weight,
        metavar="METRIC=WEIGHT",
        help="instead of what the objective says",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    for name in set(asked.names) - set(AIMS):
        parser.error(f"no policy is called {name}; there are {', '.join(AIMS)}")
    if asked.what == "inputs":
        lay_out(asked.out)
        return
    # Not daemons: each has players of its own.
    searches = [
        multiprocessing.get_context("spawn").Process(target=search, args=(name, asked))
        for name in asked.names or AIMS
    ]
    for one in searches:
        one.start()
    for one in searches:
        one.join()
    if any(one.exitcode for one in searches):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
