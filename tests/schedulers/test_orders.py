"""Every order against its formula written out once more, job by job."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.state import OrderKind
from yardmaster.errors import EntitlementError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Power, Quota, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.orders import ORDERS, Order, order
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import view_for

POOL = 160
TWELVE_HOURS = 12 * 3600.0
DAY = (5.0,) * 8 + (9.0,) * 12 + (1.0,) * 4
"""A price of electricity for each hour."""


@dataclass(frozen=True)
class Job:
    """One job in the letters of the formulas."""

    s: float
    r: float
    n: int
    p: float
    d: float


def log10_of(submit_s):
    """Return log10 of a submit time, which counts from second 1."""
    return math.log10(max(submit_s, 1.0))


FORMULAS = {
    "fifo": lambda j, _now: j.s,
    "static-equal": lambda j, _now: j.s,
    "las": lambda j, _now: j.s,  # nobody has run before it is started for good
    "las-2d": lambda j, _now: j.s,
    "off-peak": lambda j, _now: j.s,  # no price curve: nobody is held back
    "lifo": lambda j, _now: -j.s,
    "smallest-first": lambda j, _now: (j.n, j.s),
    "largest-first": lambda j, _now: -j.n,
    "largest-shortest": lambda j, _now: (-j.n, j.r),
    "sjf": lambda j, _now: (j.r, j.s),
    "srpt": lambda j, _now: j.r,
    "ljf": lambda j, _now: -j.r,
    "saf": lambda j, _now: j.r * j.n,
    "laf": lambda j, _now: -j.r * j.n,
    "sexp": lambda j, now: (now - j.s + j.r) / j.n,
    "lexp": lambda j, now: -(now - j.s + j.r) / j.n,
    "srf": lambda j, _now: j.r / j.n,
    "lrf": lambda j, _now: -j.r / j.n,
    "slurm-multifactor": lambda j, now: (
        -(1000 * min((now - j.s) / TWELVE_HOURS, 1) + 1000 * (1 - j.n / POOL))
    ),
    "f1": lambda j, _now: math.log10(j.r) * j.n + 870 * log10_of(j.s),
    "f2": lambda j, _now: math.sqrt(j.r) * j.n + 25600 * log10_of(j.s),
    "f3": lambda j, _now: j.r * j.n + 6_860_000 * log10_of(j.s),
    "f4": lambda j, _now: j.r * math.sqrt(j.n) + 530_000 * log10_of(j.s),
    "wfp3": lambda j, now: -(((now - j.s) / j.r) ** 3) * j.n,
    "unicep": lambda j, now: -(now - j.s + 1e-15) / (math.log2(j.n + 1e-15) * j.r),
    "edf": lambda j, _now: j.d,
    "static-priority": lambda j, _now: (-j.p, j.s),
    "dynamic-heuristic": lambda j, now: max(j.d - now, 1) / (j.p + 1),
    "power-aware": lambda j, _now: j.n,  # one GPU type: watts are proportional to GPUs
}
WITHOUT_FORMULA = {"qssf", "random-feasible", "fair-share", "drf"}


def random_workload(seed, jobs=60, span_s=3 * TWELVE_HOURS):
    """Return jobs over a day and a half, with many equal sizes and priorities."""
    dice = np.random.default_rng(seed)
    submit = np.sort(dice.uniform(0, span_s, jobs))
    duration = dice.lognormal(7, 1.5, jobs) + 1
    return Workload.of(
        submit_s=submit,
        duration_s=duration,
        gpus=dice.choice([1, 1, 2, 3, 4, 8, 40, 128], jobs),
        priority=dice.integers(0, 4, jobs),
        deadline_s=submit + duration * dice.uniform(1, 3, jobs),
        user=dice.integers(0, 6, jobs),
        tenant=dice.choice(["a", "b", ""], jobs),
    )


def as_jobs(workload):
    """Return the jobs one by one."""
    columns = (workload.submit_s, workload.duration_s, workload.gpus)
    rest = (workload.priority, workload.deadline_s)
    return [Job(*row) for row in zip(*(c.tolist() for c in columns + rest), strict=True)]


def keys_of(name, workload, cluster):
    """Return the keys of a registered order."""
    order = ORDERS[name]
    run_s = workload.duration_s if order.reads_run_time else None
    return order.keys(view_for(name, workload, cluster, run_s))


def at_time(keys, now):
    """Evaluate keys at one moment as their definition says."""
    if keys.rate is None:
        return keys.offset
    return keys.offset + keys.rate * np.clip(now - keys.since, *keys.clip_s)


def test_every_order_is_checked():
    """No registered order lacks a literal formula here or a test of its own below."""
    assert set(ORDERS) == set(FORMULAS) | WITHOUT_FORMULA


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("seed", range(3))
def test_ranking_is_that_of_the_formula(name, seed):
    """At several moments, the jobs submitted by then are ranked as the formula ranks them."""
    workload = random_workload(seed)
    jobs = as_jobs(workload)
    keys = keys_of(name, workload, Cluster.pool(POOL))
    for now in [*np.quantile(workload.submit_s, [0.1, 0.5, 1.0]).tolist(), 5 * TWELVE_HOURS]:
        waiting = np.flatnonzero(workload.submit_s <= now).tolist()
        expected = sorted(waiting, key=lambda row: (FORMULAS[name](jobs[row], now), row))
        ours = at_time(keys, now)
        assert sorted(waiting, key=lambda row: (ours[row], row)) == expected


class NaiveHistory:
    """GPUs × mean run time of the user's finished jobs, kept as plain lists."""

    def __init__(self, workload):
        self.ran = {}
        self.user = workload.user.values()
        self.gpus = workload.gpus.tolist()
        self.finished = []
        self.key = {}

    def arrive(self, row):
        """Predict a job on its arrival, from what has finished by then."""
        own = [run_s for user, run_s in self.finished if user == self.user[row]]
        past = own or [run_s for _, run_s in self.finished] or [0.0]
        self.key[row] = self.gpus[row] * (math.fsum(past) / len(past))


