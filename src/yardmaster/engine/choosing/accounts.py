"""What is kept of waiting, running and finished jobs, so that nobody need look at them again.

Sums and shares over the waiting jobs are brought up to date when a job comes, starts or ends. Which
share of them is older than some age is kept by a mark that moves through the jobs in the order of
their submission as time passes, and likewise for slack in the order of latest starts: every job is
passed once, so a decision costs the same with ten jobs waiting and with ten thousand.
"""

from __future__ import annotations

import math

from yardmaster.engine.choosing.places import (
    AGE_AT,
    AGE_COUNT,
    AGES,
    BOOK,
    BSLD_RATE,
    BSLD_SUM,
    BUCKET,
    BUCKET_S,
    BUCKETS,
    BUSY_GPUS,
    COMPARED,
    DEADLINE,
    EARNED_AT,
    ELAPSED_S,
    ENDED,
    EXTRA_W_AT,
    FACTS,
    FINISHED,
    GIVEN_UP,
    GPUS_SUM,
    GRID,
    GRID_AT,
    GRID_SPAN_S,
    IDLE_W_AT,
    IS_OVER,
    JCT_SUM,
    LAST_END,
    LAST_ENDED,
    LATE_JOBS,
    LATEST,
    LATEST_JOB,
    LATEST_RANK,
    LOST,
    NO_DEADLINE,
    OLDEST,
    PAST,
    PAST_ARRIVALS,
    PAST_BUSY,
    PAST_BY_DEADLINE,
    PAST_BY_PRIORITY,
    PAST_BY_RUN,
    PAST_BY_SIZE,
    PAST_ENDS,
    PAST_GPUS,
    PAST_PATIENCE,
    PAST_QUEUE,
    PAST_RUN_S,
    PAST_WORK,
    PLACEABLE,
    PRIORITY,
    PRIORITY_SUM,
    PURSE,
    RETURN,
    RUN,
    RUN_SQUARES,
    RUN_SUM,
    SHORT_S,
    SLACK_AT,
    SLACK_COUNT,
    SLACKS,
    SLD_RATE,
    SUBMIT_SQUARES,
    SUBMIT_SUM,
    TAIL_AT,
    TAIL_COUNT,
    TAIL_FROM_S,
    TAIL_TO_S,
    TERMS,
    TIME_UNIT_S,
    USES_ENERGY,
    USES_TAIL,
    WAIT_SUM,
    WEIGHT_AT,
    WITH_DEADLINE,
    WORK_ENDS,
    WORK_SUM,
    End,
    Term,
)
from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.requests import UNLIMITED
from yardmaster.engine.state import (
    DURATION,
    EXPECTED_END,
    FAILURES,
    GPUS,
    HEAP,
    IS_REAL,
    JOB_SHAPE,
    JOBS,
    NEXT_ARRIVAL,
    NODE_DOWN,
    NODE_FIRST_GPU,
    NODE_FREE,
    NODE_TYPE,
    NODES,
    NOTHING,
    NOW,
    QUEUE,
    QUEUE_AT,
    QUEUED,
    RETRIES,
    ROUNDS,
    RUNNING,
    SHAPE_GPUS,
    SUBMIT,
    Ints,
    Reals,
)

JOULES_PER_KWH = 3.6e6
FAR_S = 1e15
"""Time to a deadline that does not exist, seconds."""


@hot_kernel
def gpus_of(ints: Ints, job: int) -> int:
    """Return the GPUs a job asks for."""
    return ints[ints[SHAPE_GPUS] + ints[ints[JOB_SHAPE] + job]]


@hot_kernel
def fact(ints: Ints, facts: Reals, table: int, job: int) -> float:
    """Return what is known of a job from the start."""
    return facts[FACTS + table * ints[JOBS] + job]


@hot_kernel
def is_waiting(ints: Ints, job: int) -> bool:
    """Whether a job stands in the queue, which is a list."""
    return ints[ints[QUEUE_AT] + job] != NOTHING


@hot_kernel
def earn(purse: Reals, term: int, amount: float) -> None:
    """Add to what this step earns of a term."""
    purse[EARNED_AT + term] += amount


@hot_kernel
def begin_step(purse: Reals) -> None:
    """Forget what the last step earned."""
    for term in range(TERMS):
        purse[EARNED_AT + term] = 0.0
    purse[ELAPSED_S] = 0.0


