"""Scenes: many clusters, loads and sources of jobs, of which every episode draws one.

A policy that is to work on clusters it has never seen must train on more than one. Episodes are
drawn by number while training runs (`engine.drawing`), on the CPU as on a GPU: there are two
billion of them, and none has to be laid out in advance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine import state
from yardmaster.engine.drawing import places as at
from yardmaster.engine.drawing.places import Source, WindowKey
from yardmaster.engine.gpu.alignment import aligned
from yardmaster.engine.picking import places as picking
from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.rewards import Reward, reward_of
from yardmaster.errors import YardmasterError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.names import unknown
from yardmaster.schedulers.picking import Prepared, prepare

Range = tuple[float, float]
"""Between these two, an episode draws one."""

WINDOW_KEYS = {
    "fifo": WindowKey.SUBMIT,
    "sjf": WindowKey.RUN,
    "saf": WindowKey.AREA,
    "smallest-first": WindowKey.GPUS,
}
"""Orders that the window of a drawn episode can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A cluster with a source of jobs: windows of a trace, or synthetic jobs."""

    name: str
    cluster: str | Cluster
    share: float = 1.0
    """How often, compared with the other scenes."""
    load: Range | None = (0.8, 1.2)
    """Offered load, to which times of submission are stretched; None: a trace's own times."""
    trace: Workload | None = None
    """Jobs of which episodes are windows; those too large for the cluster are left out."""
    sizes: Mapping[int, float] = field(default_factory=dict)
    """GPUs of synthetic jobs, and how often each."""
    median_s: Range = (300.0, 3600.0)
    """Run time in the middle of synthetic jobs of one GPU, seconds; drawn evenly by logarithm."""
    spread: Range = (1.0, 2.5)
    """Standard deviation of the logarithm of run times."""
    growth: Range = (0.0, 0.5)
    """Power of the GPUs that run times grow with."""
    swing: Range = (0.0, 0.9)
    """How far the rate of arrivals swings about its mean, as a share of it."""
    noise: Range = (0.0, 1.5)
    """Standard deviation of the logarithm of estimates, where jobs have none of their own."""
    excess: Range = (0.0, 1.0)
    """Logarithm of estimate by run time, in the middle."""

    def machines(self) -> Cluster:
        """Return the cluster."""
        return self.cluster if isinstance(self.cluster, Cluster) else load_cluster(self.cluster)


@dataclass(frozen=True, slots=True, eq=False)
class SceneRows:
    """Scenes as rows of numbers; see `engine.drawing.places`."""

    names: tuple[str, ...]
    ints: IntArray
    """(scenes, SCENE_INTS)"""
    reals: FloatArray
    """(scenes, SCENE_REALS)"""
    pool: FloatArray
    """(4, jobs) submission, run time, GPUs and estimate of the jobs of all traces."""
    sizes: FloatArray
    """(2, sizes) GPUs, and the share of jobs with so many or an earlier number."""
    shapes: IntArray
    """Shape of a job by its GPUs, cluster after cluster."""
    bank_ints: IntArray
    """(scenes, …) clusters, laid out."""
    bank_reals: FloatArray
    bank_facts: FloatArray
    book_length: int
    purse_length: int
    jobs: int
    """Jobs of an episode."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tables by name."""
        names = ("ints", "reals", "pool", "sizes", "shapes", "bank_ints", "bank_reals")
        return {name: getattr(self, name) for name in (*names, "bank_facts")}


def scene_rows(scenes: Sequence[Scene], sight: Sight, jobs: int) -> SceneRows:
    """Lay out scenes for episodes of so many jobs, as a policy with this sight plays them.

    Raises:
        YardmasterError: naming the scene that cannot be drawn from, and why.
    """
    if not scenes:
        raise YardmasterError("Episodes are drawn from scenes, and there are none.")
    if sight.window_order not in WINDOW_KEYS:
        raise unknown("window order of drawn episodes", sight.window_order, WINDOW_KEYS)
    if sight.ranks:
        raise YardmasterError("ranks cannot be shown in drawn episodes.")
    laid_out = [_laid_out(scene, sight, jobs) for scene in scenes]
    prepared = [one.prepared for one in laid_out]
    ints, reals = aligned([one.simulation for one in prepared])
    rows = SceneRows(
        names=tuple(scene.name for scene in scenes),
        ints=np.zeros((len(scenes), at.SCENE_INTS), dtype=np.int64),
        reals=np.zeros((len(scenes), at.SCENE_REALS)),
        pool=np.concatenate([one.pool for one in laid_out], axis=1),
        sizes=np.concatenate([one.sizes for one in laid_out], axis=1),
        shapes=np.concatenate([one.shapes for one in laid_out]),
        bank_ints=ints,
        bank_reals=reals,
        bank_facts=np.stack([one.facts for one in prepared]),
        book_length=max(one.book_length for one in prepared),
        purse_length=max(one.purse_length for one in prepared),
        jobs=jobs,
    )
    _describe(rows, scenes, laid_out, sight)
    return rows


