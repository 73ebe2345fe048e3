"""The state of one simulation: one array of integers and one of reals.

Everything that must survive between two calls of the core is in these two arrays, so a simulation
can be stopped after any call, copied, and resumed from them alone; thousands of simulations are
simply two arrays with one more dimension, in whatever layout suits the machine. The core allocates
nothing.

`ints` begins with a header: counters, then fixed settings, then, for every table, the place where
it begins. `ints[ints[NODE_FREE] + node]` reads "free GPUs of this node", and
`reals[ints[END] + job]` "end of this job". `reals` has a header of its own for the clock.

Room left for what comes next:

- Jobs ask through *shapes* (equal requests share one), so that whether a thousand queued jobs fit
  is answered once. A new kind of constraint is a new table over shapes.
- What happened is recorded as *segments*, not as jobs: a preempted job simply has several.
- A job's end is computed where it starts, from its duration and the speed it gets there; the two
  completion heaps can remove any job, not only the first, so a job can be stopped before its end.
- Nodes enter and leave the index of free nodes one at a time (`unlist`, `enlist`), which is what
  a node failure or a repair does.
- Events of one instant are handled kind by kind: completions, then (reserved) repairs and
  failures, then arrivals, then one scheduling pass.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol


class Ints(Protocol):
    """A row of integers: a NumPy array, or a memoryview of one when the core runs uncompiled."""

    def __getitem__(self, place: int, /) -> int: ...
    def __setitem__(self, place: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...


class Reals(Protocol):
    """A row of floating-point numbers, likewise."""

    def __getitem__(self, place: int, /) -> float: ...
    def __setitem__(self, place: int, value: float, /) -> None: ...
    def __len__(self) -> int: ...


NOTHING = -1
"""No job, no node, end of a chain."""

# Counters: what changes from event to event.
NEXT_ARRIVAL = 0  # row of the next job to be submitted
QUEUED = 1  # jobs waiting
RUNNING = 2  # jobs running
FREE_GPUS = 3
COMMITTED = 4  # job chosen by the `commit` discipline and not started yet, or NOTHING
PASSES = 5  # scheduling passes so far
SEGMENTS = 6  # segments recorded
RECORDS = 7  # holdings recorded over all segments
PLAN = 8  # nodes in the placement being planned
PROFILE = 9  # steps in the conservative profile
PROMISES = 10  # entries used in the table of promised nodes
REPLAN = 11  # 1 when the conservative promises must be made anew
PASS_IS_DUE = 12  # 1 between the events of an instant and its scheduling pass

# Settings: fixed for the simulation.
ORDER = 13  # an OrderKind
DISCIPLINE = 14  # a Discipline
PLACEMENT = 15  # a Placement
SEED = 16
JOBS = 17
SHAPES = 18
NODES = 19
TYPES = 20
LEVELS = 21  # numbers of free GPUs a node can have: the most in any node, plus one for none
NODE_WORDS = 22  # words in a bit set of nodes
LEVEL_WORDS = 23  # words in a bit set of levels
GROUPS = 24  # groups of users in a HISTORY order
QUEUE_KIND = 25  # a QueueKind
TRUE_ENDS = 26  # 1: the scheduler expects the true ends; both completion heaps are the same table
ONE_ARRIVAL = 27  # 1: an empty queue admits one arrival and schedules before the next
RECORDS_GPUS = 28
STOPS_AT_PASSES = 29  # 1: return to the caller before every pass
PROFILE_ROOM = 30  # steps the profile tables can hold
PROMISE_ROOM = 31  # entries the promise tables can hold

# Where each table of integers begins in `ints`; its length in brackets.
JOB_SHAPE = 32  # [jobs] shape of the request; NOTHING if it can never be placed
RANK = 33  # [jobs] place in a fixed order (trees)
SLOT = 34  # [jobs] place within the shape, by rank (trees)
SLOT_JOB = 35  # [jobs] job of each slot, shape after shape (trees)
QUEUE = 36  # [jobs] the waiting jobs (list), or each shape's heap of them (heaps)
QUEUE_AT = 37  # [jobs] where each stands in the list or in its heap
GROUP = 38  # [jobs] whose history counts (HISTORY order)
HISTORY_JOBS = 39  # [groups + 1] jobs finished, of each group and of all
SHAPE_GPUS = 40  # [shapes]
SHAPE_CAP = 41  # [shapes] most GPUs on one node
SHAPE_TYPES = 42  # [shapes] bit set of allowed GPU types
SHAPE_SINGLE = 43  # [shapes] 1 if the gang must stay within one node
SHAPE_QUEUED = 44  # [shapes] jobs waiting
SHAPE_HEAD = 45  # [shapes] waiting job of lowest rank, or NOTHING (trees)
SHAPE_FIRST_SLOT = 46  # [shapes] where its part of SLOT_JOB or QUEUE begins
SHAPE_DEPTH = 47  # [shapes] floors of its tree (trees)
SHAPE_FLOORS = 48  # [shapes · MOST_FLOORS] where each floor begins in `reals` (trees)
HEAP = 49  # [gpus] running jobs by end
HEAP_AT = 50  # [jobs]
EXPECTED_HEAP = 51  # [gpus] running jobs by expected end
EXPECTED_HEAP_AT = 52  # [jobs]
FRONTIER = 53  # [gpus + 2] scratch
HELD = 54  # [jobs] first holding of a running job; a holding is named after its lowest GPU
HELD_NEXT = 55  # [gpus] next holding of the same job
HELD_BITS = 56  # [gpus] the GPUs held, as bits of their word in GPU_BITS
HELD_COUNT = 57  # [gpus] how many
BUCKET = 58  # [levels] scratch: first node with so many GPUs available
BUCKET_NEXT = 59  # [nodes] scratch: next node with as many
GPU_NODE = 60  # [gpus]
GPU_BITS = 61  # [words] bit set of free GPUs, node after node
NODE_FREE = 62  # [nodes]
NODE_TYPE = 63  # [nodes]
NODE_FIRST_GPU = 64  # [nodes]
NODE_WORD = 65  # [nodes] its first word in GPU_BITS
LEVEL_NODES = 66  # [types · levels · node words] bit sets of nodes by free GPUs
LEVEL_COUNT = 67  # [types · levels]
LEVEL_MASK = 68  # [types · level words] bit set of levels that have nodes
AVAILABLE = 69  # [nodes] scratch: GPUs a plan may use
EXTRA = 70  # [nodes] scratch: GPUs free beyond the EASY reservation
PLAN_NODE = 71  # [nodes]
PLAN_GPUS = 72  # [nodes]
PROFILE_FREE = 73  # [steps · nodes] (conservative)
PROMISE_AT = 74  # [jobs] first entry in PROMISE_NODE (conservative)
PROMISE_LENGTH = 75  # [jobs] (conservative)
PROMISE_NODE = 76  # [entries] (conservative)
PROMISE_GPUS = 77  # [entries] (conservative)
JOB_SEGMENT = 78  # [jobs] current segment
SEGMENT_JOB = 79  # [segments]
SEGMENT_RECORD = 80  # [segments + 1] first entry in RECORD
RECORD = 81  # [holdings] word in GPU_BITS · 2³² + bits

# Where each table of reals begins in `reals`; all times in seconds.
SUBMIT = 82  # [jobs]
DURATION = 83  # [jobs]
EXPECTED = 84  # [jobs] run time the scheduler believes
TREE = 85  # [floors of all shapes] least expected run time below (trees)
OFFSET = 86  # [jobs] key, or its constant part (list and heaps)
RATE = 87  # [jobs] change of the key per second of age (AGEING)
SINCE = 88  # [jobs] second from which age counts (AGEING)
KEY = 89  # [jobs] scratch (conservative)
HISTORY_S = 90  # [groups + 1] run time finished, of each group and of all
SHAPE_LIMIT = 91  # [shapes] longest expected run time that may start now
END = 92  # [jobs]
EXPECTED_END = 93  # [jobs]
PROFILE_TIME = 94  # [steps] (conservative)
PROMISE = 95  # [jobs] promised start (conservative)
SEGMENT_START = 96  # [segments]
SEGMENT_END = 97  # [segments]

HEADER = 98
"""Length of the header of `ints`."""

# The header of `reals`.
NOW = 0
CLIP_LOW = 1  # bounds of the age in an AGEING order
CLIP_HIGH = 2
REALS_HEADER = 3


class QueueKind(IntEnum):
    """How the waiting jobs are kept; chosen once per simulation, by order and discipline."""

    LIST = 0
    """One list, scanned in full for every job started: for keys that change."""
    HEAPS = 1
    """One heap per shape: for fixed keys where only the first of a shape can be next."""
    TREES = 2
    """One tree per shape: for fixed keys where short jobs may overtake (EASY)."""


class OrderKind(IntEnum):
    """How a waiting job's key comes about; the lowest key goes first."""

    FIXED = 0
    """The key never changes while the job waits."""
    AGEING = 1
    """offset + rate · clip(now − since, low, high)."""
    SHUFFLED = 2
    """Drawn anew for every scheduling pass."""
    HISTORY = 3
    """GPUs × mean run time of the user's finished jobs, looked up on arrival."""
    REMAINING = 4
    """Expected work left."""
    ATTAINED = 5
    """Seconds (or GPU-seconds) of service so far, or the number of thresholds they have passed."""
    SHARE = 6
    """The tenant's dominant share of the cluster now."""
    USAGE = 7
    """GPU-seconds the tenant has used so far, by what it is guaranteed."""


class Discipline(IntEnum):
    """What happens when the next job does not fit."""

    STRICT = 0
    SKIP = 1
    COMMIT = 2
    EASY = 3
    CONSERVATIVE = 4
    PREEMPTIVE = 5
    TIMESLICE = 6
    ELASTIC = 7
    DEFRAG = 8


class Placement(IntEnum):
    """Which nodes a job gets."""

    FIRST = 0
    PACK = 1
    SPREAD = 2
    RANDOM = 3
    TIER = 4
    DEFRAG = 5
    LOADBALANCE = 6
    FGD = 7
    POWER = 8
    FASTEST = 9


class Status(IntEnum):
    """Why the core returned to its caller."""

    DONE = 0
    PASS_DUE = 1
    NEEDS_ROOM = 2