class NaiveTenants(NaiveHistory):
    """What each tenant holds and has held, from a plain list of everything that ran."""

    def __init__(self, workload):
        super().__init__(workload)
        self.tenant = workload.tenant.values()

    def gpu_s(self, row, now):
        """GPU-seconds that the job's tenant has had until now."""
        return sum(
            self.gpus[other] * (min(end, now) - start)
            for other, (start, end) in self.ran.items()
            if self.tenant[other] == self.tenant[row]
        )

    def held(self, row, now):
        """GPUs that the job's tenant holds now."""
        return sum(
            self.gpus[other]
            for other, (start, end) in self.ran.items()
            if self.tenant[other] == self.tenant[row] and start <= now < end
        )


def naive_strict(workload, gpus, key, history):
    """Simulate strict scheduling on a pool by brute force: rank everybody at every event."""
    free, now, starts = gpus, 0.0, {}
    ends, waiting, coming = {}, [], list(range(len(workload)))
    while coming or waiting or ends:
        upcoming = [workload.submit_s[coming[0]]] if coming else []
        now = float(min(upcoming + list(ends.values())))
        for row in sorted(row for row, end in ends.items() if end == now):
            history.finished.append((history.user[row], now - starts[row]))
            free += workload.gpus[row]
            del ends[row]
        while coming and workload.submit_s[coming[0]] == now:
            waiting.append(coming.pop(0))
            history.arrive(waiting[-1])
        while waiting:
            first = min(waiting, key=lambda row: (key(row, now), row))
            if workload.gpus[first] > free:
                break
            waiting.remove(first)
            free -= workload.gpus[first]
            starts[first], ends[first] = now, now + workload.duration_s[first]
            history.ran[first] = (now, ends[first])
    return [starts[row] for row in range(len(workload))]


