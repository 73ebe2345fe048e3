"""The instrument held against records whose scheduler is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.experiments.fidelity.assumptions import recorded_machine
from yardmaster.experiments.fidelity.study import measure_fidelity
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Site
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.sources import load_workload

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
NEEDS_TRACES = pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")
EASY = "fifo+easy~estimate"
NAMED = ("fifo+strict", "fifo+skip", EASY, "sjf+easy~estimate", "smallest-first+skip")


@pytest.mark.parametrize("true", NAMED)
def test_the_scheduler_that_made_a_record_is_exactly_zero_apart(jobs, pool, record, true):
    """And no other one is."""
    found = measure_fidelity(record(jobs, pool, true), pool, NAMED)
    assert found.closest.scheduler == true
    assert found.closest.distance.apart == found.closest.with_warm_up.apart == 0
    assert found.closest.halves == (0, 0)
    assert all(each.distance.mean_apart_s > 0 for each in found.candidates[1:])
    assert found.chosen_early.scheduler == found.best_late.scheduler == true
    recorded, simulated = found.utilisation()
    assert recorded == simulated > 0.5


def test_the_line_up_finds_the_scheduler_through_noise(jobs, pool, record):
    """With a tenth of the jobs missing from the trace, the right one is still the closest."""
    whole = record(jobs, pool, "sjf+easy~estimate")
    kept = np.random.default_rng(0).random(len(whole)) > 0.1
    found = measure_fidelity(whole.select(kept), pool)
    assert found.is_guess
    assert found.closest.scheduler == "sjf+easy~estimate"
    assert 0 < found.closest.distance.apart < found.candidates[1].distance.apart
    order = [each.distance.mean_apart_s for each in found.candidates]
    assert order == sorted(order)


def test_machines_that_cannot_have_run_the_jobs_are_refused(jobs, pool, record):
    """A cluster far too small is a mistake that is named, unless the user names a scheduler."""
    made = record(jobs, pool)
    small = Cluster.pool(max(int(made.gpus.max()), pool.gpus // 4))
    with pytest.raises(InvalidWorkloadError, match="cannot be the machines of the record"):
        measure_fidelity(made, small)
    assert measure_fidelity(made, small, [EASY]).closest.distance.apart > 0


def test_halves_are_of_the_jobs_after_the_warm_up(jobs, pool, record):
    """A disturbance of the last jobs shows in the second half alone."""
    clean = record(jobs, pool)
    wait_s = clean.recorded_wait_s.copy()
    wait_s[-50:] += 1000.0
    found = measure_fidelity(replace(clean, recorded_wait_s=wait_s), pool, [EASY])
    first, second = found.closest.halves
    assert first == 0 < second
    assert not found.is_guess


def test_the_warm_up_is_left_out_of_the_verdict(jobs, pool, record):
    """Differences of the first days count with the warm-up, and not without."""
    clean = record(jobs, pool)
    wait_s = clean.recorded_wait_s.copy()
    wait_s[:20] += 5000.0
    found = measure_fidelity(replace(clean, recorded_wait_s=wait_s), pool, [EASY])
    ends_s = found.evidence.warm_up_ends_s
    span_s = float(np.ptp(jobs.submit_s))
    assert ends_s - jobs.submit_s[0] == pytest.approx(min(7 * 86_400, span_s / 5))
    assert jobs.submit_s[19] < ends_s
    assert found.closest.distance.apart == 0 < found.closest.with_warm_up.apart
    none = measure_fidelity(replace(clean, recorded_wait_s=wait_s), pool, [EASY], warm_up_s=0.0)
    assert none.closest.distance == none.closest.with_warm_up == found.closest.with_warm_up


def test_jobs_without_a_recorded_wait_still_hold_the_machine(jobs, pool, record):
    """They are simulated with the others, so that the others' waits stay exactly right."""
    clean = record(jobs, pool)
    wait_s = clean.recorded_wait_s.copy()
    wait_s[::3] = np.nan
    found = measure_fidelity(replace(clean, recorded_wait_s=wait_s), pool, [EASY])
    assert found.closest.distance.apart == 0
    assert found.closest.with_warm_up.jobs == np.count_nonzero(np.isfinite(wait_s))
    assert any("have no recorded wait" in note for note in found.notes)


