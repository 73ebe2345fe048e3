"""What steps earn, on episodes small enough to reckon by hand."""

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.task import Task
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import given_batch

# Both GPUs work for the first job until 10, one for the second until 20.
JOBS = Workload.of(
    submit_s=[0, 0],
    duration_s=[10, 10],
    gpus=[2, 1],
    priority=[5.0, 1.0],
    deadline_s=[10.0, 12.0],
    tenant=["a", "b"],
)


def rewarded(reward, jobs=JOBS, limits=None, **choices):
    """Play an episode, always picking the first job that fits; return the rewards and terms."""
    sight = Sight(**({"window": 2, "gpu_slots": 0, "time_unit_s": 10.0} | choices))
    task = Task(cluster=Cluster.pool(2), reward=reward, sight=sight, measured_unit=False)
    batch = given_batch(replace(task, **(limits or {})), jobs)
    rewards, terms = [], []
    while not (batch.terminated[0] or batch.truncated[0]):
        batch.step(batch.masks.argmax(axis=1))
        rewards.append(float(batch.rewards[0]))
        terms.append(batch.terms[0].copy())
    return rewards, np.array(terms)


def test_drl_scheduler_by_hand():
    """50 · priorities done − 0.05/1000 · waits + 1.5 · busy share − 0.3 · jobs, by the second."""
    rewards, _ = rewarded("drl_scheduler")
    assert rewards == pytest.approx(
        [
            50 * 5 - 0.05 * (10**2 / 2) / 1000 + 1.5 * 10 - 0.3 * 2 * 10,
            50 * 1 + 1.5 * 0.5 * 10 - 0.3 * 10,
        ]
    )


def test_gpu_optimizer_by_hand():
    """Work done − work left over the horizon, and at the end the share of the horizon left."""
    rewards, _ = rewarded("gpu_optimizer", limits={"time_limit_s": 40.0}, noop="always")
    work = 2 * 10 + 10
    assert rewards == pytest.approx(
        [
            20 / work - (20 / 2 + 10) / work * 10 / 40,
            10 / work - (10 / 2) / work * 10 / 40 + (40 - 20) / 40,
        ]
    )


def test_gpu_optimizer_cut():
    """An episode that is cut pays for the work that is left, started or not."""
    rewards, _ = rewarded("gpu_optimizer", limits={"time_limit_s": 15.0})
    work = 30
    assert rewards[1] == pytest.approx(-(10 + 5) / 2 / work * 5 / 15 - 5 / work)


def test_gpu_optimizer_holding_back():
    """A no-op while a job fits costs a twentieth of the share of work that is left."""
    jobs = Workload.of(submit_s=[0, 4], duration_s=[10, 10], gpus=[2, 1])
    sight = Sight(window=2, gpu_slots=0, noop="always")
    task = Task(
        cluster=Cluster.pool(2),
        reward="gpu_optimizer",
        sight=sight,
        measured_unit=False,
        time_limit_s=40.0,
    )
    batch = given_batch(task, jobs)
    batch.step(np.array([2]))
    assert batch.now_s[0] == 4.0
    assert batch.rewards[0] == pytest.approx(-0.05 * 20 / 30 - 20 / 30 * 4 / 40)


def test_every_term_by_hand():
    """What the first step earns of each term."""
    _, terms = rewarded("jct")
    v100_idle_w, v100_busy_w = 40.0, 300.0
    expected = {
        Term.WAITING: 10 / 2,
        Term.IN_SYSTEM: 20 / 2,
        Term.BOUNDED_SLOWDOWN: 10 / 10 / 2,
        Term.SLOWDOWN: 10 / 10 / 2,
        Term.BUSY: 10.0,
        Term.IDLE: 0.0,
        Term.FINISHED: 0.5,
        Term.LATE: 0.0,
        Term.WORK_DONE: 20 / 30,
        Term.PRIORITY_DONE: 5.0,
        Term.QUEUE_WAIT: 50.0,
        Term.CROWD: 20.0,
        Term.INVALID: 0.0,
        Term.FAIRNESS: 0.0,
    }
    assert {term: terms[0, term] for term in expected} == pytest.approx(expected)
    assert terms[1, Term.LATE] == 0.5
    assert terms[1, Term.IDLE] == 5.0
    assert terms[1, Term.FAIRNESS] == pytest.approx((1 + 2) ** 2 / (2 * (1 + 4)))
    _, terms = rewarded({"energy": 1.0})
    assert terms[:, Term.ENERGY] == pytest.approx(
        [2 * v100_busy_w * 10 / 3.6e6, (v100_busy_w + v100_idle_w) * 10 / 3.6e6]
    )


@pytest.mark.parametrize(("wait_s", "run_s"), [(3, 2), (9, 4), (30, 2), (30, 20)])
def test_short_jobs_count_from_ten_seconds_on(wait_s, run_s):
    """What accrues while a job waits is set right when it starts."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[wait_s, run_s], gpus=[2, 1])
    _, terms = rewarded("bounded_slowdown", jobs)
    expected = max((wait_s + run_s) / max(run_s, 10), 1) - 1
    assert terms[:, Term.BOUNDED_SLOWDOWN].sum() == pytest.approx(expected / 2)


def test_a_job_that_lost_its_node_waited_until_its_first_start():
    """Starting again is no second wait since submission."""
    cluster = Cluster.of("1x V100:2").under(
        Site(failures=Failures(outages=(Outage(node=0, down_s=5.0, up_s=10.0),)))
    )
    jobs = Workload.of(submit_s=[0], duration_s=[8], gpus=[1])
    task = Task(cluster=cluster, measured_unit=False, sight=Sight(window=2, gpu_slots=0))
    batch = given_batch(task, jobs)
    while not batch.terminated[0]:
        batch.step(batch.masks.argmax(axis=1))
    assert batch.now_s[0] == 18.0
    wait_s = batch.outcomes[0, 0]
    assert wait_s == 0.0
