"""The conformance test for users' own orders: it passes good ones and catches bad ones."""

import itertools
import random
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import yardmaster.testing
from yardmaster.engine.orders import OrderKeys
from yardmaster.errors import ConformanceError, UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.orders import ORDERS, Order, sjf
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing import check_order, conformance
from yardmaster.testing.conformance import RULES, impossible, judge_order


@pytest.mark.parametrize("name", ORDERS)
def test_built_in_orders_conform(name):
    """Every built-in order keeps the promises, and the check takes well under two seconds."""
    begun = time.perf_counter()
    check_order(name, examples=12)
    assert time.perf_counter() - begun < 2.0


@pytest.mark.parametrize("text", ["sjf+easy~estimate", "wfp3+conservative@spread", "qssf+commit"])
def test_whole_schedulers(text):
    """A name may say under which discipline, placement and run times the order is to be checked."""
    check_order(text, examples=8)


def test_orders_and_functions():
    """Orders, registered functions and plain functions are all accepted."""
    check_order(ORDERS["f1"], examples=5)
    check_order(sjf, examples=5)  # registered as reading run times, and treated so

    def oldest(jobs, now):
        return jobs.submit_s - now

    check_order(oldest, examples=5)


def test_own_file(tmp_path):
    """A user's file is checked by its name in the scheduler language."""
    path = tmp_path / "mine.py"
    path.write_text("def mine(jobs):\n    return jobs.gpus / (1.0 + jobs.priority ** 2)\n")
    check_order(f"{path}:mine", examples=5)


class Counter:
    """An order that remembers how often it was asked."""

    def __init__(self):
        self.calls = itertools.count()

    def __call__(self, jobs, now):
        """Return keys that drift with every call."""
        return jobs.submit_s + now + next(self.calls)


def fail_on_deadlines(jobs):
    """Fail where a job has no deadline."""
    if np.isnan(jobs.deadline_s).any():
        raise ValueError("no deadline")
    return jobs.deadline_s


def write_into_jobs(jobs):
    """Clip priorities in place."""
    np.maximum(jobs.priority, 0, out=jobs.priority)
    return -jobs.priority


def write_into_waiting(jobs, now):
    """Turn submit times into waits in place."""
    jobs.submit_s[:] -= now + 1
    return jobs.submit_s