@kernel
def settle_reward(reals: Reals, facts: Reals, book: Ints, purse: Reals) -> float:
    """Return the weighted sum of what this step earned, and count it towards the return.

    What the scheduler to compare with earned in the same span of time, on the same jobs, is taken
    off: jobs that come make everybody wait, and a chooser should hear of its own doing only. Over
    an episode exactly that scheduler's return is taken off, whatever the chooser does.
    """
    compared = facts[GRID_AT + GRID]
    if book[IS_OVER] == End.NOT_YET and reals[NOW] < facts[GRID_SPAN_S]:
        place = reals[NOW] / facts[GRID_SPAN_S] * GRID
        before = int(place)
        step = facts[GRID_AT + before + 1] - facts[GRID_AT + before]
        compared = facts[GRID_AT + before] + (place - before) * step
    reward = purse[COMPARED] - compared
    purse[COMPARED] = compared
    for term in range(TERMS):
        weight = facts[WEIGHT_AT + term]
        if weight != 0.0:
            reward += weight * purse[EARNED_AT + term]
    purse[RETURN] += reward
    return reward


# Waiting jobs.


@kernel
def note_arrival(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals, job: int
) -> None:
    """Book a job that has just been submitted and now waits."""
    _count(ints, reals, facts, book, purse, job, 1)
    rank = int(fact(ints, facts, LATEST_RANK, job))
    for index in range(len(SLACKS)):
        if rank < book[SLACK_AT + index]:  # it comes with less slack than that
            book[SLACK_COUNT + index] += 1
    if rules[BUCKETS] > 0:
        run_s, gpus = fact(ints, facts, RUN, job), gpus_of(ints, job)
        at = _bucket_at(rules, book)
        purse[at + PAST_ARRIVALS] += 1.0
        purse[at + PAST_WORK] += run_s * gpus
        purse[at + PAST_GPUS] += gpus
        purse[at + PAST_RUN_S] += run_s
        patience = (fact(ints, facts, DEADLINE, job) - reals[NOW]) / max(run_s, 1.0)
        purse[at + PAST_PATIENCE] += min(max(patience, 0.0), NO_DEADLINE)


@hot_kernel
def _bucket_at(rules: Ints, book: Ints) -> int:
    """Return where the numbers of the span that is now stand in the purse."""
    return PURSE + PAST * (book[BUCKET] % rules[BUCKETS])


@kernel
def _count(
    ints: Ints, reals: Reals, facts: Reals, book: Ints, purse: Reals, job: int, sign: int
) -> None:
    """Count a job in or out of the sums over waiting jobs."""
    submit, run_s = reals[ints[SUBMIT] + job], fact(ints, facts, RUN, job)
    true_s = reals[ints[DURATION] + job]
    gpus = gpus_of(ints, job)
    purse[SUBMIT_SUM] += sign * submit
    purse[SUBMIT_SQUARES] += sign * submit * submit
    purse[RUN_SUM] += sign * run_s
    purse[RUN_SQUARES] += sign * run_s * run_s
    purse[WORK_SUM] += sign * run_s * gpus
    purse[GPUS_SUM] += sign * gpus
    purse[PRIORITY_SUM] += sign * fact(ints, facts, PRIORITY, job)
    if _is_before_first_start(ints, job, sign):
        purse[BSLD_RATE] += sign / max(true_s, SHORT_S)
        purse[SLD_RATE] += sign / max(true_s, 1.0)
    if fact(ints, facts, DEADLINE, job) < math.inf:
        book[WITH_DEADLINE] += sign


@hot_kernel
def _is_before_first_start(ints: Ints, job: int, sign: int) -> bool:
    """Whether a job that comes (1) has never run, or one that has just started (−1) had not."""
    if not (REAL_CLUSTERS and ints[IS_REAL] == 1):
        return True
    return ints[ints[ROUNDS] + job] == (0 if sign > 0 else 1)


@kernel
def _forget_waiting(book: Ints, purse: Reals) -> None:
    """Set the sums over waiting jobs to 0: sums of many small numbers do not cancel exactly."""
    for place in range(SUBMIT_SUM, SLD_RATE + 1):
        purse[place] = 0.0
    book[WITH_DEADLINE] = 0


