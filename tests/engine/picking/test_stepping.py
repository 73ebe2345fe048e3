"""What actions do, when the policy is asked, and how episodes end."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.task import Task
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import episode_workloads, given_batch, tasks


def playing(jobs, gpus=2, limits=None, **choices):
    """Return one environment on a pool of GPUs."""
    sight = Sight(**({"window": 3, "gpu_slots": 0, "time_unit_s": 10.0} | choices))
    task = Task(cluster=Cluster.pool(gpus), sight=sight, measured_unit=False, reward="jct")
    return given_batch(replace(task, **(limits or {})), jobs)


def do(batch, action):
    """Carry out an action; return the second it is then."""
    batch.step(np.array([action]))
    return float(batch.now_s[0])


NOOP = 3
THREE = Workload.of(submit_s=[0, 0, 0], duration_s=[10, 20, 30], gpus=[1, 1, 1])


def test_several_jobs_start_at_one_instant():
    """Time passes only when nothing more fits."""
    batch = playing(THREE)
    assert do(batch, 0) == 0.0
    assert do(batch, 0) == 10.0
    assert batch.elapsed_s[0] == 10.0
    assert batch.window_jobs[0].tolist() == [2, -1, -1]


def test_the_window_shows_the_first_in_order():
    """Jobs beyond the window cannot be picked; those behind move up."""
    batch = playing(THREE, window=2, window_order="ljf")
    assert batch.window_jobs[0].tolist() == [2, 1]
    batch.step(np.array([1]))
    assert batch.window_jobs[0].tolist() == [2, 0]


BLOCKED_FIRST = Workload.of(submit_s=[0, 1, 1], duration_s=[10, 5, 5], gpus=[1, 2, 1])
BLOCKED_LAST = Workload.of(submit_s=[0, 1, 1], duration_s=[10, 5, 5], gpus=[1, 1, 2])


@pytest.mark.parametrize(
    ("noop", "jobs", "is_legal"),
    [
        ("never", BLOCKED_FIRST, False),
        ("when_blocked", BLOCKED_FIRST, True),
        ("always", BLOCKED_FIRST, True),
        ("never", BLOCKED_LAST, False),
        ("when_blocked", BLOCKED_LAST, False),
        ("always", BLOCKED_LAST, True),
    ],
    ids=["never", "blocked", "always", "never-last", "blocked-last", "always-last"],
)
def test_when_waiting_is_legal(noop, jobs, is_legal):
    """The no-op is offered when a better-placed job is blocked, always, or never."""
    batch = playing(jobs, noop=noop)
    assert do(batch, 0) == 1.0
    assert bool(batch.masks[0, NOOP]) is is_legal


def test_waiting_for_nothing_is_not_legal():
    """Where nothing runs and nobody will come, a job must be picked."""
    batch = playing(THREE, noop="always")
    assert not batch.masks[0, NOOP]
    assert do(batch, NOOP) == 0.0  # the first job starts all the same
    assert batch.window_jobs[0].tolist() == [1, 2, -1]
    assert batch.terms[0, Term.INVALID] == 1.0


def test_waiting_lets_time_pass():
    """After a no-op the policy is asked again at the next event at which a job fits."""
    batch = playing(BLOCKED_FIRST)
    do(batch, 0)
    assert do(batch, NOOP) == 10.0
    assert batch.masks[0].tolist() == [True, True, False, False]
    assert batch.episode_noops[0] == 0  # known when the episode ends


def test_actions_that_make_no_sense_count_as_the_noop():
    """Picking a job that does not fit, or none at all, waits and is counted."""
    for action in (0, 2, 7, -1):
        batch = playing(BLOCKED_FIRST)
        do(batch, 0)
        assert do(batch, action) == 10.0
        assert batch.terms[0, Term.INVALID] == 1.0


def test_without_a_mask_everything_is_legal():
    """A pick that does not fit then does nothing and costs nothing; an empty place is invalid."""
    batch = playing(BLOCKED_FIRST, masked=False, pace="event")
    do(batch, 0)
    assert batch.masks.all()
    do(batch, 0)
    running = batch.window_jobs[0].tolist()
    assert do(batch, 0) == 10.0  # the second job does not fit: the next event is an end
    assert batch.terms[0, Term.INVALID] == 0.0
    assert batch.window_jobs[0].tolist() == running
    do(batch, 2)
    assert batch.terms[0, Term.INVALID] == 1.0


def test_holding_back_means_that_a_job_fits():
    """Without a mask too, waiting costs only if some job could start."""
    jobs = Workload.of(submit_s=[0, 0, 5], duration_s=[10, 10, 10], gpus=[2, 2, 2])
    batch = playing(jobs, masked=False, pace="event")
    do(batch, NOOP)
    assert batch.terms[0, Term.HELD_BACK] > 0.0
    do(batch, 0)
    do(batch, NOOP)
    assert batch.terms[0, Term.HELD_BACK] == 0.0


def test_pace_event_asks_after_every_event():
    """Arrivals come one by one, before completions of the same instant."""
    jobs = Workload.of(submit_s=[0, 0, 10], duration_s=[10, 5, 1], gpus=[2, 1, 1])
    batch = playing(jobs, pace="event")
    assert batch.waiting[0] == 1
    assert do(batch, 0) == 0.0  # the second arrival
    assert do(batch, NOOP) == 10.0
    assert batch.waiting[0] == 2  # the third has come, the first has not gone
    assert batch.masks[0].tolist() == [False, False, False, True]
    assert do(batch, NOOP) == 10.0
    assert batch.masks[0].tolist() == [True, True, False, True]


def test_pace_event_ends_when_nothing_can_happen():
    """A policy that waits for nothing leaves the jobs behind."""
    batch = playing(Workload.of(submit_s=[0], duration_s=[5]), pace="event")
    do(batch, NOOP)
    assert batch.truncated[0]


def test_pace_tick_asks_at_fixed_intervals():
    """The first decision is at second 0; then one start per tick, whatever happens within it."""
    batch = playing(THREE, pace="tick", tick_s=15.0)
    assert batch.now_s[0] == 0.0
    assert do(batch, 0) == 15.0
    assert batch.rewards[0] == pytest.approx(-(3 * 10 + 2 * 5) / 3 / 10)
    assert do(batch, 0) == 30.0
    assert do(batch, 0) == 45.0
    assert do(batch, NOOP) == 60.0
    assert batch.terminated[0]


def test_pace_commit_blocks_everybody():
    """A chosen job that does not fit holds up all others until it does."""
    batch = playing(BLOCKED_FIRST, pace="commit")
    assert batch.masks[0].tolist() == [True, False, False, False]
    assert do(batch, 0) == 1.0
    assert batch.masks[0].tolist() == [True, True, False, False]
    assert do(batch, 0) == 10.0  # it starts when the first job ends
    assert batch.elapsed_s[0] == 9.0
    assert batch.window_jobs[0].tolist() == [2, -1, -1]


def test_an_episode_ends_when_all_jobs_have():
    """The last step lets the remaining jobs run to their end."""
    batch = playing(THREE)
    for _ in range(3):
        do(batch, 0)
    assert batch.now_s[0] == 40.0
    assert (batch.terminated[0], batch.truncated[0]) == (True, False)
    assert batch.episode_steps[0] == 3


def test_a_time_limit_cuts():
    """At the limit the clock stops, whatever is still running."""
    batch = playing(THREE, limits={"time_limit_s": 35.0})
    for _ in range(3):
        do(batch, 0)
    assert batch.now_s[0] == 35.0
    assert (batch.terminated[0], batch.truncated[0]) == (False, True)


def test_a_horizon_goes_by_the_work():
    """It is so many times the work by all GPUs after the last submission."""
    batch = playing(THREE, limits={"horizon_factor": 1.0})
    for _ in range(3):
        do(batch, 0)
    assert batch.now_s[0] == 30.0
    assert batch.truncated[0]


def test_a_step_limit_cuts():
    """After so many decisions the episode is cut where it stands."""
    batch = playing(THREE, limits={"max_steps": 2})
    do(batch, 0)
    assert not batch.truncated[0]
    do(batch, 0)
    assert (batch.terminated[0], batch.truncated[0]) == (False, True)
    assert batch.masks[0, 0]  # the job that could have been picked


def test_an_episode_that_is_cut_before_its_first_decision_has_a_legal_action():
    """If the first job that can run comes after the time limit, only waiting is left."""
    jobs = Workload.of(submit_s=[0, 100], duration_s=[1, 1], gpus=[9, 1])
    batch = playing(jobs, limits={"time_limit_s": 10.0})
    assert batch.masks[0].tolist() == [False, False, False, True]
    do(batch, NOOP)
    assert batch.truncated[0]


@settings(max_examples=40, deadline=None)
@given(tasks(), episode_workloads(), st.integers(0, 999))
def test_there_is_always_a_legal_action(task, workload, seed):
    """Masks are never empty, at the end of an episode either."""
    dice = np.random.default_rng(seed)
    batch = given_batch(task, workload)
    assert batch.masks.any()
    while not (batch.terminated[0] or batch.truncated[0]):
        batch.step(np.array([dice.integers(0, batch.layout.actions)]))
        assert batch.masks.any()
