"""Drawn jobs: from the trace or with the moments that were asked for, at the load asked for."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from yardmaster.engine import state as core
from yardmaster.engine.drawing.jobs import LEAST_RUN_S, LONGEST_RUN_S, part_begins, scene_of
from yardmaster.engine.drawing.places import SHARES
from yardmaster.engine.picking import places as picking
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.scenes import Scene, SceneTask, drawn
from yardmaster.model.workload import Workload

JOBS = 64
GPUS = 16
FIXED = {
    "median_s": (1_800.0, 1_800.0), "spread": (1.2, 1.2), "growth": (0.0, 0.0),
    "swing": (0.0, 0.0), "noise": (0.8, 0.8), "excess": (0.4, 0.4),
}  # fmt: skip
SIZES = {1: 0.5, 2: 0.2, 8: 0.3}
DICE = np.random.default_rng(0)
TRACE = Workload.of(
    submit_s=np.cumsum(DICE.integers(0, 200, 300)),
    duration_s=DICE.integers(1, 10**6, 300) / 8,
    gpus=DICE.choice([1, 2, 8], 300),
)
OWN_ESTIMATES = Workload.of(
    submit_s=TRACE.submit_s,
    duration_s=TRACE.duration_s,
    gpus=TRACE.gpus,
    estimate_s=2.0 * TRACE.duration_s,
)


class Jobs:
    """The jobs of one drawn episode, read from its rows."""

    def __init__(self, rows, one) -> None:
        ints = one.ints
        shapes = ints[ints[core.JOB_SHAPE] :][: rows.jobs]
        self.gpus = np.array([np.flatnonzero(rows.shapes == shape)[0] for shape in shapes])
        self.facts = one.facts
        for name in ("submit", "duration", "expected", "offset"):
            place = ints[getattr(core, name.upper())]
            setattr(self, name, one.reals[place : place + rows.jobs].copy())

    @property
    def load(self) -> float:
        """Work by what all GPUs can do until the last job comes."""
        return float((self.duration * self.gpus).sum() / (GPUS * self.submit[-1]))


def task_of(information: str = "clairvoyant", order: str = "sjf", **scene) -> SceneTask:
    if "trace" not in scene:
        scene = {"sizes": SIZES} | FIXED | scene
    sight = Sight(window=4, gpu_slots=4, information=information, window_order=order)
    return SceneTask(
        scenes=(Scene(name="one", cluster="2x V100:8", **scene),), jobs=JOBS, sight=sight
    )


def episodes(task: SceneTask, count: int, first: int = 0) -> list[Jobs]:
    rows, rules = task.rows(), task.rules()
    return [Jobs(rows, drawn(rows, rules, first + number)) for number in range(count)]


@cache
def synthetic() -> tuple[Jobs, ...]:
    """Return many synthetic jobs, drawn once."""
    return tuple(episodes(task_of("estimate"), 32))


@pytest.mark.parametrize("source", [{}, {"trace": TRACE}], ids=["synthetic", "trace"])
@pytest.mark.parametrize("load", [(0.7, 0.7), (0.9, 1.4)])
def test_the_load_is_what_was_asked_for(load: tuple[float, float], source: dict):
    """Exactly, or anywhere between the two, and not always the same."""
    found = [one.load for one in episodes(task_of(load=load, **source), 8)]
    assert min(found) >= load[0] * (1 - 1e-12)
    assert max(found) <= load[1] * (1 + 1e-12)
    if load[0] < load[1]:
        assert len({round(one, 6) for one in found}) == len(found)


@pytest.mark.parametrize("load", [None, (1.0, 1.0)])
def test_windows_are_consecutive_jobs_of_the_trace(load):
    """Run times, GPUs and the proportions of time between jobs are the trace's."""
    begins = set()
    for one in episodes(task_of(trace=TRACE, load=load), 8):
        (first,) = (
            place
            for place in range(len(TRACE) - JOBS + 1)
            if np.array_equal(TRACE.duration_s[place : place + JOBS], one.duration)
        )
        np.testing.assert_array_equal(TRACE.gpus[first : first + JOBS], one.gpus)
        own_s = TRACE.submit_s[first : first + JOBS] - TRACE.submit_s[first]
        stretch = 1.0 if load is None else one.submit[-1] / own_s[-1]
        np.testing.assert_allclose(one.submit, own_s * stretch, rtol=1e-12)
        begins.add(first)
    assert len(begins) > 5