@kernel
def note_start(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals, job: int
) -> None:
    """Book a waiting job that has just started."""
    if ints[QUEUED] == 0:
        _forget_waiting(book, purse)
    else:
        _count(ints, reals, facts, book, purse, job, -1)
    for index in range(len(AGES)):
        if job < book[AGE_AT + index]:
            book[AGE_COUNT + index] -= 1
    rank = int(fact(ints, facts, LATEST_RANK, job))
    for index in range(len(SLACKS)):
        if rank < book[SLACK_AT + index]:
            book[SLACK_COUNT + index] -= 1
    gpus = gpus_of(ints, job)
    book[BUSY_GPUS] += gpus
    purse[WORK_ENDS] += gpus * reals[ints[EXPECTED_END] + job]
    if not (REAL_CLUSTERS and ints[IS_REAL] == 1 and ints[ints[ROUNDS] + job] > 1):
        purse[_waits_at(ints, rules) + job] = reals[NOW] - reals[ints[SUBMIT] + job]


@hot_kernel
def jcts_at(rules: Ints) -> int:
    """Return where the table of completion times begins in the purse."""
    return PURSE + PAST * rules[BUCKETS]


@hot_kernel
def _waits_at(ints: Ints, rules: Ints) -> int:
    """Return where the table of waits until the first start begins in the purse."""
    return jcts_at(rules) + ints[JOBS]


# Running and finished jobs.


@kernel
def note_end(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals, job: int
) -> None:
    """Book a running job that ends now."""
    run_s = reals[ints[DURATION] + job]
    jct_s = reals[NOW] - reals[ints[SUBMIT] + job]
    gpus = gpus_of(ints, job)
    book[ENDED] += 1
    book[BUSY_GPUS] -= gpus
    purse[WORK_ENDS] -= gpus * reals[ints[EXPECTED_END] + job]
    if book[BUSY_GPUS] == 0:
        purse[WORK_ENDS] = 0.0
    book[BOOK + job] = FINISHED
    purse[jcts_at(rules) + job] = jct_s
    _cease_to_age(book, job)
    wait_s = purse[_waits_at(ints, rules) + job]
    _earn_by_end(reals, facts, purse, run_s, jct_s, wait_s)
    if reals[NOW] > fact(ints, facts, DEADLINE, job):
        book[LATE_JOBS] += 1
        earn(purse, Term.LATE, 1.0 / facts[PLACEABLE])
    if rules[BUCKETS] > 0:
        at = _bucket_at(rules, book)
        purse[at + PAST_ENDS] += 1.0
        if book[LAST_ENDED] > 0:
            _note_what_told(ints, reals, facts, purse, at, book[LAST_ENDED] - 1, job)
    book[LAST_ENDED] = job + 1


@kernel
def _note_what_told(
    ints: Ints, reals: Reals, facts: Reals, purse: Reals, at: int, before: int, job: int
) -> None:
    """Note what of that which was known told which of two ended jobs would run longer."""
    longer = _sign(reals[ints[DURATION] + job] - reals[ints[DURATION] + before])
    known = _sign(fact(ints, facts, RUN, job) - fact(ints, facts, RUN, before))
    urgent = _sign(fact(ints, facts, PRIORITY, before) - fact(ints, facts, PRIORITY, job))
    patience = min(fact(ints, facts, DEADLINE, job) - reals[ints[SUBMIT] + job], FAR_S)
    other = min(fact(ints, facts, DEADLINE, before) - reals[ints[SUBMIT] + before], FAR_S)
    purse[at + PAST_BY_RUN] += longer * known
    purse[at + PAST_BY_PRIORITY] += longer * urgent
    purse[at + PAST_BY_DEADLINE] += longer * _sign(patience - other)
    purse[at + PAST_BY_SIZE] += longer * _sign(float(gpus_of(ints, job) - gpus_of(ints, before)))


@hot_kernel
def _sign(value: float) -> float:
    """Return 1, 0 or −1."""
    return 1.0 if value > 0.0 else (-1.0 if value < 0.0 else 0.0)


