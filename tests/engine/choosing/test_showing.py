"""What a chooser sees, against a recount of all jobs at every decision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine import state
from yardmaster.engine.choosing.places import AGES, AHEAD, SLACKS
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.testing.choosing import (
    choice_sights,
    choosing_workloads,
    failing_clusters,
    given_choices,
)
from yardmaster.testing.environments import mixed_speed_clusters, same_speed_clusters


def squash(value):
    return value / (1.0 + value) if value > 0.0 else 0.0


class Recount:
    """Everything that has happened in an environment, from the segments it has recorded."""

    def __init__(self, batch, workload, cluster):
        self.ints, self.reals = batch._rows[0][0], batch._rows[1][0]
        self.jobs, self.cluster, self.sight = workload, cluster, batch.task.sight
        self.now = float(self.reals[state.NOW])
        estimated = self.sight.information == "estimate"
        self.known = workload.estimate_s if estimated else workload.duration_s
        if self.sight.information == "blind":
            self.known = np.zeros(len(workload))
        self.deadline = np.where(np.isnan(workload.deadline_s), np.inf, workload.deadline_s)
        heap = self.ints[state.HEAP]
        self.running = self.ints[heap : heap + self.ints[state.RUNNING]].tolist()
        self.spans = self._spans()
        placeable = self.ints[self.ints[state.JOB_SHAPE] :][: len(workload)] >= 0
        arrived = np.flatnonzero(placeable & (workload.submit_s <= self.now)).tolist()
        self.ended = self._ended(arrived)
        self.waiting = [job for job in arrived if job not in {*self.running, *dict(self.ended)}]
        self.arrived = arrived

    def _spans(self):
        """Return (job, begin, end) of every stretch for which a job has run."""
        ints, reals = self.ints, self.reals
        count = int(ints[state.SEGMENTS])
        job = ints[ints[state.SEGMENT_JOB] :][:count]
        begin, end = (reals[ints[at] :][:count] for at in (state.SEGMENT_START, state.SEGMENT_END))
        last = {int(one): place for place, one in enumerate(job)}
        return [
            (
                int(one),
                float(begin[place]),
                math.inf if one in self.running and last[int(one)] == place else float(end[place]),
            )
            for place, one in enumerate(job)
        ]

    def _ended(self, arrived):
        """Return (job, second) of the finished ones, in order."""
        queue = self.ints[state.QUEUE]
        left = {*self.running, *self.ints[queue : queue + self.ints[state.QUEUED]].tolist()}
        last = {job: (end, begin) for job, begin, end in self.spans if job not in left}
        assert set(last) == set(arrived) - left
        # Who ends at once comes after those who end in the same second and began before.
        order = sorted(last, key=lambda job: (*last[job], job))
        return [(job, last[job][0]) for job in order]

    @property
    def knows_order(self):
        """Whether it shows in which order jobs ended: not of several that end as they begin.

        One of them may have been started by the end of another, in the same second.
        """
        at_once = [begin for job, begin, end in self.spans if begin == end]
        return len(set(at_once)) == len(at_once)

    def mean(self, values):
        """Return the mean, 0 of nothing."""
        return float(np.mean(values)) if len(values) else 0.0

    def queue(self):
        """Return the numbers of the queue and of the cluster."""
        jobs, sight, rows = self.jobs, self.sight, self.waiting
        gpus, unit = float(self.cluster.gpus), sight.time_unit_s
        known, wide = self.known[rows], jobs.gpus[rows]
        running = self.running
        expected = self.reals[self.ints[state.EXPECTED_END] :][: len(jobs)]
        left = float(sum(jobs.gpus[job] * (expected[job] - self.now) for job in running))
        knows = sight.information != "blind"
        priority = self.mean(np.nan_to_num(jobs.priority[rows]))
        spread = float(np.std(known)) / (self.mean(known) + 1.0) if rows else 0.0
        return [
            min(math.log(1 + len(rows)) / math.log(1001), 1.0),
            squash(len(rows) / gpus),
            squash(wide.sum() / gpus),
            squash(float((known * wide).sum()) / gpus / unit),
            min(self.mean(wide) / gpus, 1.0),
            squash(self.mean(known) / unit),
            squash(spread) if knows else 0.0,
            priority / (1 + abs(priority)),
            self.mean(np.isfinite(self.deadline[rows])),
            self.free(),
            min(len(running) / gpus, 1.0),
            squash(left / gpus / unit) if knows else 0.0,
            min(math.log2(gpus) / 16, 1.0),
        ]

    def free(self):
        """Return the share of free GPUs: those in nobody's hands, on nodes that are there."""
        nodes = self.cluster.nodes
        held = sum(int(self.jobs.gpus[job]) for job in self.running)
        down = np.zeros(nodes)
        if self.ints[state.IS_REAL] == 1:
            down = self.ints[self.ints[state.NODE_DOWN] :][:nodes]
        there = self.cluster.gpus - int(self.cluster.node_gpus[down == 1].sum())
        return (there - held) / self.cluster.gpus

    def ages(self):
        """Return how long waiting jobs have waited."""
        age, unit = self.now - self.jobs.submit_s[self.waiting], self.sight.time_unit_s
        oldest = float(age.max()) if len(age) else 0.0
        spread = float(np.std(age)) if len(age) else 0.0
        # An age is passed when the job came at or before now − age, as the clock rounds it.
        since = [self.now - bound * unit for bound in AGES]
        shares = [self.mean(self.jobs.submit_s[self.waiting] <= moment) for moment in since]
        return [
            squash(self.mean(age) / unit),
            squash(spread / unit),
            squash(oldest / unit),
            *shares,
        ]

    def slacks(self):
        """Return which shares of them are how close to their deadlines."""
        latest = (self.deadline - self.known)[self.waiting]
        return [self.mean(latest < self.now + slack * self.sight.time_unit_s) for slack in SLACKS]

    def ahead(self):
        """Return which shares of the GPUs will be free when."""
        if self.sight.information == "blind":
            return [0.0] * len(AHEAD)
        expected = self.reals[self.ints[state.EXPECTED_END] :][: len(self.jobs)]
        shares = []
        for bound in AHEAD:
            soon = [
                int(self.jobs.gpus[job])
                for job in self.running
                if (expected[job] - self.now) / self.sight.time_unit_s <= bound
            ]
            shares.append(min(self.free() + sum(soon) / self.cluster.gpus, 1.0))
        return shares

    def past(self):
        """Return the numbers of the spans of the recent past."""
        width = self.sight.past_span * self.sight.time_unit_s
        newest = int(self.now // width)
        numbers = []
        for back in range(self.sight.past):
            span = newest - back
            numbers += [0.0] * 12 if span < 0 else self._span(span, width)
        return numbers

    def _span(self, span, width):
        jobs, gpus = self.jobs, float(self.cluster.gpus)
        came = [job for job in self.arrived if int(jobs.submit_s[job] // width) == span]
        patience = [
            min(max((self.deadline[job] - jobs.submit_s[job]) / max(self.known[job], 1), 0), 8)
            for job in came
        ]
        begin, end = span * width, min((span + 1) * width, self.now)

        def shared(first, last):
            return max(min(last, end) - max(first, begin), 0.0)

        busy = sum(int(jobs.gpus[job]) * shared(start, stop) for job, start, stop in self.spans)
        queued = sum(shared(first, last) for first, last in self._waits())
        ends = sum(1 for _, second in self.ended if int(second // width) == span)
        return [
            squash(len(came) / gpus),
            squash(float((self.known[came] * jobs.gpus[came]).sum()) / (gpus * width)),
            min(self.mean(jobs.gpus[came]) / gpus, 1.0),
            squash(self.mean(self.known[came]) / self.sight.time_unit_s),
            self.mean(patience) / 8,
            squash(ends / gpus),
            squash(queued / (gpus * width)),
            busy / (gpus * width),
            *(value / max(ends, 1) for value in self._told(span, width)),
        ]

    def _waits(self):
        """Return the stretches for which jobs have waited, those stopped by a failure again."""
        for job in self.arrived:
            moment = float(self.jobs.submit_s[job])
            for _, start, stop in sorted(one for one in self.spans if one[0] == job):
                yield moment, start
                moment = stop
            if job in self.waiting:
                yield moment, math.inf

    def _told(self, span, width):
        jobs = self.jobs
        patience = np.minimum(self.deadline - jobs.submit_s, 1e15)
        found = np.zeros(4)
        for (before, _), (job, second) in zip(self.ended, self.ended[1:], strict=False):
            if int(second // width) == span:
                longer = np.sign(jobs.duration_s[job] - jobs.duration_s[before])
                found += longer * np.sign(
                    [
                        self.known[job] - self.known[before],
                        jobs.priority[before] - jobs.priority[job],
                        patience[job] - patience[before],
                        jobs.gpus[job] - jobs.gpus[before],
                    ]
                )
        return found

    def view(self, at_work):
        """Return the whole observation."""
        sight = self.sight
        shown = self.queue() + (self.ages() if sight.ages else []) + self.slacks() + self.ahead()
        if sight.shows_choice:
            shown += [float(member == at_work) for member in range(len(sight.menu))]
        return np.array(shown + self.past())


def check_walk(workload, cluster, sight, seed):
    """Switch at random and recount at every decision."""
    task = ChoosingTask(sight=sight)
    batch = given_choices(task, (workload, cluster))
    jobs = workload.starting_at(float(workload.submit_s[0]))
    dice = np.random.default_rng(seed)
    at_work = None
    names = [*batch.layout.now_features, *batch.layout.past_features]
    while True:
        recount = Recount(batch, jobs, cluster)
        expected = recount.view(at_work)
        # Sums of squares cancel to within the root of the rounding error.
        off = np.flatnonzero(np.abs(batch.observations[0] - expected) > 2e-5)
        if not recount.knows_order:
            off = np.array([at for at in off if "_tells_" not in names[at]])
        assert not len(off), [(names[at], batch.observations[0][at], expected[at]) for at in off]
        at_work = int(dice.integers(len(sight.menu)))
        batch.step(np.array([at_work]))
        if batch._ends[0]:
            return


def test_who_ends_at_once_ends_after_those_who_began_before():
    """Two jobs end in the same second: the one that the end of the other made room for is last."""
    workload = Workload.of(
        submit_s=[0, 0, 0, 2, 2, 2], duration_s=[1, 0, 1, 1, 1, 1], gpus=[1, 2, 1, 1, 1, 1]
    )
    sight = ChoiceSight(menu=("fifo+skip", "lifo+skip"), past=4, time_unit_s=1.0)
    check_walk(workload, Cluster.pool(2), sight, 0)


SITUATIONS = (choosing_workloads(), same_speed_clusters(), choice_sights(), st.integers(0, 9))


@settings(max_examples=80, deadline=None)
@given(*SITUATIONS)
def test_the_view_is_what_a_recount_shows(workload, cluster, sight, seed):
    """At every decision, whatever was at work before, all numbers are those of a full recount."""
    check_walk(workload, cluster, sight, seed)


@settings(max_examples=80, deadline=None)
@given(
    choosing_workloads(),
    st.one_of(mixed_speed_clusters(), failing_clusters()),
    choice_sights(),
    st.integers(0, 9),
)
def test_the_view_on_real_clusters(workload, cluster, sight, seed):
    """The same where types run at different speeds and jobs come back from nodes that failed."""
    check_walk(workload, cluster, sight, seed)


@settings(max_examples=40, deadline=None)
@given(choosing_workloads(min_jobs=6), st.integers(0, 9), st.sampled_from((2.0, 31.0)))
def test_blind_choosers_see_nothing_of_run_times(workload, seed, factor):
    """Until a job ends, other run times and estimates show a blind chooser the same."""
    sight = ChoiceSight(menu=("fifo+skip", "largest-first+skip"), information="blind")
    long = {"submit_s": workload.submit_s, "gpus": np.minimum(workload.gpus, 5)}
    dice = np.random.default_rng(seed)
    some = [
        Workload.of(duration_s=1e6 * stretch, estimate_s=1e5 * stretch, **long)
        for stretch in (np.ones(len(workload)), factor * dice.integers(1, 9, len(workload)))
    ]
    batches = [given_choices(ChoosingTask(sight=sight), (one, Cluster.pool(8))) for one in some]
    while max(batch.now_s[0] for batch in batches) < 1e5 and not batches[0]._ends.any():
        assert np.array_equal(batches[0].observations, batches[1].observations)
        action = dice.integers(2, size=1)
        for batch in batches:
            batch.step(action)


def test_labels_are_shown_as_they_are_given():
    """A chooser that is told the regime sees its numbers behind those of now."""
    from yardmaster.envs.choosing.batch import open_choosing
    from yardmaster.envs.choosing.task import CHOOSING_TASKS

    task = CHOOSING_TASKS["regimes"].changed(
        labelled=True, regimes=["base-low-2", "bursty-high-4"], episodes=2
    )
    batch = open_choosing(task, size=2, compiled=False)
    names = list(batch.layout.now_features)
    first = names.index("label_0")
    shown = batch.observations[:, first : len(names)]
    labels = batch.episodes._labels
    assert labels.shape == (2, len(names) - first)
    assert np.array_equal(shown, labels[batch.groups].astype(np.float32))
    assert len(np.unique(labels, axis=0)) == 2


@pytest.mark.parametrize("waiting", [10, 2_000])
def test_many_waiting_jobs_are_shown_as_few_are(waiting):
    """Shares and means do not depend on how many equal jobs wait."""
    sight = ChoiceSight(menu=("fifo+skip",), past=0, time_unit_s=10.0)
    jobs = Workload.of(submit_s=np.zeros(waiting), duration_s=np.full(waiting, 30.0))
    view = given_choices(ChoosingTask(sight=sight), (jobs, Cluster.pool(2))).observations[0]
    shown = dict(zip(sight.layout().now_features, view.tolist(), strict=True))
    assert shown["mean_run"] == pytest.approx(0.75)
    assert shown["mean_width"] == pytest.approx(0.5)
    assert shown["queued"] == pytest.approx(min(math.log(1 + waiting) / math.log(1001), 1.0))