def test_jobs_that_cannot_start_are_not_compared(jobs, pool, record):
    """Requests beyond the cluster have no simulated wait."""
    small = Cluster.pool(16)
    found = measure_fidelity(record(jobs, pool), small, ["fifo+skip"], warm_up_s=0.0)
    assert found.closest.distance.jobs == np.count_nonzero(jobs.gpus <= 16) < len(jobs)


def test_a_default_candidate_that_cannot_run_is_left_out_and_named(jobs, record):
    """On a site with node failures there is no conservative backfilling; the rest is ranked."""
    site = Site(failures=Failures(mtbf_h=5000.0, mttr_h=1.0))
    cluster = Cluster.of("8x V100:8").under(site)
    found = measure_fidelity(record(jobs, Cluster.of("8x V100:8")), cluster)
    names = {each.scheduler for each in found.candidates}
    assert "fifo+conservative~estimate" not in names
    assert EASY in names
    assert any("left out" in note and "conservative" in note for note in found.notes)
    with pytest.raises(YardmasterError, match="conservative"):
        measure_fidelity(jobs.with_columns(recorded_wait_s=np.zeros(len(jobs))), cluster,
                         ["fifo+conservative"])  # fmt: skip


def test_a_trace_without_waits_is_refused(jobs, pool):
    """There is nothing to compare with, and the message says so."""
    with pytest.raises(InvalidWorkloadError, match="made: no job says how long it waited"):
        measure_fidelity(jobs, pool)
    few = np.full(len(jobs), np.nan)
    few[-3:] = 5.0
    with pytest.raises(InvalidWorkloadError, match="only 3 jobs"):
        measure_fidelity(jobs.with_columns(recorded_wait_s=few), pool)


@pytest.mark.parametrize("warm_up_s", [-1.0, float("nan"), float("inf"), 1e12])
def test_an_impossible_warm_up_is_refused(jobs, pool, record, warm_up_s):
    """Negative, endless, or longer than the trace."""
    with pytest.raises(YardmasterError, match=r"[Ww]arm-up"):
        measure_fidelity(record(jobs, pool), pool, [EASY], warm_up_s=warm_up_s)


def test_a_record_in_which_nobody_waits_is_remarked(jobs, pool):
    """Such traces often hold starts where submissions should be."""
    idle = jobs.with_columns(recorded_wait_s=np.zeros(len(jobs)))
    found = measure_fidelity(idle, pool, ["fifo+skip"])
    assert found.closest.distance.apart == float("inf")
    assert any("nobody ever waited" in note for note in found.notes)


@NEEDS_TRACES
def test_kth_is_far_from_its_header_and_the_reasons_are_found():
    """The log says EASY; limits and drains keep a plain EASY from reproducing it."""
    jobs = load_workload(TRACES / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    machine = recorded_machine(jobs)
    assert machine is not None
    found = measure_fidelity(jobs, machine, [EASY])
    assert machine.gpus == 100
    assert 0.9 < found.closest.distance.apart < 1.1
    causes = {cause.name: cause for cause in found.causes}
    assert causes["room"].is_found
    assert causes["drains"].is_found
    assert not causes["size"].is_found
    # EASY in order of submission never passes a job that asks for no more.
    assert causes["order"].numbers["simulated_jumping_share"] == 0


@NEEDS_TRACES
def test_kth_simulated_under_easy_is_reproduced_exactly():
    """The same jobs with simulated waits as the record: nothing apart, nothing found."""
    jobs = load_workload(TRACES / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    schedule = simulate(jobs, "pool:100", EASY)
    made = replace(jobs, recorded_wait_s=schedule.start_s - jobs.submit_s)
    found = measure_fidelity(made, Cluster.pool(100), [EASY])
    assert found.closest.with_warm_up.apart == 0
    assert not any(cause.is_found for cause in found.causes)


@NEEDS_TRACES
def test_nasa_recorded_no_waits():
    """Its submissions are starts, and it is refused with a reason."""
    jobs = load_workload(TRACES / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz")
    with pytest.raises(InvalidWorkloadError, match="nothing to compare"):
        measure_fidelity(jobs, Cluster.pool(128))
