"""The scheduler language: what can be written, what is meant, and what is said of mistakes."""

import itertools
import sys
from dataclasses import replace

import pytest

from yardmaster.engine.state import Discipline, Placement
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS, find_order, parse_scheduler
from yardmaster.schedulers.orders import ORDERS, Order
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import Information, RunTimes

JOBS = Workload.of(submit_s=[0, 1, 2, 3], duration_s=[10, 3, 2, 1], gpus=[1] * 4)


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Forget orders, modules and import paths that a test adds."""
    monkeypatch.setattr(ORDERS, "_items", dict(ORDERS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if name.startswith(("yardmaster_user_", "my_orders")):
            del sys.modules[name]


def write(folder, text, name="orders.py"):
    """Write a user's file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sequence(scheduler):
    """Return the rows in order of start."""
    return simulate(JOBS, Cluster.pool(1), scheduler).segment_job.tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_every_combination_is_read_back(order):
    """The name a scheduler gives itself means the same scheduler."""
    for parts in itertools.product(DISCIPLINES, PLACEMENTS, ["", "~true", "~estimate"]):
        discipline, placement, run_times = parts
        scheduler = parse_scheduler(f"{order}+{discipline}@{placement}{run_times}")
        assert scheduler.order is ORDERS[order]
        assert scheduler.discipline is Discipline[discipline.upper()]
        assert scheduler.solves == (placement == "milp")
        if not scheduler.solves:
            assert scheduler.placement is Placement[placement.upper()]
        assert parse_scheduler(str(scheduler)) == scheduler


def test_names_are_those_of_the_engine():
    """Every discipline and every placement of the engine can be written, and milp besides."""
    assert set(DISCIPLINES) == {one.name.lower() for one in Discipline}
    assert set(PLACEMENTS) == {one.name.lower() for one in Placement} | {"milp"}


def test_an_integer_program_goes_with_skip():
    """Where milp chooses the nodes and no discipline is named, jobs that do not fit are skipped."""
    scheduler = parse_scheduler("sjf@milp")
    assert (scheduler.discipline, scheduler.solves) == (Discipline.SKIP, True)
    assert str(scheduler) == "sjf+skip@milp"
    assert scheduler != parse_scheduler("sjf+skip")


def test_defaults():
    """What is left out is strict, pack and true run times, or the order's own discipline."""
    scheduler = parse_scheduler(" sjf ")
    assert str(scheduler) == "sjf+strict"
    assert scheduler.placement is Placement.PACK
    assert scheduler.run_times is RunTimes.TRUE
    assert parse_scheduler("random-feasible").discipline is Discipline.SKIP
    assert parse_scheduler("off-peak").discipline is Discipline.EASY
    assert str(parse_scheduler("sjf@first")) == "sjf+strict@first"
    assert str(parse_scheduler("sjf~estimate")) == "sjf+strict~estimate"


def test_schedulers_and_orders_are_accepted_as_they_are():
    """A Scheduler is returned unchanged; an Order gets its default discipline."""
    scheduler = parse_scheduler("sjf+easy@spread~estimate")
    assert parse_scheduler(scheduler) is scheduler
    assert parse_scheduler(ORDERS["random-feasible"]) == parse_scheduler("random-feasible")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sjff", "Unknown order 'sjff'. Did you mean 'sjf'"),
        ("FIFO", "Did you mean 'fifo'"),
        ("sjf+eazy", "Unknown discipline 'eazy'. Did you mean 'easy'"),
        ("sjf+easy@pakc", "Unknown placement 'pakc'. Did you mean 'pack'"),
        ("srpt+preemtive", "Unknown discipline 'preemtive'. Did you mean 'preemptive'"),
        ("fifo@fastst", "Unknown placement 'fastst'. Did you mean 'fastest'"),
        ("sjf+easy@pack~estimates", "Unknown source of run times 'estimates'. Did you mean"),
    ],
)
def test_misspelt_parts(text, hint):
    """Each part has its own message with the nearest name."""
    with pytest.raises(UnknownNameError) as caught:
        parse_scheduler(text)
    assert hint in str(caught.value)
    assert "Known: " in str(caught.value)