@pytest.mark.parametrize("name", [*FORMULAS, "qssf"])
def test_whole_schedule_is_that_of_the_formula(name):
    """Ranking everybody by the formula at every event gives the schedule of the engine."""
    workload = random_workload(7, jobs=80, span_s=0.1 * TWELVE_HOURS)  # so that many must wait
    jobs = as_jobs(workload)
    history = NaiveHistory(workload)

    def key(row, now):
        return history.key[row] if name == "qssf" else FORMULAS[name](jobs[row], now)

    schedule = simulate(workload, Cluster.pool(POOL), f"{name}+strict")
    assert np.count_nonzero(schedule.start_s > workload.submit_s) >= 20
    assert schedule.start_s.tolist() == naive_strict(workload, POOL, key, history)


@pytest.mark.parametrize("name", ["fair-share", "drf"])
@pytest.mark.parametrize("seed", range(3))
def test_whole_schedule_goes_by_tenants(name, seed):
    """Ranking jobs by what their tenants have had, or hold, at every choice gives the schedule."""
    workload = random_workload(seed, jobs=80, span_s=0.1 * TWELVE_HOURS)
    workload = workload.with_columns(
        submit_s=np.round(workload.submit_s), duration_s=np.round(workload.duration_s)
    )
    tenants = NaiveTenants(workload)
    key = tenants.gpu_s if name == "fair-share" else tenants.held
    schedule = simulate(workload, Cluster.pool(POOL), f"{name}+strict")
    assert schedule.start_s.tolist() == naive_strict(workload, POOL, key, tenants)
    assert (
        schedule.start_s.tolist() != simulate(workload, Cluster.pool(POOL), "fifo").start_s.tolist()
    )


def test_fair_share_counts_by_guarantee():
    """Who is guaranteed four times as much has had less, until it has had four times as much."""
    workload = Workload.of(
        submit_s=[0, 0, 10, 10, 10, 10],
        duration_s=[100, 300, 50, 50, 50, 50],
        tenant=["small", "large", "small", "large", "small", "large"],
    )
    quotas = (Quota("small", 1), Quota("large", 4))
    cluster = Cluster.pool(1).under(Site(quotas=quotas))
    schedule = simulate(workload, cluster, "fair-share+skip")
    # 100/1 against 300/4: the large tenant is served until it has had 400 GPU-seconds.
    assert schedule.segment_job.tolist() == [0, 1, 3, 5, 2, 4]


def test_off_peak_holds_jobs_back():
    """Nobody enters the queue before its cheapest start; after that, first released first."""
    cluster = Cluster.pool(2).under(Site(power=Power(price_per_kwh=DAY)))
    workload = random_workload(3, jobs=40)
    deadline_s = np.where(np.arange(40) % 3, math.nan, workload.deadline_s)
    workload = workload.with_columns(gpus=np.ones(40, dtype=int), deadline_s=deadline_s)
    keys = keys_of("off-peak", workload, cluster)
    view = view_for("off-peak", workload, cluster, workload.duration_s)
    assert keys.release_s.tolist() == view.cheapest_start_s(TWELVE_HOURS).tolist()
    assert np.count_nonzero(keys.release_s > workload.submit_s) > 10
    schedule = simulate(workload, cluster, "off-peak+strict")
    assert np.all(schedule.start_s >= keys.release_s)
    by_release = np.lexsort((np.arange(40), keys.release_s))
    assert schedule.segment_job.tolist() == by_release.tolist()


def test_queues_of_two_dimensional_service():
    """las-2d counts GPU-seconds at Tiresias' thresholds; las counts every second of the job."""
    workload = random_workload(1)
    keys = {name: keys_of(name, workload, Cluster.pool(POOL)) for name in ("las", "las-2d")}
    assert (keys["las"].weighted, keys["las"].levels_s) == (False, ())
    assert (keys["las-2d"].weighted, keys["las-2d"].levels_s) == (True, (3250.0, 7200.0, 18000.0))


