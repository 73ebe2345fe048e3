"""Speeds of known kinds: what was measured, what is estimated from it, and what nobody knows."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.model.gpus import GpuType, gpu_type, gpu_types
from yardmaster.model.speeds import colocation, kinds, locality, scaling, speed

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / ".." / "shared" / "traces" / "perf_gavel" / "simulation_throughputs.json"
NEEDS_SOURCE = pytest.mark.skipif(not SOURCE.exists(), reason="needs ../shared/traces/perf_gavel")

V100 = gpu_type("V100")
MEASURED_ON = ("K80", "P100", "V100")
FAMILIES = ("A3C", "CycleGAN", "LM", "Recommendation", "ResNet-18", "ResNet-50", "Transformer")
SPREAD_KINDS = [k for k in kinds() if k.startswith(("LM", "ResNet", "Transformer"))]

names = st.one_of(st.none(), st.sampled_from(kinds()), st.sampled_from(FAMILIES), st.text())
figures = st.floats(0.1, 1e4)
any_gpu = st.one_of(
    st.sampled_from(gpu_types()),
    st.builds(
        GpuType,
        name=st.just("own"),
        memory_gib=figures,
        fp32_tflops=figures,
        fp16_tflops=figures,
        memory_gb_s=figures,
        idle_w=st.just(10.0),
        busy_w=st.just(100.0),
    ),
)


@given(names, any_gpu)
def test_every_kind_runs_at_speed_one_where_it_was_measured(kind: str | None, gpu: GpuType):
    """The reference type has speed exactly 1, known or not."""
    assert speed(kind, gpu, gpu) == 1.0


@given(names, any_gpu, any_gpu, any_gpu)
def test_speeds_are_ratios(kind: str | None, one: GpuType, two: GpuType, three: GpuType):
    """There and back is 1, and a detour over a third type changes nothing, up to rounding."""
    assert speed(kind, one, two) > 0
    assert speed(kind, one, two) * speed(kind, two, one) == pytest.approx(1, rel=2e-5)
    detour = speed(kind, one, two) * speed(kind, two, three)
    assert speed(kind, one, three) == pytest.approx(detour, rel=2e-5)


@given(any_gpu, any_gpu, st.sampled_from([None, "", "7", "app-3", "BERT", "ResNet-101", "bs64"]))
def test_unknown_kinds_follow_peak_fp32(one: GpuType, two: GpuType, kind: str | None):
    """Whoever has no measurements runs at the ratio of FLOPS."""
    assert speed(kind, one, two) == pytest.approx(one.fp32_tflops / two.fp32_tflops, rel=1e-5)


@given(names, any_gpu, any_gpu)
def test_speeds_have_six_digits(kind: str | None, one: GpuType, two: GpuType):
    """More digits could differ from one machine's mathematics to another's."""
    value = speed(kind, one, two)
    assert value == float(f"{value:.6g}")


@given(
    kind=st.sampled_from(kinds()),
    factor=st.floats(1, 100),
    what=st.sampled_from(["fp32_tflops", "fp16_tflops", "memory_gb_s"]),
)
def test_no_kind_gains_more_than_its_gpu(kind: str, factor: float, what: str):
    """Beyond the measured types a better GPU is never slower, nor faster than what it gained."""
    base = gpu_type("A100")
    better = replace(base, **{what: getattr(base, what) * factor})
    assert 1 <= speed(kind, better, base) <= factor * (1 + 1e-5)


def test_estimates_for_newer_types_are_plausible():
    """The bounds are wide on purpose: they catch a wrong unit or ratio, not a wrong guess."""
    bounds = {"T4": (0.3, 0.6), "A10": (0.6, 1.2), "A100": (1.4, 2.5), "H100": (3.0, 6.0)}
    for name, (low, high) in bounds.items():
        typical = median(speed(kind, gpu_type(name), V100) for kind in SPREAD_KINDS)
        assert low < typical < high, name
    assert speed("ResNet-50", gpu_type("V100-32G"), V100) == 1.0


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("resnet50-bs64", "ResNet-50 (batch size 64)"),
        ("RESNET 50, batch=64", "ResNet-50 (batch size 64)"),
        ("ResNet-50", "ResNet-50 (batch size 64)"),
        ("resnet_18", "ResNet-18 (batch size 64)"),
        ("transformer", "Transformer (batch size 64)"),
        ("lm", "LM (batch size 20)"),
        ("recommendation", "Recommendation (batch size 2048)"),
        ("Cycle-GAN", "CycleGAN"),
        ("a3c", "A3C"),
        ("LM bs 7", "LM (batch size 5)"),
        ("resnet-50 (batch size 4096)", "ResNet-50 (batch size 128)"),
    ],
)
def test_names_are_matched_without_case_and_punctuation(written: str, meant: str):
    """A family means its middle batch size, an unmeasured batch size the nearest."""
    assert meant in kinds()
    for gpu in gpu_types():
        assert speed(written, gpu, V100) == speed(meant, gpu, V100)
    for other in kinds():
        assert colocation(written, other) == colocation(meant, other)
        assert colocation(other, written) == colocation(other, meant)
    assert (scaling(written), locality(written)) == (scaling(meant), locality(meant))


def test_all_measured_kinds_are_told_apart():
    """Twenty-six kinds, each found under its own name."""
    assert len(kinds()) == len(set(kinds())) == 26
    rates = {tuple(speed(kind, gpu_type(name), V100) for name in MEASURED_ON) for kind in kinds()}
    assert len(rates) == 26


@given(names)
def test_distance_never_helps_and_racks_are_further_than_nodes(kind: str | None):
    """Factors are in (0, 1], and crossing racks costs at least what crossing nodes costs."""
    factors = locality(kind)
    assert 0 < factors.rack <= factors.node <= 1


@given(names)
def test_racks_double_the_wait_for_the_network(kind: str | None):
    """Time per unit of work beyond that within a node doubles when the gang crosses racks."""
    factors = locality(kind)
    assert 1 / factors.rack - 1 == pytest.approx(2 * (1 / factors.node - 1), rel=1e-4, abs=1e-4)


@given(names, names)
def test_sharing_never_helps(kind: str | None, other: str | None):
    """A neighbour on the same GPU never makes a job faster, and never stops it."""
    assert 0 < colocation(kind, other) <= 1


@given(names, st.integers(1, 64))
def test_speed_up_curves_rise_and_bend(kind: str | None, nominal: int):
    """More GPUs are faster, each one adding no more than the one before."""
    exponent = scaling(kind)
    assert 0.5 <= exponent <= 1
    curve = (np.arange(1, 4 * nominal + 1) / nominal) ** exponent
    gains = np.diff(curve)
    assert curve[nominal - 1] == 1.0
    assert np.all(gains > 0)
    assert np.all(np.diff(gains) <= 1e-12)


@pytest.mark.parametrize("kind", [None, "nobody knows"])
def test_unknown_kinds_are_typical(kind: str | None):
    """Where nothing is known about a kind, the median of the known ones stands in."""
    assert scaling(kind) == median(map(scaling, SPREAD_KINDS))
    assert locality(kind).node == median(locality(k).node for k in SPREAD_KINDS)
    assert scaling("A3C") == scaling(kind)  # measured on one GPU only
    assert locality("CycleGAN") == locality(kind)
    beside = [colocation(k, kind) for k in kinds()]
    assert min(beside) < colocation(kind, kind) < max(beside)


@pytest.fixture(scope="module")
def source() -> dict[str, dict[tuple[str, int], dict[Any, Any]]]:
    """Return the measurements as published, with keys (kind, GPUs)."""
    tables = json.loads(SOURCE.read_text("utf-8"))
    return {
        name: {
            ast.literal_eval(key): {
                other if other == "null" else ast.literal_eval(other): value
                for other, value in row.items()
            }
            for key, row in table.items()
        }
        for name, table in tables.items()
    }


@NEEDS_SOURCE
def test_speeds_on_measured_types_are_the_measured_ones(source):
    """All 26 kinds on all pairs of the three types, as published."""
    for kind in kinds():
        for one in MEASURED_ON:
            for two in MEASURED_ON:
                steps = [source[name.lower()][kind, 1]["null"] for name in (one, two)]
                expected = steps[0] / steps[1]
                given_speed = speed(kind, gpu_type(one), gpu_type(two))
                assert given_speed == pytest.approx(expected, rel=2e-5)


@NEEDS_SOURCE
def test_every_published_kind_is_known(source):
    """No kind is left out, and none is made up."""
    assert set(kinds()) == {kind for kind, gpus in source["v100"] if gpus == 1}


@NEEDS_SOURCE
def test_pairs_are_the_measured_ones(source):
    """Sharing slows a job down as measured on V100; pairs that failed take the kind's median."""
    failed = 0
    for kind in kinds():
        row = source["v100"][kind, 1]
        ratios = {other: row[other, 1][0] / row["null"] for other in kinds()}
        typical = median(ratio for ratio in ratios.values() if ratio > 0)
        for other, ratio in ratios.items():
            failed += ratio == 0
            expected = ratio or typical
            assert colocation(kind, other) == pytest.approx(expected, rel=1e-3)
        assert colocation(kind, "unknown") == pytest.approx(typical, rel=1e-3)
    assert failed == 40


