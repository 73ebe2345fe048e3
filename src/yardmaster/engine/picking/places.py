"""Where everything stands in the rows that picking adds to a simulation.

A simulation in which a policy picks the jobs has, beside the two arrays of the core:

- `rules`, `scales`: what the task is, the same for all its environments (integers and reals);
- `facts`: what is known of one episode's jobs from the start (reals, never written);
- `cards`: the part of each job's token that never changes (32-bit reals, never written);
- `book`, `purse`: what changes from decision to decision (integers and reals).

Every name below is a place in one of these rows; a name that ends in `_AT` is where a table begins.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count

_place = count()

# rules: integers, the same for all environments of a task
WINDOW = next(_place)  # job tokens
TOKEN = next(_place)  # numbers of a job token
CARD = next(_place)  # numbers of a token that never change
LENGTH = next(_place)  # numbers of an observation
TOKENS_AT = next(_place)  # where the tokens begin in it
SLOTS_AT = next(_place)  # where the GPU slots begin in it
GLOBALS_AT = next(_place)  # where the globals begin in it
SLOTS = next(_place)  # GPU slots
FEATURES = next(_place)  # a Features
LOOKAHEAD = next(_place)  # a Lookahead
NOOP = next(_place)  # a NoOp
PACE = next(_place)  # a Pace
KNOWS = next(_place)  # 1: run times are known (true or estimated), 0: blind
RESERVES = next(_place)  # 1: tokens tell of the reservation of the first blocked job
RANKS = next(_place)  # heuristics whose ranks a token shows
IS_FIXED = next(_place)  # 1: keys of the window's order never change
IS_UNMASKED = next(_place)  # 1: every action is legal, and those that make no sense do nothing
MAX_STEPS = next(_place)  # decisions after which an episode is cut; 0: never
SCORE = next(_place)  # a Score: what RELATIVE compares
USES_ENERGY = next(_place)  # 1: the reward counts energy
PLACES_BESIDE = next(_place)  # 1: jobs that would outlast the reservation go beside it
RULES = next(_place)

_place = count()

# scales: reals, the same for all environments of a task
TIME_UNIT_S = next(_place)  # seconds that count as long
TICK_S = next(_place)  # seconds per step under Pace.TICK
LONGEST_S = next(_place)  # run time that features divide by
SPAN_S = next(_place)  # time that waits are divided by, for features that do
WEIGHT_AT = next(_place)  # weights of the terms of the reward begin here


class Term(IntEnum):
    """A quantity that a reward may weigh; see `envs.rewards` for the words."""

    WAITING = 0
    IN_SYSTEM = 1
    BOUNDED_SLOWDOWN = 2
    SLOWDOWN = 3
    BUSY = 4
    IDLE = 5
    FINISHED = 6
    LATE = 7
    ENERGY = 8
    WORK_DONE = 9
    WORK_LEFT = 10
    HELD_BACK = 11
    OUTCOME = 12
    PRIORITY_DONE = 13
    QUEUE_WAIT = 14
    CROWD = 15
    INVALID = 16
    FAIRNESS = 17
    RELATIVE = 18


TERMS = len(Term)
IDLE_W_AT = WEIGHT_AT + TERMS  # [types] watts of a GPU that does nothing
MOST_TYPES = 32
EXTRA_W_AT = IDLE_W_AT + MOST_TYPES  # [types] watts that running adds
SCALES = EXTRA_W_AT + MOST_TYPES

_place = count()

# facts: reals of one episode, never written
HORIZON_S = next(_place)  # second at which the episode is cut; infinity: never
EPISODE_SPAN_S = next(_place)  # from second 0 to the horizon, or a guess of the length
WORK = next(_place)  # GPU-seconds of all jobs
PLACEABLE = next(_place)  # jobs that can ever run
BASELINE = next(_place)  # score of the baseline scheduler on the same jobs
TENANT_COUNT = next(_place)
FACTS = next(_place)  # tables over jobs follow, one after another:
RUN = 0  # run time as the policy knows it; the true one where it is blind
PRIORITY = 1
DEADLINE = 2  # NaN: none
TENANT = 3  # number of the tenant
RANK_KEY = 4  # key under the first heuristic (NaN: the window's order); the others' follow

_place = count()

# book: integers of one environment
LINE_LENGTH = next(_place)  # jobs waiting, in the window's order
LINE_FIRST = next(_place)  # where in its table the line begins: jobs leave near the front
STEPS = next(_place)  # decisions so far
NOOPS = next(_place)  # of which no-ops
SHOWN = next(_place)  # tokens that are not blank in the observation now
STAMP = next(_place)  # counts looks: what fits is found once per shape and look
HEAD = next(_place)  # first job of the window that does not fit, or NOTHING
CHOSEN = next(_place)  # job picked and not started yet (COMMIT), plus one; 0: none
BUSY_GPUS = next(_place)
ENDED = next(_place)  # jobs finished
IS_OVER = next(_place)  # an End: why the episode ended
INVALID_STEPS = next(_place)  # actions that made no sense
BOOK = next(_place)  # tables follow: line [jobs], then stamps [shapes], then fits [shapes]

_place = count()

# purse: reals of one environment
EARNED_AT = next(_place)  # what each term earned in this step begins here
EARNED_END = EARNED_AT + TERMS
_place = count(EARNED_END)
RETURN = next(_place)  # rewards so far
ELAPSED_S = next(_place)  # seconds that passed in this step
SHADOW = next(_place)  # second reserved for the first blocked job
SPARE = next(_place)  # GPUs free beside that reservation
SUBMIT_SUM = next(_place)  # of waiting jobs, seconds
WORK_WAITING = next(_place)  # GPU-seconds of waiting jobs
WORK_ENDS = next(_place)  # GPUs · end, summed over running jobs
WORK_COMING = next(_place)  # GPU-seconds of jobs not submitted yet
BSLD_RATE = next(_place)  # sum over waiting jobs of 1 / max(run time, 10 s)
SLD_RATE = next(_place)  # sum over waiting jobs of 1 / run time
WAIT_SUM = next(_place)  # of finished jobs, seconds
JCT_SUM = next(_place)
BSLD_SUM = next(_place)
SLD_SUM = next(_place)
WORK_SUM = next(_place)  # GPU-seconds of finished jobs
LAST_END = next(_place)
# Tables follow: keys [jobs], waits of started jobs [jobs], then per tenant sum and number of jobs.
PURSE = next(_place)


class Features(IntEnum):
    """What an observation is made of."""

    STANDARD = 0
    GPU_OPTIMIZER = 1
    DRL_SCHEDULER = 2
    RLTUNE = 3


class Lookahead(IntEnum):
    """What the GPU slots say of when GPUs become free."""

    OFF = 0
    PER_GPU = 1
    SORTED = 2
    CDF = 3


class NoOp(IntEnum):
    """When waiting may be chosen although a job could start."""

    NEVER = 0
    WHEN_BLOCKED = 1
    ALWAYS = 2


class Pace(IntEnum):
    """When a policy is asked, and what passes between two decisions."""

    DECISION = 0
    """Whenever a job of the window fits; time passes when none does, or after a no-op."""
    EVENT = 1
    """After every single arrival or completion, whether anything fits or not."""
    TICK = 2
    """Every so many seconds, whatever happens."""
    COMMIT = 3
    """Whenever a job waits and none is chosen; a chosen job that does not fit blocks all."""


class Score(IntEnum):
    """What a schedule is judged by against a baseline; all but utilisation are means over jobs."""

    BOUNDED_SLOWDOWN = 0
    WAIT = 1
    TURNAROUND = 2
    UTILISATION = 3
    SLOWDOWN = 4


class End(IntEnum):
    """Why an episode is over."""

    NOT_YET = 0
    DONE = 1
    """Every job has finished."""
    CUT = 2
    """A limit on time or decisions was reached."""


SHORT_S = 10.0
"""Run times below this count as this in bounded slowdown, seconds."""
