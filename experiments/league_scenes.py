"""The scenes of the league: which jobs, on which machines, and which part of them may be learnt.

A scene is a log or a generator, a cluster, a number of jobs per window and a load. Its *training*
part may be looked at by anybody who wants to be judged; its *validation* part is played once, to
judge. Windows of one part are consecutive jobs that share none with each other. Each begins at
second 0 on an empty cluster; where the scene has a load, its submissions are stretched until they
offer that load. Jobs too large for the cluster are dropped before windows are cut.

Everybody has an estimate: the requested time where the log has one, else drawn from how people
round limits (`workloads.recipes.estimates.RoundLimits`), once per log. Only NumPy is needed once
`prepared` has turned the logs into arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Labels, Workload
from yardmaster.names import unknown
from yardmaster.workloads.files import whole_file

if TYPE_CHECKING:
    from yardmaster.workloads.recipes.recipe import Recipe

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / ".." / "shared" / "traces"
INPUTS = ROOT / "runs" / "league" / "inputs"

Part = Literal["training", "validation"]
PARTS: tuple[Part, ...] = get_args(Part)
MOST_WINDOWS: dict[Part, int] = {"training": 48, "validation": 64}
"""Windows of a part that are played, spread evenly where there are more."""
FIRST_SEED: dict[Part, int] = {"training": 1_000_000, "validation": 12_000_000}
"""Seed of the first generated window of each part; the others count on from it."""
ESTIMATE_SEED = 7
"""Of the estimates drawn for logs that have none."""
HEAVY_TAILS = "heavy-tails"
"""A recipe of this file: run times by a power law, bursts, gangs over several nodes."""


@dataclass(frozen=True)
class Log:
    """A trace, and what of it is for training.

    Attributes:
        file: where it lies in the folder of traces.
        border: date from which jobs are for validation; "" where a share of the jobs decides.
        training_share: of the jobs, by submission, where there is no date.
    """

    file: Path
    border: str = ""
    training_share: float = 0.6


LOGS = {
    "venus": Log(Path("helios", "venus_until_2020-07.csv"), "2020-07-01"),
    "philly": Log(Path("philly", "philly_rfold_until_2017-10.csv"), "2017-10-01"),
    "lublin": Log(Path("swf_lublin", "lublin_256.swf")),
    "kth": Log(Path("swf", "KTH-SP2-1996-2.1-cln.swf.gz")),
    # Nobody is judged on this one: policies learn from it what people's requests are worth.
    "sdsc-blue": Log(Path("swf", "SDSC-BLUE-2000-4.2-cln.swf.gz")),
}


@dataclass(frozen=True)
class Scene:
    """Where schedulers are held against each other.

    Attributes:
        name: what it is called on the command line and in files.
        title: what it is, for the page.
        source: a log of `LOGS`, a preset, or `HEAVY_TAILS`.
        cluster: the machines.
        jobs: jobs of a window.
        load: offered load of every window; None keeps the log's own times.
    """

    name: str
    title: str
    source: str
    cluster: str
    jobs: int = 512
    load: float | None = None

    @property
    def is_generated(self) -> bool:
        """Whether every seed gives another window."""
        return self.source not in LOGS

    @cached_property
    def machines(self) -> Cluster:
        """The cluster itself."""
        return load_cluster(self.cluster)


_VENUS, _PHILLY = "Helios Venus, July 2020", "Philly, October 2017"
_ALL = (
    Scene("venus", f"{_VENUS}, 24 nodes, load 1.0", "venus", "24x V100:8", load=1.0),
    Scene("venus-16", f"{_VENUS}, 16 nodes, load 0.9", "venus", "16x V100:8", load=0.9),
    Scene("venus-48", f"{_VENUS}, 48 nodes, load 1.1", "venus", "48x V100:8", load=1.1),
    Scene("philly", f"{_PHILLY}, 24 nodes, load 1.0", "philly", "24x V100:8", load=1.0),
    Scene("philly-12", f"{_PHILLY}, 12 nodes, load 1.1", "philly", "12x V100:8", load=1.1),
    Scene("philly-16", f"{_PHILLY}, 16 nodes, load 2.0", "philly", "16x V100:8", load=2.0),
    Scene("philly-40", f"{_PHILLY}, 40 nodes, load 0.9", "philly", "40x V100:8", load=0.9),
    Scene("lublin", "Lublin-256, a pool of 256, own times", "lublin", "pool:256", jobs=256),
    Scene("kth", "KTH-SP2, 100 nodes of 1, own times", "kth", "100x V100:1", jobs=256),
    Scene(
        "made-venus", "generated: venus-like, 24 nodes, load 1.0", "venus-like", "24x V100:8",
        load=1.0,
    ),
    Scene(
        "made-philly", "generated: philly-like, 16 nodes, load 0.9", "philly-like", "16x V100:8",
        load=0.9,
    ),
    Scene(
        "made-lognormal", "generated: log-normal, 8 nodes, load 1.1", "lognormal", "8x V100:8",
        load=1.1,
    ),
    Scene(
        "made-acme", "generated: acme-like, 32 nodes, load 0.9", "acme-like", "32x A100:8",
        load=0.9,
    ),
    Scene(
        "made-heavy", "generated: power law and bursts, 12 nodes, load 1.0", HEAVY_TAILS,
        "12x V100:8", load=1.0,
    ),
    Scene("made-mm", "generated: M/M/16, load 0.95", "mm", "2x V100:8", load=0.95),
)  # fmt: skip
SCENES: dict[str, Scene] = {scene.name: scene for scene in _ALL}


def scene_named(name: str) -> Scene:
    """Return a scene by name.

    Raises:
        UnknownNameError: if there is none, with the nearest names.
    """
    if name not in SCENES:
        raise unknown("scene", name, SCENES)
    return SCENES[name]


def windows(scene: Scene, part: Part, most: int | None = None) -> list[Workload]:
    """Return the windows of a part that are played.

    Args:
        scene: where.
        part: training or validation.
        most: how many at most, spread evenly over the part; by default `MOST_WINDOWS`.

    Raises:
        InvalidWorkloadError: if the part has fewer jobs than a window.
    """
    most = MOST_WINDOWS[part] if most is None else most
    if scene.is_generated:
        return [generated(scene, FIRST_SEED[part] + number) for number in range(most)]
    jobs = jobs_of(scene, part)
    count = len(jobs) // scene.jobs
    if count == 0:
        raise InvalidWorkloadError(
            f"{scene.name}: the {part} part has {len(jobs)} jobs, fewer than a window's"
            f" {scene.jobs}."
        )
    return [window(scene, jobs, first * scene.jobs) for first in spread(count, most)]


def spread(count: int, most: int) -> list[int]:
    """Return which of so many windows are played: all, or so many at even distances."""
    if count <= most:
        return list(range(count))
    return [number * count // most for number in range(most)]


def window(scene: Scene, jobs: Workload, first: int) -> Workload:
    """Return one window: so many consecutive jobs from row `first` on, at the scene's load."""
    from yardmaster.workloads.sources import with_load

    part = jobs.select(np.arange(first, first + scene.jobs))
    part = part.starting_at(float(part.submit_s[0]))
    if scene.load is None:
        return part
    return with_load(part, gpus=scene.machines.gpus, load=scene.load)