def test_jobs_without_deadline_come_last():
    """Under edf and dynamic-heuristic they follow all others, first submitted first."""
    workload = Workload.of(
        submit_s=[0, 1, 2, 3], duration_s=[1] * 4, deadline_s=[math.nan, 50, math.nan, 40]
    )
    for name in ("edf", "dynamic-heuristic"):
        keys = at_time(keys_of(name, workload, Cluster.pool(1)), 5.0)
        assert np.argsort(keys, kind="stable").tolist() == [3, 1, 0, 2]


def test_power_aware_takes_the_most_frugal_allowed_type():
    """Watts are those above idle, on the best type of the cluster that the job accepts."""
    cluster = Cluster.of("V100:8", "T4:8")
    watts = {kind.name: kind.busy_w - kind.idle_w for kind in cluster.gpu_types}
    workload = Workload.of(
        submit_s=[0] * 4,
        duration_s=[1] * 4,
        gpus=[2, 1, 3, 1],
        gpu_types=[None, "V100", "T4|V100", "T4"],
    )
    frugal = min(watts.values())
    expected = [2 * frugal, watts["V100"], 3 * frugal, watts["T4"]]
    assert keys_of("power-aware", workload, cluster).offset.tolist() == expected


def test_unknown_users_share_a_history():
    """Jobs without a user are one group for qssf, apart from every named user."""
    workload = Workload.of(submit_s=[0] * 4, duration_s=[1] * 4, user=["a", None, "b", None])
    group = keys_of("qssf", workload, Cluster.pool(1)).group.tolist()
    assert group[1] == group[3]
    assert len(set(group)) == 3


@pytest.mark.parametrize("name", [name for name in FORMULAS if not ORDERS[name].reads_run_time])
def test_blind_orders_need_no_run_times(name):
    """An order declared blind gives its keys without any run time in the view."""
    workload = random_workload(1)
    keys = ORDERS[name].keys(view_for(name, workload, Cluster.pool(POOL), None))
    assert len(keys.offset) == len(workload)


READS_RUN_TIME = [name for name in FORMULAS if ORDERS[name].reads_run_time]


@pytest.mark.parametrize("name", READS_RUN_TIME)
def test_orders_that_read_run_times_say_so(name):
    """Without the declaration the order would be refused: the declaration is not idle."""
    workload = random_workload(1)
    cluster = Cluster.pool(POOL).under(Site(power=Power(price_per_kwh=DAY)))
    with pytest.raises(EntitlementError, match=name):
        ORDERS[name].keys(view_for(name, workload, cluster, None))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda jobs: jobs.submit_s * math.nan, "'mine' returned NaN keys"),
        (lambda jobs: jobs.submit_s[:-1], r"'mine' returned an array of shape \(3,\) for 4 jobs"),
        (lambda jobs: jobs.submit_s[:, None], r"shape \(4, 1\)"),
        (lambda _jobs: 1.0, r"shape \(\)"),
        (lambda _jobs: None, "'mine' returned"),
        (lambda _jobs: ["a", "b", "c", "d"], "'mine' must return numbers"),
        (lambda jobs: 1 / 0 * jobs.gpus, "'mine' failed: ZeroDivisionError"),
        (lambda jobs: jobs.colour, "'mine' failed: AttributeError.*colour"),
        (lambda jobs, _now: jobs.submit_s * math.nan, "'mine' returned NaN keys"),
        (lambda jobs, _now: np.append(jobs.submit_s, 0.0), "'mine' returned an array of shape"),
        (lambda jobs, now: now.missing + jobs.gpus, "'mine' failed: AttributeError"),
        (lambda jobs: OrderKeys.fixed(jobs.submit_s[1:]), r"shape \(3,\) for 4 jobs"),
        (
            lambda jobs: OrderKeys.ageing(rate=jobs.submit_s * math.nan, since=jobs.submit_s),
            "NaN",
        ),
    ],
)
def test_unusable_keys_are_refused(function, message):
    """Whatever cannot be compared is refused by name before it can mislead the engine."""
    workload = Workload.of(submit_s=[0, 1, 2, 3], duration_s=[5] * 4)
    order = Order("mine", function, reads_run_time=False, formula="test")
    with pytest.raises(YardmasterError, match=message):
        simulate(workload, Cluster.pool(1), order)