def _describe(
    rows: SceneRows, scenes: Sequence[Scene], laid_out: Sequence[_LaidOut], sight: Sight
) -> None:
    """Fill the rows of the scenes."""
    total = sum(scene.share for scene in scenes)
    pool_at = shapes_at = sizes_at = 0
    share = 0.0
    for number, (scene, parts) in enumerate(zip(scenes, laid_out, strict=True)):
        share += scene.share / total
        row = rows.ints[number]
        row[at.TEMPLATE] = number
        row[at.SOURCE] = Source.SYNTHETIC if scene.trace is None else Source.WINDOW
        row[at.POOL_AT], row[at.POOL_JOBS] = pool_at, parts.pool.shape[1]
        row[at.SHAPES_AT] = shapes_at
        row[at.SIZES_AT], row[at.SIZES] = sizes_at, parts.sizes.shape[1]
        row[at.WINDOW_KEY] = WINDOW_KEYS[sight.window_order]
        pool_at += parts.pool.shape[1]
        shapes_at += len(parts.shapes)
        sizes_at += parts.sizes.shape[1]
        ranges = rows.reals[number]
        ranges[at.SHARE] = share
        for place, pair in (
            (at.LOAD, scene.load or (0.0, 0.0)),
            (at.MEDIAN, scene.median_s),
            (at.SPREAD, scene.spread),
            (at.GROWTH, scene.growth),
            (at.SWING, scene.swing),
            (at.NOISE, scene.noise),
            (at.EXCESS, scene.excess),
        ):
            ranges[place : place + 2] = pair


@dataclass(frozen=True, slots=True, eq=False)
class _LaidOut:
    """One scene, laid out."""

    prepared: Prepared
    pool: FloatArray
    sizes: FloatArray
    shapes: IntArray


def _laid_out(scene: Scene, sight: Sight, jobs: int) -> _LaidOut:
    cluster = scene.machines()
    if scene.load is None and scene.trace is None:
        raise YardmasterError(f"Scene {scene.name!r}: synthetic jobs need a load.")
    pool, sizes = _pool(scene, cluster, jobs), _sizes(scene, cluster)
    counts = np.unique(pool[2] if scene.trace is not None else sizes[0]).astype(np.int64)
    if len(counts) > jobs:
        raise YardmasterError(
            f"Scene {scene.name!r}: its jobs have {len(counts)} different numbers of GPUs; episodes"
            f" of {jobs} jobs are too short for them."
        )
    # Only the requests count: when jobs come and how long they run is drawn.
    gpus = np.resize(counts, jobs)
    example = Workload.of(
        submit_s=np.arange(jobs, dtype=np.float64),
        duration_s=np.ones(jobs),
        gpus=gpus,
        estimate_s=np.ones(jobs),
    )
    prepared = prepare(example, cluster, sight)
    if prepared.is_real:
        raise YardmasterError(
            f"Scene {scene.name!r}: episodes are drawn for clusters of equal GPUs only."
        )
    shapes = np.full(cluster.gpus + 1, -1, dtype=np.int64)
    shapes[gpus] = prepared.shapes.of_job
    if (prepared.shapes.of_job < 0).any():
        raise YardmasterError(f"Scene {scene.name!r}: some of its jobs never fit on its cluster.")
    return _LaidOut(prepared, pool, sizes, shapes)


def _pool(scene: Scene, cluster: Cluster, jobs: int) -> FloatArray:
    """Return the jobs of a scene's trace that fit on its cluster."""
    if scene.trace is None:
        return np.zeros((4, 0))
    trace = scene.trace
    fits = (trace.gpus <= cluster.gpus) & (trace.gpus >= 1)
    if int(fits.sum()) < jobs:
        raise YardmasterError(
            f"Scene {scene.name!r}: {int(fits.sum())} jobs of {trace.name!r} fit on its cluster,"
            f" fewer than the {jobs} of an episode."
        )
    run_s = np.maximum(trace.duration_s, 0.0)
    return np.stack([trace.submit_s, run_s, trace.gpus.astype(np.float64), trace.estimate_s])[
        :, fits
    ]


