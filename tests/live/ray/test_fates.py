"""What outcomes mean for a job, and that the folder remembers them."""

from __future__ import annotations

import pytest

from yardmaster.live.local.commands import commands_of
from yardmaster.live.ray.fates import (
    ENDED,
    LOST,
    MOST_LOSSES,
    NEVER_RAN,
    STOPPED,
    Fate,
    Journal,
    Outcome,
    Trial,
)
from yardmaster.live.ray.orders import Order

(JOB,) = commands_of([{"id": "a", "command": "true", "retries": 1}], name="w").jobs


def outcome(fate: str, code: int | None = None) -> Outcome:
    return Outcome(fate=fate, end_unix_s=50.0, exit_code=code, slots=("0",))


def test_losses_do_not_count_as_the_jobs_own_failures():
    """With one retry, a job is given up when it fails twice by itself, often as it was lost."""
    fate = Fate()
    for _ in range(3):
        fate.settle(JOB, outcome(LOST, -1), 10.0)
    fate.settle(JOB, outcome(STOPPED, 143), 10.0)
    fate.settle(JOB, outcome(NEVER_RAN), 10.0)
    fate.settle(JOB, outcome(ENDED, 3), 10.0)
    assert not fate.is_over
    assert fate.not_before_s == 12.0
    fate.settle(JOB, outcome(ENDED, 3), 20.0)
    assert fate.is_over
    assert fate.exit_code == 3


@pytest.mark.parametrize(
    ("is_lost", "is_stopped", "code", "left_alone", "withdrawn"),
    [
        (True, False, 137, LOST, STOPPED),
        (True, True, 143, LOST, STOPPED),
        (True, False, 0, ENDED, ENDED),  # it was done just before
        (False, True, 143, STOPPED, STOPPED),
        (False, False, 3, ENDED, ENDED),
    ],
)
def test_what_we_let_go_of_was_stopped_not_lost(is_lost, is_stopped, code, left_alone, withdrawn):
    """A job killed as its reservation goes away is lost, unless it was we who let go of it."""
    report = {"is_lost": is_lost, "is_stopped": is_stopped, "exit_code": code,
              "end_unix_s": 9.0, "start_unix_s": 5.0, "timed_out": False, "slots": [0]}  # fmt: skip
    order = Order(
        run="r", run_folder="/run", began_unix_s=0.0, node_folder="", node="n", job="a", attempt=1,
        gpus=1, command="true", folder="", environment=(), timeout_s=None, grace_s=1.0, version="1",
    )  # fmt: skip
    trial = Trial(row=0, order=order, node_id="i", host="h", since_s=0.0)
    assert trial.outcome(report).fate == left_alone
    trial.is_withdrawn = True
    assert trial.outcome(report).fate == withdrawn


def test_a_job_that_is_lost_again_and_again_is_given_up():
    """What brings down a node each time must not do so for ever."""
    fate = Fate()
    for _ in range(MOST_LOSSES):
        fate.settle(JOB, outcome(LOST, -1), 0.0)
    assert not fate.is_over
    fate.settle(JOB, outcome(LOST, -1), 0.0)
    assert fate.is_over


def test_what_never_runs_is_asked_for_ever_less_often():
    """A node that refuses each time is not asked every second for ever."""
    fate, waits = Fate(), []
    for _ in range(12):
        fate.settle(JOB, outcome(NEVER_RAN), 0.0)
        waits.append(fate.not_before_s)
    assert waits == sorted(waits)
    assert (waits[0], waits[1], waits[-1]) == (1.0, 2.0, 300.0)
    assert not fate.is_over


def test_the_folder_remembers_what_was_sent_and_how_it_ended(tmp_path):
    """Attempts come back first to last, with the outcome that was written."""
    journal = Journal(tmp_path)
    journal.know(JOB)
    orders = [
        Order(
            run="r", run_folder=str(tmp_path), began_unix_s=0.0, node_folder="", node="n1",
            job="a", attempt=number, gpus=1, command=JOB.command, folder="/", environment=(),
            timeout_s=None, grace_s=1.0, version="",
        )
        for number in range(1, 12)
    ]  # fmt: skip
    for number, order in enumerate(orders):
        journal.submitted(order, "id", "host", float(number))
    journal.over(orders[0], outcome(ENDED, 3))
    trials = Journal(tmp_path).trials(0, JOB)
    assert [trial.order for trial in trials] == orders
    assert [trial.since_s for trial in trials] == list(range(11))
    assert journal.outcome(orders[0]) == outcome(ENDED, 3)
    assert journal.outcome(orders[1]) is None