@NEEDS_SOURCE
def test_curves_and_distances_are_fits_to_the_measurements(source):
    """Exponents and factors agree with an independent fit to every measured point."""
    for kind in SPREAD_KINDS:
        rows, logs, ratios = [], [], []
        for number, name in enumerate(MEASURED_ON):
            steps = [source[name.lower()][kind, gpus]["null"] for gpus in (1, 2, 4, 8)]
            if min(steps) > 0:  # one line per type: a common slope, an intercept of its own
                rows += [[math.log(g), *np.eye(3)[number]] for g in (1, 2, 4, 8)]
                logs += [math.log(step) for step in steps]
            apart = source[f"{name.lower()}_unconsolidated"]
            ratios += [
                apart[kind, gpus]["null"] / source[name.lower()][kind, gpus]["null"]
                for gpus in (2, 4, 8)
                if (kind, gpus) in apart
            ]
        slope = np.linalg.lstsq(np.array(rows), np.array(logs))[0][0]
        assert scaling(kind) == pytest.approx(np.clip(slope, 0.5, 1), abs=1e-3)
        node = min(float(np.exp(np.mean(np.log(ratios)))), 1.0)
        assert locality(kind).node == pytest.approx(node, rel=1e-3)


@NEEDS_SOURCE
def test_the_data_file_is_what_its_script_builds():
    """Nobody edited the file by hand, and it follows the catalogue's figures."""
    script = ROOT / "benchmarks" / "build_throughputs.py"
    subprocess.run([sys.executable, script, "--check"], check=True, capture_output=True)


@NEEDS_SOURCE
def test_the_rule_for_unmeasured_types_misses_by_what_the_file_says(source):
    """Predicting K80 and P100 from the V100 by the rule misses by the stated factor."""
    text = (ROOT / "src/yardmaster/model/data/throughputs.toml").read_text("utf-8")
    for family, fit in tomllib.loads(text)["families"].items():
        missed = []
        for kind in (kind for kind in kinds() if kind.split(" (")[0] == family):
            for old in map(gpu_type, MEASURED_ON[:2]):
                compute = math.sqrt(
                    old.fp32_tflops * old.fp16_tflops / V100.fp32_tflops / V100.fp16_tflops
                )
                bandwidth = old.memory_gb_s / V100.memory_gb_s
                predicted = compute ** fit["compute"] * bandwidth ** fit["bandwidth"]
                steps = [source[n][kind, 1]["null"] for n in (old.name.lower(), "v100")]
                missed.append(math.log(steps[0] / steps[1] / predicted))
        assert math.exp(np.sqrt(np.mean(np.square(missed)))) == pytest.approx(
            fit["misses_by"], abs=0.006
        )