@pytest.mark.parametrize("text", ["", "+easy", "@pack", "~estimate", "sjf+easy+skip", "  "])
def test_unreadable_texts(text):
    """A text without an order, or with two disciplines, shows how to write it."""
    with pytest.raises(YardmasterError, match="ORDER\\+DISCIPLINE@PLACEMENT"):
        parse_scheduler(text)


def test_unknown_default_discipline():
    """An order object whose default discipline does not exist is refused with a suggestion."""
    order = Order("mine", lambda jobs: jobs.submit_s, reads_run_time=False, formula="s")
    order = replace(order, discipline="eassy")
    with pytest.raises(UnknownNameError, match="Did you mean 'easy'"):
        parse_scheduler(order)


@pytest.mark.parametrize(
    ("text", "information"),
    [
        ("fifo", Information.BLIND),
        ("fifo+skip~estimate", Information.BLIND),
        ("fifo+easy", Information.CLAIRVOYANT),
        ("fifo+conservative~estimate", Information.ESTIMATE_BASED),
        ("sjf", Information.CLAIRVOYANT),
        ("sjf+commit~estimate", Information.ESTIMATE_BASED),
        ("qssf", Information.BLIND),
        ("qssf+easy~estimate", Information.ESTIMATE_BASED),
        ("random-feasible", Information.BLIND),
        ("las+preemptive", Information.BLIND),
        ("drf+preemptive~estimate", Information.BLIND),
        ("fifo+timeslice", Information.BLIND),
        ("fifo+elastic", Information.CLAIRVOYANT),
        ("fifo+defrag", Information.CLAIRVOYANT),
        ("fifo+defrag~estimate", Information.ESTIMATE_BASED),
        ("srpt+preemptive~estimate", Information.ESTIMATE_BASED),
    ],
)
def test_information(text, information):
    """Run times are read by the order or by a discipline with reservations, true or estimated."""
    assert parse_scheduler(text).information is information


def test_information_of_every_combination():
    """Blind exactly when neither part reads run times; else as the run times say."""
    for order, discipline, run_times in itertools.product(ORDERS, DISCIPLINES, RunTimes):
        foresees = discipline in ("easy", "conservative", "elastic", "defrag")
        reads = ORDERS[order].reads_run_time or foresees
        told = {RunTimes.TRUE: "clairvoyant", RunTimes.ESTIMATE: "estimate-based"}[run_times]
        scheduler = parse_scheduler(f"{order}+{discipline}~{run_times}")
        assert scheduler.information == (told if reads else "blind")


OWN = '''
from yardmaster.schedulers.orders import Order, order, sjf

@order("shortest", reads_run_time=True, discipline="skip")
def by_length(jobs):
    """Shortest first."""
    return jobs.run_s

def newest(jobs):
    """Newest first."""
    return -jobs.submit_s

def newest_now(jobs, now):
    return now - (now - jobs.submit_s) * -1 - 2 * jobs.submit_s

class Newest:
    """A class of orders."""
    def __call__(self, jobs):
        return -jobs.submit_s

class Shortest:
    reads_run_time = True
    def __call__(self, jobs, now):
        return jobs.run_s + now

ready = Order("ready", newest, False, "-s", discipline="easy")
instance = Newest()
number = 7

class Needy:
    def __init__(self, weights): ...
    def __call__(self, jobs): ...

class Mute: ...

def nothing(): ...

def three(jobs, now, more): ...
'''


@pytest.mark.parametrize(
    ("attribute", "expected", "discipline"),
    [
        ("shortest", [0, 3, 2, 1], "skip"),
        ("by_length", [0, 3, 2, 1], "skip"),
        ("newest", [0, 3, 2, 1], "strict"),
        ("newest_now", [0, 3, 2, 1], "strict"),
        ("Newest", [0, 3, 2, 1], "strict"),
        ("instance", [0, 3, 2, 1], "strict"),
        ("Shortest", [0, 3, 2, 1], "strict"),
        ("ready", [0, 3, 2, 1], "easy"),
        ("sjf", [0, 3, 2, 1], "strict"),
    ],
)
def test_own_orders_from_a_file(tmp_path, attribute, expected, discipline):
    """Functions, classes, objects and registered orders all run, under their full name."""
    path = write(tmp_path, OWN)
    assert sequence("fifo") != expected
    assert sequence(f"{path}:{attribute}") == expected
    scheduler = parse_scheduler(f"{path}:{attribute}")
    assert str(scheduler) == f"{path}:{attribute}+{discipline}"
    assert str(parse_scheduler(str(scheduler))) == str(scheduler)


