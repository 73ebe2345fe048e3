"""Where everything stands in the rows that choosing adds to a simulation.

A simulation whose scheduler is chosen again and again from a menu has, beside the two arrays of the
core:

- `rules`, `scales`: what the task is, the same for all its environments (integers and reals);
- `facts`: what is known of one episode from the start (reals, never written);
- `book`, `purse`: what changes from decision to decision (integers and reals).

Every name below is a place in one of these rows; a name that ends in `_AT` is where a table begins.

The menu itself lies behind the core's own tables: `MENU_FIELDS` integers per scheduler, which say
which order, discipline and placement it is and where in `reals` the keys of its order begin. To
change the scheduler is to write these few integers into the core's header: no job is touched,
however long the queue.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count

MOST_MEMBERS = 32
"""Schedulers on a menu at most."""
MOST_LABELS = 32
"""Numbers that name a regime, for choosers that are told."""
MOST_TYPES = 32
"""GPU types of a cluster whose watts are known."""
GRID = 256
"""Spans of time in which the reward of the scheduler to compare with is known."""

AGES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Ages, in time units, at which the share of waiting jobs that are older is shown."""
SLACKS = (-1.0, 0.0, 0.25, 0.5, 1.0, 2.0)
"""Slacks, in time units, at which the share of waiting jobs that have less is shown."""
AHEAD = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Times ahead, in time units, at which the share of GPUs that will be free is shown."""
MOST_LOOKED_AT = 256
"""Running jobs that lookahead looks at: those that end soonest, or nearly so, if more run."""

_place = count()

# menu: integers, this many per scheduler
MENU_ORDER = next(_place)  # an OrderKind
MENU_DISCIPLINE = next(_place)
MENU_PLACEMENT = next(_place)
MENU_OFFSET = next(_place)  # where in `reals` its keys, or their constant parts, begin
MENU_RATE = next(_place)  # where the change of the keys per second begins
MENU_SINCE = next(_place)  # where the seconds begin from which age counts
MENU_CLIP_LOW = next(_place)  # where the lower bound of the age stands; the upper one behind it
MENU_FIELDS = next(_place)

_place = count()

# rules: integers, the same for all environments of a task
MEMBERS = next(_place)  # schedulers on the menu
LENGTH = next(_place)  # numbers of an observation
RECENT_AT = next(_place)  # where the recent past begins in it
BUCKETS = next(_place)  # spans of time of the recent past; 0: it is not shown
KNOWS = next(_place)  # 1: run times are known (true or estimated), 0: blind
SHOWS_AGES = next(_place)
SHOWS_CHOICE = next(_place)  # 1: shows which scheduler is at work
LABELS = next(_place)  # numbers that name the regime
MAX_STEPS = next(_place)  # decisions after which an episode is cut; 0: never
USES_ENERGY = next(_place)  # 1: the reward counts energy
USES_TAIL = next(_place)  # 1: the reward counts old jobs
RULES = next(_place)

_place = count()

# scales: reals, the same for all environments of a task
TIME_UNIT_S = next(_place)  # seconds that count as long
BUCKET_S = next(_place)  # length of a span of the recent past
EVERY_S = next(_place)  # least seconds between two decisions; 0: at every event
SCALES = next(_place)


class Term(IntEnum):
    """A quantity that a reward may weigh; see `envs.choosing.rewards` for the words."""

    WAITING = 0
    IN_SYSTEM = 1
    TAIL = 2
    BOUNDED_SLOWDOWN = 3
    SLOWDOWN = 4
    LATE = 5
    ENERGY = 6
    IDLE = 7
    SWITCH = 8


TERMS = len(Term)

_place = count()

# facts: reals of one episode, never written
HORIZON_S = next(_place)  # second at which the episode is cut; infinity: never
PLACEABLE = next(_place)  # jobs that can ever run
MENU_AT = next(_place)  # where in the core's integers the menu begins
TAIL_FROM_S = next(_place)  # age from which a job counts as old
TAIL_TO_S = next(_place)  # age up to which it counts
WEIGHT_AT = next(_place)  # weights of the terms of the reward begin here
IDLE_W_AT = WEIGHT_AT + TERMS  # [types] watts of a GPU that does nothing
EXTRA_W_AT = IDLE_W_AT + MOST_TYPES  # [types] watts that running adds
LABEL_AT = EXTRA_W_AT + MOST_TYPES  # numbers that name the regime
GRID_SPAN_S = LABEL_AT + MOST_LABELS  # second by which the scheduler to compare with is done
GRID_AT = GRID_SPAN_S + 1  # [spans + 1] its rewards up to evenly spaced seconds
FACTS = GRID_AT + GRID + 1  # tables over jobs follow, one after another:
RUN = 0  # run time as the chooser knows it, seconds; 0 where it is blind
DEADLINE = 1  # infinity: none
PRIORITY = 2
LATEST = 3  # latest start that meets the deadline, earliest first; infinity at the end
LATEST_JOB = 4  # whose latest start that is
LATEST_RANK = 5  # where in that order a job stands
FACT_TABLES = 6

_place = count()

# book: integers of one environment
STEPS = next(_place)  # decisions so far
SWITCHES = next(_place)  # of which changed the scheduler
CURRENT = next(_place)  # scheduler at work; NOTHING until the first decision
IS_OVER = next(_place)  # an End: why the episode ended
ENDED = next(_place)  # jobs finished
LATE_JOBS = next(_place)  # jobs finished after their deadline, or given up with one
LOST = next(_place)  # jobs given up: they lost their nodes more often than allowed
BUSY_GPUS = next(_place)
WITH_DEADLINE = next(_place)  # waiting jobs that have one
LAST_ENDED = next(_place)  # job that ended last, plus one; 0: none
OLDEST = next(_place)  # no job before this row waits
BUCKET = next(_place)  # number of the span of time that is now
AGE_AT = next(_place)
_place = count(AGE_AT + len(AGES))  # jobs, by row, that have passed each age
AGE_COUNT = next(_place)
_place = count(AGE_COUNT + len(AGES))  # of which waiting
SLACK_AT = next(_place)
_place = count(SLACK_AT + len(SLACKS))  # jobs, by latest start, that have less than each slack
SLACK_COUNT = next(_place)
_place = count(SLACK_COUNT + len(SLACKS))  # of which waiting
TAIL_AT = next(_place)
_place = count(TAIL_AT + 2)  # jobs, by row, that have begun to count as old, and ceased to
TAIL_COUNT = next(_place)
_place = count(TAIL_COUNT + 2)  # of which neither has ended
CHOICES_AT = next(_place)
_place = count(CHOICES_AT + MOST_MEMBERS)  # how often each scheduler was chosen
BOOK = next(_place)  # one table follows: FINISHED or GIVEN_UP for jobs that have left [jobs]
FINISHED = 1
GIVEN_UP = 2

_place = count()

# numbers of one span of the recent past
PAST_ARRIVALS = next(_place)
PAST_WORK = next(_place)  # GPU-seconds submitted
PAST_GPUS = next(_place)  # GPUs asked for
PAST_RUN_S = next(_place)  # run times submitted
PAST_PATIENCE = next(_place)  # time to the deadline by run time, summed; 8 where there is none
PAST_ENDS = next(_place)
PAST_QUEUE = next(_place)  # jobs waiting, integrated
PAST_BUSY = next(_place)  # GPUs in use, integrated
# How often, for each job that ended and the one that ended before it, what was known of them told
# which ran longer, less how often it told the opposite:
PAST_BY_RUN = next(_place)  # the run time as it was known,
PAST_BY_PRIORITY = next(_place)  # the priority (urgent is short),
PAST_BY_DEADLINE = next(_place)  # the time to the deadline,
PAST_BY_SIZE = next(_place)  # the number of GPUs
PAST = next(_place)

_place = count()

# purse: reals of one environment
EARNED_AT = next(_place)  # what each term earned in this step begins here
_place = count(EARNED_AT + TERMS)
RETURN = next(_place)  # rewards so far
ELAPSED_S = next(_place)  # seconds that passed in this step
ASKED_S = next(_place)  # second of the last decision
COMPARED = next(_place)  # rewards so far of the scheduler to compare with
SUBMIT_SUM = next(_place)  # over waiting jobs: seconds of submission,
SUBMIT_SQUARES = next(_place)  # their squares,
RUN_SUM = next(_place)  # known run times,
RUN_SQUARES = next(_place)  # their squares,
WORK_SUM = next(_place)  # GPU-seconds,
GPUS_SUM = next(_place)  # GPUs,
PRIORITY_SUM = next(_place)  # priorities,
BSLD_RATE = next(_place)  # 1 / max(run time, 10 s), of those that never ran,
SLD_RATE = next(_place)  # 1 / max(run time, 1 s), likewise
WORK_ENDS = next(_place)  # over running jobs: GPUs · expected end
WAIT_SUM = next(_place)  # of finished jobs, seconds
JCT_SUM = next(_place)
BSLD_SUM = next(_place)
LAST_END = next(_place)
# Tables follow: the recent past [buckets · PAST], completion times [jobs], waits [jobs].
PURSE = next(_place)


class End(IntEnum):
    """Why an episode is over."""

    NOT_YET = 0
    DONE = 1
    """Every job has finished."""
    CUT = 2
    """A limit on time or decisions was reached."""


SHORT_S = 10.0
"""Run times below this count as this in bounded slowdown, seconds."""
NO_DEADLINE = 8.0
"""Patience of a job without a deadline, in run times."""
