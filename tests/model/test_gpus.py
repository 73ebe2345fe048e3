"""The catalogue of GPU types."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import UnknownNameError
from yardmaster.model.gpus import gpu_type, gpu_types, type_key


@pytest.mark.parametrize(
    ("name", "flops"), [("A100", 1.95e13), ("V100", 1.57e13), ("T4", 8.1e12), ("RTX4090", 8.26e13)]
)
def test_fp32_peaks_agree_with_the_four_type_simulator(name: str, flops: float):
    """The FP32 peaks are those the published four-type cluster was simulated with."""
    assert gpu_type(name).flops == pytest.approx(flops)


def test_every_type_has_plausible_figures():
    """No figure is missing, out of range, or in the wrong unit."""
    for kind in gpu_types():
        assert 4 <= kind.memory_gib <= 256, kind
        assert 4 <= kind.fp32_tflops <= 200, kind
        assert kind.fp32_tflops <= kind.fp16_tflops <= 3000, kind
        assert 100 <= kind.memory_gb_s <= 10_000, kind
        assert 5 <= kind.idle_w < kind.busy_w / 3, kind
        assert 70 <= kind.busy_w <= 1200, kind
        assert 2014 <= kind.year <= 2026, kind
        assert kind.source, kind


def test_catalogue_covers_the_types_of_the_traces_and_of_todays_clusters():
    """Types named by traces, other simulators and current machines are all there."""
    names = {kind.name for kind in gpu_types()}
    old = {"K80", "M60", "P4", "P40", "P100-12G", "P100", "V100", "V100-32G", "T4", "MISC"}
    cards = {"RTX2080Ti", "RTX3090", "RTX4090", "A10", "A30", "A40", "L4", "L40S"}
    large = {"A100-40G", "A100", "H100", "H200", "H800", "H20", "B200", "MI250X", "MI300X"}
    assert names == old | cards | large


def test_names_and_keys_are_distinct():
    """No two types share a name or a key."""
    names = [kind.name for kind in gpu_types()]
    assert len({type_key(name) for name in names}) == len(set(names)) == len(names)


@given(data=st.data())
def test_spelling_never_matters(data: st.DataObject):
    """Case, spaces, dashes, underscores and vendor prefixes make no difference."""
    name = data.draw(st.sampled_from([kind.name for kind in gpu_types()]))
    cases = [data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in name]
    separator = data.draw(st.sampled_from(["", " ", "-", "_"]))
    prefix = data.draw(st.sampled_from(["", "NVIDIA ", "nvidia_", "Tesla ", "NVIDIA GeForce "]))
    spelt = prefix + separator.join(cases)
    assert gpu_type(spelt).name == name
    assert type_key(spelt) == type_key(name)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("V100M16", "V100"),
        ("V100-16G", "V100"),
        ("V100M32", "V100-32G"),
        ("A100-80G", "A100"),
        ("NVIDIA A100-SXM4-40GB", "A100-40G"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("P100-16G", "P100"),
        ("2080Ti", "RTX2080Ti"),
    ],
)
def test_aliases_of_traces_and_drivers_are_known(alias: str, name: str):
    """The names traces and drivers use lead to the canonical type."""
    assert gpu_type(alias) is gpu_type(name)


def test_a_misspelt_type_is_answered_with_the_nearest():
    """An unknown name raises the user's error with a suggestion and the list."""
    with pytest.raises(
        UnknownNameError, match=r"GPU type 'V1000'.*Did you mean 'V100'.*Known: A10,"
    ):
        gpu_type("V1000")


@pytest.mark.parametrize("name", ["", "-", "nvidia", "V10032"])
def test_near_misses_are_not_guessed(name: str):
    """A name that only resembles a type is an error, never a silent choice."""
    with pytest.raises(UnknownNameError):
        gpu_type(name)


@given(st.text())
def test_names_outside_the_catalogue_have_keys_too(name: str):
    """Any text has a key, which separators around it do not change."""
    assert type_key(f" {name}_") == type_key(name)


def test_types_and_clusters_import_light():
    """Describing a cluster needs NumPy and nothing heavier."""
    code = (
        "import sys; from yardmaster.model.cluster import Cluster; Cluster.of('8x A100:8');"
        "heavy = {'pydantic', 'polars', 'numba', 'matplotlib', 'rich', 'simpy', 'scipy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