def test_synthetic_sizes_come_as_often_as_asked():
    """A chi-square test finds nothing against the shares."""
    gpus = np.concatenate([one.gpus for one in synthetic()])
    counts = np.array([(gpus == size).sum() for size in SIZES])
    assert counts.sum() == len(gpus)
    assert stats.chisquare(counts, np.array(list(SIZES.values())) * len(gpus)).pvalue > 0.01


def test_run_times_are_log_normal():
    """Their logarithm has the mean and spread asked for; none is shorter or longer than allowed."""
    run_s = np.concatenate([one.duration for one in synthetic()])
    assert ((run_s >= LEAST_RUN_S) & (run_s <= LONGEST_RUN_S)).all()
    np.testing.assert_array_equal(run_s, np.ceil(run_s))
    errors = (np.log(run_s) - np.log(FIXED["median_s"][0])) / FIXED["spread"][0]
    assert abs(errors.mean()) < 4 / np.sqrt(len(run_s))
    assert abs(errors.std() - 1.0) < 4 / np.sqrt(2 * len(run_s))
    assert stats.kstest(errors, "norm").pvalue > 0.01


def test_run_times_grow_with_gpus():
    """With a power of one half, eight GPUs run √8 times as long in the middle."""
    few = episodes(task_of(growth=(0.5, 0.5), spread=(0.0, 0.0)), 2)
    for one in few:
        expected = np.ceil(1_800.0 * np.sqrt(one.gpus))
        np.testing.assert_allclose(one.duration, expected, atol=1.0)


def test_jobs_come_at_random():
    """Without a swing, times between jobs are exponential."""
    gaps = np.concatenate([np.diff(one.submit) / np.diff(one.submit).mean() for one in synthetic()])
    assert (gaps >= 0).all()
    assert stats.kstest(gaps, "expon").pvalue > 0.01


def test_estimates_are_wrong_as_much_as_asked():
    """The logarithm of estimate by run time has the mean and spread asked for."""
    errors = np.concatenate([np.log(one.expected / one.duration) for one in synthetic()])
    at_least = np.concatenate([one.expected for one in synthetic()])
    assert at_least.min() >= LEAST_RUN_S
    assert errors.mean() == pytest.approx(0.4, abs=0.08)
    assert errors.std() == pytest.approx(0.8, abs=0.08)


def test_estimates_of_a_trace_are_its_own():
    """Jobs that have one keep it; clairvoyance sees run times in their place."""
    (told,) = episodes(task_of("estimate", trace=OWN_ESTIMATES), 1)
    np.testing.assert_array_equal(told.expected, 2.0 * told.duration)
    (known,) = episodes(task_of(trace=OWN_ESTIMATES), 1)
    np.testing.assert_array_equal(known.expected, known.duration)


@pytest.mark.parametrize("order", ["fifo", "sjf", "saf", "smallest-first"])
def test_the_window_is_sorted_as_asked(order: str):
    """The keys that the core sorts by are those of the order."""
    (one,) = episodes(task_of(order=order), 1)
    keys = {
        "fifo": one.submit,
        "sjf": one.expected,
        "saf": one.expected * one.gpus,
        "smallest-first": one.gpus,
    }
    np.testing.assert_array_equal(one.offset, keys[order])


def test_facts_say_how_much_there_is():
    """Work and jobs of the episode stand where the environments look for them."""
    (one,) = episodes(task_of(), 1)
    assert one.facts[picking.WORK] == pytest.approx((one.duration * one.gpus).sum(), rel=1e-12)
    assert one.facts[picking.PLACEABLE] == JOBS


def test_a_number_is_an_episode():
    """The same number gives the same jobs; another one gives others."""
    once, again = (episodes(task_of("estimate"), 3, first=70) for _ in range(2))
    for one, other in zip(once, again, strict=True):
        for name in ("submit", "duration", "expected", "gpus"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert len({one.duration.tobytes() for one in once}) == 3
    assert len({one.submit.tobytes() for one in once}) == 3


def test_scenes_come_as_often_as_asked():
    """A chi-square test finds nothing against the shares of three scenes."""
    shares = np.array([0.2, 0.7, 0.1])
    scenes = np.zeros((3, 16))
    scenes[:, 0] = np.cumsum(shares)
    counts = np.bincount([scene_of(number, scenes, 3) for number in range(3_000)], minlength=3)
    assert stats.chisquare(counts, shares * 3_000).pvalue > 0.01


@pytest.mark.parametrize("jobs", [1, 12, 64, 100, 257])
def test_parts_share_out_all_jobs(jobs: int):
    """Every job is in one part, and the parts follow each other."""
    begins = [part_begins(jobs, part) for part in range(SHARES + 1)]
    assert begins[0] == 0
    assert begins[-1] == jobs
    assert begins == sorted(begins)
