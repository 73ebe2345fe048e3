"""What a step earns: quantities that add up while time passes, and at the end of an episode.

A reward is a weighted sum of these terms (see `Term` and `envs.rewards`). Sums over waiting jobs
are kept as jobs come and go, so that passing time costs the same however many wait.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.picking.line import gpus_of
from yardmaster.engine.picking.places import (
    BASELINE,
    BSLD_RATE,
    BSLD_SUM,
    BUSY_GPUS,
    DEADLINE,
    EARNED_AT,
    ELAPSED_S,
    ENDED,
    EPISODE_SPAN_S,
    EXTRA_W_AT,
    FACTS,
    IDLE_W_AT,
    IS_OVER,
    JCT_SUM,
    LAST_END,
    LINE_LENGTH,
    PLACEABLE,
    PRIORITY,
    PURSE,
    RETURN,
    SCORE,
    SHORT_S,
    SLD_RATE,
    SLD_SUM,
    SUBMIT_SUM,
    TENANT,
    TENANT_COUNT,
    TERMS,
    USES_ENERGY,
    WAIT_SUM,
    WEIGHT_AT,
    WORK,
    WORK_COMING,
    WORK_ENDS,
    WORK_SUM,
    WORK_WAITING,
    End,
    Score,
    Term,
)
from yardmaster.engine.state import (
    DURATION,
    END,
    GPUS,
    IS_REAL,
    JOBS,
    NODE_FIRST_GPU,
    NODE_FREE,
    NODE_TYPE,
    NODES,
    NOW,
    ROUNDS,
    RUNNING,
    SUBMIT,
    Ints,
    Reals,
)

JOULES_PER_KWH = 3.6e6


@hot_kernel
def earn(purse: Reals, term: int, amount: float) -> None:
    """Add to what this step earns of a term."""
    purse[EARNED_AT + term] += amount


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
    waiting, running = float(book[LINE_LENGTH]), float(ints[RUNNING])
    busy = book[BUSY_GPUS] / float(ints[GPUS])
    earn(purse, Term.WAITING, waiting * seconds / jobs)
    earn(purse, Term.IN_SYSTEM, (waiting + running) * seconds / jobs)
    earn(purse, Term.BOUNDED_SLOWDOWN, purse[BSLD_RATE] * seconds / jobs)
    earn(purse, Term.SLOWDOWN, purse[SLD_RATE] * seconds / jobs)
    earn(purse, Term.BUSY, busy * seconds)
    earn(purse, Term.IDLE, (1.0 - busy) * seconds)
    middle = reals[NOW] + seconds / 2.0
    earn(purse, Term.QUEUE_WAIT, (waiting * middle - purse[SUBMIT_SUM]) * seconds)
    earn(purse, Term.CROWD, (waiting + running) * seconds)
    left = purse[WORK_WAITING] + purse[WORK_ENDS] - middle * book[BUSY_GPUS]
    earn(purse, Term.WORK_LEFT, left / facts[WORK] * seconds / facts[EPISODE_SPAN_S])
    if rules[USES_ENERGY] == 1:
        earn(purse, Term.ENERGY, _watts(ints, scales) * seconds / JOULES_PER_KWH)


@kernel
def _watts(ints: Ints, scales: Reals) -> float:
    """Return the watts of all GPUs now."""
    total = 0.0
    for node in range(ints[NODES]):
        after = ints[ints[NODE_FIRST_GPU] + node + 1] if node + 1 < ints[NODES] else ints[GPUS]
        gpus = after - ints[ints[NODE_FIRST_GPU] + node]
        kind = ints[ints[NODE_TYPE] + node]
        busy = gpus - ints[ints[NODE_FREE] + node]
        total += gpus * scales[IDLE_W_AT + kind] + busy * scales[EXTRA_W_AT + kind]
    return total


@hot_kernel
def work_left(reals: Reals, book: Ints, purse: Reals) -> float:
    """Return the GPU-seconds of all jobs that have been submitted and not finished."""
    return max(purse[WORK_WAITING] + purse[WORK_ENDS] - reals[NOW] * book[BUSY_GPUS], 0.0)


@kernel
def note_start(ints: Ints, reals: Reals, facts: Reals, book: Ints, purse: Reals, job: int) -> None:
    """Book a job that has just started."""
    run_s = reals[ints[DURATION] + job]
    wait_s = reals[NOW] - reals[ints[SUBMIT] + job]
    gpus = gpus_of(ints, job)
    book[BUSY_GPUS] += gpus
    purse[WORK_ENDS] += gpus * reals[ints[END] + job]
    if REAL_CLUSTERS and ints[IS_REAL] == 1 and ints[ints[ROUNDS] + job] > 1:
        return  # it lost its nodes: its wait was over when it first started
    purse[PURSE + ints[JOBS] + job] = wait_s
    if run_s < SHORT_S:
        # What accrued while it waited began at once; bounded slowdown begins at ten seconds.
        grown = max(wait_s + run_s - SHORT_S, 0.0) / SHORT_S
        earn(purse, Term.BOUNDED_SLOWDOWN, (grown - wait_s / SHORT_S) / facts[PLACEABLE])


@kernel
def note_end(ints: Ints, reals: Reals, facts: Reals, book: Ints, purse: Reals, job: int) -> None:
    """Book a running job that ends now."""
    jobs, table = facts[PLACEABLE], ints[JOBS]
    run_s = reals[ints[DURATION] + job]
    jct_s = reals[NOW] - reals[ints[SUBMIT] + job]
    gpus = gpus_of(ints, job)
    slowdown = max(jct_s / max(run_s, SHORT_S), 1.0)
    book[ENDED] += 1
    book[BUSY_GPUS] -= gpus
    purse[WORK_ENDS] -= gpus * reals[ints[END] + job]
    if book[BUSY_GPUS] == 0:
        purse[WORK_ENDS] = 0.0  # sums of many small numbers do not cancel exactly
    purse[WAIT_SUM] += purse[PURSE + table + job]
    purse[JCT_SUM] += jct_s
    purse[BSLD_SUM] += slowdown
    purse[SLD_SUM] += jct_s / max(run_s, 1.0)
    purse[WORK_SUM] += gpus * run_s
    purse[LAST_END] = reals[NOW]
    earn(purse, Term.FINISHED, 1.0 / jobs)
    earn(purse, Term.WORK_DONE, gpus * run_s / facts[WORK])
    earn(purse, Term.PRIORITY_DONE, facts[FACTS + PRIORITY * table + job])
    if reals[NOW] > facts[FACTS + DEADLINE * table + job]:  # never true of NaN: no deadline
        earn(purse, Term.LATE, 1.0 / jobs)
    if facts[TENANT_COUNT] > 0:
        tenant = PURSE + 2 * table + 2 * int(facts[FACTS + TENANT * table + job])
        purse[tenant] += slowdown
        purse[tenant + 1] += 1.0


@kernel
def note_over(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals
) -> None:
    """Book the end of an episode."""
    span = facts[EPISODE_SPAN_S]
    if book[IS_OVER] == End.DONE:
        earn(purse, Term.OUTCOME, (span - reals[NOW]) / span)
    else:
        left = work_left(reals, book, purse) + purse[WORK_COMING]
        earn(purse, Term.OUTCOME, -left / facts[WORK])
    earn(purse, Term.FAIRNESS, _jain(ints, facts, purse))
    base = facts[BASELINE]
    if not math.isnan(base):
        own = score_of(ints, reals, rules, book, purse)
        if rules[SCORE] == Score.UTILISATION:  # more is better
            base, own = own, base
            earn(purse, Term.RELATIVE, (base - own) / max(base, own, 1e-9))
        else:
            earn(purse, Term.RELATIVE, (base - own) / max(base, own, 1.0))


@kernel
def score_of(ints: Ints, reals: Reals, rules: Ints, book: Ints, purse: Reals) -> float:
    """Return what the episode so far scores; means are over the jobs that finished."""
    kind = rules[SCORE]
    ended = max(float(book[ENDED]), 1.0)
    if kind == Score.WAIT:
        return purse[WAIT_SUM] / ended
    if kind == Score.TURNAROUND:
        return purse[JCT_SUM] / ended
    if kind == Score.UTILISATION:
        wall = purse[LAST_END] - reals[ints[SUBMIT]]
        return purse[WORK_SUM] / max(wall * ints[GPUS], 1e-9)
    if kind == Score.SLOWDOWN:
        return purse[SLD_SUM] / ended
    return purse[BSLD_SUM] / ended


@kernel
def _jain(ints: Ints, facts: Reals, purse: Reals) -> float:
    """Return the Jain index over tenants' mean bounded slowdown: 1 if all fare alike."""
    total, squares, tenants = 0.0, 0.0, 0.0
    for tenant in range(int(facts[TENANT_COUNT])):
        at = PURSE + 2 * ints[JOBS] + 2 * tenant
        if purse[at + 1] > 0.0:
            mean = purse[at] / purse[at + 1]
            total += mean
            squares += mean * mean
            tenants += 1.0
    return total * total / (tenants * squares) if tenants > 0.0 else 1.0


@hot_kernel
def settle_reward(scales: Reals, purse: Reals) -> float:
    """Return the weighted sum of what this step earned, and count it towards the return."""
    reward = 0.0
    for term in range(TERMS):
        weight = scales[WEIGHT_AT + term]
        if weight != 0.0:
            reward += weight * purse[EARNED_AT + term]
    purse[RETURN] += reward
    return reward


@hot_kernel
def begin_step(purse: Reals) -> None:
    """Forget what the last step earned."""
    for term in range(TERMS):
        purse[EARNED_AT + term] = 0.0
    purse[ELAPSED_S] = 0.0