@kernel
def _earn_by_end(
    reals: Reals, facts: Reals, purse: Reals, run_s: float, jct_s: float, wait_s: float
) -> None:
    """Earn what of a job's slowdown did not accrue while it waited for its first start."""
    jobs = facts[PLACEABLE]
    bounded = max(jct_s / max(run_s, SHORT_S), 1.0)
    earn(purse, Term.BOUNDED_SLOWDOWN, (bounded - wait_s / max(run_s, SHORT_S)) / jobs)
    earn(purse, Term.SLOWDOWN, (jct_s - wait_s) / max(run_s, 1.0) / jobs)
    purse[WAIT_SUM] += wait_s
    purse[JCT_SUM] += jct_s
    purse[BSLD_SUM] += bounded
    purse[LAST_END] = reals[NOW]


@hot_kernel
def _cease_to_age(book: Ints, job: int) -> None:
    """Count a job that leaves the system out of those that are old."""
    for mark in range(2):
        if job < book[TAIL_AT + mark]:
            book[TAIL_COUNT + mark] -= 1


@kernel
def _note_given_up(ints: Ints, facts: Reals, book: Ints, purse: Reals) -> None:
    """Book jobs that lost their nodes too often: they left, and will not meet their deadline."""
    for job in range(ints[JOBS]):
        if ints[ints[FAILURES] + job] <= ints[RETRIES] or book[BOOK + job] != 0:
            continue
        book[BOOK + job] = GIVEN_UP
        book[LOST] += 1
        _cease_to_age(book, job)
        if fact(ints, facts, DEADLINE, job) < math.inf:
            book[LATE_JOBS] += 1
            earn(purse, Term.LATE, 1.0 / facts[PLACEABLE])


@kernel
def recount(ints: Ints, reals: Reals, facts: Reals, book: Ints, purse: Reals) -> None:
    """Take stock of all jobs, after nodes failed and jobs came back."""
    if ints[RETRIES] != UNLIMITED:
        _note_given_up(ints, facts, book, purse)
    _forget_waiting(book, purse)
    book[OLDEST] = 0
    for index in range(len(AGES)):
        book[AGE_COUNT + index] = 0
    for index in range(len(SLACKS)):
        book[SLACK_COUNT + index] = 0
    for place in range(ints[QUEUED]):
        job = ints[ints[QUEUE] + place]
        _count(ints, reals, facts, book, purse, job, 1)
        for index in range(len(AGES)):
            if job < book[AGE_AT + index]:
                book[AGE_COUNT + index] += 1
        rank = int(fact(ints, facts, LATEST_RANK, job))
        for index in range(len(SLACKS)):
            if rank < book[SLACK_AT + index]:
                book[SLACK_COUNT + index] += 1
    book[BUSY_GPUS] = 0
    purse[WORK_ENDS] = 0.0
    for place in range(ints[RUNNING]):
        job = ints[ints[HEAP] + place]
        book[BUSY_GPUS] += gpus_of(ints, job)
        purse[WORK_ENDS] += gpus_of(ints, job) * reals[ints[EXPECTED_END] + job]


# Time.


@kernel
def pass_seconds(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    seconds: float,
) -> None:
    """Earn what accrues while nothing changes for so many seconds from now."""
    if seconds <= 0.0:
        return
    purse[ELAPSED_S] += seconds
    jobs = facts[PLACEABLE]
    waiting, running = float(ints[QUEUED]), float(ints[RUNNING])
    earn(purse, Term.WAITING, waiting * seconds / jobs)
    earn(purse, Term.IN_SYSTEM, (waiting + running) * seconds / jobs)
    earn(purse, Term.BOUNDED_SLOWDOWN, purse[BSLD_RATE] * seconds / jobs)
    earn(purse, Term.SLOWDOWN, purse[SLD_RATE] * seconds / jobs)
    if book[ENDED] + book[LOST] < jobs:  # nobody stands idle for jobs that can never run
        earn(purse, Term.IDLE, (1.0 - book[BUSY_GPUS] / float(ints[GPUS])) * seconds)
        if rules[USES_ENERGY] == 1:
            earn(purse, Term.ENERGY, _watts(ints, facts) * seconds / JOULES_PER_KWH)
    if rules[USES_TAIL] == 1:
        earn(purse, Term.TAIL, _old_job_seconds(ints, reals, facts, book, seconds) / jobs)
    if rules[BUCKETS] > 0:
        _fill_buckets(ints, reals, rules, scales, book, purse, reals[NOW] + seconds)