def test_an_order_cannot_change_the_workload():
    """What an order sees is read-only."""

    def greedy(jobs):
        jobs.submit_s[:] = 0.0
        return jobs.submit_s

    workload = Workload.of(submit_s=[0, 1], duration_s=[5, 5])
    order = Order("greedy", greedy, reads_run_time=False, formula="test")
    with pytest.raises(YardmasterError, match="read-only"):
        simulate(workload, Cluster.pool(1), order)
    assert workload.submit_s.tolist() == [0, 1]


def first_starts(name, workload, cluster, seeds):
    """Return the order of starts under each seed."""
    return [
        tuple(simulate(workload, cluster, name, seed=seed).segment_job.tolist()) for seed in seeds
    ]


def chi_square(counts, outcomes):
    """Return the chi-square statistic against equal chances."""
    expected = sum(counts.values()) / outcomes
    return sum((count - expected) ** 2 for count in counts.values()) / expected


def test_random_feasible_is_uniform_over_permutations():
    """Three jobs on one GPU: all six sequences are equally likely over seeds."""
    workload = Workload.of(submit_s=[0] * 3, duration_s=[1, 2, 3])
    orders = first_starts("random-feasible", workload, Cluster.pool(1), range(1200))
    counts = {order: orders.count(order) for order in set(orders)}
    assert len(counts) == 6
    assert chi_square(counts, 6) < 20.5  # 0.1 % of fair dice exceed this with five degrees


def test_random_feasible_chooses_among_those_that_fit():
    """With two GPUs free the job of three is never chosen, the other two equally often."""
    workload = Workload.of(submit_s=[0, 1, 1, 1], duration_s=[10] * 4, gpus=[2, 1, 2, 3])
    orders = first_starts("random-feasible", workload, Cluster.pool(4), range(600))
    second = [order[1] for order in orders]
    counts = {row: second.count(row) for row in set(second)}
    assert set(counts) == {1, 2}
    assert chi_square(counts, 2) < 10.8


def test_random_feasible_repeats_per_seed():
    """The same seed gives the same schedule, another seed another."""
    workload = random_workload(2, jobs=40, span_s=100.0)
    pool = Cluster.pool(POOL)
    prints = [
        simulate(workload, pool, "random-feasible", seed=seed).fingerprint() for seed in (1, 1, 2)
    ]
    assert prints[0] == prints[1] != prints[2]


def test_kinds_of_keys():
    """Orders whose key does not change while waiting are told to the engine as fixed."""
    workload = random_workload(3)
    ageing = {"sexp", "lexp", "wfp3", "unicep", "slurm-multifactor", "dynamic-heuristic"}
    special = dict.fromkeys(ageing, OrderKind.AGEING) | {
        "srpt": OrderKind.REMAINING,
        "las": OrderKind.ATTAINED,
        "las-2d": OrderKind.ATTAINED,
        "drf": OrderKind.SHARE,
        "fair-share": OrderKind.USAGE,
        "qssf": OrderKind.HISTORY,
        "random-feasible": OrderKind.SHUFFLED,
    }
    for name in ORDERS:
        kind = keys_of(name, workload, Cluster.pool(POOL)).kind
        assert kind == special.get(name, OrderKind.FIXED)


def test_built_in_orders_cannot_be_replaced():
    """A user's order under a built-in name is refused, and the built-in one stays."""
    before = ORDERS["sjf"]
    with pytest.raises(YardmasterError, match="another name"):
        order("sjf")(lambda jobs: jobs.gpus)
    assert ORDERS["sjf"] is before
