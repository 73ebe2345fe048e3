"""Named schedulers from end to end: both engines, estimates, options and their mistakes."""

import math
import re
from itertools import product

import numpy as np
import pytest

from yardmaster.engine.replay import replay
from yardmaster.errors import InvalidWorkloadError, UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers import simulation
from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS
from yardmaster.schedulers.orders import ORDERS, Order
from yardmaster.schedulers.simulation import DEFAULT_QUANTUM_S, simulate

MIXED = Cluster.of("3x V100:4", "2x T4:2")
NODES = MIXED.under(Site(equal_speeds=True))
"""Two GPU types that are taken as equally fast, so that a job's run time is its duration."""

STOPPING = ("preemptive", "timeslice")
KEYS_OF_A_PASS = {
    "sexp",
    "lexp",
    "wfp3",
    "unicep",
    "slurm-multifactor",
    "dynamic-heuristic",
    "random-feasible",
}
"""Orders whose keys change while jobs wait: they cannot say whom to stop."""


def can_run(order, discipline, placement="pack"):
    """Whether the parts go together on a cluster without quotas, sharing or failures."""
    if discipline == "timeslice" and order != "fifo":
        return False
    if discipline in STOPPING and order in KEYS_OF_A_PASS:
        return False
    return placement != "milp" or discipline == "skip"


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
        tenant=dice.integers(0, 3, jobs),
        priority=dice.integers(0, 3, jobs),
        deadline_s=submit + dice.integers(5, 90, jobs),
    )


def assert_sound(schedule):
    """Every job did its work after its submission, and no GPU served two at a time."""
    jobs = schedule.workload
    assert np.all(schedule.outcome == Outcome.FINISHED)
    assert np.all(schedule.start_s >= jobs.submit_s)
    spent = schedule.segment_end_s - schedule.segment_start_s - schedule.segment_wasted_s
    assert np.allclose(
        np.bincount(schedule.segment_job, spent, minlength=len(jobs)), jobs.duration_s
    )
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
    """The core and the reference make the same schedule of every scheduler that can run."""
    jobs = random_jobs(len(order), jobs=30)
    scheduler = f"{order}+{discipline}"
    if not can_run(order, discipline):
        with pytest.raises(YardmasterError, match=re.escape(f"{scheduler} cannot run on")):
            simulate(jobs, NODES, scheduler)
        return
    core = simulate(jobs, NODES, scheduler, seed=5)
    assert_sound(core)
    assert simulate(jobs, NODES, scheduler, seed=5, engine="simpy").event_log() == core.event_log()


@pytest.mark.parametrize(
    "scheduler",
    [
        f"{order}+{discipline}@{placement}~estimate"
        for order, discipline, placement in product(("sjf", "fifo"), DISCIPLINES, PLACEMENTS)
        if can_run(order, discipline, placement) and (order == "sjf") == (discipline != "timeslice")
    ],
)
def test_wrong_estimates_break_nothing(scheduler):
    """Jobs that outlive or undercut their estimates still do their work on their own GPUs."""
    for seed in range(2):
        jobs = random_jobs(seed, jobs=30)
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


def notes_of(jobs, cluster, scheduler):
    """Return what a schedule tells its reader, as one text."""
    return "\n".join(simulate(jobs, cluster, scheduler).notes)


@pytest.mark.parametrize(
    ("cluster", "scheduler", "needs"),
    [
        (Cluster.pool(4), "sjf+easy", False),
        (Cluster.pool(4), "srpt+strict", False),
        (Cluster.pool(4), "las+skip", False),
        (NODES, "saf+conservative@random", False),
        (NODES.under(Site(equal_speeds=True, quantum_s=60.0)), "fifo", False),
        (MIXED, "fifo", True),
        (NODES, "fifo@tier", True),
        (NODES, "fifo@milp", True),
        (Cluster.pool(4), "fifo+preemptive", True),
        (Cluster.pool(4), "drf", True),
        (Cluster.pool(4).under(Site(checkpoints=Checkpoints(every_s=60.0))), "fifo", True),
        (Cluster.pool(4).under(Site(power=Power(cap_w=1e6))), "fifo", True),
        (Cluster.pool(4).under(Site(quotas=(Quota("a", 1),))), "fifo", True),
        (Cluster.pool(4).under(Site(failures=Failures(mtbf_h=0.01))), "fifo", True),
        (Cluster.pool(4).under(Site(power=Power(price_per_kwh=(2.0, 1.0)))), "off-peak", True),
    ],
)
def test_conditions_only_where_they_matter(monkeypatch, cluster, scheduler, needs):
    """The engine is told of real clusters only if site, machines or scheduler call for it."""
    seen = []

    def spying(workload, cluster, keys, options, **rest):
        seen.append(options.conditions)
        return replay(workload, cluster, keys, options, **rest)

    monkeypatch.setattr(simulation, "replay", spying)
    simulate(random_jobs(3, jobs=8).with_columns(gpus=[1] * 8), cluster, scheduler)
    assert [conditions is not None for conditions in seen] == [needs]


