"""Reasons: one sentence for the person who asks why a job does not start."""

from __future__ import annotations

import numpy as np

from yardmaster.live.decision import Decider
from yardmaster.live.reasons import by_the_clock, in_seconds
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster


def test_every_kind_of_reason_is_said():
    """Running, starting, held, impossible, blocked and behind others each have their sentence."""
    names = ["runs", "starts", "held", "huge", "gang", "second", "strange"]
    state = State.of(
        time_s=600.0,
        columns={
            "id": np.array(names),
            "submit_s": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "duration_s": [900.0] * 7,
            "gpus": [6, 1, 1, 99, 4, 4, 1],
            "gpu_types": ["", "", "", "", "", "", "H100"],
        },
        since_s=[0.0] + [np.nan] * 6,
        is_held=[False, False, True, False, False, False, False],
        cluster=Cluster.of("A100:8"),
        holdings=np.array([[0, 0, 6]]),
    )
    decision = Decider("fifo+easy").decide(state)
    said = {name: decision.why(row) for row, name in enumerate(names)}
    assert said["runs"] == "it runs"
    assert said["starts"] == "starts now"
    assert said["held"] == "held"
    assert said["huge"] == "asks for 99 GPUs, which can never be given here"
    assert said["gang"].startswith("needs 4 GPUs on one node, 1 free for about 5 min; behind")
    assert said["second"].startswith("needs 4 GPUs on one node, 1 free for about 5 min; behind")
    assert said["strange"] == "asks for 1 H100 GPU, which can never be given here"


def test_who_would_fit_but_must_wait_is_told_so():
    """Under a strict order a small job behind a large one learns that room is kept."""
    state = State.of(
        time_s=10.0,
        columns={"submit_s": [0.0, 1.0, 2.0], "duration_s": [50.0, 9.0, 9.0], "gpus": [6, 4, 1]},
        since_s=[0.0, np.nan, np.nan],
        cluster=Cluster.of("A100:8"),
        holdings=np.array([[0, 0, 6]]),
    )
    decision = Decider("fifo+strict").decide(state)
    assert (
        decision.why(2) == "behind 1 job; it would fit now, but GPUs are kept for jobs ahead of it"
    )


def test_gpus_of_those_that_start_now_come_back():
    """Who waits for GPUs that somebody takes this very second is told when those are free again."""
    state = State.of(
        time_s=10.0,
        columns={"submit_s": [0.0, 1.0, 2.0], "duration_s": [50.0, 30.0, 9.0], "gpus": [6, 2, 8]},
        since_s=[0.0, np.nan, np.nan],
        cluster=Cluster.of("A100:8"),
        holdings=np.array([[0, 0, 6]]),
    )
    decision = Decider("fifo+skip").decide(state)
    assert decision.why(1) == "starts now"
    assert decision.why(2) == "needs 8 GPUs on one node, 0 free for about 40 s; behind 1 job"


def test_times_are_said_as_people_say_them():
    """Short waits in seconds, longer ones in minutes and hours; or by the clock."""
    assert in_seconds(130.0, 100.0) == "for about 30 s"
    assert in_seconds(700.0, 100.0) == "for about 10 min"
    assert in_seconds(7300.0, 100.0) == "for about 2.0 h"
    assert by_the_clock(0.0, 0.0).startswith("until about ")
