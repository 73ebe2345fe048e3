"""Named schedulers from end to end: both engines, estimates, options and their mistakes."""

import math

import numpy as np
import pytest

from yardmaster.errors import InvalidWorkloadError, UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS
from yardmaster.schedulers.orders import ORDERS, Order
from yardmaster.schedulers.simulation import simulate

NODES = Cluster.of("3x V100:4", "2x T4:2")


def random_jobs(seed, jobs=40, *, accuracy=(0.2, 4.0)):
    """Return jobs that keep the cluster busy, with estimates on both sides of the truth."""
    dice = np.random.default_rng(seed)
    submit = np.sort(dice.integers(0, 60, jobs)).astype(float)
    duration = dice.integers(1, 30, jobs).astype(float)
    return Workload.of(
        submit_s=submit,
        duration_s=duration,
        estimate_s=np.maximum(1.0, np.round(duration * dice.uniform(*accuracy, jobs))),
        gpus=dice.choice([1, 1, 2, 3, 4, 6, 9], jobs),
        gpu_types=dice.choice(["", "", "V100", "T4|V100"], jobs),
        user=dice.integers(0, 4, jobs),
        priority=dice.integers(0, 3, jobs),
        deadline_s=submit + dice.integers(5, 90, jobs),
    )


def assert_sound(schedule):
    """Every job ran once, whole, after its submission, and no GPU served two at a time."""
    jobs = schedule.workload
    assert np.all(schedule.outcome == Outcome.FINISHED)
    assert sorted(schedule.segment_job.tolist()) == list(range(len(jobs)))
    assert np.all(schedule.start_s >= jobs.submit_s)
    assert np.array_equal(schedule.end_s, schedule.start_s + jobs.duration_s)
    held = np.diff(schedule.segment_gpu_offset)
    assert np.array_equal(held, jobs.gpus[schedule.segment_job])
    owner = np.repeat(np.arange(len(held)), held)
    for gpu in range(schedule.cluster.gpus):
        segments = owner[schedule.gpu_ids == gpu]
        in_time = segments[np.argsort(schedule.segment_start_s[segments], kind="stable")]
        ends, starts = schedule.segment_end_s[in_time], schedule.segment_start_s[in_time]
        assert np.all(ends[:-1] <= starts[1:])


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("order", ORDERS)
def test_engines_agree(order, discipline):
    """The core and the reference make the same schedule of every named scheduler."""
    jobs = random_jobs(len(order))
    scheduler = f"{order}+{discipline}"
    core = simulate(jobs, NODES, scheduler, seed=5)
    assert_sound(core)
    assert simulate(jobs, NODES, scheduler, seed=5, engine="simpy").event_log() == core.event_log()


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_wrong_estimates_break_nothing(discipline, placement):
    """Jobs that outlive or undercut their estimates still run once, whole, on their own GPUs."""
    for seed in range(3):
        jobs = random_jobs(seed)
        scheduler = f"sjf+{discipline}@{placement}~estimate"
        core = simulate(jobs, NODES, scheduler, seed=seed)
        assert_sound(core)
        simpy = simulate(jobs, NODES, scheduler, seed=seed, engine="simpy")
        assert simpy.event_log() == core.event_log()


@pytest.mark.parametrize("discipline", ["easy", "conservative"])
def test_gross_underestimates(discipline):
    """When everybody claims one second and runs for long, all is planned anew and still ends."""
    jobs = random_jobs(9).with_columns(estimate_s=np.ones(40))
    assert_sound(simulate(jobs, NODES, f"fifo+{discipline}~estimate"))


@pytest.mark.parametrize("order", [name for name, o in ORDERS.items() if o.reads_run_time])
def test_estimates_replace_the_truth(order):
    """Estimates that happen to be true give the schedule of the true durations."""
    jobs = random_jobs(11)
    exact = jobs.with_columns(estimate_s=jobs.duration_s)
    truth = simulate(jobs, NODES, f"{order}+easy").event_log()
    assert simulate(exact, NODES, f"{order}+easy~estimate").event_log() == truth


@pytest.mark.parametrize("scheduler", ["sjf~estimate", "fifo+easy~estimate", "f1+skip~estimate"])
def test_missing_estimates(scheduler):
    """A scheduler told to read estimates refuses jobs without, naming the first by row and id."""
    jobs = Workload.of(
        submit_s=[0, 1, 2],
        duration_s=[1, 1, 1],
        estimate_s=[5, math.nan, math.nan],
        id=["a", "b", "c"],
        name="march",
    )
    with pytest.raises(InvalidWorkloadError) as caught:
        simulate(jobs, Cluster.pool(1), scheduler)
    message = str(caught.value)
    assert "2 of 3 jobs of 'march'" in message
    assert "row 1, id b" in message


def test_blind_schedulers_need_no_estimates():
    """~estimate on a scheduler that reads no run times asks for nothing."""
    jobs = Workload.of(submit_s=[0], duration_s=[1])
    assert simulate(jobs, Cluster.pool(1), "fifo+skip~estimate").end_s.tolist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "simpie"}, "Unknown engine 'simpie'. Did you mean 'simpy'"),
        ({"compatibility": "rlschedular"}, "Did you mean 'rlscheduler'"),
    ],
)
def test_unknown_options(options, message):
    """Options that do not exist are refused with the nearest name."""
    with pytest.raises(UnknownNameError, match=message):
        simulate(random_jobs(1), NODES, "fifo", **options)


@pytest.mark.parametrize("engine", ["core", "simpy"])
@pytest.mark.parametrize("until_s", [math.nan, -1.0, -math.inf])
def test_impossible_cuts(engine, until_s):
    """A cut at no number, or before the clock begins, is refused."""
    with pytest.raises(YardmasterError, match=f"until_s .* got {until_s}"):
        simulate(random_jobs(1), NODES, "fifo", until_s=until_s, engine=engine)


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_names_travel_along(engine):
    """The schedule says which scheduler made it, and on what."""
    jobs = random_jobs(1)
    schedule = simulate(jobs, NODES, "sjf+easy@pack", engine=engine)
    assert schedule.scheduler == "sjf+easy"
    assert schedule.workload is jobs
    assert schedule.cluster is NODES
    assert schedule.engine == ("simpy" if engine == "simpy" else schedule.engine)


def test_seeds_matter_only_to_random_parts():
    """The seed changes random placements and orders, and nothing else."""
    jobs = random_jobs(2)
    logs = {
        scheduler: {simulate(jobs, NODES, scheduler, seed=seed).event_log() for seed in range(3)}
        for scheduler in ("sjf+easy", "sjf@random", "random-feasible")
    }
    assert [len(log) for log in logs.values()] == [1, 3, 3]


@pytest.mark.parametrize("engine", ["core", "simpy"])
def test_an_order_asked_every_pass(engine):
    """A function of (jobs, now) sees the waiting jobs, at every pass with somebody waiting."""
    seen = []

    def watching(jobs, now):
        seen.append((now, jobs.submit_s.tolist()))
        return -jobs.submit_s

    jobs = Workload.of(submit_s=[0, 1, 2], duration_s=[5, 1, 1])
    order = Order("watching", watching, reads_run_time=False, formula="-s")
    schedule = simulate(jobs, Cluster.pool(1), order, engine=engine)
    assert schedule.start_s.tolist() == [0, 6, 5]
    assert seen == [(0, [0]), (1, [1]), (2, [1, 2]), (5, [1, 2]), (6, [1])]
