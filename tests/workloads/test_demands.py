"""What generated jobs ask for besides whole GPUs: shares as wanted, and nothing else moved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.speeds import kinds
from yardmaster.workloads.demands import PARTS_MILLI, Demands, Kinds
from yardmaster.workloads.sources import is_generated, load_workload
from yardmaster.workloads.synthetic import PRESETS, generate

SOME = {"jobs": 500, "seed": 7, "gpus": 64, "load": 0.9}
EVERYTHING = Demands(kinds=Kinds.MEASURED, elastic=0.3, fractions=0.2, cores=4.0)
AS_ALWAYS = {
    "lognormal": "4f4fb56d2787b7b3",
    "mm": "57c17e8a1647d37d",
    "philly-like": "3e6160e2e0f8f183",
    "venus-like": "98b472eb376abe9b",
}
"""How the fingerprints of these workloads began before jobs could ask for anything else."""


@pytest.fixture(scope="module")
def many():
    """Return many jobs that ask for everything."""
    return generate("venus-like", jobs=40_000, seed=1, gpus=512, load=0.9, demands=EVERYTHING)


@pytest.mark.parametrize("preset", AS_ALWAYS)
def test_without_demands_nothing_changes(preset):
    """Workloads are byte for byte what they were before there were demands."""
    plain = generate(preset, **SOME)
    assert plain.fingerprint().startswith(AS_ALWAYS[preset])
    assert generate(preset, demands=Demands(), **SOME).fingerprint() == plain.fingerprint()
    assert not any(note.startswith("with ") for note in plain.notes)


@pytest.mark.parametrize("preset", PRESETS)
def test_demands_move_nothing_else(preset):
    """Who takes kinds, sizes and cores away again is left with the plain workload."""
    plain = generate(preset, **SOME)
    demands = Demands(kinds=Kinds.MEASURED, elastic=0.5, cores=2.0)
    asked = generate(preset, demands=demands, **SOME)
    assert asked.fingerprint() != plain.fingerprint()
    assert asked.notes[-1] == "with kinds=measured, elastic=0.5, cores=2.0"
    names = ("kind", "min_gpus", "max_gpus", "cpus")
    without = asked.with_columns(**{name: getattr(plain, name) for name in names})
    assert without.fingerprint() == plain.fingerprint()


def test_one_demand_does_not_move_another():
    """Every demand draws from its own numbers."""
    together = generate(demands=EVERYTHING, **SOME)
    for alone, names in (
        (Demands(kinds=Kinds.MEASURED), ["kind"]),
        (Demands(elastic=0.3), ["min_gpus", "max_gpus"]),
        (Demands(fractions=0.2), ["milli_gpu", "gpu_memory_gib"]),
    ):
        jobs = generate(demands=alone, **SOME)
        for name in names:
            one, other = getattr(jobs, name), getattr(together, name)
            if name == "kind":
                assert one.values() == other.values()
            else:
                assert np.array_equal(one, other, equal_nan=True)


def test_elastic_jobs(many):
    """The wanted share of jobs up to 8 GPUs can run on half to twice as many, within 1…8."""
    elastic = many.max_gpus > 0
    small = many.gpus <= 8
    assert not (elastic & ~small).any()
    assert elastic[small].mean() == pytest.approx(0.3, abs=0.01)
    for gpus, least, most in ((1, 1, 2), (2, 1, 4), (3, 1, 6), (4, 2, 8), (7, 3, 8), (8, 4, 8)):
        rows = elastic & (many.gpus == gpus)
        assert rows.any()
        assert set(many.min_gpus[rows]) == {least}
        assert set(many.max_gpus[rows]) == {most}
    assert not many.min_gpus[~elastic].any()


def test_fractional_jobs(many):
    """The wanted share of 1-GPU jobs asks for a part, evenly spread, and memory to match."""
    part = many.milli_gpu < 1000
    assert part[many.gpus == 1].mean() == pytest.approx(0.2, abs=0.01)
    assert (many.gpus[part] == 1).all()
    assert not (part & (many.max_gpus > 0)).any()
    counts = [np.count_nonzero(many.milli_gpu == milli) for milli in PARTS_MILLI]
    assert sum(counts) == part.sum()
    assert max(counts) < 1.25 * min(counts)
    per_gpu = many.gpu_memory_gib[part] / (many.milli_gpu[part] / 1000)
    assert per_gpu.min() >= 8.0
    assert (many.gpu_memory_gib[part] <= 16.0 * many.milli_gpu[part] / 1000 + 0.1).all()
    assert np.isnan(many.gpu_memory_gib[~part]).all()


def test_kinds_are_the_measured_ones(many):
    """Families are equally likely, and batch sizes within a family."""
    values = np.array(many.kind.values())
    names = kinds()
    families = {name: name.partition(" (")[0] for name in names}
    members = {family: list(families.values()).count(family) for family in set(families.values())}
    for name in names:
        chance = 1 / (len(members) * members[families[name]])
        noise = 4 * np.sqrt(chance / len(values))
        assert np.mean(values == name) == pytest.approx(chance, abs=noise)


def test_parts_that_the_sizes_ask_for_stay():
    """Demands leave parts of a GPU that sizes ask for alone: not elastic, fewer cores."""
    plain = generate("openb-like", **SOME)
    asked = generate("openb-like", demands=EVERYTHING, **SOME)
    part = plain.milli_gpu < 1000
    assert part.sum() > 100
    assert (asked.milli_gpu[part] == plain.milli_gpu[part]).all()
    assert not asked.max_gpus[part].any()
    assert np.isnan(asked.gpu_memory_gib[part]).all()
    assert asked.cpus[part] == pytest.approx(4.0 * plain.milli_gpu[part] / 1000)
    assert (asked.milli_gpu[~part] < 1000).any()


def test_cores_go_with_gpus(many):
    """Every GPU brings its cores, and part of a GPU that part of them."""
    assert many.cpus == pytest.approx(4.0 * many.gpus * many.milli_gpu / 1000)


@settings(max_examples=30, deadline=None)
@given(fractions=st.floats(0, 1), seed=st.integers(0, 1000))
def test_the_load_counts_parts_as_parts(fractions, seed):
    """With fractional jobs the offered load is still the wanted one."""
    demands = Demands(fractions=fractions)
    jobs = generate("lognormal", jobs=300, seed=seed, gpus=32, load=0.8, demands=demands)
    assert jobs.load(32) == pytest.approx(0.8, rel=1e-3)


def test_demands_in_words():
    """A workload's name may carry its demands, and is a generated one just the same."""
    source = "venus-like: kinds=measured, elastic=0.3, fractions=.2, cores=4"
    assert is_generated(source)
    written = load_workload(source, jobs=500, seed=7, gpus=64, load=0.9)
    assert written.fingerprint() == generate(demands=EVERYTHING, **SOME).fingerprint()
    assert written.name == "venus-like"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("venus-lik:elastic=1", UnknownNameError, "Did you mean 'venus-like'"),
        ("mm:elastik=0.3", UnknownNameError, "Did you mean 'elastic'"),
        ("mm:kinds=mesured", UnknownNameError, "Did you mean 'measured'"),
        ("mm:elastic", InvalidWorkloadError, "write every option once"),
        ("mm:elastic=", InvalidWorkloadError, "write every option once"),
        ("mm:cores=1,cores=2", InvalidWorkloadError, "write every option once"),
        ("mm:elastic=some", InvalidWorkloadError, "elastic must be a number 0…1, got 'some'"),
        ("mm:elastic=1.5", InvalidWorkloadError, "elastic must be from 0 to 1"),
        ("mm:fractions=-1", InvalidWorkloadError, "fractions must be from 0 to 1"),
        ("mm:elastic=0.7,fractions=0.4", InvalidWorkloadError, "at most 1, got 0.7 and 0.4"),
        ("mm:cores=-3", InvalidWorkloadError, "cores must be a number of at least 0"),
        ("mm:cores=inf", InvalidWorkloadError, "cores must be a number, got inf"),
    ],
)
def test_senseless_demands(source, error, message):
    """What cannot be meant is refused by name."""
    with pytest.raises(error, match=message):
        load_workload(source, jobs=5, gpus=4)
