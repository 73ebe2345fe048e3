"""Calibrated presets: like their statistics, like the real files, like published aggregates."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import InvalidConfigError, UnknownNameError
from yardmaster.model.workload import Workload
from yardmaster.workloads.calibration import calibration
from yardmaster.workloads.recipes.presets import PRESETS
from yardmaster.workloads.synthetic import generate

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared/traces"
JOBS = {"venus-like": 120_000, "philly-like": 150_000, "openb-like": 40_000}
HOUR_S, DAY_S = 3600, 86_400


@pytest.fixture(scope="module")
def like() -> dict[str, Workload]:
    """Return many jobs of each calibrated preset at the trace's own rate: 2 to 30 of its length."""
    return {
        name: generate(name, jobs=jobs, seed=1, rate_per_h=calibration(name).jobs_per_h)
        for name, jobs in JOBS.items()
    }


def dispersion(submit_s):
    """Variance / mean of the counts by hours of the workload's clock."""
    counts = np.bincount((submit_s // HOUR_S).astype(int))
    return float(counts.var() / counts.mean())


def asked(workload):
    return workload.gpus * workload.milli_gpu / 1000


def total_variation(one, other):
    sizes = np.unique(np.round(np.concatenate((one, other)), 3))
    return sum(abs(np.mean(np.isclose(one, s)) - np.mean(np.isclose(other, s))) for s in sizes) / 2


@pytest.mark.parametrize("preset", JOBS)
def test_sizes_follow_the_calibrated_shares(like, preset):
    """Total variation between generated and calibrated GPU sizes is sampling noise."""
    stats, sizes = calibration(preset), asked(like[preset])
    found = np.array([np.mean(np.isclose(sizes, size)) for size in stats.sizes])
    assert found.sum() == pytest.approx(1.0)
    assert np.abs(found - stats.shares).sum() / 2 < 0.01


@pytest.mark.parametrize("preset", JOBS)
def test_run_times_follow_the_calibrated_quantiles(like, preset):
    """In every size class the calibrated quantiles are reached with their probabilities."""
    stats, workload = calibration(preset), like[preset]
    for size_class in stats.classes:
        seconds = workload.duration_s[size_class.holds(workload.gpus)]
        noise = 4 * 0.5 / np.sqrt(len(seconds))
        for probability, quantile in zip(stats.probabilities, size_class.quantiles_s, strict=True):
            assert np.mean(seconds < quantile - 0.5) <= probability + noise
            assert np.mean(seconds <= quantile + 0.5) >= probability - noise


@pytest.mark.parametrize("preset", JOBS)
def test_hours_are_as_bursty_at_any_rate(preset):
    """cv² of the hourly rate is the trace's, whether a load or a rate sets how many jobs come."""
    busy = generate(preset, jobs=200_000, seed=1, gpus=1264, load=0.5)
    mean = len(busy) / busy.submit_s[-1] * HOUR_S
    cv2 = (dispersion(busy.submit_s) - 1) / mean
    assert cv2 == pytest.approx(calibration(preset).season.rate_cv2, rel=0.2)


def venus():
    """Submissions, run times and sizes from April 2020 on."""
    path = TRACES / "helios/venus_until_2020-07.csv"
    data = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2, 3), comments=None)
    return data[data[:, 0] >= 13 * DAY_S + 19 * HOUR_S + 58 * 60 + 21].T


def philly():
    """Submissions, run times and sizes from 3 October 2017 on."""
    path = TRACES / "philly/philly_rfold_until_2017-10.csv"
    data = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 5, 4), comments=None)
    return data[data[:, 0] >= 49 * DAY_S + 33 * 60].T