def _sizes(scene: Scene, cluster: Cluster) -> FloatArray:
    """Return the sizes of a scene's synthetic jobs that fit on its cluster, with their shares."""
    if scene.trace is not None:
        return np.zeros((2, 0))
    fitting = {gpus: often for gpus, often in scene.sizes.items() if 1 <= gpus <= cluster.gpus}
    if not fitting or min(fitting.values()) < 0 or sum(fitting.values()) <= 0:
        raise YardmasterError(
            f"Scene {scene.name!r}: needs a trace, or sizes of jobs that fit on its cluster."
        )
    shares = np.array(list(fitting.values()), dtype=np.float64)
    return np.stack([np.array(list(fitting), dtype=np.float64), np.cumsum(shares) / shares.sum()])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneTask:
    """Episodes drawn from scenes, what a policy sees of them, and what it is rewarded for."""

    scenes: tuple[Scene, ...]
    jobs: int = 256
    """Jobs of an episode."""
    reward: str | Mapping[str, float] | Reward = "bounded_slowdown"
    usual: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Scene → term of the reward → what it usually comes to there, by which it is divided: what is
    much in one scene is little in another."""
    unit_s: Mapping[str, float] = field(default_factory=dict)
    """Scene → seconds that count as one where the future is discounted by time; else 1 second.
    Discounting by decisions instead would pay for no-ops: each puts off what is to come."""
    sight: Sight = field(default_factory=lambda: Sight(window_order="sjf"))

    def rows(self) -> SceneRows:
        """Return the scenes as rows."""
        return scene_rows(self.scenes, self.sight, self.jobs)

    def rules(self) -> IntArray:
        """Return the row of integers that says what the task is."""
        return self.sight.rules(is_fixed=True)

    def scales(self, scenes: Sequence[str]) -> FloatArray:
        """Return what the task is in each of the scenes named, a row of reals each."""
        reward = reward_of(self.reward).row(self.sight.time_unit_s)
        rows = np.tile(self.sight.scales(), (len(scenes), 1))
        for row, scene in zip(rows, scenes, strict=True):
            usual = np.ones(picking.TERMS)
            for term, value in self.usual.get(scene, {}).items():
                usual[Term[term.upper()]] = value
            row[picking.WEIGHT_AT : picking.WEIGHT_AT + picking.TERMS] = reward / usual
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One episode, drawn on the CPU."""

    scene: int
    ints: IntArray
    reals: FloatArray
    facts: FloatArray
    cards: npt.NDArray[np.float32]


def workload_of(ints: IntArray, reals: FloatArray) -> Workload:
    """Return the jobs of a drawn episode; estimates are what the policy is shown of run times."""
    jobs = int(ints[state.JOBS])

    def table(name: int) -> FloatArray:
        first = int(ints[name])
        return reals[first : first + jobs].copy()

    first = int(ints[state.JOB_SHAPE])
    shapes = ints[first : first + jobs]
    return Workload.of(
        submit_s=table(state.SUBMIT),
        duration_s=table(state.DURATION),
        estimate_s=table(state.EXPECTED),
        gpus=ints[int(ints[state.SHAPE_GPUS]) + shapes],
    )


def drawn(rows: SceneRows, rules: IntArray, number: int, scene: int | None = None) -> Drawn:
    """Draw an episode by its number, in plain Python; of a scene, if one is given."""
    from yardmaster.engine.drawing import jobs as drawing
    from yardmaster.engine.picking.features import CARDS

    if scene is None:
        scene = drawing.scene_of(number, rows.reals, len(rows.ints))
    template = int(rows.ints[scene, at.TEMPLATE])
    one = Drawn(
        scene=scene,
        ints=rows.bank_ints[template].copy(),
        reals=rows.bank_reals[template].copy(),
        facts=rows.bank_facts[template].copy(),
        cards=np.zeros(CARDS * rows.jobs, dtype=np.float32),
    )
    settings: tuple[Any, Any] = (rows.ints[scene].data, rows.reals[scene].data)
    begun: tuple[Any, Any, Any] = (one.ints.data, one.reals.data, one.facts.data)
    told: tuple[Any, Any] = (rows.shapes.data, np.asarray(rules).data)
    cards: Any = one.cards.data
    sums = np.zeros(at.SUMS)
    for part in range(at.SHARES):
        drawing.draw_part(
            *(number, part, *settings, rows.pool, rows.sizes, *told, *begun, cards, sums)
        )
    for part in range(at.SHARES):
        drawing.settle_part(number, part, *settings, *begun, sums)
    return one