def test_own_orders_take_the_rest_of_the_language(tmp_path):
    """Discipline, placement and run times can follow; signs within the path mean nothing."""
    path = write(tmp_path / "a+b@c~d", OWN)
    scheduler = parse_scheduler(f"{path}:newest+easy@spread~estimate")
    assert scheduler.discipline is Discipline.EASY
    assert scheduler.placement is Placement.SPREAD
    assert scheduler.run_times is RunTimes.ESTIMATE
    assert scheduler.order.formula == "Newest first."


def test_own_orders_from_a_module(tmp_path, monkeypatch):
    """A module in the current folder is found by its dotted name."""
    write(tmp_path, OWN, "my_orders_package/inner.py")
    monkeypatch.chdir(tmp_path)
    assert sequence("my_orders_package.inner:newest") == [0, 3, 2, 1]
    assert sequence("my_orders_package.inner:shortest") == [0, 3, 2, 1]


def test_files_of_one_name_do_not_mix(tmp_path):
    """Two files with the same name in different folders keep their own orders."""
    first = write(tmp_path / "one", OWN)
    other = write(tmp_path / "two", "def newest(jobs):\n    return jobs.submit_s\n")
    assert sequence(f"{first}:newest") == [0, 3, 2, 1]
    assert sequence(f"{other}:newest") == [0, 1, 2, 3]
    assert sequence(f"{first}:shortest") == [0, 3, 2, 1]
    with pytest.raises(UnknownNameError, match="has no order 'shortest'"):
        find_order(f"{other}:shortest")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("newst", "has no order 'newst'. Did you mean 'Newest' or 'newest_now'"),
        ("number", "is not an order: it is a int"),
        ("Mute", "is not an order: it is a Mute"),
        ("Needy", "cannot make one: TypeError"),
        ("nothing", r"must be a function of \(jobs\) or of \(jobs, now\)"),
        ("three", r"must be a function of \(jobs\) or of \(jobs, now\)"),
    ],
)
def test_things_that_are_no_orders(tmp_path, attribute, message):
    """What cannot be an order is refused with the reason."""
    path = write(tmp_path, OWN)
    with pytest.raises(YardmasterError, match=message):
        parse_scheduler(f"{path}:{attribute}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise ValueError('no weights')", "ValueError: no weights"),
        ("import my_orders_missing_library", "my_orders_missing_library"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_files_that_cannot_be_imported(tmp_path, text, message):
    """A mistake inside the file is told with the file's name, every time it is asked for."""
    path = write(tmp_path, text)
    for _ in range(2):
        with pytest.raises(YardmasterError, match=message) as caught:
            find_order(f"{path}:newest")
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/orders.py:newest", "there is no file nowhere/orders.py"),
        ("my_orders_nowhere:newest", "there is no module 'my_orders_nowhere'"),
        ("json.nowhere:newest", "there is no module 'json.nowhere'"),
        (":newest", "newest"),
        ("orders.py:", "Cannot read scheduler"),
    ],
)
def test_places_that_do_not_exist(name, message):
    """A missing file or module is an error in the user's words."""
    with pytest.raises(YardmasterError, match=message):
        parse_scheduler(name)


def test_own_orders_are_entitled_only_to_what_they_declare(tmp_path):
    """A function that reads run times without saying so is refused, however it asks."""
    text = "\n".join(
        f"def {name}(jobs):\n    return jobs.{name}\n"
        for name in ("run_s", "duration_s", "estimate_s", "status")
    )
    path = write(tmp_path, text)
    for name in ("run_s", "duration_s", "estimate_s", "status"):
        with pytest.raises(YardmasterError, match=f"{name}.*reads_run_time=True"):
            sequence(f"{path}:{name}")