def generated(scene: Scene, seed: int) -> Workload:
    """Return one generated window."""
    from yardmaster.workloads.synthetic import generate

    jobs = generate(
        heavy_tails() if scene.source == HEAVY_TAILS else scene.source,
        seed=seed,
        jobs=scene.jobs,
        gpus=scene.machines.gpus,
        load=scene.load,
    )
    return jobs.starting_at(float(jobs.submit_s[0]))


def heavy_tails() -> Recipe:
    """Return a recipe with a heavy tail, bursts, and gangs of up to four nodes."""
    from yardmaster.workloads.recipes.arrivals import Bursts
    from yardmaster.workloads.recipes.distributions import BoundedPareto, Choice
    from yardmaster.workloads.recipes.recipe import Recipe

    return Recipe(
        name=HEAVY_TAILS,
        arrivals=Bursts(),
        sizes=Choice(values=(1, 2, 4, 8, 16, 32), weights=(45, 15, 15, 15, 7, 3)),
        durations=BoundedPareto(alpha=0.6, low=20.0, high=7 * 86_400.0),
    )


@cache
def jobs_of(scene: Scene, part: Part) -> Workload:
    """Return all jobs of one part of a log that fit the scene's cluster, on the log's clock."""
    log, jobs = LOGS[scene.source], prepared(scene.source)
    if log.border:
        from yardmaster.workloads.clock import second_of

        border = int(np.searchsorted(jobs.submit_s, second_of(jobs, log.border)))
    else:
        border = round(log.training_share * len(jobs))
    rows = np.arange(len(jobs))
    chosen = rows < border if part == "training" else rows >= border
    return jobs.select(rows[chosen & (jobs.gpus <= scene.machines.gpus)])


def dropped_share(scene: Scene, part: Part) -> float:
    """Return which share of a part's jobs are too large for the cluster; none are generated."""
    if scene.is_generated:
        return 0.0
    everybody = Scene(scene.name, scene.title, scene.source, "pool:1000000", scene.jobs)
    return 1.0 - len(jobs_of(scene, part)) / len(jobs_of(everybody, part))


@cache
def prepared(name: str, traces: Path = TRACES, inputs: Path = INPUTS) -> Workload:
    """Return a log with estimates, from its arrays; they are written first if they are missing.

    Raises:
        InvalidWorkloadError: if there are neither arrays nor a trace.
    """
    path = inputs / f"{name}.npz"
    if not path.is_file():
        _write_arrays(path, _read_log(traces / LOGS[name].file))
    with np.load(path, allow_pickle=False) as columns:
        arrays = {column: columns[column] for column in columns.files if column != "begins"}
        return Workload.of(name=name, begins=str(columns["begins"]), **arrays)


def _read_log(path: Path) -> Workload:
    from yardmaster.workloads.recipes.estimates import RoundLimits
    from yardmaster.workloads.sources import load_workload

    jobs = load_workload(path)
    dice = np.random.default_rng(ESTIMATE_SEED)
    drawn = RoundLimits(sigma=1.0).draw(dice, jobs.duration_s)
    said = np.where(np.isnan(jobs.estimate_s), drawn, jobs.estimate_s)
    return jobs.with_columns(estimate_s=said)


def _write_arrays(path: Path, jobs: Workload) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, overwrite=True) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(
            file,
            submit_s=jobs.submit_s,
            duration_s=jobs.duration_s,
            estimate_s=jobs.estimate_s,
            gpus=jobs.gpus,
            user=_labels(jobs.user),
            tenant=_labels(jobs.tenant),
            begins=np.array(jobs.begins),
        )


def _labels(column: Labels) -> npt.NDArray[np.str_]:
    """Return the number of each job's name as text, "" where it has none."""
    return np.where(column.codes < 0, "", column.codes.astype(np.str_))