def openb():
    """Submissions, run times and sizes of the GPU pods that ran."""
    with (TRACES / "alibaba_openb2023/openb_pod_list_default.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if int(row["num_gpu"])]
    ran = [row for row in rows if row["scheduled_time"]]

    def column(name):
        return np.array([float(row[name]) for row in ran])

    run_s = column("deletion_time") - column("scheduled_time")
    return column("creation_time"), run_s, column("num_gpu") * column("gpu_milli") / 1000


REAL = {"venus-like": venus, "philly-like": philly, "openb-like": openb}


@pytest.mark.skipif(not TRACES.exists(), reason="needs shared/traces beside the repository")
@pytest.mark.parametrize("preset", REAL)
def test_presets_are_like_the_real_trace(like, preset):
    """Against the trace itself: sizes, run times, work and hourly dispersion at its own rate.

    Tolerances: sizes rarer than one in a thousand are not in the statistics (1 %). Run times are
    known at ten probabilities and log-linear between: at the quantiles of the generated ones the
    real ones may be 2 % off on the scale of probability, elsewhere 5 % (a fact of interpolating
    over a quarter of the jobs). Mean work hangs on the longest 1 % (15 %). The variance of hourly
    counts of a bursty process over some thousand hours is itself known to some 10 % (15 %).
    """
    submit_s, duration_s, gpus = REAL[preset]()
    ours = like[preset]
    assert total_variation(gpus, asked(ours)) < 0.01
    for probability in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99):
        quantile = np.quantile(ours.duration_s, probability)
        assert np.mean(duration_s < quantile) <= probability + 0.02
        assert np.mean(duration_s <= quantile) >= probability - 0.02
    at = np.unique(duration_s)
    below = [
        np.searchsorted(np.sort(x), at, "right") / len(x) for x in (duration_s, ours.duration_s)
    ]
    assert np.abs(below[0] - below[1]).max() < 0.05
    assert ours.work_gpu_s / len(ours) == pytest.approx(np.mean(duration_s * gpus), rel=0.15)
    real = dispersion(submit_s - submit_s.min())
    assert dispersion(ours.submit_s) == pytest.approx(real, rel=0.15)


@pytest.mark.skipif(not TRACES.exists(), reason="needs shared/traces beside the repository")
@pytest.mark.parametrize("preset", ["venus-like", "philly-like"])
def test_size_classes_run_as_long_as_in_the_real_trace(like, preset):
    """Within each class of sizes too; one with two humps may be further off between quarters."""
    _, duration_s, gpus = REAL[preset]()
    ours = like[preset]
    distances, jobs = [], []
    for members in calibration(preset).classes:
        real = np.sort(duration_s[members.holds(gpus)])
        drawn = np.sort(ours.duration_s[members.holds(ours.gpus)])
        at = np.unique(real)
        below = [np.searchsorted(each, at, "right") / len(each) for each in (real, drawn)]
        distances.append(np.abs(below[0] - below[1]).max())
        jobs.append(len(real))
    assert np.average(distances, weights=jobs) < 0.05
    assert max(distances) < 0.15


@pytest.mark.parametrize(("cluster", "mean"), [("seren", 5.68), ("kalos", 26.77)])
def test_acme_meets_the_published_aggregates(cluster, mean):
    """Mean and largest size and median run time are as published; the notes say the rest."""
    jobs = generate(f"acme-like:cluster={cluster}", jobs=200_000, seed=1, rate_per_h=150)
    assert jobs.gpus.mean() == pytest.approx(mean, abs=4 * jobs.gpus.std() / np.sqrt(len(jobs)))
    assert jobs.gpus.max() == 1024
    # The median of n log-normal values has a standard error of 1.25·sigma/√n in logarithm.
    assert np.log(np.median(jobs.duration_s) / 122) == pytest.approx(0, abs=0.03)
    assert any("Assumed" in note for note in jobs.notes)


def test_openb_jobs_ask_for_parts_of_gpus():
    """Parts come as thousandths of one GPU, never of several."""
    jobs = generate("openb-like", jobs=5000, seed=2, gpus=64, load=0.8)
    part = jobs.milli_gpu < 1000
    assert part.mean() == pytest.approx(0.417, abs=0.03)
    assert (jobs.gpus[part] == 1).all()
    assert jobs.load(64) == pytest.approx(0.8, rel=1e-4)


def test_options_and_demands_stand_side_by_side():
    """One list behind the colon; the name keeps the preset's own options."""
    recipe = PRESETS["rlmetadqn"].recipe("intensity=high, cores=4, workload=bursty")
    assert recipe.name == "rlmetadqn:intensity=high,workload=bursty"
    assert recipe.demands.cores == 4
    assert recipe.rate_per_h == pytest.approx(240 * 1.65)
    assert PRESETS["mm"].recipe("cores=4").name == "mm"


def test_mistakes_in_options():
    """Unknown names get suggestions; several bad values are all listed."""
    with pytest.raises(UnknownNameError, match="Did you mean 'kalos'"):
        PRESETS["acme-like"].recipe("cluster=kalo")
    with pytest.raises(UnknownNameError, match=r"Known: .*cluster.*elastic"):
        PRESETS["acme-like"].recipe("clutser=kalos")
    with pytest.raises(InvalidConfigError, match="2 mistakes"):
        PRESETS["gpu-optimizer"].recipe("mode=haevy,max_duration_s=-1")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_describe_themselves(name):
    """The recipe of a preset has its name and description."""
    recipe = PRESETS[name].recipe()
    assert recipe.name == name
    assert recipe.description == PRESETS[name].description
