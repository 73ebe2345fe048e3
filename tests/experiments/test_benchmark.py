"""The benchmark measures what it says, and its rivals simulate the same thing."""

import csv
import json
import math
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import ConformanceError
from yardmaster.experiments import benchmark, stopwatch
from yardmaster.experiments.benchmark import checkout_rivals, measure
from yardmaster.experiments.benchmark_bars import Bar, bars
from yardmaster.experiments.benchmark_tables import seconds, to_record, to_text
from yardmaster.experiments.measurements import (
    ALONE_NODES,
    FULL,
    OURS,
    QUICK,
    SIMPY,
    Benchmark,
    Case,
    Growth,
    Plan,
    Row,
)
from yardmaster.experiments.stopwatch import Timing, in_fresh_process, peak_memory_mib, race
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

ORACLES = Path(__file__).resolve().parents[2] / ".." / "shared" / "oracles"
TINY = Plan(
    name="tiny",
    side_by_side=(60,),
    alone=(60,),
    memory=(),
    burst=300,
    compiles=False,
    patience_s=20.0,
)
LOOPS = checkout_rivals()
heap_loop = LOOPS["heap loop"]
second = st.integers(0, 30)
jobs_and_rule = st.tuples(
    st.lists(st.tuples(second, second, st.integers(1, 4)), min_size=1, max_size=40),
    st.sampled_from(["strict", "skip"]),
)


@pytest.fixture
def uncompiled(monkeypatch):
    """Let the benchmark run the core as plain Python, and few rounds: only shapes are tested."""

    def plain(*args, **options):
        return simulate(*args, **options | {"compile_core": "never"})

    monkeypatch.setattr(benchmark, "simulate", plain)
    monkeypatch.setattr(stopwatch, "RACE_S", 0.0)


@given(jobs_and_rule, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_loops_start_jobs_when_the_core_does(jobs_and_rule, other_nodes):
    """Both loops and the core agree on every start time, on nodes of any mixture of sizes."""
    jobs, rule = jobs_and_rule
    submit, duration, gpus = zip(*jobs, strict=True)
    workload = Workload.of(submit_s=submit, duration_s=duration, gpus=gpus)
    cluster = Cluster.of("V100:4", *(f"V100:{count}" for count in other_nodes))
    expected = simulate(workload, cluster, f"fifo+{rule}", compile_core="never").start_s
    for loop in LOOPS.values():
        assert loop(workload, cluster, rule).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("file", "rule", "mean_wait_s"),
    [
        ("w10000_l90.csv", "strict", 39.6491),
        ("w10000_l130.csv", "strict", 14025.8551),
        ("w10000_l90.csv", "skip", 7.9592),
        ("w10000_l130.csv", "skip", 5204.1497),
    ],
)
def test_heap_loop_waits_as_independent_programs_do(file, rule, mean_wait_s):
    """The heap loop reproduces mean waits on which independent programs agree."""
    if not ORACLES.exists():
        pytest.skip("needs the folder `shared` beside the repository")
    with (ORACLES / file).open() as lines:
        rows = list(csv.DictReader(lines))
    workload = Workload.of(
        submit_s=[float(row["submit"]) for row in rows],
        duration_s=[float(row["duration"]) for row in rows],
        gpus=[int(row["gpus"]) for row in rows],
    )
    starts = heap_loop(workload, Cluster.of("64x V100:8"), rule)
    assert float(np.mean(starts - workload.submit_s)) == pytest.approx(mean_wait_s, abs=5e-5)


def test_contenders_take_turns():
    """Every round runs each contender once, in order."""
    calls = []

    def run(name):
        calls.append(name)
        return np.zeros(1)

    timings = race({name: partial(run, name) for name in "abc"}, patience_s=math.inf)
    rounds = len(calls) // 3
    assert calls == list("abc") * rounds
    assert {timing.runs for timing in timings.values()} == {rounds - 1}  # the first is not timed


def test_race_measures_what_the_clock_shows():
    """A contender that sleeps is timed as long as it sleeps, but hardly uses the processor."""

    def sleeper():
        time.sleep(0.01)
        return np.zeros(1)

    timing = race({"sleeper": sleeper}, patience_s=math.inf)["sleeper"]
    assert timing.cpu_s < 0.01 <= timing.seconds < 0.1


def test_race_refuses_different_answers():
    """A rival that simulates something else is named, with the first row that differs."""
    contenders = {"ours": lambda: np.array([0.0, 1.0]), "rival": lambda: np.array([0.0, 2.0])}
    with pytest.raises(ConformanceError, match=r"rival and ours disagree on 1 of 2 .*row 1"):
        race(contenders, patience_s=math.inf)


def test_race_stops_a_rival_that_takes_too_long():
    """A stopped rival has a lower bound instead of a time, and is not run again."""

    def slow():
        begin = time.perf_counter()
        while time.perf_counter() - begin < 5.0:
            pass
        return np.ones(1)

    timings = race({"ours": lambda: np.zeros(1), "slow": slow}, patience_s=0.1)
    assert timings["slow"].was_stopped
    assert timings["slow"].runs == 1
    assert 0.1 <= timings["slow"].seconds < 1.0
    assert not timings["ours"].was_stopped


