"""A schedule at any second."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import yardmaster as ym
from yardmaster.report.playback import AWAY, IDLE, Playback, clock
from yardmaster.testing.real_strategies import real_situations
from yardmaster.testing.strategies import Situation


@settings(max_examples=60, deadline=None)
@given(real_situations(), st.floats(0.0, 0.999))
def test_a_moment_is_what_the_segments_say(situation: Situation, share: float):
    """GPUs, running jobs and the queue at a second agree with a plain look at every segment."""
    schedule = situation.replayed("never")
    playback = Playback(schedule)
    time_s = playback.begin_s + share * playback.span_s
    if time_s >= playback.end_s:
        return
    moment = playback.at(time_s)
    running: dict[int, set[int]] = {}
    for segment, job in enumerate(schedule.segment_job.tolist()):
        start_s, end_s = schedule.segment_start_s[segment], schedule.segment_end_s[segment]
        if start_s <= time_s < end_s:
            running[job] = set(schedule.gpus_of(segment).tolist())
    assert moment.running == len(running)
    held = set().union(*running.values())
    assert set(np.flatnonzero(moment.gpu_job >= 0).tolist()) == held
    for gpu in held:
        assert gpu in running[int(moment.gpu_job[gpu])]
    assert not set(moment.waiting.tolist()) & set(running)


def test_away_nodes_idle_gpus_and_the_queue_are_told():
    """One of two nodes is away while a job runs on the other and a third waits."""
    from yardmaster.model.site import Failures, Outage, Site

    site = Site(failures=Failures(outages=(Outage(node=1, down_s=5.0, up_s=50.0),)))
    cluster = ym.Cluster.of("2x V100:2").under(site)
    jobs = ym.Workload.of(submit_s=[0, 10], duration_s=[100, 10], gpus=[1, 2])
    moment = Playback(ym.simulate(jobs, cluster, "fifo")).at(20.0)
    assert moment.gpu_job.tolist() == [0, IDLE, AWAY, AWAY]
    assert moment.waiting.tolist() == [1]
    assert (moment.busy, moment.running, moment.submitted, moment.ended) == (1.0, 1, 2, 0)


def test_clocks_count_days():
    """Seconds of the workload's clock read as days and time."""
    assert clock(2 * 86_400 + 5 * 3600 + 13 * 60 + 20) == "day 2 05:13:20"