@pytest.mark.parametrize("discipline", ["strict", "skip", "commit", "easy", "conservative"])
@pytest.mark.parametrize("order", ["srpt", "las", "las-2d"])
def test_orders_by_progress_need_progress(order, discipline):
    """While nobody is stopped, srpt is sjf, and las and las-2d are fifo, bit for bit."""
    plain = "sjf" if order == "srpt" else "fifo"
    jobs = random_jobs(4)
    for run_times in ("", "~estimate"):
        ours = simulate(jobs, NODES, f"{order}+{discipline}{run_times}")
        theirs = simulate(jobs, NODES, f"{plain}+{discipline}{run_times}")
        assert ours.fingerprint() == theirs.fingerprint()


def test_taking_turns_has_a_default_length():
    """Where the site sets no quantum, those who take turns run for five minutes at a time."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[450, 450])
    # After one turn each, taking turns goes on; least service first has no reason to.
    for scheduler, end_s in (("fifo+timeslice", [750, 900]), ("las+preemptive", [900, 750])):
        unset = simulate(jobs, Cluster.pool(1), scheduler)
        minutes = Site(quantum_s=DEFAULT_QUANTUM_S)
        assert unset.end_s.tolist() == end_s
        as_set = simulate(jobs, Cluster.pool(1).under(minutes), scheduler)
        assert as_set.fingerprint() == unset.fingerprint()
    # Others stop jobs whenever somebody comes who stands before them.
    shorter = Workload.of(submit_s=[0, 10], duration_s=[450, 45])
    assert simulate(shorter, Cluster.pool(1), "srpt+preemptive").end_s.tolist() == [495.0, 55.0]


def test_compatibility_is_for_equal_gpus():
    """RLScheduler knows nothing of real clusters: what goes beyond is refused with a way out."""
    jobs = random_jobs(1, jobs=5)
    for cluster, scheduler in ((MIXED, "fifo+commit"), (Cluster.pool(8), "srpt+preemptive")):
        with pytest.raises(YardmasterError, match=r"equal GPUs only; set equal_speeds"):
            simulate(jobs, cluster, scheduler, compatibility="rlscheduler")
    assert simulate(jobs, NODES, "fifo+commit", compatibility="rlscheduler").end_s.max() > 0


def test_notes_say_what_run_times_mean():
    """With several GPU types the reader is told on which of them durations count."""
    jobs = random_jobs(1, jobs=5)
    assert "durations count as measured on V100" in notes_of(jobs, MIXED, "fifo")
    on_t4 = MIXED.under(Site(reference_gpu="T4"))
    assert "durations count as measured on T4" in notes_of(jobs, on_t4, "fifo")
    assert notes_of(jobs, NODES, "fifo") == ""


def test_notes_say_when_stopping_is_free():
    """Stopping jobs at no cost flatters; the reader is told so, until the site sets costs."""
    jobs = Workload.of(submit_s=[0, 1], duration_s=[9, 3])
    dear = Cluster.pool(1).under(Site(checkpoints=Checkpoints(restore_s=1.0)))
    assert "costs no time" in notes_of(jobs, Cluster.pool(1), "srpt+preemptive")
    assert notes_of(jobs, dear, "srpt+preemptive") == ""
    assert notes_of(jobs, Cluster.pool(1), "srpt") == ""


def test_notes_count_failures_and_jobs_left_alone():
    """Listed failures are counted, and so are elastic jobs that keep their size."""
    outages = (Outage(0, 1.0, 2.0), Outage(0, 50.0, 60.0))
    cluster = Cluster.pool(2).under(Site(failures=Failures(outages=outages)))
    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[9] * 3, min_gpus=[1, 1, 0], gpus=[2, 2, 1])
    assert "2 node failures listed or drawn" in notes_of(jobs, cluster, "fifo")
    assert "2 elastic jobs keep their number of GPUs" in notes_of(jobs, cluster, "fifo")
    assert "elastic jobs keep" not in notes_of(jobs, cluster, "fifo+elastic")


def test_notes_of_the_solver_travel_along():
    """What the integer programs ran into is told after everything else."""
    jobs = random_jobs(1, jobs=12)
    schedule = simulate(jobs, NODES, "fifo@milp")
    limit = [note for note in schedule.notes if note.startswith("milp: ")]
    assert limit == list(schedule.notes[len(schedule.notes) - len(limit) :])
    assert schedule.scheduler == "fifo+skip@milp"
