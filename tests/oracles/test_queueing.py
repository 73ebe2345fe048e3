"""Queues whose mean waits are known in closed form, and identities that hold on every path.

The stochastic tests run independent replications with fixed seeds. The mean over replications must
lie within three standard errors of the theory (the error is estimated from the spread between the
replications) and within a few per cent, so that a large error bar cannot hide a wrong mean.
"""

import math

import numpy as np
import pytest

from yardmaster.metrics.timeline import busy_gpus, queue_length, running_jobs
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.orders import ORDERS
from yardmaster.schedulers.simulation import simulate

REPLICATIONS = 12
JOBS = 60_000


def mean_waits(scheduler, gpus, load, draw_service):
    """Return the mean wait of each replication of a Poisson queue on a pool of GPUs."""
    means = []
    for seed in range(REPLICATIONS):
        dice = np.random.default_rng(seed)
        service = draw_service(dice, JOBS)
        # Mean service time is 1 second, so the arrival rate is load × GPUs.
        submit = np.cumsum(dice.exponential(1.0 / (load * gpus), JOBS))
        jobs = Workload.of(submit_s=submit, duration_s=service)
        schedule = simulate(jobs, Cluster.pool(gpus), scheduler, seed=seed)
        means.append(np.mean(schedule.start_s - submit))
    return np.array(means)


def assert_agrees(means, theory, relative=0.04):
    """Check replications against theory: within three standard errors and a few per cent."""
    standard_error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - theory) <= 3.0 * standard_error
    assert np.mean(means) == pytest.approx(theory, rel=relative)


def exponential(dice, jobs):
    """Draw exponential service times of mean 1."""
    return dice.exponential(1.0, jobs)


def constant(_dice, jobs):
    """Return service times that are all 1."""
    return np.ones(jobs)


def two_point(dice, jobs):
    """Draw service times of 0.5 (two in three) and 2 (one in three): mean 1."""
    return np.where(dice.random(jobs) < 2 / 3, 0.5, 2.0)


def uniform(dice, jobs):
    """Draw service times between 0 and 2: mean 1."""
    return dice.uniform(0.0, 2.0, jobs)


SECOND_MOMENT = {exponential: 2.0, constant: 1.0, two_point: 1.5, uniform: 4 / 3}


def erlang_c(servers, offered):
    """Return the probability that an arrival to M/M/c has to wait."""
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.7), (3, 0.8), (16, 0.9)])
def test_erlang_c(servers, load):
    """M/M/c first come first served waits as long as Erlang's C formula says; M/M/1 is c = 1."""
    offered = servers * load
    theory = erlang_c(servers, offered) / (servers - offered)
    assert_agrees(mean_waits("fifo", servers, load, exponential), theory)


@pytest.mark.parametrize("service", SECOND_MOMENT)
def test_pollaczek_khinchine(service):
    """M/G/1 first come first served waits λ E[S²] / 2(1 − ρ)."""
    load = 0.7
    theory = load * SECOND_MOMENT[service] / (2 * (1 - load))
    assert_agrees(mean_waits("fifo", 1, load, service), theory)


@pytest.mark.parametrize("order", ["lifo", "random-feasible", "qssf"])
def test_blind_orders_wait_the_same(order):
    """An order that knows nothing of service times cannot change the mean wait of M/G/1."""
    load = 0.7
    theory = load * SECOND_MOMENT[exponential] / (2 * (1 - load))
    assert_agrees(mean_waits(order, 1, load, exponential), theory)


def test_cobham():
    """With two lengths, shortest first is two priority classes, and waits as Cobham found."""
    load = 0.8
    residual = load * SECOND_MOMENT[two_point] / 2
    short = load * (2 / 3) * 0.5  # share of the time the server spends on short jobs
    theory = (2 / 3) * residual / (1 - short) + (1 / 3) * residual / ((1 - short) * (1 - load))
    assert_agrees(mean_waits("sjf", 1, load, two_point), theory)


@pytest.mark.parametrize(
    ("service", "density", "longest"),
    [(exponential, lambda x: np.exp(-x), 40.0), (uniform, lambda x: np.full(len(x), 0.5), 2.0)],
)
def test_phipps(service, density, longest):
    """Shortest first waits λ E[S²] / 2 · ∫ dF(x) / (1 − λ ∫₀ˣ t dF(t))²."""
    load = 0.8
    step = longest / 400_000
    x = (np.arange(400_000) + 0.5) * step
    mass = density(x) * step
    busy_below = load * (np.cumsum(x * mass) - 0.5 * x * mass)
    theory = load * SECOND_MOMENT[service] / 2 * np.sum(mass / (1 - busy_below) ** 2)
    assert_agrees(mean_waits("sjf", 1, load, service), theory)


def whole_seconds(seed, jobs, gpus):
    """Return a random workload on whole seconds that keeps a queue."""
    dice = np.random.default_rng(seed)
    return Workload.of(
        submit_s=np.sort(dice.integers(0, 6 * jobs, jobs)),
        duration_s=dice.integers(1, 12, jobs),
        gpus=dice.integers(1, gpus + 1, jobs),
        user=dice.integers(0, 5, jobs),
        priority=dice.integers(0, 3, jobs),
        deadline_s=dice.integers(0, 8 * jobs, jobs),
    )


@pytest.mark.parametrize("order", ORDERS)
def test_conservation_law(order):
    """On one GPU, Σ service × wait is the same on the same path, whatever the order.

    It is the area under the unfinished work, which no order can change without idling.
    """
    jobs = whole_seconds(4, 120, 1)
    work = []
    for scheduler in ("fifo", order):
        schedule = simulate(jobs, Cluster.pool(1), scheduler, seed=3)
        work.append(float(np.sum(jobs.duration_s * (schedule.start_s - jobs.submit_s))))
    assert work[0] == work[1] > 0


@pytest.mark.parametrize(
    "scheduler", ["fifo", "sjf+skip", "saf+easy", "wfp3+conservative", "ljf+commit"]
)
def test_littles_law(scheduler):
    """Jobs in the system, counted second by second, sum up to the time jobs spend in it."""
    jobs = whole_seconds(5, 80, 4)
    schedule = simulate(jobs, Cluster.pool(4), scheduler)
    begin, end = map(int, schedule.horizon_s)
    seconds = np.arange(begin, end)[:, None]
    waiting = np.sum((jobs.submit_s <= seconds) & (seconds < schedule.start_s), axis=1)
    running = (schedule.start_s <= seconds) & (seconds < schedule.end_s)
    assert waiting.sum() == np.sum(schedule.start_s - jobs.submit_s) > 0
    assert np.max(running @ jobs.gpus) <= 4
    for steps, counted in (
        (queue_length(schedule), waiting),
        (running_jobs(schedule), running.sum(axis=1)),
        (busy_gpus(schedule), running @ jobs.gpus),
    ):
        assert [steps.at(second) for second in range(begin, end)] == counted.tolist()