@pytest.mark.usefixtures("uncompiled")
def test_measure_covers_every_case_and_contender():
    """A run has a row for each case and contender, and tells how far it is."""
    told = []
    rivals = {"heap loop": heap_loop}
    found = measure(TINY, rivals=rivals, progress=lambda label, part: told.append((label, part)))
    beside = [row for row in found.rows if row.case.nodes != ALONE_NODES]
    assert {row.contender for row in beside} == {OURS, SIMPY, "heap loop"}
    assert len({(row.case, row.contender) for row in beside}) == 2 * 2 * 3
    assert len(found.rows) - len(beside) == 4 * 2
    assert all(row.ratio == 1.0 for row in found.rows if row.contender == OURS)
    fractions = [part for _, part in told]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0.0
    assert fractions[-1] < 1.0


@pytest.mark.usefixtures("uncompiled")
def test_results_are_written_as_text_and_json():
    """The text names every contender and bar; the record survives JSON without loss or NaN."""
    found = measure(replace(TINY, alone=()), rivals={"heap loop": heap_loop})
    text = to_text(found)
    for word in (OURS, SIMPY, "heap loop", "Bars", "OPEN", "Deep queue"):
        assert word in text
    record = to_record(found)
    assert json.loads(json.dumps(record, allow_nan=False)) == json.loads(json.dumps(record))
    assert len(record["bars"]) == len(bars(found))


@pytest.mark.usefixtures("uncompiled")
def test_deep_queue_counts_jobs_that_could_not_start_at_once():
    """With more GPUs asked for than there are, some of the jobs of a burst wait."""
    (deep,) = benchmark._deep_queue("fifo+strict", 1_000)
    assert 0 < deep.waiting < 1_000
    assert deep.ratio == deep.deep_queue_s / deep.short_queue_s


@pytest.mark.parametrize("power", [1.0, 1.3])
def test_growth_recovers_the_exponent_of_a_power_law(power):
    """Times that grow as a power of the number of jobs show that power, and its ratio per job."""
    rows = [
        Row(
            Case("fifo+strict", jobs, 0.9, ALONE_NODES),
            OURS,
            Timing(1e-6 * jobs**power, 0.0, 5),
            1.0,
        )
        for jobs in FULL.alone
    ]
    (growth,) = benchmark._growth(rows)
    assert growth.exponent == pytest.approx(power)
    assert growth.per_job_ratio == pytest.approx(10 ** (power - 1))
    assert (growth.smaller, growth.larger) == (100_000, 1_000_000)


@pytest.mark.parametrize(
    ("measured", "is_floor", "is_lower_bound", "verdict"),
    [
        (2.0, True, False, "PASS"),
        (0.5, True, False, "MISS"),
        (2.0, True, True, "PASS"),
        (0.5, True, True, "OPEN"),
        (0.5, False, False, "PASS"),
        (2.0, False, False, "MISS"),
        (math.nan, True, False, "OPEN"),
        (math.nan, False, False, "OPEN"),
    ],
)
def test_a_bar_passes_only_on_evidence(measured, is_floor, is_lower_bound, verdict):
    """Lower bounds can pass a floor but not miss it; what was not measured stays open."""
    assert Bar("speed", 1.0, measured, "×", is_floor, is_lower_bound).verdict == verdict


def test_peak_memory_of_a_fresh_process_leaves_its_parent_out():
    """A child is not charged for what its parent holds."""
    ballast = np.ones(32 * 2**20)  # 256 MiB
    assert in_fresh_process(peak_memory_mib) < ballast.nbytes / 2**20 < peak_memory_mib()


def test_quick_plan_stays_small():
    """The quick plan keeps its promise of at most 10,000 jobs."""
    assert max(QUICK.side_by_side + QUICK.alone + QUICK.memory) <= 10_000
    assert not QUICK.burst


@pytest.mark.parametrize(
    ("value", "text"), [(2.5e-5, "25 µs"), (0.0123, "12.3 ms"), (1.234, "1.23 s"), (0.9, "900 ms")]
)
def test_times_are_written_in_a_suitable_unit(value, text):
    """Times keep three digits."""
    assert seconds(value) == text


def test_growth_is_judged_by_the_scheduler_that_grows_most():
    """One scheduler that grows too fast misses the bar, whatever the others do."""
    growth = [
        Growth(name, 1.3, 1.0, 100_000, 1_000_000, per_job)
        for name, per_job in (("a", 1.0), ("b", 1.6))
    ]
    found = Benchmark(FULL, "here", (), tuple(growth), (), (), None)
    (bar,) = [bar for bar in bars(found) if "130%" in bar.claim and "per job" in bar.claim]
    assert (bar.measured, bar.verdict) == (1.6, "MISS")
    assert "worst: b" in bar.claim