BAD = [
    (lambda jobs: np.array([random.random() for _ in jobs.gpus]), "other keys when it is asked"),
    (Counter(), "other keys when it is asked again"),
    (lambda jobs: jobs.submit_s[1:], "no usable keys.*shape"),
    (lambda jobs: jobs.deadline_s, "no usable keys.*NaN"),
    (lambda _jobs: None, "no usable keys"),
    (lambda jobs: [str(user) for user in jobs.user.values()], "must return numbers"),
    (fail_on_deadlines, "no usable keys.*failed: ValueError: no deadline"),
    (lambda jobs: jobs.run_s, "not entitled to.*run_s"),
    (lambda jobs, now: jobs.run_s + now, "not entitled to.*run_s"),
    (lambda jobs: jobs.duration_s, "not entitled to.*duration_s"),
    (lambda jobs: jobs.status.codes, "not entitled to.*status"),
    (write_into_jobs, "modifies the jobs it is given"),
    (write_into_waiting, "modifies the jobs it is given"),
    (lambda jobs: np.arange(len(jobs)), "another key when it stands in another row"),
    (lambda jobs: jobs.user.codes.astype(float), "how users, tenants or kinds are numbered"),
    (lambda jobs: OrderKeys.history(np.arange(len(jobs)) // 2), "stands in another row"),
    (lambda jobs: OrderKeys.history(jobs.gpus[:-1]), "no usable keys.*shape"),
]


@pytest.mark.parametrize(("function", "message"), BAD)
def test_bad_orders_are_caught(function, message):
    """Each broken promise has its own message, which names the order and the example."""
    with pytest.raises(ConformanceError, match=message) as caught:
        check_order(Order("mine", function, reads_run_time=False, formula="test"))
    assert "'mine'" in str(caught.value)
    assert "example" in str(caught.value)


def test_state_that_shows_only_in_simulations():
    """An order that changes its mind between two simulations is caught by the second one."""
    moods = itertools.cycle([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])

    def moody(jobs):
        # Asked four times for the checks of keys, then once for each of the two simulations.
        return next(moods) * jobs.submit_s

    with pytest.raises(ConformanceError, match="another schedule when the simulation is repeated"):
        check_order(moody)


class Stage:
    """An order that fails after it has been asked often enough: in the simulation."""

    def __init__(self):
        self.calls = itertools.count()

    def __call__(self, jobs):
        """Return keys four times, which is what the rules on keys ask for."""
        if next(self.calls) >= 4:
            raise ValueError("stage fright")
        return jobs.submit_s


def moods():
    signs = itertools.cycle([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    return lambda jobs: next(signs) * jobs.submit_s


BROKEN = {
    conformance.ENTITLED: lambda jobs: jobs.run_s,
    conformance.USABLE: lambda jobs: jobs.deadline_s,
    conformance.GENTLE: write_into_jobs,
    conformance.STEADY: Counter(),
    conformance.BY_JOB: lambda jobs: np.arange(len(jobs)),
    conformance.BY_NAME: lambda jobs: jobs.user.codes.astype(float),
    conformance.RUNS: Stage(),
    conformance.REPEATS: moods(),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_every_rule_gets_a_verdict(rule):
    """What is before a broken rule is kept, what is after it has not been tried."""
    found = judge_order(Order("mine", BROKEN[rule], reads_run_time=False, formula="test"))
    states = {one.rule: one.state for one in found.verdicts}
    assert list(states) == list(RULES)
    place = RULES.index(rule)
    assert list(states.values()) == (
        ["kept"] * place + ["broken"] + ["not tried"] * (len(RULES) - place - 1)
    )
    assert "'mine'" in found.verdicts[place].reason


def test_impossible_schedules_break_a_rule(monkeypatch):
    """The last rule is about what the schedule says; a core that lies is told by it."""
    monkeypatch.setattr(conformance, "impossible", lambda _: "GPU 1 serves two jobs at a time")
    found = judge_order("fifo", examples=3)
    assert [one.state for one in found.verdicts] == ["kept"] * 8 + ["broken"]
    assert set(BROKEN) | {conformance.POSSIBLE} == set(RULES)


def test_failures_repeat():
    """The same order fails in the same example with the same words."""
    messages = set()
    for _ in range(2):
        with pytest.raises(ConformanceError) as caught:
            check_order(fail_on_deadlines)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_unknown_orders():
    """A name that does not exist is not a broken promise but a misspelling."""
    with pytest.raises(UnknownNameError, match="Did you mean 'wfp3'"):
        check_order("wfp33")
    with pytest.raises(YardmasterError, match=r"\(jobs\) or of \(jobs, now\)"):
        check_order(lambda: None)


def test_impossible_schedules_are_seen():
    """Two jobs on one GPU, a job that ran twice or not at all: each is told."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[5, 5])
    schedule = simulate(jobs, Cluster.pool(2), "fifo")
    assert impossible(schedule) == ""
    shared = replace(schedule, gpu_ids=np.array([1, 1], dtype=np.int32))
    assert impossible(shared) == "GPU 1 serves two jobs at a time"
    twice = replace(schedule, segment_job=np.array([1, 1]))
    assert impossible(twice) == "job 0 ran 0 times"


def test_loaded_only_when_used():
    """Importing the package of tests needs neither the engine nor Hypothesis."""
    code = (
        "import sys, yardmaster.testing as t\n"
        "assert 'yardmaster.testing.conformance' not in sys.modules\n"
        "t.check_order\n"
        "assert 'hypothesis' not in sys.modules and 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="chek_order"):
        _ = yardmaster.testing.chek_order
