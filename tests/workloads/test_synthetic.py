"""Generated workloads: reproducible, with exact load, and like the traces they imitate."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.workloads.calibration import calibration
from yardmaster.workloads.recipes.document import find_recipe
from yardmaster.workloads.synthetic import CONSENSUS_SIZES, PRESETS, generate, simple

SOME = {"jobs": 500, "seed": 7, "gpus": 64, "load": 0.9}
WHOLE = sorted(name for name, preset in PRESETS.items() if preset.recipe().whole_seconds)
"""Presets whose times are whole seconds."""


@settings(max_examples=40, deadline=None)
@given(
    preset=st.sampled_from(WHOLE),
    jobs=st.integers(2, 400),
    seed=st.integers(0, 2**40),
    gpus=st.integers(1, 500),
    load=st.floats(0.05, 3.0),
)
def test_the_offered_load_is_exact_to_a_second(preset, jobs, seed, gpus, load):
    """The load differs from the wanted one only by rounding the span to a second."""
    workload = generate(preset, jobs=jobs, seed=seed, gpus=gpus, load=load)
    assert len(workload) == jobs
    span_s = workload.submit_s[-1] - workload.submit_s[0]
    wanted_s = workload.work_gpu_s / (gpus * load)
    assert abs(span_s - wanted_s) <= 0.5 or span_s == 1
    assert workload.gpus.max() <= gpus
    assert workload.has_estimates
    for column in (workload.submit_s, workload.duration_s, workload.estimate_s):
        assert (column == np.round(column)).all()
    assert workload.duration_s.min() >= 1


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_large_workloads_meet_the_load_to_six_digits(preset):
    """With thousands of jobs nothing is left of the rounding."""
    workload = generate(preset, jobs=20_000, seed=3, gpus=256, load=0.8)
    assert workload.load(256) == pytest.approx(0.8, rel=2e-6)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_equal_seeds_give_equal_workloads_and_other_seeds_others(preset):
    """The fingerprint depends on the seed and on nothing else."""
    first, again = generate(preset, **SOME), generate(preset, **SOME)
    other = generate(preset, **(SOME | {"seed": 8}))
    assert first.fingerprint() == again.fingerprint()
    assert first.fingerprint() != other.fingerprint()


def test_another_process_generates_the_same_workload():
    """Workloads do not depend on the process, its hash seed or what it drew before."""
    np.random.default_rng(0).random(3)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as elsewhere:
        there = elsewhere.submit(generate, "philly-like", **SOME).result()
    assert there.fingerprint() == generate("philly-like", **SOME).fingerprint()


def test_the_load_moves_only_times():
    """Sizes, durations and owners of a seed stay when the load changes: comparisons stay paired."""
    calm, busy = generate(**SOME), generate(**(SOME | {"load": 1.8}))
    assert (calm.duration_s == busy.duration_s).all()
    assert (calm.gpus == busy.gpus).all()
    assert (calm.user.codes == busy.user.codes).all()
    assert calm.submit_s[-1] == pytest.approx(2 * busy.submit_s[-1], abs=2)


def test_sizes_too_large_are_drawn_again_and_said():
    """A small cluster gets the same mix without the largest jobs, and a note."""
    small = generate(jobs=20_000, seed=0, gpus=64, load=0.9, max_gpus=4)
    assert set(small.gpus.tolist()) == {1, 2, 3, 4}
    stats = calibration("venus-like")
    fits = stats.sizes <= 4
    assert np.mean(small.gpus == 1) == pytest.approx(
        stats.shares[0] / stats.shares[fits].sum(), abs=0.01
    )
    assert any("sizes above 4 GPUs" in note and "drawn again" in note for note in small.notes)
    whole = generate(jobs=10, seed=0, gpus=1000, load=0.9)
    assert not any("drawn again" in note for note in whole.notes)


def test_simple_workloads_are_the_consensus_family():
    """Log-normal with the given median and spread, clipped; sizes with their shares."""
    workload = simple(jobs=50_000, seed=2, gpus=512, load=0.9)
    log_s = np.log(workload.duration_s)
    assert np.exp(np.median(log_s)) == pytest.approx(600, rel=0.03)
    quartile = 0.674489750196
    assert np.subtract(*np.quantile(log_s, [0.75, 0.25])) == pytest.approx(
        2 * quartile * 1.7, rel=0.03
    )
    assert (workload.duration_s.min(), workload.duration_s.max()) == (30, 172_800)
    for size, share in CONSENSUS_SIZES.items():
        assert np.mean(workload.gpus == size) == pytest.approx(share, abs=0.01)
    same = generate("lognormal", jobs=50_000, seed=2, gpus=512, load=0.9)
    assert same.fingerprint() == workload.fingerprint()


def test_the_memoryless_preset_is_memoryless():
    """`mm` has exponential run times and gaps: mean equals standard deviation."""
    workload = generate("mm", jobs=100_000, seed=4, gpus=10, load=0.7)
    gaps = np.diff(workload.submit_s)
    assert workload.duration_s.std() == pytest.approx(workload.duration_s.mean(), rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)
    assert set(workload.gpus.tolist()) == {1}


def test_one_job_has_no_load_and_the_notes_say_so():
    """A single job is submitted at second 0; nothing pretends to have a load."""
    workload = generate(jobs=1, seed=0, gpus=8, load=0.9)
    assert workload.submit_s.tolist() == [0.0]
    assert any("no offered load" in note for note in workload.notes)


def test_a_load_that_whole_seconds_cannot_meet_is_said():
    """When rounding the span changes the load noticeably, the notes give the true load."""
    workload = simple(jobs=3, seed=0, gpus=10_000, load=50.0)
    assert any("offered load is" in note for note in workload.notes)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("jobs", 0),
        ("jobs", -5),
        ("jobs", 2.5),
        ("jobs", True),
        ("jobs", 10**12),
        ("seed", -1),
        ("seed", None),
        ("gpus", 0),
        ("load", 0),
        ("load", -0.5),
        ("load", float("nan")),
        ("load", float("inf")),
        ("load", "high"),
        ("load", 1e-300),
        ("max_gpus", 0),
    ],
)
def test_arguments_that_make_no_sense_are_named(argument, value):
    """Every bad argument is refused with its name, never with a traceback from inside."""
    with pytest.raises(InvalidWorkloadError, match=argument):
        generate(**(SOME | {argument: value}))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("sizes", {}),
        ("sizes", {0: 1.0}),
        ("sizes", {1: 0.5, 2: -0.5}),
        ("sizes", {1.5: 1.0}),
        ("max_gpus", 0),
        ("median_s", 0),
        ("sigma", float("nan")),
    ],
)
def test_simple_arguments_that_make_no_sense_are_named(argument, value):
    """The simple process names its bad arguments as well."""
    with pytest.raises(InvalidWorkloadError, match=argument):
        simple(**(SOME | {argument: value}))


def test_jobs_that_cannot_fit_are_refused():
    """If even the smallest size is above max_gpus, the error says so."""
    with pytest.raises(InvalidWorkloadError, match="max_gpus is 4"):
        simple(**SOME, sizes={8: 1.0}, max_gpus=4)


def test_a_misspelt_preset_gets_a_suggestion():
    """The error names the nearest preset."""
    with pytest.raises(UnknownNameError, match="Did you mean 'philly-like'"):
        generate("phily-like", **SOME)


def test_a_recipe_file_is_generated_like_a_preset(tmp_path):
    """`generate` takes the name of a recipe file, and the recipe itself."""
    path = tmp_path / "mine.toml"
    path.write_text('jobs = 40\nload = 0.5\ndurations = "exponential:mean=60"\n')
    ours = generate(path, seed=2, gpus=8)
    assert ours.fingerprint() == generate(str(path), seed=2, gpus=8).fingerprint()
    assert ours.fingerprint() == generate(find_recipe(path), seed=2, gpus=8).fingerprint()
    assert (ours.name, len(ours)) == ("mine", 40)
    assert ours.notes[0] == "generated: recipe mine, seed 2, load 0.5 on 8 GPUs"


def test_presets_describe_themselves():
    """Every preset has its name and one line for lists."""
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.description
        assert "\n" not in preset.description