@kernel
def _watts(ints: Ints, facts: Reals) -> float:
    """Return the watts of all GPUs now."""
    total = 0.0
    for node in range(ints[NODES]):
        after = ints[ints[NODE_FIRST_GPU] + node + 1] if node + 1 < ints[NODES] else ints[GPUS]
        gpus = after - ints[ints[NODE_FIRST_GPU] + node]
        kind = ints[ints[NODE_TYPE] + node]
        busy = gpus - ints[ints[NODE_FREE] + node]
        if REAL_CLUSTERS and ints[IS_REAL] == 1 and ints[ints[NODE_DOWN] + node] == 1:
            busy = 0  # nothing is free on a node that is away, and nothing in use
        total += gpus * facts[IDLE_W_AT + kind] + busy * facts[EXTRA_W_AT + kind]
    return total


@kernel
def _old_job_seconds(ints: Ints, reals: Reals, facts: Reals, book: Ints, seconds: float) -> float:
    """Return the seconds that jobs in the system spend between the two ages that bound the tail."""
    moment, end = reals[NOW], reals[NOW] + seconds
    total = 0.0
    while True:
        first = _crossing(ints, reals, book, TAIL_AT, facts[TAIL_FROM_S])
        second = _crossing(ints, reals, book, TAIL_AT + 1, facts[TAIL_TO_S])
        crossing = min(first, second, end)
        if crossing > moment:
            total += (book[TAIL_COUNT] - book[TAIL_COUNT + 1]) * (crossing - moment)
            moment = crossing
        if crossing >= end:
            return total
        mark = 0 if first <= second else 1
        job = book[TAIL_AT + mark]
        book[TAIL_AT + mark] += 1
        if ints[ints[JOB_SHAPE] + job] >= 0 and book[BOOK + job] == 0:
            book[TAIL_COUNT + mark] += 1


@hot_kernel
def _crossing(ints: Ints, reals: Reals, book: Ints, mark: int, age_s: float) -> float:
    """Return when the next job reaches an age; infinity if all submitted ones have."""
    if book[mark] >= ints[NEXT_ARRIVAL]:
        return math.inf
    return reals[ints[SUBMIT] + book[mark]] + age_s


@kernel
def _fill_buckets(
    ints: Ints, reals: Reals, rules: Ints, scales: Reals, book: Ints, purse: Reals, end: float
) -> None:
    """Share what was queued and busy from now until `end` among the spans of the recent past."""
    width = scales[BUCKET_S]
    moment = reals[NOW]
    last = int(end // width)
    if last - book[BUCKET] > rules[BUCKETS]:  # what lies further back is forgotten anyway
        book[BUCKET] = last - rules[BUCKETS]
        moment = max(moment, book[BUCKET] * width)
        for place in range(PURSE, PURSE + PAST * rules[BUCKETS]):
            purse[place] = 0.0
    while True:
        border = min((book[BUCKET] + 1) * width, end)
        at = _bucket_at(rules, book)
        purse[at + PAST_QUEUE] += ints[QUEUED] * (border - moment)
        purse[at + PAST_BUSY] += book[BUSY_GPUS] * (border - moment)
        moment = border
        if book[BUCKET] >= last:
            return
        book[BUCKET] += 1
        at = _bucket_at(rules, book)
        for place in range(at, at + PAST):
            purse[place] = 0.0


@kernel
def move_marks(ints: Ints, reals: Reals, scales: Reals, facts: Reals, book: Ints) -> None:
    """Let jobs pass the ages and slacks that they have reached by now."""
    now, unit = reals[NOW], scales[TIME_UNIT_S]
    for index in range(len(AGES)):
        mark = AGE_AT + index
        latest = now - AGES[index] * unit
        while book[mark] < ints[NEXT_ARRIVAL] and reals[ints[SUBMIT] + book[mark]] <= latest:
            if is_waiting(ints, book[mark]):
                book[AGE_COUNT + index] += 1
            book[mark] += 1
    for index in range(len(SLACKS)):
        mark = SLACK_AT + index
        latest = now + SLACKS[index] * unit
        while book[mark] < ints[JOBS] and fact(ints, facts, LATEST, book[mark]) < latest:
            if is_waiting(ints, int(fact(ints, facts, LATEST_JOB, book[mark]))):
                book[SLACK_COUNT + index] += 1
            book[mark] += 1
    while book[OLDEST] < ints[NEXT_ARRIVAL] and not is_waiting(ints, book[OLDEST]):
        book[OLDEST] += 1
